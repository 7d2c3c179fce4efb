/*
 * spool: a command's whole output in a file, from where on it is more than its answer holds.
 *
 * The file is made in the tools' own temporary directory (nobody else's, and gone with the
 * session), so that the model can read on in it with the tools it has.
 */
#pragma once

#include "agent/headtail.h"

/* A file is not written beyond this; its end is left out. */
#define SPOOL_MAX (64u << 20)

struct spool { /* {.fd = -1} is an empty one; spool_close() */
	int fd;
	char *path; /* owned; NULL: there is no file */
	size_t bytes;
	bool failed; /* the file could not be made or written: it is not told of */
};

/* A directory as it was before any tool ran: what its name leads to now may be a tool's choice. */
struct spool_place {
	int fd;		  /* -1: there is none, and no file is made */
	const char *path; /* loan; how it is told */
};

/* Before headtail_add(h, bytes, n): where that loses something, all of it goes to a file there. */
void spool_add(struct spool *s, const struct spool_place *place, const struct headtail *h,
	       const char *bytes, size_t n);
/* Member of an open object: output_file, where there is one. */
void spool_write(struct jsonw *w, const struct spool *s);
/* The file stays. */
void spool_close(struct spool *s);
