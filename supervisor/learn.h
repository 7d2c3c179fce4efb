/*
 * learn: from what was seen in traces to the narrowest sensible policy.
 *
 * The policy it makes is for runs with the presets that are always on (system, tmp, project): what
 * these open needs no rule. Of the rest, what another preset opens is left to that preset; the
 * remainder becomes rules by the planner that questions and `suggested` use (supervisor/plan.h),
 * so that no wide directory is opened for a few files below it. What is on the sensitive list, what
 * a preset or a person refused, and names that will never come again make no rules: they are
 * listed, for somebody to decide.
 *
 * Nothing of this machine's files is looked at, but to count what else a tree opens, where the
 * trace was recorded here.
 */
#pragma once

#include "supervisor/policyfile.h"
#include "tracer/trace.h"

struct learn; /* owns all that it was given */

struct learn_options {
	const char *home;    /* absolute: ~ in the result; traces with another are moved there */
	const char *project; /* absolute: relative paths in the result; NULL: the first trace's */
	const char *old;     /* text of a policy that is there already, or NULL */
	const char *old_name;
};

/* 0; -EINVAL with *ret_error: the old policy; -ENOMEM. */
int learn_new(const struct learn_options *o, struct learn **ret, struct policy_error *ret_error);
void learn_free(struct learn *l);
/* What follows is from this trace. 0; -EINVAL with *ret_error: its policy can't be read; -ENOMEM.
 */
int learn_begin(struct learn *l, const struct trace_header *h, struct policy_error *ret_error);
/* 0 or -ENOMEM. */
int learn_event(struct learn *l, const struct trace_event *ev);
/*
 * The policy, with a comment on each rule. *ret_rules: how many there are. 0 or -ENOMEM. Once.
 */
int learn_write(struct learn *l, struct buf *out, size_t *ret_rules);

/*
 * After learn_write(): go through the same traces again (learn_begin, learn_check for each event)
 * under the policy that was written: is all allowed that was not left out?
 */
int learn_check_begin(struct learn *l, const char *text, size_t n, struct policy_error *ret_error);
int learn_check(struct learn *l, const struct trace_event *ev);
struct learn_verdict {
	uint64_t allowed;   /* accesses that were seen, and are allowed */
	uint64_t left_out;  /* listed: sensitive, refused, not coming again */
	uint64_t missed;    /* neither: the policy is wrong */
	char *first_missed; /* owned: "read /x", or NULL */
	size_t wider; /* rules, and sights of what was to be left out, that are open without a word
		       */
	char *first_wider; /* owned, or NULL */
};
/* 0 or -ENOMEM. Release the strings. */
int learn_check_end(struct learn *l, struct learn_verdict *ret);
