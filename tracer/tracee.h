/*
 * tracee: one traced thread, and the table of all of them.
 *
 * A tracee belongs to its table; pointers to it are loans that end with the next tracee_drop() or
 * tracee_rename(). What lives longer names a thread by {tid, gen}.
 *
 * The state machine: `state` changes in tracee_step() (a stop arrived) and by the answers of the
 * room's face, always through tracee_to(). What a stop means in a state is one cell of a table.
 */
#pragma once

#include "tracer/call.h"
#include "tracer/door.h"
#include "tracer/regs.h"
#include "tracer/stop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum tracee_state {
	TRACEE_NEW,   /* known, its first stop has not come yet */
	TRACEE_RUN,   /* runs, or is in a call that is not watched */
	TRACEE_LOOK,  /* at its entry of a watched call, until it may go on */
	TRACEE_CALL,  /* in a watched call, on its way to the exit stop */
	TRACEE_HELD,  /* at the exit stop, waiting for an answer */
	TRACEE_ENTER, /* a grant: repeats its call, on its way to the entry stop */
	TRACEE_DOOR,  /* a grant: waits at the door, then comes to the exit stop */
	TRACEE_EXEC,  /* makes an exec by descriptor (execfd.h), to its seccomp stop and its end */
	TRACEE_CLOSE, /* that failed: closes the descriptor again, on its way to the exit stop */
	TRACEE_WAITS, /* at the door, before its call was run (waits.h) */
	TRACEE_WATCH, /* makes the calls that put its messages under watch (messages.h) */
	TRACEE_STATE_COUNT,
};

/* What is to be done about a stop. */
enum tracee_act {
	TRACEE_ACT_BUG,
	TRACEE_ACT_RESUME,  /* go on; a STOP_SIGNAL delivers its signal */
	TRACEE_ACT_FIRST,   /* the first stop: now it runs */
	TRACEE_ACT_SECCOMP, /* look at the call, then decide */
	TRACEE_ACT_EXIT,    /* a watched call is over */
	TRACEE_ACT_ENTERED, /* a grant has come to its entry */
	TRACEE_ACT_GRANTED, /* a grant has come to its exit */
	TRACEE_ACT_EXECFD_SECCOMP,
	TRACEE_ACT_EXECFD_SYSCALL,
	TRACEE_ACT_WATCH_SECCOMP,
	TRACEE_ACT_WATCH_SYSCALL,
	TRACEE_ACT_CLONED, /* a new tracee is announced */
	TRACEE_ACT_EXECED,
	TRACEE_ACT_LISTEN, /* a job-control stop: stay stopped, but hear SIGCONT */
	TRACEE_ACT_LEFT,   /* it waits no longer: forget the call, then see what stop it is */
	TRACEE_ACT_ENDED,
	TRACEE_ACT_COUNT,
};

struct tracee {
	pid_t tid;
	pid_t tgid;
	uint32_t gen;
	enum tracee_state state;
	bool listening;	     /* in a job-control stop */
	bool job_stopped;    /* of a leader: TRACER_STOPPED was reported for the process */
	pid_t stopped_under; /* while job_stopped: the parent it had then; 0: it does not matter */
	bool own_domain;     /* it entered a Landlock domain beside ours, or its creator had */
	/* TRACER_OWN_*: what rulesets that its process, or its creator, made are about */
	unsigned own_rulesets;
	uint32_t turn;	     /* another one once it may be somebody else to the kernel */
	uint32_t own_net;    /* the caller's number for that domain, or TRACER_NET_UNKNOWN */
	bool net_guessed;    /* own_net is not known before its creator's stop comes */
	bool spawned;	     /* by tracer_spawn(), not by another tracee */
	struct regs_call at; /* the watched call, as it was at its seccomp stop */
	/* What the program called: another number than `at` where that was a part of socketcall. */
	struct regs_call entered;
	struct call call; /* decoded; while HELD, LOOK or WAITS, and in CALL where read early */
	bool read_early;  /* `call` was read before it ran */
	bool looked;	  /* record: ENTERS was told of its call, whose end was not yet */
	bool over;	  /* a call that was let run on has ended, in this: */
	int64_t result;
	int restore_arg;	 /* argument to put back at the exit stop, -1: none */
	struct execfd *execfd;	 /* owned; an exec by descriptor is on its way, else NULL */
	struct door_guest guest; /* while WAITS */
	bool waits_in_call;	 /* it had come to the seccomp stop of its call already */
	bool restarts;		 /* it was answered "begin anew after the signal" (waits.h) */
	struct near *near;	 /* the tracer's; NULL: none */
	struct mm *mm;		 /* counted; its address space as the fast path knows it, or NULL */
	/*
	 * A stub brought its call's result: while HELD it is at the seccomp stop of the report, and
	 * in CALL on its way to the exit stop, where it gets the result that is owed to it.
	 */
	bool reported;
	int64_t owed;	     /* 0: nothing */
	bool own_filter;     /* the program has installed a seccomp filter */
	bool own_seccomp;    /* it, another thread of its process or its creator's may have one */
	struct watch *watch; /* owned; its messages are being put under watch, else NULL */
	/* While ENTER or DOOR, and (the mask alone) EXEC, CLOSE or WATCH: */
	int grant_fd; /* owned; -1 once it was given */
	bool grant_cloexec;
	uint64_t sigmask;    /* the thread's own; every signal is blocked meanwhile */
	bool reports;	     /* while RUN: the same, until its stub has reported */
	struct tracee *next; /* in its bucket */
};

#define TRACEE_BUCKETS 1024

struct tracee_table {
	struct tracee *bucket[TRACEE_BUCKETS];
	size_t len;
	uint32_t last_gen;
	struct near *near; /* lent to every tracee, or NULL */
};

enum tracee_act tracee_step(const struct tracee *t, enum stop_kind kind);
void tracee_to(struct tracee *t, enum tracee_state state);
/* Does the state need to see the next entry or exit stop (PTRACE_SYSCALL rather than CONT)? */
bool tracee_needs_syscall(const struct tracee *t);

/* No report is open any more. */
void tracee_owe_nothing(struct tracee *t);

struct tracee *tracee_find(const struct tracee_table *table, pid_t tid);
/* A new tracee in state NEW; an entry of the same tid is dropped (the kernel reused it). NULL: no
 * memory. */
struct tracee *tracee_add(struct tracee_table *table, pid_t tid, pid_t tgid);
void tracee_drop(struct tracee_table *table, struct tracee *t);
/* exec by a thread that was not the leader: it has the leader's tid now. The leader must be
 * dropped. */
void tracee_rename(struct tracee_table *table, struct tracee *t, pid_t tid);
/* Call f for each (f may drop the one it is given). */
void tracee_each(struct tracee_table *table, void (*f)(struct tracee *t, void *arg), void *arg);
void tracee_free_all(struct tracee_table *table);
