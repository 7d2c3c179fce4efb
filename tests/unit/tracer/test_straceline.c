/* The front and the kind of strace's lines, as its versions and options write them. */
#include "tracer/straceline.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <string.h>

#define S (INT64_C(1000000000))

struct row {
	const char *line;
	enum straceline_kind kind;
	pid_t pid;
	const char *name; /* NULL: not looked at */
	const char *rest;
	int64_t time_ns; /* -1: it has none */
	pid_t other;
	int number;
};

static const struct row rows[] = {
	/* who */
	{"close(3) = 0", STRACELINE_CALL, 0, "close", "3) = 0", -1, 0, 0},
	{"4027  close(3)  = 0", STRACELINE_CALL, 4027, "close", "3)  = 0", -1, 0, 0},
	{"[pid  4577] close(3) = 0", STRACELINE_CALL, 4577, "close", "3) = 0", -1, 0, 0},
	{"[pid 12345] close(3) = 0", STRACELINE_CALL, 12345, "close", "3) = 0", -1, 0, 0},
	{"4758<sh> close(3) = 0", STRACELINE_CALL, 4758, "close", "3) = 0", -1, 0, 0},
	{"[pid 4758<tmux: server>] close(3) = 0", STRACELINE_CALL, 4758, "close", "3) = 0", -1, 0,
	 0},
	/* when */
	{"22:23:46 close(3) = 0", STRACELINE_CALL, 0, "close", "3) = 0", 80626 * S, 0, 0},
	{"7  22:23:46.378920 close(3) = 0", STRACELINE_CALL, 7, "close", "3) = 0",
	 80626 * S + 378920000, 0, 0},
	{"7  1795991028.989874 close(3) = 0", STRACELINE_CALL, 7, "close", "3) = 0",
	 1795991028 * S + 989874000, 0, 0},
	{"1795991028.989874123 close(3) = 0", STRACELINE_CALL, 0, "close", "3) = 0",
	 1795991028 * S + 989874123, 0, 0},
	{"7 1795991028 close(3) = 0", STRACELINE_CALL, 7, "close", "3) = 0", 1795991028 * S, 0, 0},
	{"1795991028 close(3) = 0", STRACELINE_CALL, 0, "close", "3) = 0", 1795991028 * S, 0, 0},
	{"     0.000123 close(3) = 0", STRACELINE_CALL, 0, "close", "3) = 0", -1, 0, 0},
	{"[pid  4577]      0.000016 close(3) = 0", STRACELINE_CALL, 4577, "close", "3) = 0", -1, 0,
	 0},
	{"7  22:23:46 (+     0.000123) close(3) = 0", STRACELINE_CALL, 7, "close", "3) = 0",
	 80626 * S, 0, 0},
	/* -n, -i, and both with -Y */
	{"[ 257] openat(AT_FDCWD, \"a\"", STRACELINE_CALL, 0, "openat", "AT_FDCWD, \"a\"", -1, 0,
	 0},
	{"[00007f3301e27ad7] close(3) = 0", STRACELINE_CALL, 0, "close", "3) = 0", -1, 0, 0},
	{"[????????????????] close(3) = 0", STRACELINE_CALL, 0, "close", "3) = 0", -1, 0, 0},
	{"4758<sh> [  59] [00007fd9b6c6bad7] close(3) = 0", STRACELINE_CALL, 4758, "close",
	 "3) = 0", -1, 0, 0},
	{"7 [unconfined_t] close(3) = 0", STRACELINE_CALL, 7, "close", "3) = 0", -1, 0, 0},
	/* in two parts */
	{"7  wait4(-1,  <unfinished ...>", STRACELINE_UNFINISHED, 7, "wait4", "-1,  ", -1, 0, 0},
	{"7  vfork( <unfinished ...>", STRACELINE_UNFINISHED, 7, "vfork", " ", -1, 0, 0},
	{"7  connect(3,  <detached ...>", STRACELINE_UNFINISHED, 7, "connect", "3,  ", -1, 0, 0},
	{"7  <... wait4 resumed>NULL) = 8", STRACELINE_RESUMED, 7, "wait4", "NULL) = 8", -1, 0, 0},
	{"7  <... wait4 resumed> NULL) = 8", STRACELINE_RESUMED, 7, "wait4", " NULL) = 8", -1, 0,
	 0},
	{"<... vfork resumed> ) = 8", STRACELINE_RESUMED, 0, "vfork", " ) = 8", -1, 0, 0},
	{"4<sh> [  58] [00007f] <... vfork resumed>) = 8", STRACELINE_RESUMED, 4, "vfork", ") = 8",
	 -1, 0, 0},
	/* a string is not the end of a line */
	{"write(1, \"<unfinished ...>\", 16) = 16", STRACELINE_CALL, 0, "write", NULL, -1, 0, 0},
	/* ends and signals */
	{"7  +++ exited with 3 +++", STRACELINE_EXITED, 7, NULL, NULL, -1, 0, 3},
	{"+++ exited with 0 +++", STRACELINE_EXITED, 0, NULL, NULL, -1, 0, 0},
	{"[pid 7] +++ killed by SIGKILL +++", STRACELINE_KILLED, 7, NULL, NULL, -1, 0, 0},
	{"7 +++ killed by SIGSEGV (core dumped) +++", STRACELINE_KILLED, 7, NULL, NULL, -1, 0, 0},
	{"7 +++ superseded by execve in pid 9 +++", STRACELINE_SUPERSEDED, 7, NULL, NULL, -1, 9, 0},
	{"7 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---", STRACELINE_SIGNAL, 7, NULL,
	 NULL, -1, 0, 0},
	{"--- stopped by SIGSTOP ---", STRACELINE_SIGNAL, 0, NULL, NULL, -1, 0, 0},
	/* remarks */
	{"strace: Process 4574 attached", STRACELINE_ATTACHED, 0, NULL, NULL, -1, 4574, 0},
	{"Process 4574 attached", STRACELINE_ATTACHED, 0, NULL, NULL, -1, 4574, 0},
	{"strace: Process 4574<sh> attached", STRACELINE_ATTACHED, 0, NULL, NULL, -1, 4574, 0},
	{"vfork(strace: Process 4574 attached", STRACELINE_ATTACHED, 0, NULL, "", -1, 4574, 0},
	{"[pid 7] clone(child_stack=NULLstrace: Process 8 attached", STRACELINE_ATTACHED, 7, NULL,
	 "child_stack=NULL", -1, 8, 0},
	{"clone(Process 8 attached", STRACELINE_ATTACHED, 0, NULL, "", -1, 8, 0},
	{"strace: Process 4574 detached", STRACELINE_DETACHED, 0, NULL, NULL, -1, 4574, 0},
	{"[ Process PID=12 runs in 32 bit mode. ]", STRACELINE_BITS, 0, NULL, NULL, -1, 12, 32},
	{"7 [ Process PID=12 runs in 64 bit mode. ]", STRACELINE_BITS, 7, NULL, NULL, -1, 12, 64},
	{"7 [ Process PID=12 runs in x32 mode. ]", STRACELINE_BITS, 7, NULL, NULL, -1, 12, 0},
	{"", STRACELINE_NOTHING, 0, NULL, NULL, -1, 0, 0},
	{" > /usr/lib/libc.so.6(open+0x4f) [0xf7f2f]", STRACELINE_NOTHING, 0, NULL, NULL, -1, 0, 0},
	{"strace: exec: Permission denied", STRACELINE_NOTHING, 0, NULL, NULL, -1, 0, 0},
	{"% time     seconds  usecs/call     calls    errors syscall", STRACELINE_NOTHING, 0, NULL,
	 NULL, -1, 0, 0},
	{"------ ----------- ----------- --------- --------- ------", STRACELINE_NOTHING, 0, NULL,
	 NULL, -1, 0, 0},
	{"100.00    0.000047           1        33        13 openat", STRACELINE_NOTHING, 0, NULL,
	 NULL, -1, 0, 0},
	{" 40.00    0.000047           1        33           openat", STRACELINE_NOTHING, 0, NULL,
	 NULL, -1, 0, 0},
	/* none of it */
	{"4027 openat", STRACELINE_BAD, 4027, NULL, NULL, -1, 0, 0},
	{"hello, world", STRACELINE_BAD, 0, NULL, NULL, -1, 0, 0},
	{"{\"warder_trace\":1}", STRACELINE_BAD, 0, NULL, NULL, -1, 0, 0},
	{"7 +++ vanished +++", STRACELINE_BAD, 7, NULL, NULL, -1, 0, 0},
	{")                                 = 6", STRACELINE_BAD, 0, NULL, NULL, -1, 0, 0},
	{"99999999999999999999999999 close(3) = 0", STRACELINE_BAD, 0, NULL, NULL, -1, 0, 0},
};

static void check(const struct row *row)
{
	struct straceline got;
	straceline_parse(row->line, strlen(row->line), &got);
	cr_expect_eq(got.kind, row->kind, "%s: kind %d", row->line, (int)got.kind);
	cr_expect_eq(got.pid, row->pid, "%s: pid %d", row->line, (int)got.pid);
	cr_expect_eq(got.has_time, row->time_ns >= 0, "%s: has a time", row->line);
	if (got.has_time)
		cr_expect_eq(got.time_ns, row->time_ns, "%s: %lld", row->line,
			     (long long)got.time_ns);
	if (row->name)
		cr_expect(strace_span_is(got.name, row->name), "%s: %.*s", row->line,
			  (int)got.name.len, got.name.at);
	if (row->rest)
		cr_expect(strace_span_is(got.rest, row->rest), "%s: %.*s", row->line,
			  (int)got.rest.len, got.rest.at);
	cr_expect_eq(got.other, row->other, "%s: other %d", row->line, (int)got.other);
	if (row->number)
		cr_expect_eq(got.number, row->number, "%s: %d", row->line, got.number);
	if (got.kind == STRACELINE_BAD)
		cr_expect(got.expected && got.bad_at <= strlen(row->line), "%s", row->line);
}

Test(straceline, of_every_version_and_option)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check(&rows[i]);
}

/* However early a line breaks off, nothing is read behind its end (the copy has no byte more). */
Test(straceline, cut_anywhere)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t len = strlen(rows[i].line); len-- > 0;) {
			struct straceline got;
			char *copy AUTOFREE = malloc(len ? len : 1);
			cr_assert(copy);
			memcpy(copy, rows[i].line, len);
			straceline_parse(copy, len, &got);
			cr_expect(got.kind != STRACELINE_BAD || got.bad_at <= len, "%.*s", (int)len,
				  rows[i].line);
		}
}

Test(straceline, the_signal_has_a_name)
{
	const char *line = "7 +++ killed by SIGSEGV (core dumped) +++";
	struct straceline got;
	straceline_parse(line, strlen(line), &got);
	cr_expect(strace_span_is(got.word, "SIGSEGV"));
}
