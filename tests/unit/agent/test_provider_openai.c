#include "agent/provider.h"

#include "tests/support/talk.h"

#include <errno.h>

/* The same server as an OpenAI-compatible one: the bearer is the key. */
static void start(struct talk *t, const char *scenario, const char *key)
{
	talk_start(t, scenario, true);
	t->config.kind = PROVIDER_OPENAI;
	cr_assert_eq(provider_config_set(&t->config.openai_key, key), 0);
}

Test(provider_openai, asks_with_the_key_and_nothing_of_copilot)
{
	struct talk t;
	start(&t, HELLO, "ready-bearer");
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_str_eq(t.provider->ops->name, "openai");
	cr_assert_str_eq(t.message.text, "hello");
	cr_assert_str_eq(mock_header(&t.mock, 0, "authorization"), "Bearer ready-bearer");
	cr_assert_str_eq(mock_header(&t.mock, 0, "user-agent"), "warder/" WARDER_VERSION);
	cr_assert_null(mock_header(&t.mock, 0, "x-initiator"));
	cr_assert_null(mock_header(&t.mock, 0, "copilot-integration-id"));
	cr_assert_null(mock_header(&t.mock, 0, "editor-version"));
	talk_end(&t);
}

Test(provider_openai, needs_no_key)
{
	struct talk t;
	start(&t, "{\"any_bearer\":true,\"message\":{\"role\":\"assistant\",\"content\":\"hi\"}}",
	      NULL);
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_null(mock_header(&t.mock, 0, "authorization"));
	talk_end(&t);
}

Test(provider_openai, says_what_to_do_about_a_refused_key)
{
	struct talk t;
	start(&t, HELLO, "wrong-key");
	cr_assert_eq(talk_turn(&t), -EIO);
	cr_assert_eq(t.error.kind, PROVIDER_FAIL_AUTH);
	talk_expect(t.error.text, "OPENAI_API_KEY");
	cr_assert_eq(t.mock.n_requests, 1);
	talk_end(&t);
}

Test(provider_openai, says_what_to_do_about_a_wrong_url)
{
	struct talk t;
	char url[96];
	start(&t, HELLO, "ready-bearer");
	snprintf(url, sizeof(url), "%s/v9", t.mock.url);
	cr_assert_eq(provider_config_set(&t.config.endpoint, url), 0);
	cr_assert_eq(talk_turn(&t), -EIO);
	cr_assert_eq(t.error.kind, PROVIDER_FAIL_CONFIG);
	talk_expect(t.error.text, "/v9/chat/completions");
	talk_expect(t.error.text, "/v1");
	talk_end(&t);
}

Test(provider_openai, a_server_that_does_not_run_is_told)
{
	struct talk t;
	start(&t, HELLO, NULL);
	/* The port is free once the server is gone. */
	close(t.mock.stdin_fd);
	waitpid(t.mock.pid, NULL, 0);
	cr_assert_eq(talk_turn(&t), -EIO);
	cr_assert_eq(t.error.kind, PROVIDER_FAIL_TRANSPORT);
	cr_assert_eq(t.error.status, 0);
	talk_expect(t.error.text, "cannot connect to 127.0.0.1:");
	talk_expect(buf_str(&t.status), "no connection: trying again in 1 s (3 of 3)");
	t.mock.pid = fork(); /* for mock_stop() */
	if (!t.mock.pid)
		_exit(0);
	t.mock.stdin_fd = -1;
	talk_end(&t);
}

Test(provider_openai, refuses_a_configuration_that_cannot_work)
{
	static const struct {
		const char *endpoint, *key, *says;
	} rows[] = {
		{NULL, NULL, "OPENAI_API_KEY"},
		{"localhost:11434", NULL, "http"},
		{"file:///etc/passwd", NULL, "http"},
		{"http://127.0.0.1:1", "a\nb", "line end"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct provider_config c = {.kind = PROVIDER_OPENAI};
		struct provider *p = NULL;
		struct provider_error error = {0};
		provider_config_set(&c.endpoint, rows[i].endpoint);
		provider_config_set(&c.openai_key, rows[i].key);
		cr_assert_eq(provider_open(&c, &p, &error), -EIO);
		cr_assert_eq(error.kind, PROVIDER_FAIL_CONFIG);
		talk_expect(error.text, rows[i].says);
		provider_config_free(&c);
	}
}
