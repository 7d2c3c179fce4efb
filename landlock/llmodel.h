/*
 * llmodel: the kernel's answer for a domain, computed in userland.
 *
 * Follows security/landlock/fs.c (Linux 6.18). In each layer a right is granted if any rule met on
 * the walk from the object up to the real root has it: no rule is nearer than another, none takes
 * away; and all layers must grant it. Creating, removing, renaming and linking are asked of the
 * parent directory, opening and truncating of the object. The rest (file permissions, what exists,
 * other kernel policies) is not answered here; see access.def for what each right is about.
 *
 * Descriptors stay the caller's. Nothing is remembered between calls; blocks only as path lookups
 * do. What the walk can and can't see is in llwalk.h.
 *
 * Functions return 0 with the answer in *ret, or -errno when the walk failed and nothing is known
 * (*ret is then untouched, and the caller must assume the worst): errors of llwalk_up.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "landlock/lldomain.h"

/* The rights (LLR_*) on the directory `fd`. Rights that no layer handles are granted, except refer,
 * which a layer that does not handle it refuses. A non-directory's parent can't be found from its
 * descriptor: -ENOTDIR, unless it is a pipe, socket, memfd or the like, where all is granted. */
int llmodel_granted(const struct lldomain *d, int fd, uint64_t *ret);

/* The rights on an object as reached through its parent directory: the rule on the object itself
 * and the walk from the parent. object_fd -1: it does not exist yet, or only its parent counts. For
 * a directory that is a mount point this is the walk the kernel takes, too. */
int llmodel_granted_at(const struct lldomain *d, int object_fd, int parent_fd, uint64_t *ret);

/* The right over the directory that making a thing of this type needs: llright_to_make, but a
 * whiteout (a character device 0:0) is a regular file to a kernel with LLABI_ERRATUM_WHITEOUT. */
uint64_t llmodel_to_make(const struct lldomain *d, mode_t mode, dev_t rdev);

/* A rename or a link. Descriptors of the two directories and of the things in them (O_PATH |
 * O_NOFOLLOW: a symlink is moved as such). */
struct llmodel_move {
	int old_dir;
	int old_object;
	int new_dir;
	int new_object;	    /* -1: the new name is free */
	unsigned int flags; /* renameat2's RENAME_*; ignored for a link */
};

/* *ret: 0, -EACCES, or -EXDEV as Landlock gives it for reparenting. The kernel answers before
 * Landlock does for a cross-mount move, a directory moved below itself, a name that is taken under
 * RENAME_NOREPLACE, and what does not exist: these are not looked at here. -EINVAL (as the error):
 * RENAME_EXCHANGE without a new_object. */
int llmodel_rename(const struct lldomain *d, const struct llmodel_move *move, int *ret);
int llmodel_link(const struct lldomain *d, const struct llmodel_move *move, int *ret);
