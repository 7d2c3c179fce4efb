#include "tracer/stop.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/ptrace.h>

#define STOPPED(sig)	  ((sig) << 8 | 0x7f)
#define EVENT(event, sig) ((event) << 16 | STOPPED(sig))

Test(stop, every_kind)
{
	static const struct {
		int status;
		enum stop_kind kind;
		int value;
	} rows[] = {
		{0, STOP_EXITED, 0},
		{7 << 8, STOP_EXITED, 7},
		{SIGKILL, STOP_KILLED, SIGKILL},
		{SIGSEGV | 0x80, STOP_KILLED, SIGSEGV},
		{0xffff, STOP_NONE, 0},
		{EVENT(PTRACE_EVENT_SECCOMP, SIGTRAP), STOP_SECCOMP, 0},
		{STOPPED(SIGTRAP | 0x80), STOP_SYSCALL, 0},
		{EVENT(PTRACE_EVENT_FORK, SIGTRAP), STOP_CLONED, 0},
		{EVENT(PTRACE_EVENT_VFORK, SIGTRAP), STOP_CLONED, 0},
		{EVENT(PTRACE_EVENT_CLONE, SIGTRAP), STOP_CLONED, 0},
		{EVENT(PTRACE_EVENT_EXEC, SIGTRAP), STOP_EXECED, 0},
		{EVENT(PTRACE_EVENT_STOP, SIGTRAP), STOP_TRAP, 0},
		{EVENT(PTRACE_EVENT_STOP, SIGSTOP), STOP_GROUP, SIGSTOP},
		{EVENT(PTRACE_EVENT_STOP, SIGTSTP), STOP_GROUP, SIGTSTP},
		{EVENT(PTRACE_EVENT_STOP, SIGTTIN), STOP_GROUP, SIGTTIN},
		{EVENT(PTRACE_EVENT_STOP, SIGTTOU), STOP_GROUP, SIGTTOU},
		{EVENT(PTRACE_EVENT_EXIT, SIGTRAP), STOP_OTHER, PTRACE_EVENT_EXIT},
		{STOPPED(SIGTRAP), STOP_SIGNAL, SIGTRAP},
		{STOPPED(SIGSTOP), STOP_SIGNAL, SIGSTOP},
		{STOPPED(SIGCHLD), STOP_SIGNAL, SIGCHLD},
		{STOPPED(64), STOP_SIGNAL, 64},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stop got = stop_classify(rows[i].status);
		cr_expect_eq(got.kind, rows[i].kind, "row %zu: kind %d", i, got.kind);
		cr_expect_eq(got.value, rows[i].value, "row %zu: value %d", i, got.value);
	}
}
