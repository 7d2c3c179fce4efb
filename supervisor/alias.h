/*
 * alias: other names of protected files. A rule on a file covers its inode by whatever name, and a
 * rule on a directory whatever lies in it: a hard link of a protected file would be open.
 *
 * Looked for are non-directories with more than one link that an exception protects (exceptions:
 * see reach_is_exception), and their names inside what is allowed, until every link is accounted
 * for. Found this way are all of them, unless a bound cut the search: then no directory on that
 * file system may have a rule for those accesses. Not found: links of files beyond the first
 * ALIAS_WALK_MAX entries below exceptions, and links of files that no rule names (what a link in an
 * allowed place gives is what the policy allows there).
 */
#pragma once

#include "supervisor/policy.h"

#include <sys/stat.h>

#define ALIAS_WALK_MAX	200000
#define ALIAS_FILES_MAX 4096

struct alias_set;

/* 0 and *ret (owned); -ENOMEM. Does I/O. */
int alias_find(const struct policy *p, struct alias_set **ret);
void alias_free(struct alias_set *a);
/* The accesses that nothing may give to this inode, since an exception withholds them by one of its
 * names. */
uint32_t alias_of(const struct alias_set *a, const struct stat *st);
/* The accesses that a rule on this directory would give to a protected file below it. */
uint32_t alias_below(const struct alias_set *a, const char *dir, const struct stat *st);
/* A bound cut the search. */
bool alias_cut(const struct alias_set *a);
