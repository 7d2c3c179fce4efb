#include "agent/provider_answer.h"

#include "agent/http.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define EVENT(json) "data: " json "\n\n"
#define DELTA(json) EVENT("{\"choices\":[{\"index\":0,\"delta\":" json "}]}")
#define END	    EVENT("{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}")
#define DONE	    "data: [DONE]\n\n"

struct row {
	const char *what, *stream;
	const char *message; /* "text|id:name:arguments|...~kept" */
};

static const struct row table[] = {
	{"nothing but the end", END, ""},
	{"no finish_reason", DELTA("{\"content\":\"a\"}") DONE, "a"},
	{"no end mark", DELTA("{\"content\":\"a\"}") END, "a"},
	{"after the end mark", DELTA("{\"content\":\"a\"}") DONE DELTA("{\"content\":\"b\"}"), "a"},
	{"null everywhere",
	 DELTA("{\"role\":\"assistant\",\"content\":null,\"tool_calls\":null,\"refusal\":null}")
		 EVENT("{\"choices\":[],\"usage\":null}") END,
	 ""},
	{"no choices", EVENT("{\"choices\":[]}") EVENT("{}") END, ""},
	{"text in two choices",
	 EVENT("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}},{\"index\":1,\"delta\":{"
	       "\"content\":\"b\"}}]}") END,
	 "ab"},
	{"text parts",
	 DELTA("{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"text\":\"b\"}]}") END, "ab"},
	{"interleaved calls",
	 DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"f\","
	       "\"arguments\":"
	       "\"\"}},{\"index\":1,\"id\":\"y\",\"function\":{\"name\":\"g\"}}]}")
		 DELTA("{\"tool_calls\":[{\"index\":1,\"function\":{\"arguments\":\"{1\"}}]}")
			 DELTA("{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{0\"}}]"
			       "}")
				 DELTA("{\"tool_calls\":[{\"index\":1,\"function\":{\"arguments\":"
				       "\"}\"}},{\"index\":0,\"function\":{\"arguments\":\"}\"}}]}")
					 END,
	 "|x:f:{0}|y:g:{1}"},
	{"same index in two choices",
	 EVENT("{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"x\","
	       "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}},{\"index\":1,\"delta\":{"
	       "\"tool_calls\":[{\"index\":0,\"id\":\"y\",\"function\":{\"name\":\"g\","
	       "\"arguments\":"
	       "\"{}\"}}]}}]}") END,
	 "|x:f:{}|y:g:{}"},
	{"id and name repeated with every piece",
	 DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"f\","
	       "\"arguments\":"
	       "\"{\"}}]}")
		 DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"f\","
		       "\"arguments\":\"}\"}}]}") END,
	 "|x:f:{}"},
	{"all calls numbered 0",
	 DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"f\","
	       "\"arguments\":"
	       "\"{}\"}}]}")
		 DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"y\",\"function\":{\"name\":\"f\","
		       "\"arguments\":\"{}\"}}]}") END,
	 "|x:f:{}|y:f:{}"},
	{"no index, no id, arguments an object",
	 DELTA("{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}},{"
	       "\"function\":{"
	       "\"name\":\"f\",\"arguments\":{\"a\":2}}}]}") END,
	 "|call_1:f:{\"a\":1}|call_2:f:{\"a\":2}"},
	{"no index, in pieces",
	 DELTA("{\"tool_calls\":[{\"id\":\"x\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]"
	       "}") DELTA("{\"tool_calls\":[{\"function\":{\"arguments\":\"}\"}}]}") END,
	 "|x:f:{}"},
	{"a call without arguments",
	 DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"f\"}}]}") END,
	 "|x:f:{}"},
	{"the same id twice",
	 DELTA("{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"f\"}},{"
	       "\"index\":1,"
	       "\"id\":\"x\",\"function\":{\"name\":\"g\"}}]}") END,
	 "|x:f:{}|call_2:g:{}"},
	{"sealed reasoning",
	 DELTA("{\"reasoning_text\":\"h\"}") DELTA("{\"reasoning_text\":\"m\",\"content\":\"a\"}")
		 DELTA("{\"reasoning_opaque\":\"S\"}") END,
	 "a~{\"reasoning_opaque\":\"S\",\"reasoning_text\":\"hm\"}"},
	{"reasoning without a seal", DELTA("{\"reasoning_text\":\"h\",\"content\":\"a\"}") END,
	 "a"},
	{"empty events", "data:\n\ndata: \n\n" DELTA("{\"content\":\"a\"}") END, "a"},
	{"plain",
	 "{\"choices\":[{\"message\":{\"content\":\"a\",\"tool_calls\":[{\"id\":\"x\","
	 "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":"
	 "\"tool_calls\"}]}",
	 "a|x:f:{}"},
	{"plain after space", " \n\t{\"choices\":[{\"message\":{\"content\":\"a\"}}]}\n", "a"},
};

/* ---- /responses ---- */

#define OUT(type, more) EVENT("{\"type\":\"response." type "\"," more "}")
#define ITEM(json)	OUT("output_item.done", "\"item\":" json)
#define OVER		OUT("completed", "\"response\":{\"status\":\"completed\",\"output\":[]}")
#define CALL(id, name)                                                                             \
	ITEM("{\"type\":\"function_call\",\"id\":\"i\",\"call_id\":\"" id "\",\"name\":\"" name    \
	     "\",\"arguments\":\"{}\"}")
#define THOUGHT                                                                                    \
	ITEM("{\"type\":\"reasoning\",\"id\":\"i\",\"summary\":[],\"status\":\"done\","            \
	     "\"encrypted_content\":\"S\"}")
#define THOUGHT_KEPT "{\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"S\"}"
#define TEXT(text)                                                                                 \
	ITEM("{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"" text       \
	     "\"}]}")

static const struct row responses[] = {
	{"nothing but the end", OVER, ""},
	{"deltas",
	 OUT("output_text.delta", "\"delta\":\"a\"") OUT("output_text.delta", "\"delta\":\"b\"")
		 TEXT("ab") OVER,
	 "ab"},
	{"no deltas", TEXT("ab") OVER, "ab"},
	{"two messages", OUT("output_text.delta", "\"delta\":\"a\"") TEXT("a") TEXT("b") OVER,
	 "ab"},
	{"a refusal",
	 ITEM("{\"type\":\"message\",\"content\":[{\"type\":\"refusal\",\"refusal\":\"no\"}]}")
		 OVER,
	 "no"},
	{"what is not known",
	 OUT("new_thing", "\"x\":1") ITEM("{\"type\":\"web_search_call\"}") ITEM("{}") TEXT("a")
		 OVER,
	 "a"},
	{"arguments come whole",
	 OUT("function_call_arguments.delta", "\"delta\":\"zzz\"") CALL("x", "f") CALL("y", "g")
		 OVER,
	 "|x:f:{}|y:g:{}"},
	{"reasoning is kept in its place", THOUGHT TEXT("a") CALL("x", "f") OVER,
	 "a|x:f:{}~[" THOUGHT_KEPT ",\"\",\"x\"]"},
	{"reasoning that can't be given back",
	 ITEM("{\"type\":\"reasoning\",\"summary\":[]}") TEXT("a") OVER, "a"},
	{"reasoning that nothing follows", THOUGHT OVER, ""},
	{"cut off",
	 TEXT("a") OUT("incomplete",
		       "\"response\":{\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}"),
	 "a"},
	{"all at the end",
	 OUT("completed",
	     "\"response\":{\"output\":[{\"type\":\"message\",\"content\":[{\"text\":\"a\"}]}]}"),
	 "a"},
	{"an end mark of the other kind", TEXT("a") DONE, "a"},
	{"plain",
	 "{\"error\":null,\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{"
	 "\"text\":\"a\"}]},{\"type\":\"function_call\",\"call_id\":\"x\",\"name\":\"f\","
	 "\"arguments\":\"{}\"}]}",
	 "a|x:f:{}"},
};

static char *describe(const struct convo_message *m)
{
	struct buf out = {0};
	buf_add_str(&out, m->text);
	for (size_t i = 0; i < m->n_calls; i++)
		buf_addf(&out, "|%s:%s:%s", m->calls[i].id, m->calls[i].name,
			 m->calls[i].arguments);
	if (m->kept)
		buf_addf(&out, "~%s", m->kept);
	return buf_take(&out);
}

static void check(const struct row *row, enum answer_dialect dialect, const char *content_type,
		  size_t step)
{
	static const struct provider_sink sink = {0};
	struct answer a;
	struct convo_message m = {0};
	size_t n = strlen(row->stream);
	answer_init(&a, dialect, &sink);
	for (size_t at = 0; at < n; at += step) {
		size_t len = step < n - at ? step : n - at;
		int err = answer_feed(&a, content_type, row->stream + at, len);
		cr_assert(err == 0 || err == HTTP_ENOUGH, "%s: %s", row->what, a.complaint);
	}
	cr_assert_eq(answer_end(&a, &m), 0, "%s: %s", row->what, a.complaint);
	char *got AUTOFREE = describe(&m);
	cr_assert_str_eq(got, row->message, "%s by %zu: %s", row->what, step, got);
	convo_message_free(&m);
	answer_free(&a);
}

Test(provider_answer, is_put_together)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		bool plain = !strncmp(table[i].what, "plain", 5);
		for (size_t step = 1; step <= 40; step += 13) {
			check(&table[i], ANSWER_CHAT, "", step);
			check(&table[i], ANSWER_CHAT,
			      plain ? "application/json" : "Text/Event-Stream; charset=x", step);
		}
		check(&table[i], ANSWER_CHAT, "text/plain", strlen(table[i].stream));
	}
}

Test(provider_answer, of_responses_is_put_together)
{
	for (size_t i = 0; i < ARRAY_LEN(responses); i++)
		for (size_t step = 1; step <= 40; step += 13)
			check(&responses[i], ANSWER_RESPONSES, "", step);
}

static int feed_all(struct answer *a, enum answer_dialect dialect, const char *type,
		    const char *stream)
{
	static const struct provider_sink sink = {0};
	struct convo_message m = {0};
	answer_init(a, dialect, &sink);
	int err = answer_feed(a, type, stream, strlen(stream));
	if (err == 0 || err == HTTP_ENOUGH)
		err = answer_end(a, &m);
	cr_assert(err || m.text);
	convo_message_free(&m);
	return err;
}

Test(provider_answer, says_why_it_is_none)
{
	static const struct {
		const char *type, *stream;
		int err;
		const char *says;
		bool passes;
		enum answer_dialect dialect;
	} rows[] = {
		{"text/event-stream", "", -ENODATA, "in the middle", false, ANSWER_CHAT},
		{"", "   ", -ENODATA, "in the middle", false, ANSWER_CHAT},
		{"text/event-stream", DELTA("{\"content\":\"a\"}"), -ENODATA, "in the middle",
		 false, ANSWER_CHAT},
		{"text/event-stream", EVENT("{"), -EPROTO, "no JSON object: {", false, ANSWER_CHAT},
		{"text/event-stream", EVENT("[1]"), -EPROTO, "no JSON object", false, ANSWER_CHAT},
		{"text/html", "<html>", -EPROTO, "no model's but text/html", false, ANSWER_CHAT},
		{"application/json", "{\"choices\":[", -ENODATA, "no whole JSON", false,
		 ANSWER_CHAT},
		{"application/json", "{\"choices\":[]}", -EPROTO, "\"choices\"", false,
		 ANSWER_CHAT},
		{"application/json", "{\"error\":\"plain words\"}", -EIO, "plain words", false,
		 ANSWER_CHAT},
		{"application/json",
		 "{\"error\":{\"message\":\"busy\",\"type\":\"overloaded_error\"}}", -EIO, "busy",
		 true, ANSWER_CHAT},
		{"text/event-stream",
		 "event: error\n" EVENT("{\"message\":\"gone\",\"code\":\"server_error\"}"), -EIO,
		 "gone", true, ANSWER_CHAT},
		{"text/event-stream", EVENT("{\"error\":{\"code\":\"odd\"}}"), -EIO, "odd", false,
		 ANSWER_CHAT},
		{"text/event-stream", "<html>", -EPROTO, "a web page", false, ANSWER_CHAT},
		{"text/event-stream", OUT("output_text.delta", "\"delta\":\"a\""), -ENODATA,
		 "in the middle", false, ANSWER_RESPONSES},
		{"text/event-stream",
		 OUT("failed", "\"response\":{\"error\":{\"code\":\"server_error\",\"message\":"
			       "\"fell over\"}}"),
		 -EIO, "fell over", true, ANSWER_RESPONSES},
		{"text/event-stream", OUT("completed", "\"response\":{\"status\":\"failed\"}"),
		 -EIO, "no reason", false, ANSWER_RESPONSES},
		{"text/event-stream",
		 EVENT("{\"type\":\"error\",\"code\":\"rate_limit\",\"message\":\"slow\"}"), -EIO,
		 "slow", true, ANSWER_RESPONSES},
		{"application/json", "{\"output\":[]}", -EPROTO, "\"output\"", false,
		 ANSWER_RESPONSES},
		{"text/event-stream", CALL("x", "") OVER, -EPROTO, "without a name", false,
		 ANSWER_RESPONSES},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct answer a;
		int err = feed_all(&a, rows[i].dialect, rows[i].type, rows[i].stream);
		cr_assert_eq(err, rows[i].err, "%s: %d", rows[i].stream, err);
		cr_assert(strstr(a.complaint, rows[i].says), "%s: %s", rows[i].stream, a.complaint);
		cr_assert_eq(a.complaint_passes, rows[i].passes, "%s", rows[i].stream);
		answer_free(&a);
	}
}

Test(provider_answer, calls_are_bounded)
{
	struct buf stream = {0};
	struct answer a;
	for (int i = 0; i <= CONVO_CALLS_MAX; i++)
		buf_addf(&stream,
			 "data: "
			 "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%d,\"function\":{"
			 "\"name\":\"f\"}}]}}]}\n\n",
			 i);
	cr_assert_eq(feed_all(&a, ANSWER_CHAT, "text/event-stream", buf_str(&stream)), -E2BIG);
	cr_assert_eq(a.n_calls, CONVO_CALLS_MAX);
	answer_free(&a);
	buf_free(&stream);
}
