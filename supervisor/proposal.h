/*
 * proposal: the .warder.policy that a project brings along.
 *
 * Who wrote it is anybody, so its rules count for nothing until a person has seen and accepted
 * them. What was accepted is kept as text beside our own policies, out of every command's reach,
 * and that text is what counts from then on, whatever becomes of the file; when the file says
 * something else it is shown again. Only what takes away (`deny`, `forbid`) counts at once: such a
 * rule can open nothing.
 */
#pragma once

#include "supervisor/store.h"

#define PROPOSAL_NAME ".warder.policy"
/* Of a text that nobody accepted, what takes away counts: this many rules at most. */
#define PROPOSAL_RULES_MAX 500

struct proposal {
	char *file;	       /* owned; DIR/.warder.policy */
	char *accepted_file;   /* owned; where what was accepted is kept */
	bool exists, accepted; /* the file is there; something was accepted */
	struct buf text, old;  /* owned; what the file says; what was accepted */
	struct policy_error
		fault; /* why the file can't be used: "" where it can, or is not there */
};

/* 0 or -errno with *ret_error: our own copy can't be read. The file's faults are in `fault`. */
int proposal_open(const struct store *s, const struct project *p, struct proposal *ret,
		  struct policy_error *ret_error);
void proposal_release(struct proposal *p);
/* Does the file say something that was not accepted? */
bool proposal_is_new(const struct proposal *p);
/*
 * Adds to the policy what was accepted, and of a new text what takes away. *ret_note: an owned
 * sentence for the user, or NULL. 0 or -errno with *ret_error; -E2BIG: a new text takes away by
 * more than PROPOSAL_RULES_MAX rules, and nothing should run before somebody looked at it.
 */
int proposal_apply(const struct proposal *p, struct policy *policy, const struct policy_vars *vars,
		   char **ret_note, struct policy_error *ret_error);
/* What the file says now was accepted; or, where it is gone, nothing is any more. */
int proposal_accept(const struct proposal *p, struct policy_error *ret_error);
