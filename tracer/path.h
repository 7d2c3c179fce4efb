/*
 * path: (dirfd, path) as the tracee sees it, as descriptors of ours.
 *
 * The walk is our own, component by component with O_PATH|O_NOFOLLOW, from the tracee's root or cwd
 * or descriptor (/proc/TID/{root,cwd,fd/N}). `self` and `thread-self` on procfs mean the tracee
 * (tracer/procfs.h). Magic links (/proc/PID/fd/N, exe, cwd, root) are followed as the kernel does,
 * by opening them. ".." never climbs above the tracee's root. What was resolved is held by
 * descriptor: names are not looked at again.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#define PATH_LINKS_MAX 40 /* as the kernel's MAXSYMLINKS */

struct pathname_dir;
struct pathname_memory;

enum path_flags {
	PATH_FOLLOW = 1, /* follow a last symlink */
	PATH_EMPTY = 2,	 /* an empty path means dirfd itself (AT_EMPTY_PATH) */
	PATH_CREATE = 4, /* a dangling last symlink (when followed) resolves to its absent target */
	/* As RESOLVE_* of openat2(2), with its errors. */
	PATH_IN_ROOT = 8,      /* dirfd is the root, for "/", ".." and links */
	PATH_BENEATH = 16,     /* leaving dirfd is EXDEV */
	PATH_NO_SYMLINKS = 32, /* any symlink on the way is ELOOP */
	PATH_NO_MAGIC = 64,    /* any magic link on the way is ELOOP */
	PATH_NO_XDEV = 128,    /* crossing into another mount is EXDEV */
	/* The last component is a name to be made or taken (rmdir, rename, ...): a slash behind it
	 * follows no symlink. Elsewhere it does, PATH_FOLLOW or not. */
	PATH_ENTRY = 256,
	/* The thing alone counts: what it lies in is where it lies by its name, and not by which
	 * way it was come to. Cheaper. */
	PATH_THING = 512,
};

struct path_at {
	int object; /* O_PATH descriptor of the object, -1 where it does not exist */
	int parent; /* O_PATH descriptor of the directory that holds the name; -1 where there is
		     * none (the root, a magic link, an empty path) */
	/* Counted; where it is there its descriptor is `parent` (tracer/pathname.h). */
	struct pathname_dir *dir;
	char name[256]; /* the one plain component below parent; "" where parent is -1 */
	char *real; /* absolute path, owned: the object's real path in OUR mount namespace, or the
		     * parent's plus "/" name. NULL where no such path exists (see `unreachable`) */
	char *told; /* where `real` is NULL: what the thing is called all the same, owned, to be
		     * shown and never looked up (tracer/told.h); NULL where it is not known */
	bool exists;
	bool trailing;	  /* the given path ended in a slash: the object must be a directory */
	bool unreachable; /* the object has no name in our mount namespace (other namespace,
			   * detached tree, deleted, anonymous), or the name d_path gives leads
			   * elsewhere */
	bool magic;	  /* the last step went through a magic link */
	bool linked;	  /* a symlink was followed on the way */
	struct stat st;	  /* of the object, where it exists */
};

/* Every field empty, descriptors -1. */
void path_init(struct path_at *at);
void path_release(struct path_at *at);

/*
 * Resolve. 0 with *ret filled, also where only the last component is absent (exists == false).
 * -errno as the kernel would answer: -ENOENT (a directory on the way is absent, or empty path),
 * -ENOTDIR, -ELOOP, -ENAMETOOLONG, -EBADF (dirfd), -EXDEV, -EACCES (no search permission for us).
 * Does not block on local file systems; O_PATH opens never block on devices or FIFOs.
 */
int path_resolve(pid_t tid, int dirfd, const char *given, unsigned flags, struct path_at *ret);
/* The same with names that are known already (tracer/pathname.h; of the calling thread), or NULL.
 */
struct path_view {
	pid_t tid;
	struct pathname_memory *names;
};
int path_resolve_with(const struct path_view *view, int dirfd, const char *given, unsigned flags,
		      struct path_at *ret);
/*
 * The absolute path of an O_PATH descriptor of ours, verified: the name is opened again without
 * following symlinks and must be the same inode (a d_path string can be forged through a detached
 * tree). Owned string in *ret, or -ENOENT where it has no such name.
 */
int path_of_fd(int fd, char **ret);
/* Does the thread's "/" mean ours? False after chroot, pivot_root, in another mount namespace. */
bool path_has_our_root(pid_t tid);
