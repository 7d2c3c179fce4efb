/*
 * llexport: what of a policy plain Landlock rules can say, for programs that only have these.
 *
 * Nothing is widened: a directory gets an access where the policy gives it to all that is or could
 * be below; where an exception lies below, the directory is looked into and what is in it now is
 * named one by one. What that leaves unsaid is listed, a line a rule. Looks at the file system.
 *
 * Landlock has no word for `meta` and (before ABI 9) `connect`: there nothing refuses them.
 */
#pragma once

#include "supervisor/policy.h"

struct llexport_entry {
	char *path;	  /* owned; absolute */
	uint32_t access;  /* of LLEXPORT_ACCESS */
	uint32_t covered; /* what entries above it give it as well */
	bool exists, is_dir;
};

#define LLEXPORT_ACCESS (ACCESS_ALL & ~(uint32_t)(ACCESS_META | ACCESS_CONNECT))
/* Names looked at in all. */
#define LLEXPORT_WALK_MAX 20000

struct llexport {
	struct llexport_entry
		*entry; /* owned; by path, no two the same, none that another covers */
	size_t len;
	struct buf unsaid; /* owned; lines, escaped: what is not said */
};

/* 0 or -ENOMEM; to be released in any case. */
int llexport(const struct policy *p, struct llexport *ret);
void llexport_release(struct llexport *e);
/* "RULE (ORIGIN:LINE): WHAT" as a line. */
void llexport_unsaid(struct llexport *e, const struct rule *r, const char *what);
