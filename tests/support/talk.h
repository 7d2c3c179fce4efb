/*
 * talk: one conversation of a provider with the mock server, for Criterion tests.
 */
#pragma once

#include "agent/provider.h"
#include "tests/support/mock.h"
#include "tracer/buf.h"
#include "tracer/util.h"

/* A scenario's line. */
#define HELLO "{\"message\":{\"role\":\"assistant\",\"content\":\"hello\"}}\n"

struct talk {
	struct mock mock;
	struct provider_config config;
	struct provider *provider;
	struct convo convo;
	struct buf text, status;
	struct provider_usage usage;
	struct convo_message message;
	struct provider_error error;
	volatile sig_atomic_t cancel;
	size_t cancel_after; /* bytes of text; 0: never */
};

static inline void talk_on_text(void *arg, const char *bytes, size_t n)
{
	struct talk *t = arg;
	buf_add(&t->text, bytes, n);
	if (t->cancel_after && t->text.len >= t->cancel_after)
		t->cancel = 1;
}

static inline void talk_on_status(void *arg, const char *line)
{
	struct talk *t = arg;
	buf_addf(&t->status, "%s\n", line);
}

static inline void talk_on_usage(void *arg, const struct provider_usage *usage)
{
	struct talk *t = arg;
	t->usage = *usage;
}

/* As mock_start_with(); the credential is the caller's to configure. */
static inline void talk_start_with(struct talk *t, const char *scenario, const char *bearer,
				   const char *direct)
{
	*t = (struct talk){0};
	mock_start_with(&t->mock, scenario, bearer, direct);
	t->mock.without_lists = true;
	cr_assert_eq(provider_config_set(&t->config.github_api, t->mock.url), 0);
	t->config.kind = PROVIDER_COPILOT;
	t->config.backoff_ms = 1;
	t->config.stall_timeout_s = 20;
	cr_assert_eq(convo_add_text(&t->convo, CONVO_USER, "say hello"), 0);
}

/* With a GitHub token that is exchanged, or (ready) with a bearer that the server takes. */
static inline void talk_start(struct talk *t, const char *scenario, bool ready)
{
	talk_start_with(t, scenario, "ready-bearer", NULL);
	if (ready) {
		cr_assert_eq(provider_config_set(&t->config.copilot_bearer, "ready-bearer"), 0);
		cr_assert_eq(provider_config_set(&t->config.endpoint, t->mock.url), 0);
	} else {
		cr_assert_eq(provider_config_set(&t->config.github_tokens[1], "ghu_test"), 0);
	}
}

static inline int talk_turn_as(struct talk *t, const char *model, enum provider_initiator initiator)
{
	const struct provider_request req = {
		.convo = &t->convo,
		.tools_json = "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]",
		.model = model,
		.initiator = initiator,
		.cancel = &t->cancel,
	};
	const struct provider_sink sink = {.arg = t,
					   .on_text = talk_on_text,
					   .on_status = talk_on_status,
					   .on_usage = talk_on_usage};
	if (!t->provider)
		cr_assert_eq(provider_open(&t->config, &t->provider, &t->error), 0, "%s",
			     t->error.text);
	convo_message_free(&t->message);
	buf_reset(&t->text);
	int err = t->provider->ops->turn(t->provider, &req, &sink, &t->message, &t->error);
	mock_read_log(&t->mock);
	if (err)
		cr_assert_null(t->message.text, "the message is untouched on failure");
	return err;
}

static inline int talk_turn(struct talk *t)
{
	return talk_turn_as(t, "mock-large", PROVIDER_BY_USER);
}

static inline void talk_end(struct talk *t)
{
	provider_free(t->provider);
	provider_config_free(&t->config);
	convo_message_free(&t->message);
	convo_free(&t->convo);
	buf_free(&t->text);
	buf_free(&t->status);
	mock_stop(&t->mock);
}

static inline void talk_expect(const char *text, const char *part)
{
	cr_assert(strstr(text, part), "\"%s\" is not in \"%s\"", part, text);
}
