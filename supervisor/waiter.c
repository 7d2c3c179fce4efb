/*
 * The threads that are held: the list, the question each stands behind, and the way out of it.
 */
#include "supervisor/run.h"

#include "tracer/util.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void waiter_free(struct run *r, struct waiter *w)
{
	broker_meta_release(&w->meta);
	broker_connect_release(&w->connect);
	verdict_release(&w->verdict);
	if (r->spare)
		free(w);
	else
		r->spare = w;
}

void waiter_init(struct waiter *w, const struct tracer_event *ev)
{
	memset(w, 0, offsetof(struct waiter, as) + offsetof(struct identity, groups));
	w->who = ev->who;
	w->pid = ev->pid;
	w->turn = ev->turn;
	w->call = ev->call;
	w->own_domain = ev->own_domain;
	w->own_about = ev->own_about;
	w->own_net = ev->own_net;
	path_init(&w->verdict.refused);
	w->connect.socket = -1;
}

struct waiter *waiter_new(struct run *r, const struct tracer_event *ev)
{
	struct waiter *w = r->spare ? r->spare : malloc(sizeof *w);
	r->spare = NULL;
	if (w)
		waiter_init(w, ev);
	return w;
}

/* Who connects, or looks at a slow file system, waits for the other side, as without us. */
void waiter_tell_holding(struct run *r)
{
	bool held = false;
	for (const struct waiter *w = r->waiters; w && !held; w = w->next)
		held = !w->probes && (!w->at_door || !w->act);
	lifecycle_holding(r, held);
	lifecycle_watch_signals(r, r->waiters != NULL);
}

void waiter_add(struct run *r, struct waiter *w)
{
	w->next = r->waiters;
	w->listed = true;
	r->waiters = w;
	waiter_tell_holding(r);
}

void waiter_drop(struct run *r, struct waiter *w)
{
	struct waiter **p = &r->waiters;
	while (*p && *p != w)
		p = &(*p)->next;
	BUG(!*p);
	*p = w->next;
	waiter_free(r, w);
	waiter_tell_holding(r);
}

struct waiter *waiter_of(struct run *r, struct tracee_name who)
{
	for (struct waiter *w = r->waiters; w; w = w->next)
		if (w->who.tid == who.tid && w->who.gen == who.gen)
			return w;
	return NULL;
}

bool waiter_any_asks(const struct run *r, uint64_t question)
{
	for (const struct waiter *w = r->waiters; w; w = w->next)
		if (w->question == question)
			return true;
	return false;
}

void waiter_leave_question(struct run *r, struct waiter *w, const char *reason)
{
	uint64_t id = w->question;
	w->question = 0;
	if (id && r->ask && !waiter_any_asks(r, id) && ask_find(r->ask, id))
		ask_cancel(r->ask, id, reason);
}

/*
 * Copies of the thread's own descriptors: before it goes on, and closes its own. Else a file that
 * it has just written could not be run, a lock not be had, and the other side would see no end.
 */
static void let_go(struct waiter *w)
{
	if (!w->at_door)
		return;
	util_close(&w->verdict.refused.object);
	w->verdict.refused.object = -1;
	util_close(&w->connect.socket);
	w->connect.socket = -1;
}

void waiter_return(struct run *r, struct waiter *w, int64_t result)
{
	let_go(w);
	recorder_returns(r, w->who, result);
	tracer_set_result(r->tracer, w->who, result);
}

void waiter_refuse_with(struct run *r, struct waiter *w, int error)
{
	waiter_leave_question(r, w, "covered");
	if (error) {
		waiter_return(r, w, error);
	} else {
		let_go(w);
		recorder_returns(r, w->who, w->call->result);
		tracer_deny(r->tracer, w->who);
	}
	waiter_drop(r, w);
}

void waiter_refuse(struct run *r, struct waiter *w)
{
	waiter_refuse_with(r, w, 0);
}
