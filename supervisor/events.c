/*
 * What the tracer tells, to whom it concerns.
 */
#include "supervisor/run.h"

#include <errno.h>
#include <string.h>

#define REST_MS 20 /* tracer_rest() */

/* Nobody is at the other end: by the kernel's hand (no memory) or somebody's. */
static bool was_killed(int error)
{
	return error == -ESRCH || error == -ECHILD || error == -EPIPE || error == -ECONNRESET;
}

void events_spawn_failed(struct run *r, const struct tracer_event *ev)
{
	if (ev->stage == TRACER_STAGE_EXEC) {
		r->out->not_found = ev->error == -ENOENT;
		r->out->not_executable = !r->out->not_found;
		run_refuse(r, ev->error, "can't be executed: %s", strerror(-ev->error));
		return;
	}
	if (ev->stage == TRACER_STAGE_FILTER && ev->error == -EBUSY) {
		run_refuse(r, ev->error,
			   "another supervisor (of a container, or of a sandbox) has the one "
			   "seccomp listener that a process can have; nothing was run");
		return;
	}
	if (ev->stage != TRACER_STAGE_PREPARE && was_killed(ev->error)) {
		run_refuse(r, ev->error,
			   "the command's process was killed before the command began; nothing was "
			   "run");
		return;
	}
	run_refuse(r, ev->error, "the sandbox could not be set up (%s): %s; nothing was run",
		   ev->stage == TRACER_STAGE_PREPARE  ? "Landlock"
		   : ev->stage == TRACER_STAGE_FILTER ? "seccomp"
						      : "start",
		   strerror(-ev->error));
}

static void changed(struct run *r, const struct tracer_event *ev)
{
	struct call_view view = {.tid = ev->who.tid, .tgid = ev->pid};
	bool replaced = changes_replaces(ev->call); /* as it was found before */
	if (!call_resolve(ev->call, view))
		changes_add(&r->changes, ev->call, replaced, r->session->tmpdir);
	if (changes_are_enough(&r->changes))
		tracer_changes_known(r->tracer);
	tracer_deny(r->tracer, ev->who);
}

/* A rename, before it is made; what lies on a file system that may not answer is not looked at. */
static void before_change(struct run *r, const struct tracer_event *ev)
{
	struct call_view view = {.tid = ev->who.tid, .tgid = ev->pid};
	run_see_mounts(r);
	if (!slowfs_concerns(r->slowfs, ev->call, view))
		(void)call_resolve(ev->call, view); /* not known: told as a move */
}

/* A watched call, at its beginning. */
static void enters(struct run *r, const struct tracer_event *ev)
{
	if (r->mode == ENGINE_PERMISSIVE)
		permissive_enters(r, ev);
	else
		recorder_enters(r, ev);
	if (!r->recorder && r->mode != ENGINE_PERMISSIVE)
		before_change(r, ev);
	tracer_go_on(r->tracer, ev->who);
}

static void left(struct run *r, const struct tracer_event *ev)
{
	if (r->mode == ENGINE_PERMISSIVE)
		permissive_left(r, ev);
	recorder_left(r, ev);
	if (ev->changed)
		changed(r, ev);
	else
		tracer_deny(r->tracer, ev->who);
}

static void execed(struct run *r, const struct tracer_event *ev)
{
	if (ev->pid == r->main)
		r->out->ran = true;
	once_execed(r, ev->pid);
	notice_exec(r, ev->pid);
	walk_execed(&r->walks, ev->who.gen, ev->call ? ev->call->path[0].given : NULL);
	permissive_execed(r, ev->who);
	recorder_execed(r, ev);
}

static void exited(struct run *r, const struct tracer_event *ev)
{
	once_forget(r, ev->pid);
	recorder_exited(r, ev);
	walk_ended(&r->walks, ev->pid);
	denial_ended(&r->out->report.denials, ev->pid, ev->status);
	denial_ended(&r->unasked, ev->pid, ev->status);
	if (ev->pid == r->main)
		lifecycle_main_ended(r, ev->status);
}

static void dispatch(struct run *r, const struct tracer_event *ev)
{
	switch (ev->kind) {
	case TRACER_REFUSED:
		refusal_begin(r, ev);
		break;
	case TRACER_WAITS:
		refusal_at_door(r, ev);
		break;
	case TRACER_CONFINED:
		refusal_confined(r, ev);
		break;
	case TRACER_CHANGED:
		changed(r, ev);
		break;
	case TRACER_ENTERS:
		enters(r, ev);
		break;
	case TRACER_LEFT:
		left(r, ev);
		break;
	case TRACER_OVER:
		recorder_over(r, ev);
		break;
	case TRACER_EXECED:
		execed(r, ev);
		break;
	case TRACER_EXITED:
		exited(r, ev);
		break;
	case TRACER_GONE:
		refusal_gone(r, ev->who);
		permissive_gone(r, ev->who);
		recorder_gone(r, ev->who);
		break;
	case TRACER_STOPPED:
		lifecycle_stopped(r, ev);
		break;
	case TRACER_NOTICED:
		notice_call(r, ev);
		recorder_noticed(r, ev);
		break;
	case TRACER_SPAWN_FAILED:
		events_spawn_failed(r, ev);
		break;
	case TRACER_CONTINUED:
		if (ev->pid == r->main)
			r->main_stopped = false;
		break;
	case TRACER_FORKED:
		recorder_forked(r, ev);
		break;
	}
}

static void rest(void *arg)
{
	struct run *r = arg;
	r->rest_timer = 0;
	/* Without a timer it goes on where it is: a matter of speed alone. */
	if (r->tracer && tracer_rest(r->tracer))
		(void)loop_add_timer(r->loop, REST_MS, rest, r, &r->rest_timer);
}

void events_pump(struct run *r)
{
	struct tracer_event ev;
	int n;
	if (!r->tracer)
		return; /* between two runs: a late SIGCHLD is about nobody of ours */
	while ((n = tracer_next(r->tracer, &ev)) > 0)
		dispatch(r, &ev);
	if (n == -ECHILD)
		loop_stop(r->loop);
	else if (n < 0)
		run_fail(r, n, "the tracer");
	else if (!r->rest_timer)
		rest(r);
}
