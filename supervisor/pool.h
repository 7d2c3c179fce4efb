/*
 * pool: empty directories that are there before the command starts, each with a Landlock rule of
 * its own (compile.h, struct compile_spares). A rule moves with its inode: where the broker makes a
 * directory, it renames one of these into place, and everything below the new directory is then
 * native. Without it a first build, a clone or an `npm install` is brokered call by call.
 *
 * They lie in a directory that the policy forbids, on the mount of the project: in our state
 * directory, where what was not used is kept for the next run (to make a dozen directories costs
 * some 5 ms on a disk), else beside the project, and then they are removed at the end. A flock on
 * that directory says that its owner lives: what a killed supervisor left is taken over, or
 * removed, by the next one.
 *
 * A spare gets the mode, the group and the times that mkdir(2) would have given, before it appears
 * under its name. Where that can't be (a default ACL, another label or inode flags to inherit,
 * another user, another mount), mkdir(2) does it. What differs from a directory just made: its
 * birth time, and a watcher is told of a directory moved in, not created.
 *
 * pool_mkdir() may be called from any thread; the rest belongs to the thread that made the pool.
 */
#pragma once

#include "supervisor/identity.h"
#include "supervisor/reach.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define POOL_SPARES 12

struct pool;

/*
 * Find or make the directory that the spares are to lie in: in `own`, else in `other` (absolute),
 * whichever lies on target's mount, is ours to write and allows nothing by the policy. 0 and *ret
 * (owned), -ENOENT: no place will do; or another -errno.
 */
int pool_new(const char *own, const char *other, const char *target, const struct policy *p,
	     struct pool **ret);
/* Removes them, where they are not kept. NULL is fine. */
void pool_free(struct pool *p);
/* The directory they lie in: to be forbidden. */
const char *pool_directory(const struct pool *p);
/* Is this what such a directory is called, without the path? */
bool pool_is_name(const char *name);

/*
 * Before a run: POOL_SPARES again. *ret_fd: O_PATH descriptors, loans until the next call; the
 * number of them.
 */
size_t pool_fill(struct pool *p, const int **ret_fd);
/* What the rules on the spares allow below them; NULL: they have none, and none is given out. */
void pool_ruled(struct pool *p, const struct reach *class);

/* Is all below path, made by this identity, just as the spares' rules have it? Pure. */
bool pool_suits(const struct pool *p, const struct policy *policy, const char *path,
		const struct identity *as);
/* The rights (LLR_*) that their rules give. */
uint64_t pool_rights(const struct pool *p);
/* Does a spare that was given out lie at or below this directory? True where it can't be known. */
bool pool_is_in(struct pool *p, const struct stat *dir);
/*
 * As mkdirat(parent, name, mode) under this umask by the calling thread's identity: 0, or -EAGAIN:
 * nothing was done, mkdirat() itself is to be asked (it also knows the error).
 */
int pool_mkdir(struct pool *p, int parent, const char *name, mode_t mode, mode_t mask);
