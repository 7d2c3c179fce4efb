/*
 * agent: what a start of `warder agent` holds together: the session with its policy, the provider,
 * the conversation, the tools. Used by one thread; turns block.
 */
#pragma once

#include "agent/chatlog.h"
#include "agent/details.h"
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
	struct chatlog log;
	struct compact_gauge gauge;
	int64_t context;  /* tokens, as the user says; 0: as the model does */
	char *context_of; /* owned; the model that the gauge's context is of; NULL: not asked yet */
	bool log_failed;  /* told that it is not saved */
	bool notes_read;  /* the project's AGENTS.md was looked for */
	struct toolrun tools;
	unsigned max_steps, max_seconds; /* 0: turn.h's */
	bool color;
	struct details details;
	struct denial_list denials;  /* since the start, granted ones too */
	struct provider_usage usage; /* summed up; -1: not told */
	unsigned turns;
};

/* A new conversation and session: the system message is its first. 0 or -errno. */
int agent_start_convo(struct agent *a);
/* Go on in a saved one (chatlog_resume). 0 or -errno with a sentence. */
int agent_resume(struct agent *a, const char *id, struct policy_error *ret_error);
/*
 * One turn; keeps count of what was refused and used. Before the first one the project's AGENTS.md
 * is read. turn_result_release() is the caller's.
 */
void agent_turn(struct agent *a, const char *words, const struct turn_sink *sink,
		struct turn_result *ret);
/* Make the conversation short. 0, or -errno with a sentence; what it took is counted. */
int agent_compact(struct agent *a, struct provider_error *ret_error);
void agent_release(struct agent *a);
