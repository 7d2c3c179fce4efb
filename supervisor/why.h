/*
 * why: what the policy says of one path, which rule says it, what the kernel will do, and what
 * would have to change.
 *
 * Asks the policy as a run has it, the ruleset that a run would be given, and the file's own
 * permissions for whoever asks. Does I/O on the path alone.
 */
#pragma once

#include "landlock/llruleset.h"
#include "supervisor/policy.h"

#include <sys/stat.h>

/* What Landlock answers. */
enum why_wall {
	WHY_WALL_UNKNOWN, /* no ruleset, or the way to the path can't be looked at */
	WHY_WALL_OPEN,	  /* the ruleset grants it: no stop, no question */
	WHY_WALL_CLOSED,  /* it refuses; warder does in place what the policy allows */
	WHY_WALL_ABSENT,  /* nothing is there: a call that does not make it fails before any wall */
	WHY_WALL_NO_RIGHT, /* Landlock has no such right: warder does each such call itself */
};

/* Accesses that stand alike. */
struct why_answer {
	uint32_t access;
	enum effect effect;
	const struct rule *rule; /* a loan of the policy; NULL: none names it */
	bool sensitive;
	enum why_wall wall;
	int permits;  /* 0, or -errno: the file's own permissions refuse it, whatever we allow */
	char *change; /* owned; the command that would turn it round, or NULL: `stuck` says why.
			 NULL, too, where the file's own permissions refuse it */
	const char *stuck; /* static */
};

struct why {
	const char *path; /* a loan; absolute, resolved */
	const struct policy *policy;
	const struct llruleset *ruleset; /* NULL: not known */
	/*
	 * A call of a run needed these of the path itself: as a run suggests it (plan.h), a
	 * directory is opened alone.
	 */
	bool of_call;
	bool permitted;	  /* the file's own permissions let it: they are not looked at */
	const char *home; /* may be NULL */
	const char *
		project_policy; /* the project's saved policy: its rules are changed by --project */
	bool exists;
	bool absent;	/* neither: it can't be looked at */
	struct stat st; /* where it exists */
	struct why_answer answer[ACCESS_COUNT];
	size_t len;
};

/*
 * policy, ruleset, home and path are set; the rest is filled in for the accesses of `mask` (0: all
 * that can be made use of on a thing of this kind). 0 or -ENOMEM; to be released in any case.
 */
int why_ask(struct why *w, uint32_t mask);
void why_release(struct why *w);
/* Is every access of it allowed, and not refused by the file's own permissions? */
bool why_all_allowed(const struct why *w);
/* As people read it: lines, escaped. */
void why_format(const struct why *w, struct buf *out);
/* The members of an object that is open. */
struct jsonw;
void why_write(const struct why *w, struct jsonw *out);
