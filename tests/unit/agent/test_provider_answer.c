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
	const char *message; /* "text|id:name:arguments|..." */
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
	{"empty events", "data:\n\ndata: \n\n" DELTA("{\"content\":\"a\"}") END, "a"},
	{"plain",
	 "{\"choices\":[{\"message\":{\"content\":\"a\",\"tool_calls\":[{\"id\":\"x\","
	 "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":"
	 "\"tool_calls\"}]}",
	 "a|x:f:{}"},
	{"plain after space", " \n\t{\"choices\":[{\"message\":{\"content\":\"a\"}}]}\n", "a"},
};

static char *describe(const struct convo_message *m)
{
	struct buf out = {0};
	buf_add_str(&out, m->text);
	for (size_t i = 0; i < m->n_calls; i++)
		buf_addf(&out, "|%s:%s:%s", m->calls[i].id, m->calls[i].name,
			 m->calls[i].arguments);
	return buf_take(&out);
}

static void check(const struct row *row, const char *content_type, size_t step)
{
	static const struct provider_sink sink = {0};
	struct answer a;
	struct convo_message m = {0};
	size_t n = strlen(row->stream);
	answer_init(&a, &sink);
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
			check(&table[i], "", step);
			check(&table[i],
			      plain ? "application/json" : "Text/Event-Stream; charset=x", step);
		}
		check(&table[i], "text/plain", strlen(table[i].stream));
	}
}

static int feed_all(struct answer *a, const char *type, const char *stream)
{
	static const struct provider_sink sink = {0};
	struct convo_message m = {0};
	answer_init(a, &sink);
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
	} rows[] = {
		{"text/event-stream", "", -ENODATA, "in the middle", false},
		{"", "   ", -ENODATA, "in the middle", false},
		{"text/event-stream", DELTA("{\"content\":\"a\"}"), -ENODATA, "in the middle",
		 false},
		{"text/event-stream", EVENT("{"), -EPROTO, "no JSON object: {", false},
		{"text/event-stream", EVENT("[1]"), -EPROTO, "no JSON object", false},
		{"text/html", "<html>", -EPROTO, "no chat completion but text/html", false},
		{"application/json", "{\"choices\":[", -ENODATA, "no whole JSON", false},
		{"application/json", "{\"choices\":[]}", -EPROTO, "\"choices\"", false},
		{"application/json", "{\"error\":\"plain words\"}", -EIO, "plain words", false},
		{"application/json",
		 "{\"error\":{\"message\":\"busy\",\"type\":\"overloaded_error\"}}", -EIO, "busy",
		 true},
		{"text/event-stream",
		 "event: error\n" EVENT("{\"message\":\"gone\",\"code\":\"server_error\"}"), -EIO,
		 "gone", true},
		{"text/event-stream", EVENT("{\"error\":{\"code\":\"odd\"}}"), -EIO, "odd", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct answer a;
		int err = feed_all(&a, rows[i].type, rows[i].stream);
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
	cr_assert_eq(feed_all(&a, "text/event-stream", buf_str(&stream)), -E2BIG);
	cr_assert_eq(a.n_calls, CONVO_CALLS_MAX);
	answer_free(&a);
	buf_free(&stream);
}
