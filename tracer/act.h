/*
 * act: what is done about each stop. Inside the room; the face is tracer/tracer.h.
 */
#pragma once

#include "tracer/door.h"
#include "tracer/fastpath.h"
#include "tracer/filter.h"
#include "tracer/reap.h"
#include "tracer/tracee.h"
#include "tracer/tracer.h"

#define ACT_EVENTS_MAX 8 /* one stop makes three at most */

/* A spawned child's report, until its exec. */
struct act_newborn {
	pid_t pid;
	int report; /* owned */
};

struct tracer {
	struct tracer_options options;
	struct tracee_table table;
	struct reap_queue queue;
	struct door *door;
	struct filter_options filter; /* the session's marks */
	struct fastpath *fast;	      /* NULL: every watched call takes two stops */
	struct spawn *begun;	      /* owned: by tracer_begin(); NULL: none */
	struct act_newborn *newborns;
	size_t newborns_len;
	struct tracer_event out[ACT_EVENTS_MAX]; /* a ring */
	unsigned out_head, out_len;
	bool had_status;	/* since tracer_next() last said 0 */
	unsigned doors_passed;	/* since the door was last looked at */
	bool had_guest;		/* since tracer_next() last said 0 */
	int ready;		/* a listener that the next look finds a guest at; -1: not known */
	struct call noticed;	/* what the last TRACER_NOTICED lent */
	bool tcp_rulesets;	/* somebody has made a Landlock ruleset that is about TCP */
	bool any_stopped;	/* some process may be in a job-control stop */
	pid_t terminal_session; /* of a spawned command with a terminal of its own; 0: none */
	struct tracer_counts counts;
	struct unwind *unwind;		  /* NULL until a stack is asked for */
	int message_file[SYS_ARCH_COUNT]; /* owned (messages.h); 0: none yet */
};

/*
 * One wait status: changes the tracee's state, resumes it or not, appends events to tr->out (which
 * must be empty). 0, or -ENOMEM.
 */
int act_on_status(struct tracer *tr, const struct reap_status *s);
/* An event for the caller, to be filled further. */
struct tracer_event *act_emit(struct tracer *tr, enum tracer_event_kind kind,
			      const struct tracee *t);
/* Let the tracee go on, with a signal or 0. A tracee that is gone is normal weather. */
void act_resume(struct tracee *t, int sig);
/* The same, out of whatever it was in. */
void act_run(struct tracee *t);
/* TRACER_NOTICED with this result; a tracee that is gone by now is simply not noticed. 0, -ENOMEM.
 */
int act_notice(struct tracer *tr, const struct tracee *t, const struct sysent *ent, int64_t result);
/*
 * A watched call begins. What an exec destroys and what a call removes or moves can't be looked at
 * afterwards. 0 or -ENOMEM.
 */
int act_enter(struct tracer *tr, struct tracee *t, const struct sysent *ent);
