#include "agent/provider_error.h"

#include "tests/support/talk.h"

#include <errno.h>

struct failure {
	const char *line; /* of the scenario */
	enum provider_error_kind kind;
	bool retryable;
	const char *says[3]; /* parts of the sentence */
};

static const struct failure failures[] = {
	{"{\"status\":400,\"headers\":{\"x-request-id\":\"REQ:1\"},\"body\":\"{\\\"error\\\":{"
	 "\\\"message\\\":\\\"The requested model is not supported.\\\",\\\"code\\\":"
	 "\\\"model_not_supported\\\",\\\"param\\\":\\\"model\\\",\\\"type\\\":"
	 "\\\"invalid_request_error\\\"}}\"}",
	 PROVIDER_FAIL_MODEL,
	 false,
	 {"mock-large", "/model", "request id REQ:1"}},
	{"{\"status\":400,\"body\":\"{\\\"error\\\":{\\\"message\\\":\\\"bad\\\",\\\"code\\\":"
	 "\\\"invalid_request_body\\\"}}\"}",
	 PROVIDER_FAIL_REQUEST,
	 false,
	 {"/clear", "bad", "HTTP 400"}},
	{"{\"status\":400,\"type\":\"text/plain\",\"body\":\"checking third-party user token: bad "
	 "request: Personal Access Tokens are not supported for this endpoint\\n\"}",
	 PROVIDER_FAIL_AUTH,
	 false,
	 {"WARDER_COPILOT_TOKEN", "warder login", "Personal Access Tokens are not supported"}},
	{"{\"status\":402,\"body\":\"{\\\"error\\\":{\\\"message\\\":\\\"You have no quota\\\","
	 "\\\"code\\\":\\\"quota_exceeded\\\"}}\"}",
	 PROVIDER_FAIL_QUOTA,
	 false,
	 {"quota is used up", "You have no quota", "/model"}},
	{"{\"status\":403,\"type\":\"text/plain\",\"headers\":{\"x-github-request-id\":\"GH:2\"},"
	 "\"body\":\"Access to this endpoint is forbidden. Please review our Terms of Service.\"}",
	 PROVIDER_FAIL_AUTH,
	 false,
	 {"terms", "subscription", "request id GH:2"}},
	{"{\"status\":404,\"body\":\"\"}",
	 PROVIDER_FAIL_CONFIG,
	 false,
	 {"/chat/completions", "WARDER_ENDPOINT", "HTTP 404"}},
	{"{\"status\":413,\"body\":\"\"}", PROVIDER_FAIL_LENGTH, false, {"too long", "/clear", ""}},
	{"{\"status\":429,\"type\":\"text/plain\",\"body\":\"quota exceeded\"}",
	 PROVIDER_FAIL_QUOTA,
	 false,
	 {"quota", "/model", "quota exceeded"}},
	{"{\"status\":429,\"headers\":{\"retry-after\":\"3600\"},\"body\":\"{\\\"error\\\":{"
	 "\\\"code"
	 "\\\":\\\"user_global_rate_limited:pro\\\",\\\"message\\\":\\\"slow down\\\"}}\"}",
	 PROVIDER_FAIL_RATE,
	 true,
	 {"too many requests", "wait", "slow down"}},
	{"{\"status\":466,\"body\":\"\"}",
	 PROVIDER_FAIL_CONFIG,
	 false,
	 {"update warder", "466", ""}},
	{"{\"status\":302,\"headers\":{\"location\":\"http://elsewhere.invalid/x\"},\"body\":\"\"}",
	 PROVIDER_FAIL_CONFIG,
	 false,
	 {"http://elsewhere.invalid/x", "not followed", "endpoint"}},
	{"{\"status\":500,\"headers\":{\"retry-after\":\"9999\"},\"type\":\"text/html\",\"body\":"
	 "\"<html>\\u001b[31moops\"}",
	 PROVIDER_FAIL_SERVER,
	 true,
	 {"try again", "<html>\x1b[31moops", "HTTP 500"}},
	{"{\"sse\":[{\"error\":{\"message\":\"the model fell over\",\"code\":\"x\"}}]}",
	 PROVIDER_FAIL_REQUEST,
	 false,
	 {"the model fell over", "", ""}},
	{"{\"sse\":[\"no json\"]}", PROVIDER_FAIL_PROTOCOL, false, {"no json", "endpoint", ""}},
	{"{\"raw\":\"<html>Sign in to the hotel\",\"type\":\"text/html\"}",
	 PROVIDER_FAIL_PROTOCOL,
	 false,
	 {"no model's", "text/html", "endpoint"}},
	{"{\"body\":\"{\\\"object\\\":\\\"what\\\"}\"}",
	 PROVIDER_FAIL_PROTOCOL,
	 false,
	 {"choices", "endpoint", ""}},
	{"{\"sse\":[{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{"
	 "\"arguments\":"
	 "\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}]}",
	 PROVIDER_FAIL_PROTOCOL,
	 false,
	 {"without a name", "", ""}},
	{"{\"sse\":[{\"choices\":[{\"delta\":{},\"finish_reason\":\"content_filter\"}]},\"[DONE]\"]"
	 "}",
	 PROVIDER_FAIL_REQUEST,
	 false,
	 {"content filter", "", ""}},
};

static void expect_failure(const struct talk *t, const struct failure *f)
{
	cr_assert_eq(t->error.kind, f->kind, "%s: kind %d, %s", f->line, (int)t->error.kind,
		     t->error.text);
	cr_assert_eq(t->error.retryable, f->retryable, "%s", f->line);
	for (size_t i = 0; i < ARRAY_LEN(f->says); i++)
		talk_expect(t->error.text, f->says[i]);
	cr_assert_null(strchr(t->error.text, '\n'), "%s", t->error.text);
	cr_assert_not(strstr(t->error.text, "{url}") || strstr(t->error.text, "{model}"));
}

Test(provider_error, every_failure_is_one_sentence_that_says_what_to_do)
{
	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		struct talk t;
		talk_start(&t, failures[i].line, true);
		t.config.retries = -1;
		cr_assert_eq(talk_turn(&t), -EIO, "%s", failures[i].line);
		expect_failure(&t, &failures[i]);
		cr_assert_eq(t.mock.n_requests, 1, "%s", failures[i].line);
		cr_assert(t.error.request_id[0]); /* the server's, else the one we sent */
		cr_assert_eq(t.convo.n, 1);
		talk_end(&t);
	}
}

static const struct failure exchange_failures[] = {
	{"{\"for\":\"token\",\"status\":403,\"body\":\"{\\\"message\\\":\\\"Resource not "
	 "accessible by "
	 "personal access token\\\"}\"}",
	 PROVIDER_FAIL_AUTH,
	 false,
	 {"GH_TOKEN is a personal access token", "warder login", "HTTP 403"}},
	{"{\"for\":\"token\",\"status\":403,\"body\":\"{\\\"message\\\":\\\"API rate limit "
	 "exceeded\\\"}"
	 "\"}",
	 PROVIDER_FAIL_RATE,
	 true,
	 {"rate limit", "wait", "HTTP 403"}},
	{"{\"for\":\"token\",\"status\":403,\"body\":\"{\\\"message\\\":\\\"no\\\"}\"}",
	 PROVIDER_FAIL_AUTH,
	 false,
	 {"subscription", "GH_TOKEN", ""}},
	{"{\"for\":\"token\",\"status\":404,\"headers\":{\"x-github-request-id\":\"AB:1\"},"
	 "\"body\":"
	 "\"{\\\"message\\\":\\\"Not Found\\\"}\"}",
	 PROVIDER_FAIL_AUTH,
	 false,
	 {"another application", "warder login", "request id AB:1"}},
	{"{\"for\":\"token\",\"body\":\"{\\\"message\\\":\\\"hi\\\"}\"}",
	 PROVIDER_FAIL_AUTH,
	 false,
	 {"no token for Copilot", "github.com/settings/copilot", ""}},
	{"{\"for\":\"token\",\"body\":\"{\\\"token\\\":\\\"t\\\",\\\"endpoints\\\":{\\\"api\\\":"
	 "\\\"http://"
	 "evil.invalid\\\"}}\"}",
	 PROVIDER_FAIL_AUTH,
	 false,
	 {"without https", "", ""}},
	{"{\"for\":\"token\",\"body\":\"not json\"}",
	 PROVIDER_FAIL_PROTOCOL,
	 false,
	 {"no JSON", "endpoint", ""}},
};

Test(provider_error, every_failure_of_the_exchange_too)
{
	for (size_t i = 0; i < ARRAY_LEN(exchange_failures); i++) {
		struct talk t;
		talk_start(&t, exchange_failures[i].line, false);
		t.config.retries = -1;
		cr_assert_eq(talk_turn(&t), -EIO);
		expect_failure(&t, &exchange_failures[i]);
		cr_assert_eq(t.mock.n_requests, 1);
		talk_end(&t);
	}
}

Test(provider_error, no_credential_is_in_an_error)
{
	struct talk t;
	talk_start(&t,
		   "{\"status\":400,\"type\":\"text/plain\",\"headers\":{\"x-request-id\":"
		   "\"id-ready-bearer\"},\"body\":\"you sent Bearer ready-bearer, ready-bearer!\"}",
		   true);
	cr_assert_eq(talk_turn(&t), -EIO);
	talk_expect(t.error.text, "you sent");
	cr_assert_null(strstr(t.error.text, "ready-bearer"));
	cr_assert_null(strstr(t.error.request_id, "ready-bearer"));
	talk_end(&t);
}

Test(provider_error, redacts_every_occurrence_and_nothing_else)
{
	static const struct {
		const char *text, *secret, *left;
	} rows[] = {
		{"a secret1 b secret1", "secret1", "a ******* b *******"},
		{"secret1secret1x", "secret1", "**************x"},
		{"secret", "secret1", "secret"},
		{"as short as a", "a", "as short as a"},
		{"text", "", "text"},
		{"text", NULL, "text"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[64];
		snprintf(text, sizeof(text), "%s", rows[i].text);
		error_redact(text, rows[i].secret);
		cr_assert_str_eq(text, rows[i].left);
	}
}

Test(provider_error, no_url_shows_a_password)
{
	static const struct {
		const char *text, *left;
	} rows[] = {
		{"at http://u:pw@h/x: no", "at http://****@h/x: no"},
		{"\"https://pw@h\" and http://h@x", "\"https://**@h\" and http://*@x"},
		{"http://a@b@h/", "http://***@h/"},
		{"http://h/a@b", "http://h/a@b"},
		{"http://h?a@b http://h#a@b", "http://h?a@b http://h#a@b"},
		{"http://h a@b ://", "http://h a@b ://"},
		{"mail a@b", "mail a@b"},
		{"", ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[64];
		snprintf(text, sizeof(text), "%s", rows[i].text);
		error_hide_userinfo(text);
		cr_assert_str_eq(text, rows[i].left);
	}
}

/* An endpoint with a user in its URL, in every kind of failure. */
Test(provider_error, nor_does_an_endpoints)
{
	static const struct {
		const char *endpoint;
		enum provider_error_kind kind;
	} rows[] = {
		{"http://u:hidden@127.0.0.1:1/v1", PROVIDER_FAIL_TRANSPORT},
		{"http://u:hidden@[bad/v1", PROVIDER_FAIL_CONFIG},
		{"ftp://u:hidden@127.0.0.1/", PROVIDER_FAIL_CONFIG},
	};
	setenv("no_proxy", "127.0.0.1", 1);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct provider_config c = {.kind = PROVIDER_OPENAI, .retries = -1};
		struct provider *p = NULL;
		struct provider_error error = {0};
		struct provider_models models = {0};
		provider_config_set(&c.endpoint, rows[i].endpoint);
		int err = provider_open(&c, &p, &error);
		if (!err)
			err = p->ops->models(p, NULL, &models, &error);
		cr_assert_eq(err, -EIO);
		cr_assert_eq(error.kind, rows[i].kind, "%s", error.text);
		cr_assert_null(strstr(error.text, "hidden"), "%s", error.text);
		provider_free(p);
		provider_config_free(&c);
	}
}

/* What the server echoes may be anybody's: what looks like a token is not shown. */
Test(provider_error, nor_is_a_strangers_token)
{
	struct talk t;
	talk_start(&t,
		   "{\"status\":400,\"type\":\"text/plain\",\"body\":\"token "
		   "gho_0123456789abcdefghijklmnopqrstuvwxyz is odd\"}",
		   true);
	cr_assert_eq(talk_turn(&t), -EIO);
	cr_assert_null(strstr(t.error.text, "0123456789abc"), "%s", t.error.text);
	talk_expect(t.error.text, "[redacted] is odd");
	talk_end(&t);
}
