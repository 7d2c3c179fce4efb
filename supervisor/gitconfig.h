/*
 * gitconfig: what a git config file says, without running git. It is read to protect what it names,
 * so a file that git would refuse is read as far as it makes sense.
 */
#pragma once

#include <stddef.h>

#define GITCONFIG_SIZE_MAX (1u << 20)

/*
 * section and key are lower case, subsection as written ("" without one), value without quotes
 * and comment. All are loans of the call. Answer 0 to go on; anything else ends the reading and is
 * returned.
 */
typedef int gitconfig_fn(const char *section, const char *subsection, const char *key,
			 const char *value, void *arg);

int gitconfig_scan(const char *text, size_t n, gitconfig_fn *fn, void *arg);
/* The same from a regular file, not through a symlink. 0, -errno, or what fn answered. */
int gitconfig_read(const char *file, gitconfig_fn *fn, void *arg);
