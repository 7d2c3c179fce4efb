/*
 * surplus: how many existing things a tree opens beside the one that was asked for.
 */
#pragma once

#include "supervisor/policy.h"

#include <stdbool.h>
#include <stdint.h>

struct surplus {
	uint64_t count;
	bool more;	/* a bound was hit, or something could not be looked into: "at least" */
	bool sensitive; /* something on the policy's sensitive list is among them */
};

struct surplus_ask {
	const char *path;	     /* absolute; what is below it is counted, absent: nothing */
	const char *asked[2];	     /* not counted themselves; NULL: none */
	const struct policy *policy; /* for `sensitive`; may be NULL */
	uint32_t access;
	uint64_t max; /* count at most so many */
};

/*
 * Adds to *ret. Symlinks are not followed, other file systems are not entered (a dead network
 * mount would block), directories without permission are counted, not opened.
 */
void surplus_add(const struct surplus_ask *ask, struct surplus *ret);
