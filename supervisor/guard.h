/*
 * guard: what the broker asks before it acts, by inode and not by string.
 *
 * A path string decides (supervisor/policy.h) only what has no other name. A bind mount, a detached
 * tree, an old hard link or a moved parent gives a protected thing another one. So every exception
 * (see reach_is_exception) that exists is held by an O_PATH descriptor, and asked is: which of them
 * are met on the way up? Whoever wants to do something asks the policy by path AND the guard.
 *
 * A guard belongs to one state of the policy and costs a few system calls for each exception: make
 * a new one when an answer changes the policy (an answer for once too: put it into a copy), or when
 * an exception's path comes into being; guard_renew(), so that what was meant before and lies
 * elsewhere by now is not forgotten. It does I/O, and blocks as path lookups do.
 *
 * Not met: existing matches of glob exceptions under another name (their hard links are doubtful,
 * guard_hardlink_doubt), a bind mount of a directory below an exception (not of the exception
 * itself; supervisor/mounts.h has some of them), and things that became exceptions only after
 * guard_new().
 */
#pragma once

#include "supervisor/policy.h"
#include "tracer/path.h"

#include <stdbool.h>
#include <sys/stat.h>

struct guard;

/* Copies the policy. 0 and *ret (owned); -ENOMEM, -EMFILE. */
int guard_new(const struct policy *p, struct guard **ret);
/*
 * The same after another one, of the same session: what lay at an exception's path then, and was
 * moved away by somebody outside, is an exception still, wherever it is. `before` may be NULL.
 */
int guard_renew(const struct policy *p, const struct guard *before, struct guard **ret);
void guard_free(struct guard *g);

/*
 * Is one of these accesses withheld from the thing by what it is or lies in? The nearest guarded
 * inode that speaks of an access decides it, the thing itself included. 0: no. -EACCES: yes, by
 * *ret (a loan of the guard's; may be NULL in the call). Other errors: that can't be known (a
 * directory on the way can't be searched, the thing has no place): act as if it were.
 */
int guard_find(const struct guard *g, const struct path_at *at, uint32_t bits,
	       const struct rule **ret);

/* Is it one of the guarded inodes? */
bool guard_has(const struct guard *g, const struct stat *st);
/*
 * Do the directory (O_PATH) and what it lies in withhold none of these accesses from what lies in
 * it? False where that can't be known.
 */
bool guard_dir_is_open(const struct guard *g, int dir, uint32_t bits);

/* Is the thing an existing exception, or a directory that one lies in? True where it can't be
 * known. */
bool guard_is_ancestor(const struct guard *g, int o_path_fd);

/*
 * Is PARENT/NAME the path of an exception, there or not, or above one; or could a file system that
 * ignores case think so? parent_real: absolute and resolved.
 */
bool guard_name_is_protected(const struct guard *g, const char *parent_real, const char *name);

/* Might the file be a protected one by another name? (It has several, and there are exceptions.) */
bool guard_hardlink_doubt(const struct guard *g, const struct stat *st);
