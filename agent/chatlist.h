/*
 * chatlist: the sessions that are saved (chatlog): found by their id's beginning, and listed.
 */
#pragma once

#include "tracer/buf.h"

#include <stdbool.h>

/* Sessions in a list. */
#define CHATLIST_MAX 20

/*
 * The id of the one that begins with `id`, or of the newest of `project` where id is NULL, `but`
 * (may be NULL) left out. 0 and *ret (owned); -ENOENT: none; -ENOTUNIQ: more than one; or -errno.
 */
int chatlist_find(const char *dir, const char *id, const char *project, const char *but,
		  char **ret);
/*
 * Append a line a session, newest first: id, where (project NULL: of all projects), the first
 * words, as far as `width` columns go. What can't be read is left out. 0 or -errno; no directory:
 * nothing.
 */
int chatlist_write(const char *dir, const char *project, size_t width, struct buf *out);
