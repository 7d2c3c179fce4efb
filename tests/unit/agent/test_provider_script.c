#include "agent/provider.h"

#include "tests/support/mock.h"
#include "tracer/util.h"

#include <errno.h>
#include <sys/stat.h>

static void add_text(void *arg, const char *bytes, size_t n)
{
	buf_add(arg, bytes, n);
}

static int take(struct provider *p, struct buf *text, struct convo_message *ret,
		struct provider_error *ret_error)
{
	struct convo convo = {0};
	const struct provider_request req = {.convo = &convo};
	const struct provider_sink sink = {.arg = text, .on_text = add_text};
	buf_reset(text);
	return p->ops->turn(p, &req, &sink, ret, ret_error);
}

Test(provider_script, gives_a_line_a_turn)
{
	static const char script[] =
		"{\"role\":\"assistant\",\"content\":\"one \\u001b[2J\"}\n"
		"\n"
		"   \t\r\n"
		"{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":"
		"\"function\",\"function\":{\"name\":\"run_shell\",\"arguments\":\"{}\"}}]}\r\n"
		"{\"role\":\"assistant\",\"content\":\"last, no line end\"}";
	struct provider *p = NULL;
	struct provider_error error = {0};
	struct convo_message m = {0};
	struct buf text = {0};
	cr_assert_eq(provider_script_open_text("here", script, &p, &error), 0, "%s", error.text);
	cr_assert_str_eq(p->ops->name, "script");
	cr_assert_eq(take(p, &text, &m, &error), 0);
	cr_assert_str_eq(m.text, "one \x1b[2J");
	cr_assert_str_eq(buf_str(&text), m.text);
	convo_message_free(&m);
	cr_assert_eq(take(p, &text, &m, &error), 0);
	cr_assert_eq(text.len, 0);
	cr_assert_eq(m.n_calls, 1);
	cr_assert_str_eq(m.calls[0].name, "run_shell");
	convo_message_free(&m);
	cr_assert_eq(take(p, &text, &m, &error), 0);
	cr_assert_str_eq(m.text, "last, no line end");
	convo_message_free(&m);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(take(p, &text, &m, &error), -EIO);
		cr_assert_eq(error.kind, PROVIDER_FAIL_END);
		cr_assert_not(error.retryable);
		cr_assert(strstr(error.text, "here has no more answers (3 were given)"));
		cr_assert_null(m.text);
	}
	buf_free(&text);
	provider_free(p);
}

Test(provider_script, is_cancelled_without_losing_a_line)
{
	struct provider *p = NULL;
	struct provider_error error = {0};
	struct convo_message m = {0};
	struct buf text = {0};
	volatile sig_atomic_t cancel = 1;
	const struct provider_request req = {.cancel = &cancel};
	const struct provider_sink sink = {0};
	cr_assert_eq(provider_script_open_text("x", "{\"role\":\"assistant\",\"content\":\"a\"}",
					       &p, &error),
		     0);
	cr_assert_eq(p->ops->turn(p, &req, &sink, &m, &error), -ECANCELED);
	cr_assert_eq(error.kind, PROVIDER_FAIL_CANCELLED);
	cr_assert_eq(take(p, &text, &m, &error), 0);
	convo_message_free(&m);
	buf_free(&text);
	provider_free(p);
}

#define GOOD "{\"role\":\"assistant\",\"content\":\"a\"}\n"

Test(provider_script, names_the_line_and_what_was_expected)
{
	static const struct {
		const char *script, *says;
	} rows[] = {
		{"", "s:1:1: expected an assistant message"},
		{"\n\n", "s:1:1: expected an assistant message"},
		{GOOD "{\"role\":\"assistant\",\n", "s:2:"},
		{GOOD "\n" GOOD "nonsense\n", "s:4:1: expected one JSON object"},
		{GOOD "{\"role\":\"assistant\"} {}\n", "s:2:22: expected one JSON object"},
		{"[]\n", "s:1:1: expected an object"},
		{GOOD "{\"role\":\"user\",\"content\":\"x\"}\n",
		 "s:2:1: \"role\": expected \"assistant\""},
		{"{\"role\":\"assistant\",\"tool_calls\":[{}]}\n",
		 "s:1:1: \"tool_calls\": expected"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct provider *p = NULL;
		struct provider_error error = {0};
		cr_assert_eq(provider_script_open_text("s", rows[i].script, &p, &error), -EIO, "%s",
			     rows[i].script);
		cr_assert_null(p);
		cr_assert_eq(error.kind, PROVIDER_FAIL_CONFIG);
		cr_assert_eq(strncmp(error.text, rows[i].says, strlen(rows[i].says)), 0,
			     "\"%s\" does not begin with \"%s\"", error.text, rows[i].says);
	}
}

Test(provider_script, reads_a_file)
{
	char dir[] = "/tmp/warder-script-XXXXXX", path[64], says[128];
	struct provider *p = NULL;
	struct provider_error error = {0};
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s.jsonl", dir);

	cr_assert_eq(provider_script_open(path, &p, &error), -EIO);
	cr_assert(strstr(error.text, path) && strstr(error.text, "No such file"), "%s", error.text);
	cr_assert_eq(provider_script_open(dir, &p, &error), -EIO);
	cr_assert(strstr(error.text, "Is a directory"), "%s", error.text);

	mock_write_file(path, GOOD "{}\n");
	cr_assert_eq(provider_script_open(path, &p, &error), -EIO);
	snprintf(says, sizeof(says), "%s:2:1: \"role\"", path);
	cr_assert_eq(strncmp(error.text, says, strlen(says)), 0, "%s", error.text);

	mock_write_file(path, GOOD GOOD);
	cr_assert_eq(provider_script_open(path, &p, &error), 0, "%s", error.text);
	provider_free(p);
	unlink(path);
	rmdir(dir);
}

Test(provider_script, offers_one_model)
{
	struct provider *p = NULL;
	struct provider_error error = {0};
	struct provider_models models = {0};
	cr_assert_eq(provider_script_open_text("s", GOOD, &p, &error), 0);
	cr_assert_eq(p->ops->models(p, NULL, &models, &error), 0);
	cr_assert_eq(models.n, 1);
	cr_assert(models.items[0].usable);
	provider_models_free(&models);
	provider_free(p);
}
