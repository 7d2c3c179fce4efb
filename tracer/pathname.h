/*
 * pathname: what a thing that is held by a descriptor is called, and is that true?
 *
 * The kernel's own word (/proc/self/fd/N) is not enough: a detached tree or another mount namespace
 * calls it what it likes, and something may be mounted over the place. So the name is walked again,
 * no symlink followed, and must lead to the same inode.
 *
 * A memory makes that cheap for things of one directory, which come in rows (tar, cp, compilers).
 * It holds the directories that were walked to. A thing of the same mount that the kernel calls a
 * name in such a directory needs no walk: on a mount of ours the kernel's word can't be forged, it
 * is of this moment (a directory that was moved has another name in it), and the walk would end in
 * the same place, as nothing was mounted since. What is asked anew each time is whether the thing
 * itself lies there by that name.
 */
#pragma once

#include "tracer/path.h"

#include <stdint.h>

/* A directory that its path led to. Counted; not to be shared between threads. */
struct pathname_dir {
	unsigned users;
	int fd; /* O_PATH */
	dev_t dev;
	ino_t ino;
	uint64_t mount;
	size_t len;
	char path[]; /* its last slash included */
};

void pathname_dir_leave(struct pathname_dir *d);

/* The last few of them: of one thread. */
struct pathname_memory;

/* NULL: no memory. */
struct pathname_memory *pathname_memory_new(void);
void pathname_memory_free(struct pathname_memory *m);
/*
 * Directories of this path's mount may be held. Of others they are not: a mount that something on
 * it is held of can't be unmounted. One that can't be looked at is none.
 */
#define PATHNAME_MOUNTS_MAX 4
void pathname_memory_allow(struct pathname_memory *m, const char *path);
/*
 * To be called when anything was mounted, unmounted or moved in our mount namespace since a name
 * was asked for.
 */
void pathname_memory_forget(struct pathname_memory *m);

/*
 * What /proc says of a thread: "cwd", "root", "fd/N", as an O_PATH descriptor or -errno. `m` may be
 * NULL; with it the thread's directory there is held: to look for it takes longer than all the
 * rest. It is the thread's, not its number's (fs/proc/base.c): of another one by that number it is
 * looked for anew.
 */
int pathname_open_proc(struct pathname_memory *m, pid_t tid, const char *what);

/* fstat(), and on which mount it is (0: this kernel does not say). 0 or -errno. */
int pathname_stat(int fd, struct stat *ret, uint64_t *ret_mount);
/*
 * The path of a descriptor (`st` and `mount` as pathname_stat() has them), owned. `m` may be NULL.
 * 0, or -ENOENT where no path leads to it.
 */
int pathname_of(struct pathname_memory *m, int fd, const struct stat *st, uint64_t mount,
		char **ret);
/*
 * The same for a thing that was come to by its descriptor, at->object: fills `st`, `exists`,
 * `real`, and where it lies in a directory by that name, `parent`, `dir` and `name`. 0, -ENOENT
 * (`st` is there all the same), -ENOMEM, or -errno.
 */
int pathname_fill(struct pathname_memory *m, struct path_at *at);
