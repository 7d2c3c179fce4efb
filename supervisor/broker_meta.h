/*
 * broker_meta: attribute calls (chmod, chown, times, extended attributes, inode flags), done in the
 * tracee's place.
 *
 * The kernel has no right for these, so they wait at the door (tracer/waits.h) and every one is
 * performed here, on the descriptor that was decided on:
 *   by path        an O_PATH descriptor, through AT_EMPTY_PATH or /proc/thread-self/fd/N
 *   by descriptor  our copy of the tracee's own (pidfd_getfd), by the same call: an O_PATH one
 *                  stays EBADF
 * A descriptor's number is looked at once: another thread may put something else there. What is
 * in the tracee's memory is copied once, before anything is decided, and its errors come in the
 * kernel's order: broken arguments before any look-up, except where the kernel looks up first.
 */
#pragma once

#include "supervisor/identity.h"
#include "tracer/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum broker_meta_kind {
	BROKER_META_MODE,
	BROKER_META_OWNER,
	BROKER_META_TIMES,
	BROKER_META_SET_XATTR,
	BROKER_META_REMOVE_XATTR,
	BROKER_META_FILE_ATTR, /* file_setattr */
	BROKER_META_IOCTL,     /* FS_IOC_SETFLAGS and the like */
};

#define BROKER_META_NAME_MAX 256 /* of an extended attribute, its NUL included */

/* What is to be done. */
struct broker_meta {
	enum broker_meta_kind kind;
	bool by_fd; /* by descriptor: the object is a copy of the tracee's */
	bool done;  /* there is nothing to do: the call returns 0 before it looks at a file */
	mode_t mode;
	uid_t uid;
	gid_t gid;
	bool now; /* times: both are the present */
	struct timespec times[2];
	void *value; /* owned: an attribute's value, a struct file_attr, an ioctl's argument */
	size_t size;
	int flags;			 /* setxattr's */
	unsigned ioctl;			 /* the command, as the native architecture has it */
	char name[BROKER_META_NAME_MAX]; /* last: of few calls */
};

/* Is it one of these calls? */
bool broker_meta_knows(enum sys_id id);
/*
 * Read what the decoded call wants. Call_resolve() comes after this: an empty path that stands for
 * a descriptor is put into c->path[0]. 0 with *ret (release it), or -errno: what the call returns,
 * and *ret is empty.
 * The descriptor of one by descriptor is the caller's to take: the first argument.
 */
int broker_meta_read(struct call *c, struct call_view view, struct broker_meta *ret);
/* It is empty again, as a zeroed one: nothing is done, and by no descriptor. */
void broker_meta_release(struct broker_meta *m);
/*
 * Do it to the object (m->by_fd: the copy; else an O_PATH one), as the calling thread. 0 or -errno,
 * the tracee's result. Blocks as the file system does.
 */
int broker_meta_perform(const struct broker_meta *m, int object);
/* Would it fail for this identity whatever the policy says? 0, or that -errno (as far as is known).
 */
int broker_meta_fails_anyway(const struct broker_meta *m, int object, const struct stat *st,
			     const struct identity *as);
