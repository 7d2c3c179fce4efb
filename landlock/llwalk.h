/*
 * llwalk: the directories that the kernel meets between an object and the real root, and what the
 * rules on them grant. Follows is_access_to_paths_allowed and collect_domain_accesses in
 * security/landlock/fs.c (Linux 6.18): up the directories of a mount to its root, from there to the
 * directory above the mount point (the mount point itself is hidden and does not count), and so on.
 *
 * One statx(2) by ".." a directory: it sees what the caller's own root and mount namespace show,
 * and needs search permission on every directory it leaves. Where the directory above a mount point
 * was itself mounted over later, ".." leads into that mount, and this is not noticed.
 */
#pragma once

#include "landlock/lldomain.h"

struct llwalk_node {
	dev_t dev;
	ino_t ino;
	uint64_t mnt;
	mode_t mode;
	dev_t rdev;
	bool mount_root;
};

struct llwalk {
	struct llwalk_node start;
	struct lldomain_rights all; /* of every directory met */
	/* What a move compares: the kernel stops comparing before it looks at the real root's rule,
	 * unless that is the root of the very mount, whose rules it has collected before. */
	struct lldomain_rights compared;
	/* What an access other than a move is granted: on a kernel without
	 * LLABI_ERRATUM_DISCONNECTED that walk ends at the filesystem's root if the directory was
	 * moved out of what its mount shows. Else the same as all. */
	struct lldomain_rights access;
};

/* The errors of statx(2). */
int llwalk_look(int fd, struct llwalk_node *ret);

bool llwalk_same(const struct llwalk_node *a, const struct llwalk_node *b);

/* Walk from the directory `dir_fd`, which stays the caller's. Errors of statx(2); -ENOTDIR;
 * -ESTALE: a directory on the way was mounted over after its child was opened, so that it can't be
 * seen; -ENOENT: the directory of a mount point was moved out of its own mount; those of
 * llescape_reopen for a directory that was moved out of its mount itself. */
int llwalk_up(const struct lldomain *d, int dir_fd, struct llwalk *ret);
