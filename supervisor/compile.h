/*
 * compile: a policy -> the largest Landlock ruleset that grants nothing more. What is left is
 * brokered.
 *
 * Content rights (READ_FILE, READ_DIR, EXECUTE, WRITE_FILE, TRUNCATE, IOCTL_DEV) each by
 * itself: a tree with no exception to that right below becomes one rule; one with an exception is
 * descended into, its other children become rules, the directory itself gets none. Structural
 * rights (MAKE_*, REMOVE_*, REFER) are one group: a directory gets them only where the policy for
 * every access that they and a move through them could carry is allow for everything that is or
 * could be below. MAKE_REG never without READ_FILE and WRITE_FILE: the kernel would leave an empty
 * file and fail. Exact and glob rules give a non-directory that exists its rule; a directory never
 * (Landlock rules cover all below).
 */
#pragma once

#include "landlock/llruleset.h"
#include "supervisor/policy.h"

#include <stdint.h>

/* Directory entries looked at for one ruleset; beyond it what is left goes to the broker. */
#define COMPILE_WALK_MAX 200000

struct compile_stats {
	uint64_t rules;	 /* Landlock rules made */
	uint64_t walked; /* directory entries looked at */
	bool truncated;	 /* COMPILE_WALK_MAX was reached */
};

/*
 * Build the ruleset. Paths that don't exist or can't be opened give no rule. 0 and *ret (owned), or
 * -errno: nothing may be run then. Does I/O; blocks as directories do.
 */
int compile_policy(const struct policy *p, const struct llabi *abi, uint32_t scopes,
		   struct llruleset **ret, struct compile_stats *ret_stats);
