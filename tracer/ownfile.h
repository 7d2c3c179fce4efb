/*
 * ownfile: the files that warder keeps for itself (answers, the audit, a token, a history), opened
 * to be read or added to. Their directories are closed to what runs under it; all the same whatever
 * lies there is not trusted to be what was put there: no symlink is followed, a FIFO is not waited
 * for, and only a regular file of the effective user's counts.
 */
#pragma once

#include "tracer/buf.h"

/*
 * Open a real name (tracer/outfile.h), or a name in a directory, close-on-exec; O_CREAT makes it
 * 0600, O_TRUNC empties it once it is known to be ours. A descriptor or -errno, with -ELOOP: a
 * symlink, -EINVAL: no regular file, -EPERM: another user's.
 */
int ownfile_open(const char *real, int flags);
int ownfile_open_at(int dir, const char *name, int flags);
/* The whole of it, behind what is in ret; 0, or as above, or what buf_read_from() says. */
int ownfile_read(const char *real, struct buf *ret);
int ownfile_read_at(int dir, const char *name, struct buf *ret);
/* What is wrong with such a file, in words: strerror() where these have none of their own. */
const char *ownfile_strerror(int err);
