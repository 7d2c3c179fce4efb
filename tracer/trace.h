/*
 * trace: a recorded run, one event at a time, whoever recorded it.
 *
 * The file is JSON lines: a header, events, an end line with their number (docs/traces.md names
 * every field). What a program said or named is bytes, not text: strings here are C strings of any
 * bytes, in the file they are text plus, where that loses something, `..._b64`. A file named *.zst
 * is written compressed; one that is compressed is read so, by its first bytes, whatever its name.
 *
 * Nothing here knows a policy. What a policy's side adds to a call (accesses, the verdict, the
 * answer) are words to this room: it carries them. Events tell facts and, apart from those, what
 * was decided when they were recorded; what they don't tell is NULL, and never guessed.
 *
 * Reading streams: memory does not grow with the file, but with the processes that live at once.
 * Functions block as reading and writing files does.
 */
#pragma once

#include "tracer/buf.h"
#include "tracer/sysent.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TRACE_FORMAT	 1	    /* "warder_trace": a change of meaning changes it */
#define TRACE_LINE_MAX	 (4u << 20) /* bytes of one line of a file */
#define TRACE_PATHS	 8
#define TRACE_ARGV_MAX	 64
#define TRACE_UNSURE_MAX 4

enum trace_kind {
	TRACE_CALL, /* a watched call is over */
	TRACE_FORK, /* `child` is a new process of `pid` */
	TRACE_EXEC, /* `pid` has a new program */
	TRACE_EXIT, /* `pid` ended; its last thread is gone */
	/*
	 * What was answered, when a run was over, about calls that were refused in it: path[0] with
	 * `refused`, perhaps path[1]; verdict, answer, by, lifetime.
	 */
	TRACE_ANSWER,
	TRACE_END, /* the last event of a trace that is complete */
};

/* What lay at a name when the call was made. */
enum trace_thing {
	TRACE_THING_UNKNOWN, /* the trace does not tell */
	TRACE_THING_ABSENT,
	TRACE_THING_FILE,
	TRACE_THING_DIR,
	TRACE_THING_SYMLINK,
	TRACE_THING_CHAR,
	TRACE_THING_BLOCK,
	TRACE_THING_FIFO,
	TRACE_THING_SOCKET,
	TRACE_THING_COUNT,
};

/* One path that a call was about. */
struct trace_path {
	const char *given; /* as the program said it; NULL: not told, or there is none (an fd) */
	const char *real; /* absolute, through all symlinks; NULL: not known, or none leads there */
	const char
		*told; /* where `real` is NULL: what it is called all the same, to be shown only */
	enum trace_thing thing;
	/*
	 * Which accesses a wall that allows nothing would ask for: names with commas
	 * ("read,write"); "": none (an O_PATH open, a pipe). NULL: not told, to be worked out from
	 * the call by who knows accesses.
	 */
	const char *access;
	/* What was still missing of them when it was recorded; NULL: nothing was refused. */
	const char *refused;
};

struct trace_event {
	enum trace_kind kind;
	uint64_t t_ns; /* since the trace's start */
	pid_t pid;
	pid_t tid;
	unsigned run; /* of the command, from 1; 0: the first, too */
	/* Who: the process's program by then. NULL: not told. Filled by the reader. */
	const char *exe;
	const char *argv0;

	/* TRACE_CALL */
	const char *call;	  /* the system call's name */
	const struct sysent *ent; /* its row; NULL: we have none */
	bool returned;		  /* false: its thread ended in it, or its end was not recorded */
	int64_t ret;		  /* as the program saw it: >= 0, or -errno */
	/*
	 * Two for rename and link. For an exec the files that the kernel opens to run it: the one
	 * named, its interpreter, that one's ..., the loader.
	 */
	struct trace_path path[TRACE_PATHS];
	unsigned paths;
	bool has_flags;
	uint64_t flags; /* O_* (open family), or AT_* and RENAME_*, by the row; this machine's
			   numbers */
	bool has_mode;
	uint32_t mode;
	bool has_request;
	uint64_t request;   /* ioctl's */
	const char *target; /* the text of a symlink that is made */
	int wall;	    /* -errno that it got at first, before it was decided on; or 0 */
	int anyway;	    /* -errno that it would have got without any wall; or 0 */
	bool own_wall;	    /* it has a Landlock domain of its own beside ours */
	/*
	 * What was decided when it was recorded, as the report says it; NULL: nothing was refused
	 * or asked. `verdict`: sandbox, permissions, cross-device, other. `answer`, `by`,
	 * `lifetime` and `rule` (the place of the rule that decided) stand beside `sandbox` alone.
	 */
	const char *verdict;
	const char *answer;
	const char *by;
	const char *lifetime;
	const char *rule;
	const char *note;

	/* TRACE_FORK */
	pid_t child;
	bool thread; /* a thread of pid, not a process */

	/* TRACE_EXEC: exe and argv0 are the new ones; argv as far as it was recorded. */
	const char *const *argv; /* NULL-terminated, or NULL */

	/* TRACE_EXIT: as waitpid's status. */
	int status;

	/* TRACE_END */
	uint64_t events; /* how many there were */

	/* Why this is not certain: sentences. A truncated string, an unknown cwd ... */
	const char *unsure[TRACE_UNSURE_MAX];
	unsigned unsure_len;

	uint64_t line; /* in the file, from 1 */
};

/* What a trace says first. What it does not tell is NULL or 0. */
struct trace_header {
	const char *version; /* of who recorded it: "0.1.0"; "strace" */
	const char *started; /* RFC 3339 */
	const char *host;
	const char *const *argv; /* NULL-terminated */
	const char *cwd;
	const char *arch; /* uname -m */
	const char *kernel;
	int landlock_abi;
	bool has_uid;
	int64_t uid;
	const char *home;
	const char *project;
	const char *tmpdir; /* what $TMPDIR was */
	const char *label;
	const char *mode;   /* hold, retry, report, permissive */
	const char *policy; /* JSON text of one value: the policy's side writes and reads it */
};

/* One sentence for the user: "FILE:LINE: what was expected". */
struct trace_error {
	char text[512];
};

/* ---- reading ---- */

/*
 * Where events come from. One for each format; trace_open() chooses. Owned by the reader.
 *
 * next: 1 and an event (its strings are loans until the next call), 0 at the end, -EINVAL where
 * the input is no such trace (*ret_error says where), -EIO, -ENOMEM. It leaves exe and argv0 of
 * all but TRACE_EXEC alone: the reader fills them.
 */
struct trace_source {
	int (*next)(void *self, struct trace_event *ret, struct trace_error *ret_error);
	const struct trace_header *(*header)(const void *self);
	bool (*is_complete)(const void *self);
	uint64_t (*faults)(const void *self); /* lines that were passed over; NULL: none ever */
	void (*free)(void *self);
	void *self;
};

struct trace_options {
	const char *cwd; /* strace's text: where its first process started; NULL: not known */
	/* Told of each line that is passed over, "FILE:LINE:COL: what was expected"; or NULL. */
	void (*fault)(void *arg, const char *text);
	void *fault_arg;
};

struct trace_reader;
struct traceinput;

/*
 * Open and read as far as the header. "-" is standard input. 0 and the caller's reader, or -errno
 * with a sentence (-EINVAL: it is no trace).
 */
int trace_open(const char *file, const struct trace_options *o, struct trace_reader **ret,
	       struct trace_error *ret_error);
/*
 * The same of several files, of which the first ones may belong together (strace -ff's, one a
 * process). *ret_n: how many of them this reader is of.
 */
int trace_open_first(const char *const *files, size_t n, const struct trace_options *o,
		     struct trace_reader **ret, size_t *ret_n, struct trace_error *ret_error);
/* The same of an input that stands before its first line. Takes it over. */
int trace_open_input(struct traceinput *in, const struct trace_options *o,
		     struct trace_reader **ret, struct trace_error *ret_error);
/* A reader of a source that is there already (tests; several files as one). Takes it over. */
int trace_open_source(const char *name, struct trace_source source, struct trace_reader **ret);
void trace_close(struct trace_reader *r);
/* A loan as long as the reader. */
const struct trace_header *trace_header(const struct trace_reader *r);
const char *trace_name(const struct trace_reader *r);
/* As trace_source.next. What an event points to is a loan until the next call. */
int trace_next(struct trace_reader *r, struct trace_event *ret, struct trace_error *ret_error);
/* After trace_next() said 0: did the trace end as it should? */
bool trace_is_complete(const struct trace_reader *r);
/* Lines that could not be read and were passed over (strace's text). */
uint64_t trace_faults(const struct trace_reader *r);

/* "file", "dir", ... */
const char *trace_thing_name(enum trace_thing t);
enum trace_thing trace_thing_of_mode(mode_t mode);
