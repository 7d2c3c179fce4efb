/*
 * compile: a policy -> the largest Landlock ruleset that grants nothing more. What is left is
 * brokered.
 *
 * Content rights (READ_FILE, READ_DIR, EXECUTE, WRITE_FILE, TRUNCATE, IOCTL_DEV) each by itself: a
 * tree with no exception to that right below becomes one rule; one with an exception is descended
 * into, its other children become rules, the directory itself gets none. Exact and glob rules give
 * a non-directory that exists its rule; a directory only where all below it is allowed as well
 * (Landlock rules cover all below).
 *
 * Structural rights (MAKE_*, REMOVE_*, REFER) are one group: a directory gets those that the policy
 * allows, and only where every access, these and all others, is the same for every name below it,
 * there or not: a rename in it can then carry nothing into the open. Between two such directories
 * the kernel refuses a move that would widen a right it knows; for what it does not know (META, ask
 * against deny, rights that the ABI lacks) only directories that agree get REFER. MAKE_REG never
 * without READ_FILE and WRITE_FILE: the kernel would leave an empty file and fail.
 *
 * A hard link of a file that an exception protects closes the directories it lies in, for the
 * accesses that are withheld (supervisor/alias.h, with what is not found). Bind mounts of a
 * protected thing at an allowed place are seen where the policy speaks of them by that name too
 * (supervisor/mounts.h). Not seen: case folded names.
 */
#pragma once

#include "landlock/llruleset.h"
#include "supervisor/policy.h"
#include "supervisor/reach.h"

#include <stdint.h>

/* Directory entries looked at for one ruleset; beyond it what is left goes to the broker. */
#define COMPILE_WALK_MAX 200000

struct compile_stats {
	uint64_t rules;	 /* Landlock rules made */
	uint64_t walked; /* directory entries looked at */
	bool truncated; /* something was left out: a bound was reached, or descriptors were short */
};

/*
 * Directories that lie elsewhere and are to take a new directory's place (supervisor/pool.h): each
 * gets the rule that a directory in `like` would have. Loans.
 */
struct compile_spares {
	const char *like;
	const int *fd; /* O_PATH */
	size_t len;
	bool ruled;	    /* set: they have it; false: a name in `like` is not as every other */
	struct reach class; /* set where ruled: how all stands below them */
};

/*
 * Build the ruleset. Paths that don't exist or can't be opened give no rule. 0 and *ret (owned), or
 * -errno: nothing may be run then. Does I/O; blocks as directories do.
 */
int compile_policy(const struct policy *p, const struct llabi *abi, uint32_t scopes,
		   struct llruleset **ret, struct compile_stats *ret_stats);
/* Into a ruleset that has no rules yet, and rules for these, too. 0, or -errno as above. */
int compile_into(const struct policy *p, struct llruleset *rs, struct compile_spares *spares,
		 struct compile_stats *ret_stats);
