#include "agent/convo.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

/* An assistant message that calls the tools "a" and "b". */
static struct convo_message two_calls(void)
{
	struct convo_message m = {.role = CONVO_ASSISTANT};
	cr_assert_eq(convo_message_add_call(&m, "id-a", "a", "{\"x\":1}"), 0);
	cr_assert_eq(convo_message_add_call(&m, "id-b", "b", "{}"), 0);
	return m;
}

static void add_calls(struct convo *c)
{
	struct convo_message m = two_calls();
	cr_assert_eq(convo_add_assistant(c, &m), 0);
	cr_assert_eq(m.n_calls, 0); /* given away */
}

static void expect_json(const struct convo *c, const char *expected)
{
	struct buf out = {0};
	struct jsonw w;
	jsonw_init(&w, &out);
	convo_write(&w, c, NULL);
	cr_assert_str_eq(buf_str(&out), expected);
	buf_free(&out);
}

Test(convo, is_written_in_the_chat_completions_form)
{
	struct convo c = {0};
	cr_assert_eq(convo_add_text(&c, CONVO_SYSTEM, "be brief"), 0);
	cr_assert_eq(convo_add_text(&c, CONVO_USER, "hi \"you\"\n"), 0);
	add_calls(&c);
	cr_assert_eq(convo_add_result(&c, "id-b", "second"), 0);
	cr_assert_eq(convo_add_result(&c, "id-a", "first"), 0);
	struct convo_message last = {.role = CONVO_ASSISTANT, .text = strdup("done")};
	cr_assert_eq(convo_add_assistant(&c, &last), 0);
	expect_json(&c, "[{\"role\":\"system\",\"content\":\"be brief\"},"
			"{\"role\":\"user\",\"content\":\"hi \\\"you\\\"\\n\"},"
			"{\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
			"{\"id\":\"id-a\",\"type\":\"function\",\"function\":{\"name\":\"a\","
			"\"arguments\":\"{\\\"x\\\":1}\"}},"
			"{\"id\":\"id-b\",\"type\":\"function\",\"function\":{\"name\":\"b\","
			"\"arguments\":\"{}\"}}]},"
			"{\"role\":\"tool\",\"tool_call_id\":\"id-b\",\"content\":\"second\"},"
			"{\"role\":\"tool\",\"tool_call_id\":\"id-a\",\"content\":\"first\"},"
			"{\"role\":\"assistant\",\"content\":\"done\"}]");
	convo_free(&c);
}

Test(convo, every_call_gets_exactly_one_answer)
{
	struct convo c = {0};
	struct convo_message m = two_calls();
	cr_assert_eq(convo_add_result(&c, "id-a", "x"), -ENOENT);
	cr_assert_null(convo_pending(&c));
	cr_assert_eq(convo_complete(&c, NULL), 0);
	add_calls(&c);
	cr_assert_str_eq(convo_pending(&c)->id, "id-a");
	cr_assert_eq(convo_add_text(&c, CONVO_USER, "hello?"), -EBUSY);
	cr_assert_eq(convo_add_assistant(&c, &m), -EBUSY);
	cr_assert_eq(m.n_calls, 2); /* still the caller's */
	cr_assert_eq(convo_add_result(&c, "id-c", "x"), -ENOENT);
	cr_assert_eq(convo_add_result(&c, "id-a", "x"), 0);
	cr_assert_eq(convo_add_result(&c, "id-a", "again"), -ENOENT);
	cr_assert_str_eq(convo_pending(&c)->id, "id-b");
	cr_assert_eq(convo_complete(&c, NULL), 1);
	cr_assert_null(convo_pending(&c));
	cr_assert_str_eq(c.messages[c.n - 1].text, "cancelled");
	cr_assert_str_eq(c.messages[c.n - 1].call_id, "id-b");
	/* The same ids in a later message are other calls. */
	cr_assert_eq(convo_add_assistant(&c, &m), 0);
	cr_assert_eq(convo_complete(&c, "because"), 2);
	cr_assert_eq(convo_add_text(&c, CONVO_USER, "go on"), 0);
	cr_assert_eq(convo_add_result(&c, "id-a", "too late"), -ENOENT);
	convo_free(&c);
}

Test(convo, truncate_takes_a_turn_back)
{
	struct convo c = {0};
	cr_assert_eq(convo_add_text(&c, CONVO_USER, "one"), 0);
	add_calls(&c);
	convo_truncate(&c, 1);
	cr_assert_null(convo_pending(&c));
	cr_assert_eq(convo_add_text(&c, CONVO_USER, "two"), 0);
	expect_json(&c, "[{\"role\":\"user\",\"content\":\"one\"},"
			"{\"role\":\"user\",\"content\":\"two\"}]");
	convo_free(&c);
}

Test(convo, ids_are_made_where_they_are_missing_or_taken)
{
	static const char *const given[] = {"call_2", NULL, "", "call_2", "x", "x"};
	struct convo_message m = {.role = CONVO_ASSISTANT};
	for (size_t i = 0; i < ARRAY_LEN(given); i++)
		cr_assert_eq(convo_message_add_call(&m, given[i], "t", NULL), 0);
	for (size_t i = 0; i < m.n_calls; i++) {
		cr_assert(*m.calls[i].id);
		cr_assert_str_eq(m.calls[i].arguments, "{}");
		for (size_t k = 0; k < i; k++)
			cr_assert_str_neq(m.calls[i].id, m.calls[k].id);
	}
	cr_assert_eq(convo_message_add_call(&m, "y", "", "{}"), -EINVAL);
	while (m.n_calls < CONVO_CALLS_MAX)
		cr_assert_eq(convo_message_add_call(&m, NULL, "t", "{}"), 0);
	cr_assert_eq(convo_message_add_call(&m, NULL, "t", "{}"), -E2BIG);
	convo_message_free(&m);
}

Test(convo, bad_arguments_are_sent_as_an_object)
{
	static const struct {
		const char *arguments, *written;
	} rows[] = {
		{"{\"a\":\"\\u001b\"}", "{\"a\":\"\\u001b\"}"},
		{"{\"a\":", "{\"unparsed\":\"{\\\"a\\\":\"}"},
		{"[1]", "{\"unparsed\":\"[1]\"}"},
		{"{} {}", "{\"unparsed\":\"{} {}\"}"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct convo_message m = {.role = CONVO_ASSISTANT};
		struct buf out = {0};
		struct jsonw w;
		struct json *v = NULL;
		cr_assert_eq(convo_message_add_call(&m, "i", "t", rows[i].arguments), 0);
		jsonw_init(&w, &out);
		convo_write_message(&w, &m);
		cr_assert_eq(json_parse(buf_str(&out), out.len, &v, NULL), 0);
		const struct json *call = json_at(json_get(v, "tool_calls"), 0);
		cr_assert_str_eq(json_get_str(json_get(call, "function"), "arguments"),
				 rows[i].written);
		json_free(v);
		buf_free(&out);
		convo_message_free(&m);
	}
}

Test(convo, bytes_that_are_not_utf8_stay_valid_json)
{
	struct convo c = {0};
	cr_assert_eq(convo_add_text(&c, CONVO_USER, "a\xff\x1b[2Jb"), 0);
	expect_json(&c, "[{\"role\":\"user\",\"content\":\"a\\u00ff\\u001b[2Jb\"}]");
	convo_free(&c);
}

static int read_text(const char *text, struct convo_message *ret, const char **ret_why)
{
	struct json *v = NULL;
	cr_assert_eq(json_parse(text, strlen(text), &v, NULL), 0, "%s", text);
	int err = convo_read_assistant(v, ret, ret_why);
	json_free(v);
	return err;
}

Test(convo, reads_an_assistant_message)
{
	static const char *const good[] = {
		"{\"role\":\"assistant\",\"content\":\"t\",\"tool_calls\":[{\"id\":\"i\",\"type\":"
		"\"function\",\"function\":{\"name\":\"n\",\"arguments\":\"{\\\"k\\\":1}\"}}]}",
		"{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"t\"}],"
		"\"tool_calls\":[{\"id\":\"i\",\"function\":{\"name\":\"n\",\"arguments\":{\"k\":1}"
		"}}]}",
	};
	const char *why = NULL;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct convo_message m = {0};
		cr_assert_eq(read_text(good[i], &m, &why), 0, "%s", why);
		cr_assert_eq(m.role, CONVO_ASSISTANT);
		cr_assert_str_eq(m.text, "t");
		cr_assert_eq(m.n_calls, 1);
		cr_assert_str_eq(m.calls[0].id, "i");
		cr_assert_str_eq(m.calls[0].name, "n");
		cr_assert_str_eq(m.calls[0].arguments, "{\"k\":1}");
		convo_message_free(&m);
	}
	struct convo_message empty = {0};
	cr_assert_eq(read_text("{\"role\":\"assistant\",\"content\":null,\"tool_calls\":null}",
			       &empty, &why),
		     0);
	cr_assert_str_eq(empty.text, "");
	cr_assert_eq(empty.n_calls, 0);
	convo_message_free(&empty);
}

Test(convo, says_what_a_message_lacks)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"[]", "an object"},
		{"{\"content\":\"x\"}", "\"role\""},
		{"{\"role\":\"user\",\"content\":\"x\"}", "\"role\""},
		{"{\"role\":\"assistant\",\"content\":5}", "\"content\""},
		{"{\"role\":\"assistant\",\"content\":true}", "\"content\""},
		{"{\"role\":\"assistant\",\"content\":[{\"type\":\"image\"}]}", "\"content\""},
		{"{\"role\":\"assistant\",\"tool_calls\":{}}", "\"tool_calls\""},
		{"{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"i\"}]}", "\"tool_calls\""},
		{"{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"\"}}]}",
		 "\"tool_calls\""},
		{"{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"n\","
		 "\"arguments\":7}}]}",
		 "\"arguments\""},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct convo_message m = {0};
		const char *why = NULL;
		cr_assert_eq(read_text(rows[i].text, &m, &why), -EINVAL, "%s", rows[i].text);
		cr_assert(strstr(why, rows[i].why), "%s: %s", rows[i].text, why);
		cr_assert_null(m.text);
		cr_assert_null(m.calls);
	}
}
