/*
 * tempname: was this name made up for the moment? Pure, a guess.
 *
 * Temporary names (mkstemp, compilers, python's caches while they are written), UUIDs, hashes,
 * times and process ids: a rule for such a name will never apply again, so its directory is meant.
 */
#pragma once

#include <stdbool.h>

/* One component. Errs on the side of no. */
bool tempname_is(const char *name);
/* The same in /tmp and the like, where such names are the rule: errs on the side of yes. */
bool tempname_is_where_they_are(const char *name);
/* The number of the process that made it is in it. */
bool tempname_has_pid(const char *name, long pid);
