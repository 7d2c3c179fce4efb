/*
 * compact: a conversation that has grown too long, made short with the model's help: everything
 * but the system message becomes one message of the user's with the model's summary in it.
 */
#pragma once

#include "agent/provider.h"

#include <stdint.h>

/* Tokens of a model that does not say how much it takes. */
#define COMPACT_CONTEXT 100000
/* Bytes of the conversation that a token stands for, where the server never told. */
#define COMPACT_BYTES_PER_TOKEN 4
/* A conversation that takes more than this of the context, in per cent, is made short. */
#define COMPACT_AT 80

/* How many tokens a conversation takes, as far as can be known. */
struct compact_gauge {
	int64_t context; /* tokens; 0: COMPACT_CONTEXT */
	int64_t tokens; /* of the last request and its answer, as the server counted; 0: not told */
	size_t bytes;	/* of the conversation then */
};

int64_t compact_estimate(const struct compact_gauge *g, const struct convo *c);
bool compact_is_due(const struct compact_gauge *g, const struct convo *c);

struct compact_request {
	struct provider *provider; /* loans */
	const char *model;
	const volatile sig_atomic_t *cancel;
	const struct compact_gauge *gauge;
	void *arg; /* provider_sink's */
	void (*on_status)(void *arg, const char *line);
	void (*on_usage)(void *arg, const struct provider_usage *usage);
};

/*
 * No calls may be pending. One request to the provider, without tools. 0, and the conversation ends
 * with the user's message; or an error of provider_ops.turn with *ret_error, and it is as before.
 */
int compact_run(const struct compact_request *r, struct convo *c, struct provider_error *ret_error);
