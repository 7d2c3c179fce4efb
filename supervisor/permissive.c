/*
 * --permissive: there is no wall, and nothing is refused. Every watched call is judged before it
 * runs, when all that it names is still there, as the ruleset and the policy would have judged it;
 * and written down when it is over, if they would have refused what it then did.
 */
#include "supervisor/run.h"

#include "supervisor/doorstep.h"
#include "supervisor/judge.h"
#include "tracer/filter.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

static void tell(struct run *r, const struct look *k)
{
	recorder_decided(r, &k->w, &k->ruling, &k->d);
	record_denial(r, &k->d);
}

static void look_free(struct look *k)
{
	broker_meta_release(&k->w.meta);
	broker_connect_release(&k->w.connect);
	verdict_release(&k->w.verdict);
	if (k->refused)
		denial_release(&k->d);
	free(k);
}

static struct look *take(struct run *r, struct tracee_name who)
{
	for (struct look **p = &r->looks; *p; p = &(*p)->next) {
		struct look *k = *p;
		if (k->w.who.gen != who.gen)
			continue;
		*p = k->next;
		return k;
	}
	return NULL;
}

static int judge_with(struct run *r, struct waiter *w, int error)
{
	struct call_view view = {.tid = w->who.tid, .tgid = w->pid};
	struct verdict_input in = {.call = w->call,
				   .view = view,
				   .as = &w->as,
				   .self = &r->self,
				   .ruleset = r->ruleset};
	w->call->result = error;
	verdict_release(&w->verdict);
	return verdict_of(&in, &w->verdict);
}

/* As refusal.c does with what was refused or waits, if everything asked was answered with yes. */
static void describe_refusal(struct run *r, struct look *k)
{
	struct ruling ruling = ruling_of(r, &k->w);
	bool asks = ruling.effect == EFFECT_ASK;
	if (ruling.effect == EFFECT_ALLOW || (asks && k->w.verdict.anyway))
		return;
	if (k->w.at_door && doorstep_fails_anyway(r, &k->w))
		return;
	k->ruling = ruling;
	k->w.call->result = k->w.verdict.wall ? k->w.verdict.wall : -EACCES;
	record_describe(r, &k->w, &ruling, &k->d);
	caller_add(r, &k->w, &k->d);
	k->refused = true;
	k->d.allowed = true;
	k->d.unwalled = true;
	k->d.by = BY_NONE;
}

/* It would wait at the door. */
static bool would_wait(const struct call *c)
{
	return filter_waits(c->ent) ||
	       (c->path[0].need == CALL_NEED_IOCTL && filter_waits_ioctl((uint32_t)c->args[1]));
}

static int judge(struct run *r, struct look *k)
{
	struct call_view view = {.tid = k->w.who.tid, .tgid = k->w.pid};
	int64_t result;
	k->w.at_door = would_wait(k->w.call);
	if (k->w.at_door) {
		if (doorstep_look(r, &k->w, &result))
			describe_refusal(r, k);
		return 0;
	}
	int err = call_resolve(k->w.call, view);
	if (!err)
		err = identity_of(k->w.who.tid, &k->w.as);
	if (!err)
		err = judge_with(r, &k->w, -EACCES);
	if (!err && k->w.verdict.verdict == VERDICT_SANDBOX)
		describe_refusal(r, k);
	return err;
}

void permissive_enters(struct run *r, const struct tracer_event *ev)
{
	struct look *k = take(r, ev->who);
	if (k)
		look_free(k); /* a call that a signal made begin anew */
	k = calloc(1, sizeof *k);
	if (k) {
		waiter_init(&k->w, ev);
		run_see_mounts(r);
		int err = judge(r, k);
		if (err && err != -ESRCH)
			run_say(r, "a call of %s could not be looked at: %s", ev->call->ent->name,
				strerror(-err));
		k->next = r->looks;
		r->looks = k;
		recorder_looks(r, &k->w);
	} else {
		run_say(r, "no memory to look at a call of %s", ev->call->ent->name);
	}
}

/* Refused without any wall: told as always, except that no grant can help. */
static void refused_natively(struct run *r, struct look *k, int64_t result)
{
	if (judge_with(r, &k->w, (int)result))
		return;
	if (k->w.verdict.verdict == VERDICT_SANDBOX) {
		k->w.verdict.verdict = VERDICT_OTHER;
		k->w.verdict.note = "another kernel policy refused it; no path grant can help";
	}
	record_refused(r, &k->w, NULL, BY_NONE);
}

void permissive_left(struct run *r, const struct tracer_event *ev)
{
	struct look *k = take(r, ev->who);
	int64_t result = ev->call->result;
	bool two = ev->call->path[1].need != CALL_NEED_NONE;
	if (k && (result == -EACCES || result == -EPERM || (two && result == -EXDEV)))
		refused_natively(r, k, result);
	else if (k && k->refused && judge_meets_the_wall(result))
		tell(r, k);
	if (k)
		look_free(k);
}

void permissive_execed(struct run *r, struct tracee_name who)
{
	struct look *k = take(r, who);
	if (!k)
		return;
	if (k->refused)
		tell(r, k);
	look_free(k);
}

void permissive_gone(struct run *r, struct tracee_name who)
{
	struct look *k = take(r, who);
	if (k)
		look_free(k);
}

void permissive_release(struct run *r)
{
	while (r->looks) {
		struct look *k = r->looks;
		r->looks = k->next;
		look_free(k);
	}
}
