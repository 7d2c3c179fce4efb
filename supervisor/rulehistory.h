/*
 * rulehistory: since when a rule stands, and when it last decided something.
 *
 * Both are read from what is there anyway: the date in the comment of a saved answer, the time of
 * the policy file, the audit. Only what was refused, asked or done in the command's place is in
 * the audit: what the kernel let through by a rule leaves no trace.
 */
#pragma once

#include "supervisor/policy.h"

#include <stddef.h>

#define RULEHISTORY_LEN 32

/* The days that a policy's file names, of the file that was asked about last; {0} at first. */
struct rulehistory_days {
	char *origin;	 /* owned */
	struct day *day; /* owned; of each line */
	size_t lines;
	char file[RULEHISTORY_LEN]; /* where a line names none */
};

/*
 * "2026-01-31" from the line's comment; "2026-01-31 or before", the file's last change, where it
 * has none. "" where it is no file's rule, or the file is gone. Reads a file once, as long as the
 * rules of one follow each other. A loan of d.
 */
const char *rulehistory_since(struct rulehistory_days *d, const struct rule *rule);
void rulehistory_days_release(struct rulehistory_days *d);

/* The time (as the audit has it) of each rule's last decision; "": none known. */
struct rulehistory {
	char (*last)[RULEHISTORY_LEN]; /* owned; by the rule's place in the policy */
	size_t len;
};

/*
 * Goes through ${state_dir}/audit.jsonl, its last RULEHISTORY_AUDIT_MAX bytes. An entry counts for
 * the rule that would decide it today, where that is of the file that decided it then. 0 or
 * -ENOMEM; no audit: nothing is known.
 */
#define RULEHISTORY_AUDIT_MAX (64u << 20)
int rulehistory_read(const char *state_dir, const struct policy *p, struct rulehistory *ret);
void rulehistory_release(struct rulehistory *h);
