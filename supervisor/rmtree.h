/*
 * rmtree: a directory removed with all that is in it, whatever a hostile command made of it: any
 * depth (names far longer than PATH_MAX), any width, modes of 0, symlinks, mount points.
 *
 * A directory inside another is moved up beside the first ones before it is emptied, so that there
 * is never more than one level to be in: a few descriptors, no memory that grows, no way up by
 * "..". No symlink is followed and no mount point entered.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/*
 * An absolute path, its last component a directory. All that can be removed is: 0, or the first
 * -errno (of what is another's, immutable or mounted). Blocks as long as the file system does.
 */
int rmtree_remove(const char *dir);

/* This directory and no other, and at most so much of it. */
struct rmtree_only {
	dev_t dev;
	ino_t ino;
	uint64_t entries; /* in: the most that are removed; out: what is left of that */
};

/*
 * The same where it is the one that is meant, and ours: else -ESTALE, and nothing was touched; no
 * symlink on the way is followed (-ELOOP). -EAGAIN: the bound was reached, some of it is there yet.
 */
int rmtree_remove_only(const char *dir, struct rmtree_only *only);
