/*
 * tracer: the room's face. Processes, stops and calls; no policy.
 *
 * One thread creates the tracer, spawns, and calls everything here (ptrace belongs to a thread).
 * Nothing blocks but where it says so. The caller waits for SIGCHLD (signalfd; not SA_NOCLDSTOP)
 * and for tracer_fd() to become readable, and then drains tracer_next() until it answers 0.
 * Children of the caller that are no tracees are left alone (tracer/reap.h); it must not wait for
 * "any" itself.
 *
 * Every tracee is seized with EXITKILL: when this process dies, however, they all die.
 * A thread is named by {tid, gen}; a name whose thread is gone gets -ESRCH, which is normal
 * weather.
 */
#pragma once

#include "tracer/call.h"
#include "tracer/unwind.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tracer;

struct tracee_name {
	pid_t tid;
	uint32_t gen;
};

/* What a Landlock domain may refuse beside files. */
#define TRACER_OWN_ABSTRACT 1u /* to connect to an abstract unix socket */

#define TRACER_NET_UNKNOWN UINT32_MAX

enum tracer_event_kind {
	/*
	 * A watched call was refused (EACCES, EPERM, or EXDEV for rename and link; ENOENT for
	 * linkat of a descriptor itself, which says so of one that another process opened). The
	 * thread is held at the call's exit until one of tracer_deny/set_result/hand_over. `call`
	 * is decoded, not resolved; it is a loan until the thread is answered. Meanwhile every
	 * signal but SIGKILL stays pending, a fatal one too: to end such a process softly, answer
	 * first.
	 */
	TRACER_REFUSED,
	/*
	 * A call that Landlock knows nothing about (chmod, connect ...: groups META and CONNECT)
	 * waits at the door and has not run. It never runs: it returns what tracer_set_result()
	 * says, or EACCES by tracer_deny(). `call` as for REFUSED, its result -EACCES. The thread
	 * sleeps in the kernel, it is in no stop; SIGKILL ends it (GONE), other signals wait.
	 * Its number may then be another's (a sibling's exec gives its own away), so what was read
	 * by that number counts only if tracer_is_held() afterwards; this is so of `call` too.
	 * Memory and descriptors of its process may change meanwhile: act on copies alone.
	 */
	TRACER_WAITS,
	/*
	 * With options.see_changes: a watched call that creates, writes, removes or renames
	 * succeeded. Decoded; the thread is held until tracer_deny() (= go on, the result stands).
	 */
	TRACER_CHANGED,
	/*
	 * With options.native or .record: a watched call with a path is about to run; with
	 * .see_changes: one that renames. Decoded, not resolved; the thread is held at the call's
	 * entry until tracer_go_on(). The call is a loan until LEFT is answered; REFUSED, GONE or
	 * EXECED end it too.
	 */
	TRACER_ENTERS,
	/*
	 * The same call is over; call->result is the kernel's. Held at the exit until
	 * tracer_deny(). With options.see_changes, `changed`: as in CHANGED, which is not told
	 * beside it.
	 */
	TRACER_LEFT,
	/*
	 * With options.record: the call that ENTERS and then REFUSED told of, and that was let run
	 * on (hand_over, exec_fd), is over with `result`. Not held. (After tracer_again() ENTERS
	 * comes anew, and an exec that was done ends in EXECED.)
	 */
	TRACER_OVER,
	/* pid is the new process (threads are not told), parent its creator. */
	TRACER_FORKED,
	/*
	 * pid has a new image. `call` is what it was called by (decoded, not resolved; a loan until
	 * the next tracer_next), or NULL where that is not known.
	 */
	TRACER_EXECED,
	/* Process pid ended, status as waitpid's; the last thread is gone. */
	TRACER_EXITED,
	/*
	 * The thread has entered a Landlock domain that may refuse connections by TCP, of the
	 * ruleset call->args[0]. It is held until tracer_confined() or tracer_deny() (= go on).
	 */
	TRACER_CONFINED,
	/* A held thread, or one between ENTERS and the call's end, died: the name is void; forget
	   its question. */
	TRACER_GONE,
	/* pid is in a job-control stop by signal `sig`; it goes on. */
	TRACER_STOPPED,
	TRACER_CONTINUED,
	/*
	 * A guard call: `call->ent` tells which (io_uring_setup, ptrace, seccomp, clone with
	 * CLONE_UNTRACED ...); or one of the mount group that got EPERM, as every Landlock domain
	 * gives it, or for a namespace (clone, unshare, setns): no path grant can help. Already
	 * answered; a loan until the next tracer_next.
	 */
	TRACER_NOTICED,
	/* The exec of a spawned child failed with `error`; EXITED follows. */
	TRACER_SPAWN_FAILED,
};

enum tracer_stage {
	TRACER_STAGE_SETUP,
	TRACER_STAGE_PREPARE,
	TRACER_STAGE_FILTER,
	TRACER_STAGE_EXEC
};

struct tracer_event {
	enum tracer_event_kind kind;
	struct tracee_name who; /* the thread */
	pid_t pid;		/* its process */
	pid_t parent;
	int status;
	int sig;
	int error; /* -errno */
	int64_t result;
	bool changed;
	enum tracer_stage stage;
	struct call *call;
	/* It has a Landlock domain beside ours: which of them refused a call is not known. */
	bool own_domain;
	unsigned own_about; /* TRACER_OWN_*: what else that domain may refuse */
	/*
	 * With options.see_identities, of a thread: what was its ids, groups and capabilities (not
	 * its umask) at an event of the same `who` and `turn` still is. 0: not known.
	 */
	uint32_t turn;
	/*
	 * What tracer_confined() said of it, or of whom it comes from: 0 nothing (it is held to no
	 * ports), TRACER_NET_UNKNOWN. Of a CONFINED: what it was until now.
	 */
	uint32_t own_net;
};

struct tracer_options {
	bool see_changes;    /* report TRACER_CHANGED */
	bool see_identities; /* a tracee can become somebody else: fill tracer_event.turn */
	bool fast;	     /* calls that succeed are to stop no more, where that can be had */
	/* Where it keeps for later runs what it has learned of files; NULL: nowhere. Copied. */
	const char *state_dir;
	/*
	 * Nothing is refused: neither the filter nor the tracer answers a call (but CLONE_UNTRACED,
	 * which would make a process that nobody sees), no_new_privs is set only where there is no
	 * filter without it, and every watched call is reported: ENTERS and LEFT. Guard calls run,
	 * and mounts that succeed are NOTICED as well.
	 */
	bool native;
	/* Every watched call is reported, behind the wall too: ENTERS and LEFT or OVER. Not with
	 * `fast`. */
	bool record;
};

struct tracer_spawn {
	const char *file; /* the program's path, as given to execve */
	char *const *argv;
	char *const *envp;
	int stdio[3]; /* descriptors to become 0, 1, 2; -1 keeps the caller's */
	/*
	 * A terminal that becomes the child's controlling one (setsid first); -1: none. Terminal
	 * stops then work as under a shell, although the kernel counts the command's group as
	 * orphaned.
	 */
	int ctty;
	bool new_session;   /* setsid, without a terminal */
	bool see_terminals; /* ioctls of terminals can be refused, too: they stop (filter.h) */
	/* Descriptors that stay open in the command beside 0-2: from[i] becomes to[i] (>= 3). */
	const int *keep_from;
	const int *keep_to;
	size_t keep_len;
	const char *cwd; /* NULL: the caller's */
	/*
	 * The signal state the command starts with, as it was at the caller's own start (a program
	 * that blocks or ignores signals for itself must not pass that on). `sigmask` NULL: nothing
	 * is blocked. `ignored` NULL: what the caller ignores now; every other signal is default.
	 */
	const sigset_t *sigmask;
	const sigset_t *ignored;
	/*
	 * Runs in the child between being seized and the filter, with every signal blocked, the
	 * caller's descriptors in place and (but for `native`) no_new_privs set; only
	 * async-signal-safe calls; 0, or -errno, which ends the child before anything was run
	 * (tracer_spawn() fails, stage PREPARE).
	 */
	int (*prepare)(void *arg);
	void *prepare_arg;
	/*
	 * Runs in the child once tracer_spawn() was called, behind the filter, right before the
	 * exec; the rest as for `prepare`. landlock_restrict_self passes with `mark` in its fifth
	 * argument. NULL: nothing. Where it fails nothing is run either, but this arrives as
	 * TRACER_SPAWN_FAILED, stage PREPARE.
	 */
	int (*enter)(void *arg, uint32_t mark);
};

struct tracer_counts {
	uint64_t stops;	  /* wait statuses that were stops */
	uint64_t calls;	  /* watched calls seen */
	uint64_t refused; /* TRACER_REFUSED events */
	uint64_t handed;  /* descriptors handed over */
	uint64_t unwound; /* stacks that were asked for */
	uint64_t waited;  /* TRACER_WAITS events */
	uint64_t patched; /* call sites that stop no more, in all address spaces */
	/* Times that the kernel did not let a site be changed, where that was given up. */
	unsigned unwritable;
};

/* Can calls that succeed stop no more on this machine? (Else `fast` means nothing.) */
bool tracer_has_fast(void);
/*
 * What this kernel can't do for the calls of TRACER_WAITS: how many, and a sentence for each
 * (static).
 */
#define TRACER_LACKS_MAX 3
size_t tracer_lacks(const char *ret[TRACER_LACKS_MAX]);

int tracer_new(const struct tracer_options *options, struct tracer **ret);
/* Kills and reaps every tracee that is left (blocks until they are gone), then frees. */
void tracer_free(struct tracer *t);

/*
 * Fork already, and let the child do what needs no sandbox yet, up to its filter, while the caller
 * makes the sandbox: memory is as it is now, descriptors and what they hold may still be filled.
 * tracer_spawn() with the same *s goes on with that child. Where this fails nothing is lost but
 * time: tracer_spawn() does it all. Does not block.
 */
void tracer_begin(struct tracer *t, const struct tracer_spawn *s);
/*
 * Fork, seize, prepare, filter, enter, exec. Returns once the child is on its way (it blocks for
 * the handshake, a few hundred microseconds); a failed exec arrives as TRACER_SPAWN_FAILED. 0 and
 * the pid, or -errno with *ret_stage (SETUP, PREPARE or FILTER): no child is left.
 */
int tracer_spawn(struct tracer *t, const struct tracer_spawn *s, pid_t *ret_pid,
		 enum tracer_stage *ret_stage);

/*
 * While tracees stop, the tracing thread keeps to the processor where they do (tracer/near.h). What
 * the caller starts meanwhile, a thread or a process, would inherit that: first it calls
 * tracer_roam(), by which the thread has its processors back, until the next stop. And once it has
 * got a 0 from tracer_next() it calls tracer_rest() every 10 to 50 ms, until that says false.
 */
void tracer_roam(struct tracer *t);
bool tracer_rest(struct tracer *t);

/*
 * Readable when a call waits at the door, or when tracer_next() left work behind so that the caller
 * could have its turn. Lives as long as the tracer.
 */
int tracer_fd(const struct tracer *t);
/*
 * After tracer_spawn(): how many, and the descriptors to be waited for in place of tracer_fd(), for
 * who has one epoll set and calls that wait at the door often (tracer/door.h). They live as long as
 * the tracer, and are waited for no longer once they hang up (EPOLLHUP).
 */
#define TRACER_FDS 2
size_t tracer_fds(const struct tracer *t, int ret[TRACER_FDS]);

/*
 * The caller's wait found this one of tracer_fds() readable (EPOLLIN), it found nothing else,
 * SIGCHLD neither, and nothing was done since. So tracer_next() need not ask again who is there.
 */
void tracer_ready(struct tracer *t, int fd);
/*
 * It found one of them readable, and maybe other things, too: tracer_next() looks at the door
 * behind whatever statuses there are, which it else does but once in a while.
 */
void tracer_knocked(struct tracer *t);
/*
 * 1 and an event, 0 nothing now but what SIGCHLD or tracer_fd() tell, -ECHILD no tracee is left,
 * -ENOMEM (end it all, fail closed).
 */
int tracer_next(struct tracer *t, struct tracer_event *ret);

/* The thread that was held at its call's entry makes the call. 0 or -ESRCH. */
int tracer_go_on(struct tracer *t, struct tracee_name who);
/* The held thread goes on; the call's result stands. 0 or -ESRCH (as for the next ones). */
int tracer_deny(struct tracer *t, struct tracee_name who);
/* The held thread goes on with this result in place of the call's (>= 0 or -errno). */
int tracer_set_result(struct tracer *t, struct tracee_name who, int64_t result);
/*
 * The held thread's open returns `fd` (ours; taken over and closed, also on failure) as its lowest
 * free descriptor. No signal can interrupt it. Done asynchronously: progress is made by
 * tracer_next(). -EINVAL: the call is no open; the thread is still held.
 */
int tracer_hand_over(struct tracer *t, struct tracee_name who, int fd, bool cloexec);
/*
 * The held exec runs the file behind `fd` (ours; taken over and closed, also on failure), with its
 * own arguments and environment. What it is then told of itself (/proc/self/exe, AT_EXECFN) is
 * that file. Where that fails the call returns why. Asynchronous, as tracer_hand_over(). -EINVAL:
 * the call is no exec; -ENOMEM: the thread is still held.
 */
int tracer_exec_fd(struct tracer *t, struct tracee_name who, int fd);
/*
 * The thread of a CONFINED goes on; `number` is the caller's name for its domain: events of it, and
 * of whoever it bears, have it. 0 or -ESRCH.
 */
int tracer_confined(struct tracer *t, struct tracee_name who, uint32_t number);
/* Has any thread this number? */
bool tracer_has_net(const struct tracer *t, uint32_t number);
/*
 * Run the held call once more, natively (after something made it possible). -EINVAL: a call that
 * waits at the door never runs natively.
 */
int tracer_again(struct tracer *t, struct tracee_name who);

/* Load what is otherwise loaded when it is first needed: what unwinds, what decodes. 0 or -ENOMEM.
 */
int tracer_prepare(struct tracer *t);
/*
 * Of that what most programs need at their very start; for a moment in which there is nothing else
 * to do: while the kernel executes the command's file.
 */
void tracer_warm(struct tracer *t);
/*
 * Who made the held call: at most `max` frames. Blocks for some milliseconds (tracer/unwind.h). 0
 * and *ret (the caller's; unwind_unref()), -ESRCH, -EBUSY, -ENOMEM, -EAGAIN.
 */
int tracer_stack(struct tracer *t, struct tracee_name who, size_t max, struct unwind_stack **ret);

/* Enough of them was told: no more TRACER_CHANGED, and such calls need not stop. */
void tracer_changes_known(struct tracer *t);
/* Is the name still that of a living thread that is held, waits or is looked at (ENTERS)? */
bool tracer_is_held(const struct tracer *t, struct tracee_name who);
/* Number of living processes; their pids in pids[0..n) (up to cap). */
size_t tracer_processes(const struct tracer *t, pid_t *pids, size_t cap);
/* SIGKILL every tracee; they are reaped by tracer_next(). */
void tracer_kill_all(struct tracer *t);
struct tracer_counts tracer_counts(const struct tracer *t);
