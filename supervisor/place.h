/*
 * place: where a directory is, and the way up from it, by descriptors. Blocks as path lookups do.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define PLACE_LEVELS_MAX 4096 /* more than a path can have components */

struct place {
	dev_t dev;
	ino_t ino;
	uint64_t mount; /* statx's stx_mnt_id (Linux 5.8) */
};

/* 0 or -errno. */
int place_of(int fd, struct place *ret);
/*
 * One step up: *fd (owned, O_PATH) becomes the parent's, *place too. 0; 1: it was the root; -errno.
 * The root is its own parent; a directory that is mounted on its own child has the parent's inode
 * as well, but another mount.
 */
int place_climb(int *fd, struct place *place);
