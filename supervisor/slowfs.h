/*
 * slowfs: may looking at a file keep one waiting for somebody?
 *
 * A file system in user space (FUSE), of another machine (NFS, 9p) or one that mounts when it is
 * looked at (autofs) answers when it likes, and perhaps never; then whoever asked sleeps where no
 * signal wakes it. What is known to answer by itself is listed; all else counts as slow. Which
 * mounts there are is read from /proc/self/mountinfo when it is first asked, and anew after
 * slowfs_renew() has told of others. Nothing here waits: paths are looked for among what the kernel
 * has at hand (openat2, RESOLVE_CACHED), and attributes are taken as they are there
 * (AT_STATX_DONT_SYNC).
 */
#pragma once

#include "tracer/call.h"

#include <stdbool.h>

struct slowfs;

/* 0 and *ret (owned), or -errno. */
int slowfs_new(struct slowfs **ret);
void slowfs_free(struct slowfs *s);
/*
 * To be waited for (EPOLLPRI) by who would not ask each time: where such a wait told of nothing,
 * slowfs_renew() has nothing to say either. Lives as long as `s`.
 */
int slowfs_fd(const struct slowfs *s);
/* Has the table of mounts changed since this was last asked? Then it is read anew. */
bool slowfs_renew(struct slowfs *s);
/* Is it on a slow one? True where that can't be known. */
bool slowfs_has(struct slowfs *s, int fd);
/*
 * May resolving the decoded call's paths, or looking at the descriptor that it is about, wait? With
 * no slow file system mounted: no, at once.
 */
bool slowfs_concerns(struct slowfs *s, const struct call *c, struct call_view view);
