/*
 * whylast: the last report's denials, explained under the policy as it is now.
 */
#pragma once

#include "supervisor/engine.h"
#include "supervisor/why.h"

/* A policy as a run has it, and the ruleset that it would be given (NULL: no Landlock here). */
struct whylast_place {
	struct session *session;   /* owned */
	struct llruleset *ruleset; /* owned */
};

/* 0 or -errno with a sentence. */
int whylast_open(const struct session_options *o, struct whylast_place *ret,
		 struct policy_error *ret_error);
void whylast_close(struct whylast_place *p);

/*
 * The explanation, as text or as one JSON object, with the presets, files and lines of that run.
 * Changes into its directory. 0: all that was refused would be allowed now; 1: not all; 125 with a
 * sentence.
 */
int whylast(char *const *env, bool json, struct buf *out, struct policy_error *ret_error);
