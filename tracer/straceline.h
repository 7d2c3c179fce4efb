/*
 * straceline: one line of strace's text, taken apart as far as what stands before and around a
 * call: who, when, and what kind of line it is. The arguments are straceargs.h's.
 *
 * Pure: no memory, no I/O. What it returns points into the line and lives as long as that. The
 * forms are those that strace 5.x and 6.x write with any of -f -ff -o -t -tt -ttt -r -T -i -n -k -y
 * -Y, as a table of examples in tests/unit/tracer/test_straceline.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A piece of a line; not terminated. */
struct strace_span {
	const char *at;
	size_t len;
};

enum straceline_kind {
	STRACELINE_BAD,	    /* none of strace's; `bad_at` is where it stopped being one */
	STRACELINE_NOTHING, /* empty, a stack frame of -k, the table of -C: says nothing of calls */
	STRACELINE_CALL,    /* name(args) = result; whether it is whole, its arguments tell */
	STRACELINE_UNFINISHED, /* name(args <unfinished ...>: `rest` ends before that */
	STRACELINE_RESUMED,    /* <... name resumed>rest */
	STRACELINE_SIGNAL,     /* --- SIGCHLD {...} --- */
	STRACELINE_EXITED,     /* +++ exited with N +++ */
	STRACELINE_KILLED,     /* +++ killed by SIGKILL +++ */
	STRACELINE_SUPERSEDED, /* +++ superseded by execve in pid N +++ */
	STRACELINE_BITS,       /* [ Process PID=N runs in 32 bit mode. ] */
	STRACELINE_ATTACHED, /* strace: Process N attached; `rest` is what it broke into, if any */
	STRACELINE_DETACHED,
};

struct straceline {
	enum straceline_kind kind;
	pid_t pid;	 /* 0: the line names none */
	bool has_time;	 /* of a clock, not relative */
	int64_t time_ns; /* since the epoch, or (of -t, -tt) since midnight */
	struct strace_span name;
	struct strace_span rest; /* of a call: from behind its "(" */
	int number;		 /* EXITED: the status; BITS: 32 or 64, 0 for x32 */
	pid_t other;		 /* SUPERSEDED, BITS, ATTACHED, DETACHED: who */
	struct strace_span word; /* KILLED: the signal's name */
	size_t bad_at;		 /* BAD: offset of the character that was not expected */
	const char *expected;	 /* BAD: what was, static */
};

/* `len` bytes without the newline; any bytes. */
void straceline_parse(const char *text, size_t len, struct straceline *ret);

bool strace_span_is(struct strace_span s, const char *word);
