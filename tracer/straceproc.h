/*
 * straceproc: the processes of strace's text, and what is known of each: its working directory,
 * its root, its descriptors, the call that it has begun.
 *
 * A straceprocs owns all of them. A pointer to a straceproc is a loan until the next
 * straceprocs_claim() or straceprocs_drop(). Directories and descriptor tables are counted: threads
 * share them as clone(2)'s CLONE_FS and CLONE_FILES say. Memory follows the processes that live at
 * once; what ended keeps some bytes until its number is used again.
 */
#pragma once

#include "tracer/buf.h"
#include "tracer/trace.h"

#include <stdbool.h>
#include <sys/types.h>

#define STRACEPROC_MAX	    65536
#define STRACEPROC_FDS_MAX  65536
#define STRACEPROC_NAME_MAX 32

/* Where names start. */
struct stracefs {
	unsigned refs;
	char *cwd;    /* absolute, without symlinks; NULL: not told */
	char *root;   /* "" for the real one; no slash at the end; NULL: not told */
	bool strange; /* mounts were changed for it: names may mean other things than elsewhere */
};

struct stracefd {
	int fd;
	bool cloexec;
	bool deleted;
	char *path; /* NULL: it is none (a pipe, a socket), or (see `told`) not told */
	bool told;  /* it is known what this descriptor is */
	enum trace_thing thing;
};

struct stracefiles {
	unsigned refs;
	struct stracefd *fd; /* by number */
	size_t len;
	size_t cap;
	/*
	 * What is known may be out of date: the trace shows no close(2), or the table was shared
	 * with a process whose part of the trace is not read in order.
	 */
	bool loose;
};

struct straceproc {
	pid_t pid;  /* 0: the one whose lines have no number */
	pid_t tgid; /* its process */
	pid_t parent;
	struct stracefs *fs;	   /* NULL: ended */
	struct stracefiles *files; /* NULL: ended */
	char *exe;		   /* owned; its program, NULL: not told */
	bool own_wall;		   /* it entered a Landlock domain */
	bool i386;
	bool announced; /* "attached" was said, nothing else yet */
	uint64_t flags; /* CLONE_* that it was made with, as far as they were told */
	bool early;	/* it spoke before its creator's call returned */
	bool guessed;	/* ... and there were several that may be its creator */
	bool ended;
	/* A call that was begun: its text so far. */
	bool begun;
	char name[STRACEPROC_NAME_MAX];
	struct buf text;
	struct straceproc *next; /* in its bucket */
};

#define STRACEPROC_BUCKETS 1024

struct straceprocs {
	struct straceproc *bucket[STRACEPROC_BUCKETS];
	size_t len;
};

struct straceproc *straceprocs_find(const struct straceprocs *all, pid_t pid);
/* A new one of that number with nothing known (in place of one that ended); NULL: no memory, or too
 * many. */
struct straceproc *straceprocs_claim(struct straceprocs *all, pid_t pid);
void straceprocs_drop(struct straceprocs *all, struct straceproc *p);
void straceprocs_free(struct straceprocs *all);
/* The first for which `is` says so, and how many there are. */
struct straceproc *straceprocs_which(const struct straceprocs *all,
				     bool (*is)(const struct straceproc *p), size_t *ret_n);
void straceprocs_each(struct straceprocs *all, void (*f)(struct straceproc *p, void *arg),
		      void *arg);

/* As clone(2) with those CLONE_* flags does. 0, -ENOMEM. */
int straceproc_inherit(struct straceproc *child, const struct straceproc *parent, uint64_t flags);
/* What it has, it has alone (unshare(2), exec). 0, -ENOMEM. */
int straceproc_unshare_fs(struct straceproc *p);
int straceproc_unshare_files(struct straceproc *p);
/* It ended: only that is kept. */
void straceproc_end(struct straceproc *p);
/* Takes the string over. */
void straceproc_chdir(struct straceproc *p, char *cwd);

struct stracefd *straceproc_fd(const struct straceproc *p, int fd);
/*
 * That descriptor is now this; copies the path. Where it was open already, closing goes unseen in
 * this trace: the table becomes loose. Out of memory or range it is not remembered.
 */
void straceproc_open(struct straceproc *p, const struct stracefd *fd);
void straceproc_close(struct straceproc *p, int fd);
void straceproc_close_range(struct straceproc *p, uint64_t first, uint64_t last, bool cloexec_only);
/* An exec: descriptors that are marked so are closed, shared ones become its own. 0, -ENOMEM. */
int straceproc_exec(struct straceproc *p);
