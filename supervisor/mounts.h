/*
 * mounts: other names that bind mounts give to what rules refuse.
 *
 * Landlock's rules are of inodes and go by the way up from a thing: one on the project covers a
 * bind mount in it, whatever lies there. So each rule with a plain path that does not allow is said
 * once more of every place where another mount shows the same thing. A `forbid` is also said of
 * mounts that show something below it; `deny` and `ask` are not: who allows such a place by its own
 * name means it.
 *
 * Seen are the mounts of this moment (/proc/self/mountinfo: those below our root, with the part of
 * the file system each one shows). A command can't make others: Landlock lets nobody mount.
 */
#pragma once

#include "supervisor/policy.h"

#include <stddef.h>

#define MOUNTS_RULES_MAX 4096 /* said once more; a policy that needs more is refused */

/* Adds the rules. `mountinfo`: the file's text. 0, -ENOMEM, -E2BIG. */
int mounts_add_rules(struct policy *p, const char *mountinfo);
