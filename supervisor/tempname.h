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
