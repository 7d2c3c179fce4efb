/*
 * straceimport_inside: what the files of the strace reader share: the reader's state
 * (straceimport.c), one call as an event (straceevent.c), whose a line is (stracewho.c), and what a
 * call changes of what is known: of descriptors (stracefds.c), processes (stracestate.c) and names
 * (stracelearn.c).
 */
#pragma once

#include "tracer/straceargs.h"
#include "tracer/straceimport.h"
#include "tracer/stracepath.h"

#define STRACE_CALLS_MAX 512 /* of the table by name, a power of two */
#define STRACE_OWED_MAX	 4

struct straceimport;

/* A call that is read: a row of syscalls.def, or of stracestate.def, or both. */
struct strace_call {
	const char *name;
	const struct sysent *ent; /* NULL: none */
	/* What it changes, after its event was made; NULL: nothing. 0 or -errno (-ENOMEM). */
	int (*apply)(struct straceimport *in, struct straceproc *p);
	bool by_name; /* `apply` needs no arguments */
};

/* One name of the call that is read. */
struct strace_path {
	enum call_need need;
	bool given_told; /* `given` has it */
	bool real_told;
	bool of_fd;   /* a descriptor's own */
	bool cut;     /* `given` is only its beginning */
	bool is_null; /* NULL was given */
	struct buf given;
	struct buf real;
	enum trace_thing thing;
};

/* The call that is read. */
struct strace_current {
	const struct strace_call *call;
	struct strace_path path[2];
	unsigned paths;
	uint64_t open_flags;
	uint64_t resolve;
	uint64_t at_flags;
	uint64_t mode;
	uint64_t request;
	bool has_flags;
	bool has_mode;
	bool has_request;
	struct buf target; /* a symlink's text */
	struct strace_unsure unsure;
	uint64_t line;
	uint64_t t_ns;
};

/* The files of strace -ff. */
struct strace_family {
	char **name; /* owned, all of them */
	pid_t *pid;  /* of each */
	bool *is_read;
	size_t len; /* 0: there is one file only */
};

struct straceimport {
	struct traceinput *file; /* owned; the one that is read; NULL: none is open */
	pid_t file_pid;		 /* whose it is, of a family; 0: its lines say */
	struct strace_family family;
	char *cwd; /* owned; NULL: not known */
	struct trace_options options;
	struct trace_header header;
	struct strace_call calls[STRACE_CALLS_MAX]; /* by a hash of the name */

	struct straceprocs procs;
	struct stracenames *names;
	bool started;	/* the first process was seen */
	bool from_exec; /* it began with the exec of the command that strace ran */
	bool moved;	/* a process has changed its working directory or its root */
	/* The number of the process whose lines had none at first (it stays 0 here); 0: not told.
	 */
	pid_t nameless;
	uint64_t changes;	  /* of the processes */
	struct straceproc *alone; /* whose a line without number is, as of alone_at */
	uint64_t alone_at;
	bool ends_shown; /* +++ exited +++ was seen */
	/* The trace shows calls that are about no file: a Landlock domain would have been seen. */
	bool full;

	struct straceargs args;
	struct buf scratch;
	struct buf broken; /* a line that strace's own words broke into */
	struct strace_current now;

	const char *argv[TRACE_ARGV_MAX + 1];
	struct buf argv_text;
	struct trace_event owed[STRACE_OWED_MAX]; /* to be given before another line is read */
	unsigned owed_len;

	bool has_start;
	int64_t start_ns;
	uint64_t last_ns;
	uint64_t faults;
	uint64_t skipped; /* lines of calls that are none of ours */
	bool cut;	  /* the last line, or a call, has no end */
};

/* ---- straceimport.c ---- */

const struct strace_call *straceimport_call(const struct straceimport *in, struct strace_span name);
/* A process's number in events: 1 where its lines have none. */
pid_t straceimport_shown(pid_t pid);
/* An event that is given before the next line is read. */
struct trace_event *straceimport_owe(struct straceimport *in, enum trace_kind kind,
				     const struct straceproc *p);

/* ---- stracewho.c ---- */

/* The process that the line is of; a new one where it has to be. NULL: no memory, or too many. */
struct straceproc *stracewho_of(struct straceimport *in, const struct straceline *line);
/* By its number in the text; NULL: there is none. */
struct straceproc *stracewho_find(const struct straceimport *in, pid_t pid);
/* A child of `parent`, made with these CLONE_* flags. NULL: no memory, or too many. */
struct straceproc *stracewho_born(struct straceimport *in, pid_t pid,
				  const struct straceproc *parent, uint64_t flags);
/* +++ exited with N +++, +++ killed by SIGNAL +++ */
void stracewho_end(struct straceimport *in, struct straceproc *p, const struct straceline *line);
/* An exec by the thread `by`: it goes on under its leader's number. */
void stracewho_supersede(struct straceimport *in, struct straceproc *leader, pid_t by);
bool stracewho_is_living(const struct straceproc *p);

/* ---- straceevent.c ---- */

/* What -y says of a descriptor: its path to *out (emptied first); false: it is none, or not said.
 */
bool straceevent_about(struct strace_span about, bool *deleted, struct buf *out,
		       enum trace_thing *ret_thing);
/* The call in in->args: in->now is filled. 0 or -ENOMEM. */
int straceevent_read(struct straceimport *in, struct straceproc *p, const struct strace_call *call);
/* in->now as an event; false: it is none that a policy is about. */
bool straceevent_make(struct straceimport *in, const struct straceproc *p, struct trace_event *ret);
/* A number that is an argument; false: it is none. */
bool straceevent_number(const struct straceimport *in, unsigned i, uint64_t *ret);
void straceevent_release(struct strace_current *now);
/* Did the call succeed? */
bool straceevent_succeeded(const struct straceimport *in);

/* ---- stracelearn.c ---- */

/* What is known after the call of the names it was about. */
void stracelearn_after(struct straceimport *in);
/* The i-th name of the call, where it is certain; NULL: it is not. */
const char *stracelearn_real(const struct straceimport *in, unsigned i);

/* ---- stracefds.c ---- */

/* What -y says of a descriptor; its path is in in->scratch. */
struct stracefd stracefds_described(struct straceimport *in, struct strace_span about,
				    bool deleted);
/* Any of the call's own arguments has the word (SOCK_CLOEXEC, MS_PRIVATE ...). */
bool stracefds_any_has(const struct straceimport *in, const char *word);

/* ---- stracestate.def: 0 or -ENOMEM ---- */

#define STATE(name, by_name, apply) int apply(struct straceimport *in, struct straceproc *p);
#define STATE_AGAIN(name, by_name, apply)
#include "tracer/stracestate.def"
#undef STATE
#undef STATE_AGAIN

/* The CLONE_* flags of the fork, vfork, clone or clone3 in in->args. */
uint64_t stracestate_clone_flags(struct straceimport *in);

/* ---- stracefamily.c ---- */

/* Copies the names. 0, -ENOMEM, or -EINVAL: one of them is no NAME.PID. */
int stracefamily_take(struct straceimport *in, const char *const *files, size_t n);
/* Opens the next file that is to be read. 1, 0: none is left, -errno. */
int stracefamily_next(struct straceimport *in, struct trace_error *ret_error);
void stracefamily_release(struct strace_family *f);
