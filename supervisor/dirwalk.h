/*
 * dirwalk: directories looked at by descriptors, never through a symlink, never without bound.
 *
 * Mount points are crossed. What can't be opened (no permission, gone meanwhile) is passed over. On
 * procfs only the top is walked, and without the processes: what is there comes and goes by itself.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define DIRWALK_DEPTH_MAX 200 /* each level holds two descriptors */

struct dirwalk;
/* Is this child (by w->path, with the walk's arg) passed over, unopened? */
typedef bool dirwalk_skip_fn(void *arg, const struct dirwalk *w);

struct dirwalk {
	char path[PATH_MAX]; /* of what is being looked at; absolute */
	size_t len;
	unsigned depth;
	uint64_t left;	 /* entries that may still be looked at */
	uint64_t walked; /* entries looked at */
	bool cut; /* something was left out: the bound, the depth, a long name, descriptors */
	/* Set after dirwalk_init(), for who needs it: */
	bool by_name;		/* what is no directory is not opened: fd is -1 */
	bool only_directories;	/* all else is left out */
	dirwalk_skip_fn *skips; /* or NULL */
};

/* 0: go on; 1: enough, stop the whole walk; -errno. fd: an O_PATH descriptor, a loan. */
typedef int dirwalk_fn(void *arg, struct dirwalk *w, int fd, const struct stat *st);

/*
 * Open an absolute path with O_PATH: -ELOOP where a component is a symlink. The descriptor is the
 * caller's; and other errors of openat2(2). What was opened is in *ret.
 */
int dirwalk_open(const char *path, struct stat *ret);
/* The same for the directory that a path lies in. */
int dirwalk_open_parent(const char *path);
/* The mode of what the descriptor (O_PATH, too) is; /proc is needed. 0 or -errno. */
int dirwalk_chmod(int fd, mode_t mode);
/* Start at this path, with this bound. -ENAMETOOLONG. */
int dirwalk_init(struct dirwalk *w, const char *path, uint64_t left);
/*
 * Call fn for every child of the directory fd, which is what w->path names and *st tells of,
 * w->path being the child's meanwhile; symlinks are left out. What fn returned, if not 0; fn may
 * call this again for a directory, and change what is set for that one's children.
 */
int dirwalk_children(struct dirwalk *w, int fd, const struct stat *st, dirwalk_fn *fn, void *arg);
