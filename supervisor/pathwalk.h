/*
 * pathwalk: where a path leads through symlinks: realpath of the longest part that exists, and the
 * rest as it is written. A dangling symlink leads to where it points.
 *
 * A walker may be used for many paths, one after the other: what it looked at for one is not looked
 * at again, as if all had been asked at the same moment. It reads directories by name (lstat,
 * readlink) and blocks as they do.
 */
#pragma once

#include "tracer/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define PATHWALK_KNOWN	2048 /* a power of two */
#define PATHWALK_LISTED 4

struct pathwalk {
	/* What pathwalk_resolve() found; loans until the next one: */
	struct buf out;	  /* the path */
	struct buf links; /* the symlinks on the way, each with its NUL (struct rule) */
	/* Its own: */
	struct buf rest, spare; /* what is still to be walked, from `at` on */
	size_t at;
	unsigned followed;
	uint32_t hash; /* of out, while nothing was missing */
	bool as_written;
	bool missing; /* the last component was not there: take the rest as it is written */
	bool once;    /* set before the first path: it is to be the only one, nothing is kept */
	struct pathwalk_known *known; /* owned */
	size_t known_len;
	size_t listed[PATHWALK_LISTED]; /* in names: directories of which all is known */
	size_t listed_len;
	struct buf names; /* of what is known, each with its NUL */
};

/*
 * Follow an absolute path; as_written: it is the one meant, and no file is looked at. 0; -EINVAL:
 * not absolute; -ELOOP, -ENAMETOOLONG, -ENOMEM; -EOPNOTSUPP for /proc/self, which is another thing
 * to everybody.
 */
int pathwalk_resolve(struct pathwalk *w, const char *absolute, bool as_written);
/*
 * Look at the whole of a directory at once, where much of it will be asked for; an absolute path.
 * Where that can't be done, or would take long, each name is looked at by itself.
 */
void pathwalk_list(struct pathwalk *w, const char *absolute);
/* All that it holds; it may be used again then. */
void pathwalk_release(struct pathwalk *w);
