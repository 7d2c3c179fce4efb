/*
 * call: a stopped system call with typed arguments.
 *
 * What is here was read while the tracee stood still, once: nothing is read from its memory again
 * after call_decode(). Another thread of the tracee may have changed the memory between the
 * kernel's own reading and ours; whoever acts on a call must therefore act on what it resolved
 * itself (tracer/path.h), never let the call run again unchecked.
 */
#pragma once

#include "tracer/path.h"
#include "tracer/sysent.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CALL_PATHS 2

/* One path argument. */
struct call_path {
	enum call_need need; /* what the row says; CALL_NEED_NONE: this slot is unused */
	int dirfd;	     /* AT_FDCWD, or the tracee's descriptor (only the low 32 bits count) */
	char *given;	     /* the bytes as given, owned; NULL where they could not be read */
	int error;	     /* 0, or why `given`/`at` are missing: -EFAULT, -ENAMETOOLONG, ... */
	struct path_at at;   /* filled by call_resolve() */
};

struct call {
	const struct sysent *ent;
	enum sys_arch arch;
	uint64_t args[6];
	int64_t result; /* the return register: >= 0, or -errno */
	uint64_t ip;	/* instruction pointer at the stop */
	struct call_path path[CALL_PATHS];
	/* Decoded once for the calls that have them; 0 elsewhere. */
	uint64_t open_flags;   /* O_*; for creat O_CREAT|O_WRONLY|O_TRUNC; openat2: how.flags */
	uint64_t open_resolve; /* openat2: how.resolve */
	uint32_t mode;	       /* the mode given (open with O_CREAT/O_TMPFILE, mkdir, mknod) */
	uint64_t dev;	       /* mknod */
	uint32_t at_flags;     /* AT_*, RENAME_* */
	uint64_t length;       /* truncate */
	char *target;	       /* symlink's text, owned */
};

/* The tracee a call belongs to, for reading memory and for its view of the file system. */
struct call_view {
	pid_t tid;
	pid_t tgid;
	struct pathname_memory *names; /* a loan: of the calling thread; or NULL (path.h) */
};

/*
 * Read the arguments of the call that `view.tid` is stopped in. Needs c->ent, arch, args, result,
 * ip (the tracer fills them). Strings that can't be read leave given == NULL and error set; that is
 * no failure. 0, -ENOMEM, or -ESRCH where the tracee is gone.
 */
int call_decode(struct call *c, struct call_view view);
/* Resolve every path argument in the tracee's own view; per-path errors stand in path[i].error. */
int call_resolve(struct call *c, struct call_view view);
/* Release what the call owns (strings, descriptors). Fine on a zeroed call. */
void call_release(struct call *c);
/*
 * utimensat and futimesat mean the descriptor's own file by a path of NULL (fs/utimes.c,
 * do_utimes()), whatever lies there in memory.
 */
bool call_means_fd(const struct call *c);
/* Does path i follow a last symlink, under this call's flags? */
bool call_follows(const struct call *c, unsigned i);
