/*
 * agent: what a start of `warder agent` holds together: the session with its policy, the provider,
 * the conversation, the tools. Used by one thread; turns block.
 */
#pragma once

#include "agent/provider.h"
#include "agent/turn.h"
#include "supervisor/engine.h"

#include <stdbool.h>

struct agent {
	struct session *session;
	struct provider_config config;
	enum provider_kind kind;
	struct provider *provider;
	char *model; /* owned; NULL: the provider's choice */
	struct convo convo;
	struct toolrun tools;
	unsigned max_steps, max_seconds; /* 0: turn.h's */
	bool color;
	struct denial_list denials;  /* since the start, granted ones too */
	struct provider_usage usage; /* summed up; -1: not told */
	unsigned turns;
};

/* The system message, as the first of an empty conversation. 0 or -errno. */
int agent_start_convo(struct agent *a);
/* One turn; keeps count of what was refused and used. turn_result_release() is the caller's. */
void agent_turn(struct agent *a, const char *words, const struct turn_sink *sink,
		struct turn_result *ret);
void agent_release(struct agent *a);
