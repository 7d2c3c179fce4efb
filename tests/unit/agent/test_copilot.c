#include "agent/copilot.h"

#include "tests/support/talk.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

/* ---- the exchange ---- */

Test(copilot, exchanges_the_token_and_asks_where_it_was_told)
{
	struct talk t;
	talk_start(&t, HELLO HELLO, false);
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_str_eq(t.message.text, "hello");
	cr_assert_str_eq(buf_str(&t.text), "hello");
	cr_assert_eq(t.usage.prompt, 11);
	cr_assert_eq(t.usage.cached, 3);
	cr_assert_eq(t.usage.completion, 7);
	cr_assert_eq(t.mock.n_requests, 2);
	cr_assert_str_eq(mock_path(&t.mock, 0), "/copilot_internal/v2/token");
	cr_assert_str_eq(mock_header(&t.mock, 0, "authorization"), "token ghu_test");
	cr_assert_str_eq(mock_path(&t.mock, 1), "/chat/completions");
	cr_assert_str_eq(mock_header(&t.mock, 1, "authorization"),
			 "Bearer tid=mock1;exp=1;sku=test");
	/* The bearer is kept. */
	cr_assert_eq(talk_turn_as(&t, "mock-large", PROVIDER_BY_AGENT), 0);
	cr_assert_eq(t.mock.n_requests, 3);
	cr_assert_str_eq(mock_path(&t.mock, 2), "/chat/completions");
	talk_end(&t);
}

Test(copilot, says_who_we_are_and_who_began)
{
	static const struct {
		const char *name, *value;
	} rows[] = {
		{"user-agent", "warder/" WARDER_VERSION},
		{"content-type", "application/json"},
		{"copilot-integration-id", "vscode-chat"},
		{"editor-version", "warder/" WARDER_VERSION},
		{"editor-plugin-version", "warder/" WARDER_VERSION},
		{"openai-intent", "conversation-edits"},
		{"x-github-api-version", "2025-04-01"},
		{"x-initiator", "user"},
	};
	struct talk t;
	char first[64];
	talk_start(&t, HELLO HELLO, true);
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_assert_str_eq(mock_header(&t.mock, 0, rows[i].name), rows[i].value);
	snprintf(first, sizeof(first), "%s", mock_header(&t.mock, 0, "x-request-id"));
	cr_assert_eq(strlen(first), 36);
	cr_assert_eq(first[14], '4'); /* a version 4 uuid */
	cr_assert_eq(talk_turn_as(&t, "mock-large", PROVIDER_BY_AGENT), 0);
	cr_assert_str_eq(mock_header(&t.mock, 1, "x-initiator"), "agent");
	cr_assert_str_neq(mock_header(&t.mock, 1, "x-request-id"), first);
	talk_end(&t);
}

Test(copilot, headers_are_configurable)
{
	struct talk t;
	talk_start(&t, HELLO, true);
	cr_assert_eq(provider_config_set(&t.config.integration_id, "copilot-developer-cli"), 0);
	cr_assert_eq(provider_config_set(&t.config.editor_version, "ed/1"), 0);
	cr_assert_eq(provider_config_set(&t.config.intent, ""), 0);
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_str_eq(mock_header(&t.mock, 0, "copilot-integration-id"),
			 "copilot-developer-cli");
	cr_assert_str_eq(mock_header(&t.mock, 0, "editor-version"), "ed/1");
	cr_assert_null(mock_header(&t.mock, 0, "openai-intent"));
	talk_end(&t);
}

Test(copilot, sends_the_conversation_and_the_tools)
{
	struct talk t;
	struct json *v = NULL;
	bool stream = false, usage = false;
	talk_start(&t, HELLO, true);
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	const char *body = mock_body(&t.mock, 0);
	cr_assert_eq(json_parse(body, strlen(body), &v, NULL), 0);
	cr_assert_str_eq(json_get_str(v, "model"), "mock-large");
	cr_assert(json_bool(json_get(v, "stream"), &stream) && stream);
	cr_assert(json_bool(json_get(json_get(v, "stream_options"), "include_usage"), &usage) &&
		  usage);
	cr_assert_str_eq(json_get_str(json_at(json_get(v, "messages"), 0), "content"), "say hello");
	cr_assert_eq(json_len(json_get(v, "tools")), 1);
	cr_assert_null(json_get(v, "max_tokens"));
	json_free(v);
	talk_end(&t);
}

Test(copilot, renews_a_bearer_before_its_end)
{
	struct talk t;
	talk_start(&t, "{\"for\":\"token\",\"lifetime\":0}\n" HELLO HELLO HELLO, false);
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	/* The first was over at once, for the list of models; the second lasts. */
	static const char *const paths[] = {"/copilot_internal/v2/token",
					    "/copilot_internal/v2/token", "/chat/completions",
					    "/chat/completions", "/chat/completions"};
	cr_assert_eq(t.mock.n_requests, ARRAY_LEN(paths));
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		cr_assert_str_eq(mock_path(&t.mock, i), paths[i]);
	talk_end(&t);
}

Test(copilot, a_hiccup_at_github_does_not_cost_a_bearer_that_lives)
{
	struct talk t;
	/* refresh_in says now, but expires_at is 1000 s away. */
	char grant[300];
	snprintf(grant, sizeof(grant),
		 "{\"for\":\"token\",\"body\":\"{\\\"token\\\":\\\"ready-bearer\\\",\\\"expires_"
		 "at\\\":"
		 "%lld,\\\"refresh_in\\\":0}\"}\n{\"for\":\"token\",\"status\":503}\n{\"for\":"
		 "\"token\",\"status\":503}\n" HELLO HELLO,
		 (long long)time(NULL) + 1000);
	talk_start(&t, grant, false);
	cr_assert_eq(provider_config_set(&t.config.endpoint, t.mock.url), 0);
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_eq(t.mock.n_requests, 5);
	cr_assert_str_eq(mock_header(&t.mock, 4, "authorization"), "Bearer ready-bearer");
	talk_end(&t);
}

/* ---- 401 ---- */

#define EXPIRED                                                                                    \
	"{\"status\":401,\"body\":\"unauthorized: token expired\",\"type\":\"text/plain\"}\n"

Test(copilot, renews_once_after_a_401_and_asks_the_same_again)
{
	struct talk t;
	talk_start(&t, EXPIRED HELLO, false);
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_str_eq(t.message.text, "hello");
	cr_assert_eq(t.mock.n_requests, 4);
	cr_assert_str_eq(mock_path(&t.mock, 2), "/copilot_internal/v2/token");
	cr_assert_str_eq(mock_body(&t.mock, 1), mock_body(&t.mock, 3));
	cr_assert_str_eq(mock_header(&t.mock, 3, "authorization"),
			 "Bearer tid=mock2;exp=1;sku=test");
	cr_assert_str_eq(buf_str(&t.status), ""); /* nobody needs to know */
	talk_end(&t);
}

Test(copilot, a_second_401_is_the_end)
{
	struct talk t;
	talk_start(&t, EXPIRED EXPIRED HELLO, false);
	cr_assert_eq(talk_turn(&t), -EIO);
	cr_assert_eq(t.error.kind, PROVIDER_FAIL_AUTH);
	cr_assert_eq(t.error.status, 401);
	cr_assert_not(t.error.retryable);
	talk_expect(t.error.text, "GH_TOKEN");
	talk_expect(t.error.text, "unauthorized: token expired");
	cr_assert_eq(t.mock.n_requests, 4);
	talk_end(&t);
}

Test(copilot, a_ready_bearer_cannot_be_renewed)
{
	struct talk t;
	talk_start(&t, EXPIRED HELLO, true);
	cr_assert_eq(talk_turn(&t), -EIO);
	cr_assert_eq(t.error.kind, PROVIDER_FAIL_AUTH);
	talk_expect(t.error.text, "WARDER_COPILOT_TOKEN");
	cr_assert_eq(t.mock.n_requests, 1);
	talk_end(&t);
}

Test(copilot, a_401_of_the_exchange_is_not_asked_again)
{
	struct talk t;
	talk_start(&t, HELLO, false);
	cr_assert_eq(provider_config_set(&t.config.github_tokens[0], "ghu_wrong"), 0);
	cr_assert_eq(talk_turn(&t), -EIO);
	cr_assert_eq(t.error.kind, PROVIDER_FAIL_AUTH);
	talk_expect(t.error.text, "COPILOT_GITHUB_TOKEN");
	talk_expect(t.error.text, "Bad credentials");
	talk_expect(t.error.text, "warder login");
	cr_assert_eq(t.mock.n_requests, 1);
	talk_end(&t);
}

/* ---- waiting ---- */

#define BUSY "{\"status\":503,\"body\":\"busy\"}\n"

Test(copilot, tries_again_a_few_times_and_says_so)
{
	struct talk t;
	talk_start(&t, BUSY "{\"sse\":[]}\n{\"status\":429,\"body\":\"\"}\n" HELLO, true);
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_str_eq(t.message.text, "hello");
	talk_expect(buf_str(&t.status), "the server failed: trying again in 1 s (1 of 3)\n");
	talk_expect(buf_str(&t.status), "the answer broke off: trying again in 1 s (2 of 3)\n");
	talk_expect(buf_str(&t.status), "too many requests: trying again in 1 s (3 of 3)\n");
	talk_end(&t);
}

Test(copilot, but_not_for_ever)
{
	struct talk t;
	talk_start(&t, BUSY BUSY BUSY BUSY HELLO, true);
	cr_assert_eq(talk_turn(&t), -EIO);
	cr_assert_eq(t.error.kind, PROVIDER_FAIL_SERVER);
	cr_assert_eq(t.mock.n_requests, 1 + ASKER_RETRIES);
	talk_end(&t);
}

static double seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

Test(copilot, waits_as_long_as_the_server_wants)
{
	struct talk t;
	talk_start(&t, "{\"status\":429,\"headers\":{\"Retry-After\":\"1\"},\"body\":\"\"}\n" HELLO,
		   true);
	double start = seconds();
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_geq(seconds() - start, 1.0);
	talk_end(&t);
}

Test(copilot, a_long_wait_is_reported_not_waited_for)
{
	struct talk t;
	talk_start(&t,
		   "{\"status\":429,\"headers\":{\"Retry-After\":\"3600\"},\"body\":\"\"}\n" HELLO,
		   true);
	double start = seconds();
	cr_assert_eq(talk_turn(&t), -EIO);
	cr_assert_lt(seconds() - start, 20.0);
	cr_assert_eq(t.error.retry_after_s, 3600);
	cr_assert(t.error.retryable);
	cr_assert_eq(t.mock.n_requests, 1);
	talk_end(&t);
}

/* ---- the stream ---- */

/* A message whose calls have awkward arguments; PIECES are its events cut small. */
#define CALLS                                                                                      \
	"{\"message\":{\"role\":\"assistant\",\"content\":\"two r\xc3\xa9sum\xc3\xa9s "            \
	"\xe2\x80\xa6 and a "                                                                      \
	"\\u001b[31mred\",\"tool_calls\":[{\"id\":\"c1\",\"function\":{\"name\":\"read_file\","    \
	"\"arguments\":\"{\\\"path\\\": \\\"a "                                                    \
	"\\\\\\\"b\\\\\\\"\\\"}\"}},{\"id\":\"c2\",\"function\":"                                  \
	"{\"name\":\"run_shell\",\"arguments\":\"{\\\"command\\\":\\\"echo \xe2\x80\xa6 "          \
	"done\\\"}\"}}]}"

static void expect_calls(const struct talk *t)
{
	cr_assert_str_eq(t->message.text,
			 "two r\xc3\xa9sum\xc3\xa9s \xe2\x80\xa6 and a \x1b[31mred");
	cr_assert_str_eq(buf_str(&t->text), t->message.text);
	cr_assert_eq(t->message.n_calls, 2);
	cr_assert_str_eq(t->message.calls[0].id, "c1");
	cr_assert_str_eq(t->message.calls[0].name, "read_file");
	cr_assert_str_eq(t->message.calls[0].arguments, "{\"path\": \"a \\\"b\\\"\"}");
	cr_assert_str_eq(t->message.calls[1].id, "c2");
	cr_assert_str_eq(t->message.calls[1].name, "run_shell");
	cr_assert_str_eq(t->message.calls[1].arguments, "{\"command\":\"echo \xe2\x80\xa6 done\"}");
}

Test(copilot, puts_split_calls_together_whatever_the_chunks)
{
	struct talk t;
	talk_start(&t,
		   CALLS "}\n" CALLS ",\"chunk\":1}\n" CALLS ",\"chunk\":2}\n" CALLS
			 ",\"chunk\":3}\n" CALLS ",\"chunk\":1000}\n" CALLS
			 ",\"stream\":false}\n" CALLS ",\"stream\":false,\"chunk\":1}\n",
		   true);
	for (int i = 0; i < 7; i++) {
		cr_assert_eq(talk_turn(&t), 0, "%d: %s", i, t.error.text);
		expect_calls(&t);
	}
	/* What came goes into the conversation, and is sent back as it was. */
	cr_assert_eq(convo_add_assistant(&t.convo, &t.message), 0);
	cr_assert_eq(convo_complete(&t.convo, "no"), 2);
	cr_assert_eq(talk_turn(&t), -EIO); /* the scenario is over */
	talk_expect(mock_body(&t.mock, 7), "\"tool_call_id\":\"c2\"");
	talk_end(&t);
}

Test(copilot, a_cut_off_answer_is_told)
{
	struct talk t;
	talk_start(&t,
		   "{\"message\":{\"role\":\"assistant\",\"content\":\"too "
		   "lo\"},\"finish\":\"length\"}",
		   true);
	cr_assert_eq(talk_turn(&t), 0);
	cr_assert_str_eq(t.message.text, "too lo");
	talk_expect(buf_str(&t.status), "length limit");
	talk_end(&t);
}

Test(copilot, a_dropped_connection_is_an_error_and_loses_nothing)
{
	struct talk t;
	talk_start(&t, CALLS ",\"chunk\":16,\"drop_after\":700}\n" CALLS "}\n", true);
	cr_assert_eq(talk_turn(&t), -EIO);
	cr_assert_eq(t.error.kind, PROVIDER_FAIL_TRANSPORT);
	cr_assert(t.error.retryable);
	talk_expect(t.error.text, "closed the connection in the middle");
	cr_assert_gt(t.text.len, 0); /* shown already, so it is not asked for again unbidden */
	cr_assert_eq(t.mock.n_requests, 1);
	cr_assert_eq(t.convo.n, 1);
	cr_assert_str_eq(t.convo.messages[0].text, "say hello");
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	expect_calls(&t);
	cr_assert_str_eq(mock_body(&t.mock, 0), mock_body(&t.mock, 1));
	talk_end(&t);
}

Test(copilot, a_drop_before_any_text_is_tried_again)
{
	struct talk t;
	talk_start(&t, CALLS ",\"drop_after\":0}\n" CALLS ",\"drop_after\":20}\n" HELLO, true);
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_str_eq(t.message.text, "hello");
	cr_assert_eq(t.mock.n_requests, 3);
	talk_end(&t);
}

Test(copilot, a_stream_that_ends_too_early_is_an_error)
{
	struct talk t;
	talk_start(&t, "{\"sse\":[{\"choices\":[{\"delta\":{\"content\":\"half\"}}]}]}", true);
	cr_assert_eq(talk_turn(&t), -EIO);
	cr_assert_eq(t.error.kind, PROVIDER_FAIL_TRANSPORT);
	talk_expect(t.error.text, "ended its answer in the middle");
	talk_end(&t);
}

Test(copilot, a_whole_answer_survives_a_connection_that_never_ends)
{
	struct talk t;
	talk_start(&t,
		   "{\"sse\":[{\"choices\":[{\"delta\":{\"content\":\"all\"},\"finish_reason\":"
		   "\"stop\"}"
		   "]},\"[DONE]\"],\"pause_ms\":30000}",
		   true);
	double start = seconds();
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_str_eq(t.message.text, "all");
	cr_assert_lt(seconds() - start, 15.0);
	talk_end(&t);
}

Test(copilot, a_stalled_server_is_given_up)
{
	struct talk t;
	talk_start(&t, "{\"status\":200,\"body\":\"\",\"delay_ms\":30000}\n", true);
	t.config.stall_timeout_s = 1;
	t.config.retries = -1;
	double start = seconds();
	cr_assert_eq(talk_turn(&t), -EIO);
	cr_assert_lt(seconds() - start, 15.0);
	cr_assert_eq(t.error.kind, PROVIDER_FAIL_TRANSPORT);
	talk_expect(t.error.text, "sent nothing for 1 seconds");
	talk_end(&t);
}

/* ---- cancelling ---- */

Test(copilot, is_cancelled_in_the_middle_of_the_stream)
{
	struct talk t;
	talk_start(&t, CALLS ",\"chunk\":64,\"pause_ms\":50}\n" HELLO, true);
	t.cancel_after = 10;
	cr_assert_eq(talk_turn(&t), -ECANCELED);
	cr_assert_eq(t.error.kind, PROVIDER_FAIL_CANCELLED);
	cr_assert_not(t.error.retryable);
	cr_assert_geq(t.text.len, 10);
	cr_assert_lt(t.text.len, 30); /* not the whole */
	t.cancel = 0;
	t.cancel_after = 0;
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_str_eq(t.message.text, "hello");
	talk_end(&t);
}

static void *cancel_soon(void *arg)
{
	struct talk *t = arg;
	nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
	t->cancel = 1;
	return NULL;
}

/* While the server is silent, and while we wait before a retry. */
Test(copilot, is_cancelled_while_nothing_happens)
{
	static const char *const rows[] = {
		"{\"status\":200,\"body\":\"\",\"delay_ms\":30000}\n",
		"{\"status\":429,\"headers\":{\"retry-after\":\"30\"},\"body\":\"\"}\n",
		"{\"for\":\"token\",\"delay_ms\":30000}\n",
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct talk t;
		pthread_t thread;
		talk_start(&t, rows[i], i != 2);
		cr_assert_eq(pthread_create(&thread, NULL, cancel_soon, &t), 0);
		double start = seconds();
		cr_assert_eq(talk_turn(&t), -ECANCELED, "%s", rows[i]);
		cr_assert_lt(seconds() - start, 10.0, "%s", rows[i]);
		cr_assert_eq(t.error.kind, PROVIDER_FAIL_CANCELLED);
		pthread_join(thread, NULL);
		talk_end(&t);
	}
}

/* ---- models ---- */

Test(copilot, lists_models_and_which_can_be_used)
{
	static const struct {
		const char *id;
		bool usable, preferred;
		int64_t context;
	} rows[] = {
		{"embedder", false, false, -1},	    {"responses-only", true, false, -1},
		{"switched-off", false, false, -1}, {"mock-small", true, false, -1},
		{"mock-large", true, true, 128000}, {"not-shown", true, false, -1},
		{"needs-terms", true, false, -1},
	};
	struct talk t;
	struct provider_models models = {0};
	talk_start(&t, "", false);
	cr_assert_eq(provider_open(&t.config, &t.provider, &t.error), 0);
	cr_assert_eq(t.provider->ops->models(t.provider, NULL, &models, &t.error), 0, "%s",
		     t.error.text);
	cr_assert_eq(models.n, ARRAY_LEN(rows));
	for (size_t i = 0; i < models.n; i++) {
		cr_assert_str_eq(models.items[i].id, rows[i].id);
		cr_assert_eq(models.items[i].usable, rows[i].usable, "%s", rows[i].id);
		cr_assert_eq(models.items[i].preferred, rows[i].preferred, "%s", rows[i].id);
		cr_assert_eq(models.items[i].context, rows[i].context, "%s", rows[i].id);
		cr_assert_eq(models.items[i].hidden, !strcmp(rows[i].id, "not-shown"));
		cr_assert_eq(models.items[i].responses_only, !strcmp(rows[i].id, "responses-only"));
		cr_assert_eq(models.items[i].needs_enabling,
			     !strcmp(rows[i].id, "needs-terms") ||
				     !strcmp(rows[i].id, "switched-off"));
	}
	cr_assert_str_eq(models.items[4].name, "Mock Large");
	provider_models_free(&models);
	talk_end(&t);
}

Test(copilot, chooses_a_model_where_none_is_named)
{
	struct talk t;
	talk_start(&t, HELLO HELLO, true);
	t.mock.without_lists = false;
	cr_assert_eq(talk_turn_as(&t, NULL, PROVIDER_BY_USER), 0, "%s", t.error.text);
	cr_assert_eq(talk_turn_as(&t, NULL, PROVIDER_BY_USER), 0, "%s", t.error.text);
	cr_assert_str_eq(buf_str(&t.status), "model mock-large\n");
	cr_assert_eq(t.mock.n_requests, 3); /* the list is fetched once */
	cr_assert_str_eq(mock_path(&t.mock, 0), "/models");
	cr_assert_null(mock_header(&t.mock, 0, "x-initiator"));
	talk_expect(mock_body(&t.mock, 2), "\"model\":\"mock-large\"");
	talk_end(&t);
}

/* ---- tokens that are not exchanged ---- */

static void start_direct(struct talk *t, const char *scenario, const char *token)
{
	talk_start_with(t, scenario, NULL, token);
	cr_assert_eq(provider_config_set(&t->config.github_tokens[1], token), 0);
	cr_assert_eq(provider_config_set(&t->config.endpoint, t->mock.url), 0);
}

Test(copilot, a_fine_grained_token_is_the_bearer_itself)
{
	struct talk t;
	start_direct(&t, HELLO HELLO, "github_pat_x");
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_eq(t.mock.n_requests, 1); /* no exchange was tried */
	cr_assert_str_eq(mock_header(&t.mock, 0, "authorization"), "Bearer github_pat_x");
	cr_assert_str_eq(mock_header(&t.mock, 0, "copilot-integration-id"),
			 "copilot-developer-cli");
	talk_end(&t);
	start_direct(&t, HELLO, "github_pat_x");
	cr_assert_eq(provider_config_set(&t.config.integration_id, "mine"), 0);
	cr_assert_eq(talk_turn(&t), -EIO);
	cr_assert_eq(t.error.kind, PROVIDER_FAIL_AUTH);
	talk_expect(t.error.text, "warder login");
	talk_expect(t.error.text, "Personal Access Tokens are not supported");
	talk_end(&t);
}

Test(copilot, a_token_of_another_application_is_too_where_github_does_not_exchange_it)
{
	struct talk t;
	start_direct(&t, HELLO HELLO, "gho_x");
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_eq(talk_turn(&t), 0, "%s", t.error.text);
	cr_assert_eq(t.mock.n_requests, 3); /* one try of an exchange */
	cr_assert_str_eq(mock_path(&t.mock, 0), "/copilot_internal/v2/token");
	cr_assert_str_eq(mock_header(&t.mock, 2, "authorization"), "Bearer gho_x");
	talk_end(&t);
}

Test(copilot, but_one_of_the_editors_application_is_not)
{
	struct talk t;
	start_direct(&t, HELLO, "ghu_x");
	cr_assert_eq(talk_turn(&t), -EIO);
	cr_assert_eq(t.error.status, 404);
	cr_assert_eq(t.mock.n_requests, 1);
	talk_end(&t);
}

Test(copilot, a_direct_token_that_is_refused_is_not_renewed)
{
	struct talk t;
	start_direct(&t, EXPIRED HELLO, "github_pat_x");
	cr_assert_eq(talk_turn(&t), -EIO);
	cr_assert_eq(t.error.kind, PROVIDER_FAIL_AUTH);
	talk_expect(t.error.text, "GH_TOKEN");
	cr_assert_eq(t.mock.n_requests, 1);
	talk_end(&t);
}

/* ---- /responses ---- */

#define RESPONSES(more)                                                                            \
	"{\"for\":\"responses\"," more "\"message\":{\"role\":\"assistant\",\"content\":\"two "    \
	"r\xc3\xa9sum\xc3\xa9s \xe2\x80\xa6 and a "                                                \
	"\\u001b[31mred\",\"tool_calls\":[{\"id\":\"c1\","                                         \
	"\"function\":{\"name\":\"read_file\",\"arguments\":\"{\\\"path\\\": \\\"a "               \
	"\\\\\\\"b\\\\\\\"\\\"}\"}},{\"id\":\"c2\",\"function\":{\"name\":\"run_shell\","          \
	"\"arguments\":\"{\\\"command\\\":\\\"echo \xe2\x80\xa6 done\\\"}\"}}]}}\n"

Test(copilot, asks_by_responses_what_is_listed_there_only)
{
	struct talk t;
	talk_start(&t,
		   RESPONSES("") RESPONSES("\"chunk\":1,") RESPONSES("\"chunk\":3,")
			   RESPONSES("\"stream\":false,"),
		   true);
	for (size_t i = 0; i < 4; i++) {
		cr_assert_eq(talk_turn_as(&t, "responses-only", PROVIDER_BY_USER), 0, "%s",
			     t.error.text);
		expect_calls(&t);
		cr_assert_str_eq(mock_path(&t.mock, i), "/responses");
		cr_assert_eq(t.usage.prompt, 11);
		cr_assert_eq(t.usage.cached, 3);
		cr_assert_eq(t.usage.completion, 7);
	}
	cr_assert_str_eq(mock_header(&t.mock, 0, "x-initiator"), "user");
	cr_assert_eq(t.mock.n_requests, 4);
	talk_end(&t);
}

Test(copilot, sealed_reasoning_goes_back_to_its_model)
{
	struct talk t;
	talk_start(&t, RESPONSES("\"reasoning\":\"SEALED\",") RESPONSES("") CALLS "}\n", true);
	cr_assert_eq(talk_turn_as(&t, "responses-only", PROVIDER_BY_USER), 0, "%s", t.error.text);
	cr_assert_str_eq(t.message.kept_model, "responses-only");
	cr_assert_eq(convo_add_assistant(&t.convo, &t.message), 0);
	cr_assert_eq(convo_complete(&t.convo, "no"), 2);
	cr_assert_eq(talk_turn_as(&t, "responses-only", PROVIDER_BY_AGENT), 0, "%s", t.error.text);
	talk_expect(mock_body(&t.mock, 1), "\"encrypted_content\":\"SEALED\"");
	cr_assert_null(strstr(mock_body(&t.mock, 1), "item_"), "no id of an item is sent back");
	cr_assert_str_eq(mock_header(&t.mock, 1, "x-initiator"), "agent");
	cr_assert_eq(talk_turn_as(&t, "mock-large", PROVIDER_BY_USER), 0, "%s", t.error.text);
	cr_assert_str_eq(mock_path(&t.mock, 2), "/chat/completions");
	cr_assert_null(strstr(mock_body(&t.mock, 2), "SEALED"));
	talk_end(&t);
}

/* The list could not be had: what the server answers is learned from. */
Test(copilot, learns_from_a_refusal_which_endpoint_a_model_has)
{
	struct talk t;
	talk_start(&t,
		   "{\"for\":\"models\",\"status\":404,\"body\":\"\"}\n" RESPONSES("")
			   RESPONSES(""),
		   true);
	cr_assert_eq(talk_turn_as(&t, "responses-only", PROVIDER_BY_USER), 0, "%s", t.error.text);
	expect_calls(&t);
	cr_assert_eq(talk_turn_as(&t, "responses-only", PROVIDER_BY_USER), 0, "%s", t.error.text);
	static const char *const paths[] = {"/chat/completions", "/responses", "/responses"};
	cr_assert_eq(t.mock.n_requests, ARRAY_LEN(paths));
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		cr_assert_str_eq(mock_path(&t.mock, i), paths[i]);
	talk_end(&t);
}

#define WRONG_ENDPOINT                                                                             \
	"\"status\":400,\"body\":\"{\\\"error\\\":{\\\"message\\\":\\\"not here\\\",\\\"code\\\":" \
	"\\\"unsupported_api_for_model\\\"}}\"}\n"

Test(copilot, a_model_of_neither_endpoint_is_told)
{
	static const char *const rows[] = {"{\"for\":\"responses\",\"status\":404,\"body\":\"\"}\n",
					   "{\"for\":\"responses\"," WRONG_ENDPOINT};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct talk t;
		char scenario[600];
		snprintf(scenario, sizeof(scenario), "{%s%s", WRONG_ENDPOINT, rows[i]);
		talk_start(&t, scenario, true);
		cr_assert_eq(talk_turn(&t), -EIO);
		cr_assert_eq(t.error.kind, PROVIDER_FAIL_MODEL);
		talk_expect(t.error.text, "does not speak: choose another with /model");
		talk_expect(t.error.text, "not here");
		cr_assert_eq(t.mock.n_requests, 2);
		talk_end(&t);
	}
}

/* ---- terms ---- */

Test(copilot, a_models_terms_are_accepted_on_demand_only)
{
	struct talk t;
	talk_start(&t, HELLO, true);
	cr_assert_eq(talk_turn_as(&t, "needs-terms", PROVIDER_BY_USER), -EIO);
	cr_assert_eq(t.error.kind, PROVIDER_FAIL_MODEL);
	talk_expect(t.error.text, "/models enable needs-terms");
	cr_assert_eq(t.provider->ops->enable(t.provider, "needs-terms", NULL, &t.error), 0, "%s",
		     t.error.text);
	cr_assert_eq(talk_turn_as(&t, "needs-terms", PROVIDER_BY_USER), 0, "%s", t.error.text);
	cr_assert_str_eq(mock_path(&t.mock, 1), "/models/needs-terms/policy");
	cr_assert_str_eq(mock_body(&t.mock, 1), "{\"state\":\"enabled\"}");
	cr_assert_eq(t.provider->ops->enable(t.provider, "a/../b?c", NULL, &t.error), -EIO);
	mock_read_log(&t.mock);
	cr_assert_str_eq(mock_path(&t.mock, 3), "/models/a%2F..%2Fb%3Fc/policy");
	talk_end(&t);
}

/* ---- what is left ---- */

Test(copilot, tells_what_is_left_to_spend)
{
	struct talk t;
	struct buf line = {0};
	talk_start(&t,
		   "{\"for\":\"user\",\"status\":401,\"body\":\"{\\\"message\\\":\\\"Bad\\\"}\"}\n",
		   false);
	cr_assert_eq(provider_open(&t.config, &t.provider, &t.error), 0);
	cr_assert_eq(t.provider->ops->quota(t.provider, NULL, &line, &t.error), -EIO);
	talk_expect(t.error.text, "warder login");
	cr_assert_eq(t.provider->ops->quota(t.provider, NULL, &line, &t.error), 0, "%s",
		     t.error.text);
	cr_assert_str_eq(buf_str(&line), "premium requests: 120 of 300 left; chat requests: "
					 "unlimited; anew on 2030-01-01");
	mock_read_log(&t.mock);
	cr_assert_str_eq(mock_header(&t.mock, 1, "authorization"), "token ghu_test");
	buf_free(&line);
	talk_end(&t);
	/* A ready bearer is none for GitHub. */
	talk_start(&t, "", true);
	cr_assert_eq(provider_open(&t.config, &t.provider, &t.error), 0);
	cr_assert_eq(t.provider->ops->quota(t.provider, NULL, &line, &t.error), -ENOTSUP);
	talk_end(&t);
}

Test(copilot, an_odd_quota_is_not_told)
{
	static const struct {
		const char *json, *line;
	} rows[] = {
		{"{}", "the account's quotas are not told"},
		{"[]", "the account's quotas are not told"},
		{"{\"quota_snapshots\":{\"chat\":{\"remaining\":1}}}",
		 "the account's quotas are not told"},
		{"{\"quota_snapshots\":{\"chat\":{\"remaining\":1,\"entitlement\":2,"
		 "\"overage_permitted\":true}}}",
		 "chat requests: 1 of 2 left, more is billed"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct json *v = NULL;
		struct buf line = {0};
		cr_assert_eq(json_parse(rows[i].json, strlen(rows[i].json), &v, NULL), 0);
		copilot_write_quota(v, &line);
		cr_assert_str_eq(buf_str(&line), rows[i].line);
		buf_free(&line);
		json_free(v);
	}
}

/* ---- without a server ---- */

Test(copilot, says_what_is_wrong_with_the_credential)
{
	static const struct {
		const char *bearer, *token, *endpoint, *api, *says;
	} rows[] = {
		{NULL, NULL, NULL, NULL, "run `warder login`"},
		{NULL, "ghp_classic", NULL, NULL, "GITHUB_TOKEN is a classic"},
		{NULL, "gho_with space", NULL, NULL, "GITHUB_TOKEN holds no GitHub token"},
		{"two\nlines", NULL, NULL, NULL, "WARDER_COPILOT_TOKEN has"},
		{"b", NULL, "http://example.invalid", NULL, "https"},
		{NULL, "ghu_x", NULL, "http://example.invalid", "https"},
		{"b", NULL, "ftp://127.0.0.1", NULL, "https"},
		{"b", NULL, "http://127.0.0.1@example.invalid", NULL, "https"},
		{"b", NULL, "http://localhost.example.invalid", NULL, "https"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct provider_config c = {.kind = PROVIDER_COPILOT};
		struct provider *p = NULL;
		struct provider_error error = {0};
		provider_config_set(&c.copilot_bearer, rows[i].bearer);
		provider_config_set(&c.github_tokens[2], rows[i].token);
		provider_config_set(&c.endpoint, rows[i].endpoint);
		provider_config_set(&c.github_api, rows[i].api);
		cr_assert_eq(provider_open(&c, &p, &error), -EIO, "row %zu", i);
		cr_assert_null(p);
		cr_assert_eq(error.kind, PROVIDER_FAIL_CONFIG);
		talk_expect(error.text, rows[i].says);
		provider_config_free(&c);
	}
}

Test(copilot, reads_what_github_grants)
{
	static const struct {
		const char *json, *base;
		int64_t lifetime, renew;
	} rows[] = {
		{"{\"token\":\"t\",\"expires_at\":2800,\"refresh_in\":1500,\"endpoints\":{\"api\":"
		 "\"https://api.business.githubcopilot.com\"}}",
		 "https://api.business.githubcopilot.com", 1800, 1440},
		{"{\"token\":\"t;proxy-ep=proxy.individual.githubcopilot.com;x\",\"expires_at\":"
		 "2800}",
		 "https://api.individual.githubcopilot.com", 1800, 1680},
		{"{\"token\":\"tid=1;xproxy-ep=proxy.evil;b\"}", "https://b.example", 1500, 1380},
		{"{\"token\":\"tid=1;proxy-ep=proxy.a/b;c\"}", "https://b.example", 1500, 1380},
		{"{\"token\":\"t\",\"expires_at\":1008,\"refresh_in\":400}", "https://b.example", 8,
		 6},
		/* Our clock is ahead. */
		{"{\"token\":\"t\",\"expires_at\":10,\"refresh_in\":1500}", "https://b.example",
		 1500, 1380},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct copilot_grant g = {0};
		struct json *v = NULL;
		const char *why = NULL;
		cr_assert_eq(json_parse(rows[i].json, strlen(rows[i].json), &v, NULL), 0);
		cr_assert_eq(copilot_read_grant(v, 1000, "https://b.example", &g, &why), 0, "%s",
			     why);
		cr_assert_str_eq(g.base, rows[i].base);
		cr_assert_eq(g.lifetime_s, rows[i].lifetime, "row %zu", i);
		cr_assert_eq(g.renew_after_s, rows[i].renew, "row %zu: %lld", i,
			     (long long)g.renew_after_s);
		copilot_grant_free(&g);
		json_free(v);
	}
}
