/*
 * stop: a wait status, classified. The one place that takes wait statuses apart.
 */
#pragma once

enum stop_kind {
	STOP_EXITED,  /* the thread ended by exit; value: the exit status */
	STOP_KILLED,  /* the thread was ended by a signal; value: the signal */
	STOP_SECCOMP, /* the filter said TRACE */
	STOP_SYSCALL, /* at entry or exit of a call (PTRACE_SYSCALL); which: ask the kernel */
	STOP_CLONED,  /* fork, vfork or clone; the message is the new tid */
	STOP_EXECED,  /* a new image; the message is the former tid */
	STOP_GROUP,   /* job control: the process stops; value: the stop signal */
	STOP_TRAP,    /* a new tracee's first stop, or the end of a job-control stop */
	STOP_SIGNAL,  /* a signal is about to be delivered; value: the signal */
	STOP_OTHER,   /* an event nobody asked for; value: the event */
	STOP_NONE,    /* no stop and no end (continued) */
	STOP_KIND_COUNT,
};

struct stop {
	enum stop_kind kind;
	int value;
};

/* For tracees that were SEIZEd with TRACESYSGOOD. */
struct stop stop_classify(int status);
