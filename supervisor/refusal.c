/*
 * A denied call, from the stop to its end: verdict, decision, question, act.
 */
#include "supervisor/run.h"

#include "supervisor/doorstep.h"
#include "supervisor/proc.h"
#include "supervisor/tracee_fd.h"
#include "tracer/clock.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* ---- ask ---- */

/* Nobody is asked now: refused, and remembered for the end in `retry`. */
static void refuse_unasked(struct run *r, struct waiter *w, const struct ruling *ruling)
{
	record_refused(r, w, ruling, BY_NONE);
	waiter_refuse(r, w);
}

static bool is_sensitive(const struct run *r, const struct waiter *w)
{
	for (unsigned i = 0; i < CALL_PATHS; i++) {
		const struct need *need = &w->verdict.need[i];
		if (need->at && need->at->real &&
		    policy_sensitive_for(r->session->policy, need->at->real, need->access))
			return true;
	}
	return false;
}

/* For this process; for all of the command where it takes another run. */
static int remember_yes(struct run *r, const struct waiter *w, char *path, uint32_t access)
{
	if (inplace_can(w))
		return once_add(r, w->pid, path, access);
	struct rule rule = {.effect = EFFECT_ALLOW,
			    .kind = RULE_EXACT,
			    .access = access,
			    .path = path,
			    .origin = (char *)"--yes"};
	return session_grant(r->session, &rule);
}

/* --yes: "once" to everything that is not sensitive. False: it has to be asked. */
static bool answer_yes(struct run *r, struct waiter *w, const struct ruling *ruling)
{
	if (!r->command->yes || r->end != RUN_GOES_ON || is_sensitive(r, w))
		return false;
	for (unsigned i = 0; i < CALL_PATHS; i++)
		if (ruling->asked[i] && w->verdict.need[i].at->real &&
		    remember_yes(r, w, w->verdict.need[i].at->real, ruling->asked[i]))
			return false;
	record_call(r, w, ruling, true, BY_YES, LIFETIME_ONCE);
	w->was_asked = true;
	inplace_act(r, w);
	return true;
}

static void ask_or_refuse(struct run *r, struct waiter *w, const struct ruling *ruling)
{
	if (answer_yes(r, w, ruling))
		return;
	if (!inquiry_may(r)) {
		refuse_unasked(r, w, ruling);
		return;
	}
	struct denial d;
	record_describe(r, w, ruling, &d);
	inquiry_put(r, w, &d);
	denial_release(&d);
}

/*
 * The sandbox that a program gave itself may be what refused the call: it meant that, so nothing is
 * done in its place. What it may have without asking was not refused by this policy.
 */
static void leave_to_its_own(struct run *r, struct waiter *w, struct ruling *ruling)
{
	ruling->note = "it has a Landlock sandbox of its own, which is not reached round";
	if (ruling->effect == EFFECT_ALLOW)
		w->verdict.verdict = VERDICT_OTHER;
	refuse_unasked(r, w, ruling);
}

static void settle(struct run *r, struct waiter *w)
{
	struct ruling ruling = ruling_of(r, w);
	/* What no rule of the user's speaks of, and what fails anyway, fails as it would. */
	if (w->verdict.anyway && ruling.effect == EFFECT_DENY && !ruling.rule)
		ruling.effect = EFFECT_ASK;
	bool asks = ruling.effect == EFFECT_ASK && !w->verdict.anyway;
	if (w->own_domain && !w->at_door && (asks || ruling.effect == EFFECT_ALLOW)) {
		leave_to_its_own(r, w, &ruling);
		return;
	}
	switch (ruling.effect) {
	case EFFECT_ALLOW:
		w->was_asked |= ruling.rule && ruling.rule->source == RULE_ANSWER;
		inplace_act(r, w);
		break;
	case EFFECT_ASK:
		if (w->verdict.anyway)
			waiter_refuse_with(r, w, w->verdict.anyway);
		else if (!w->question)
			ask_or_refuse(r, w, &ruling);
		break;
	case EFFECT_DENY:
	case EFFECT_FORBID:
		record_refused(r, w, &ruling, BY_POLICY);
		waiter_refuse_with(r, w, ruling.error);
		break;
	}
}

/* ---- the answer ---- */

/*
 * Several may wait behind one question. "Once" is said of the process that it named, and no other
 * gets it: that one may be another program altogether. It is asked about in its own name.
 */
static bool is_answered(const struct waiter *w, const struct question *q, const struct answer *a)
{
	bool once = a->allow && a->lifetime == LIFETIME_ONCE;
	return w->question == q->id && (!once || w->pid == q->pid);
}

/* The asked waiters' denials with what was answered. */
static void record_answer(struct run *r, const struct question *q, const struct answer *a)
{
	bool first = true;
	for (struct waiter *w = r->waiters; w; w = w->next) {
		if (!is_answered(w, q, a))
			continue;
		struct ruling ruling = ruling_of(r, w);
		record_call(r, w, &ruling, a->allow, a->by, a->lifetime);
		first = false;
	}
	if (!first && a->allow)
		answer_add_grant(r, &q->scopes.item[answer_scope(q, a)], a);
}

/*
 * Everything that waits for an answer is decided anew: the rules have changed. The list may change
 * under every step, so it is searched from the start each time.
 */
static void settle_after(struct run *r, uint64_t question, bool allowed)
{
	for (struct waiter *w = r->waiters; w; w = w->next)
		w->again = w->question != 0 && !w->act;
	for (struct waiter *w = r->waiters; w;) {
		if (!w->again) {
			w = w->next;
			continue;
		}
		w->again = false;
		w->was_asked = true;
		bool own = w->question == question;
		if (own)
			w->question = 0;
		if (own && !allowed)
			waiter_refuse(r, w);
		else
			settle(r, w);
		w = r->waiters;
	}
}

static bool takes_another_run(const struct run *r, uint64_t question)
{
	for (const struct waiter *w = r->waiters; w; w = w->next)
		if (w->question == question && !inplace_can(w))
			return true;
	return false;
}

void refusal_answered(void *run, const struct question *q, const struct answer *a)
{
	struct run *r = run;
	if (q->is_rerun || r->asked_about) {
		rerun_answered(r, q, a);
		return;
	}
	if (!waiter_any_asks(r, q->id))
		return;
	uint64_t id = q->id;
	record_answer(r, q, a);
	inquiry_count(r, q, a);
	/* Once, for what can't be done in place: in the run that it takes. */
	struct answer lasting = *a;
	if (a->allow && a->lifetime == LIFETIME_ONCE && takes_another_run(r, id))
		lasting = (struct answer){.allow = true,
					  .scope = answer_scope(q, a),
					  .lifetime = LIFETIME_SESSION,
					  .by = a->by};
	bool once = lasting.allow && lasting.lifetime == LIFETIME_ONCE;
	int err = once ? 0 : answer_apply(r, q, &lasting, 0);
	for (struct waiter *w = r->waiters; w; w = w->next)
		if (!err && a->allow && is_answered(w, q, a))
			err = once ? answer_apply(r, q, a, w->pid)
				   : answer_allow_process(r, q, w->pid);
	if (err)
		run_say(r, "no memory to remember an answer");
	settle_after(r, id, a->allow);
}

void refusal_reconsider(struct run *r)
{
	settle_after(r, 0, true);
}

/* ---- from outside ---- */

/* Only of who makes something does the umask count. */
static bool heeds_umask(const struct call *c)
{
	switch ((int)c->path[0].need) {
	case CALL_NEED_OPEN:
		return (c->open_flags & O_CREAT) || (c->open_flags & O_TMPFILE) == O_TMPFILE;
	case CALL_NEED_MKDIR:
	case CALL_NEED_MKNOD:
	case CALL_NEED_BIND:
		return true;
	default:
		return false;
	}
}

/* -ESRCH: it is gone, and what was found of its paths is nothing. */
static int who_calls(const struct run *r, struct waiter *w)
{
	bool lost = w->call->path[0].error || w->call->path[1].error;
	bool anew = lost || heeds_umask(w->call);
	if (!r->one_identity || anew)
		return whose_is(r->whose, w->who, w->turn, anew, &w->as);
	identity_copy(&w->as, &r->self);
	return 0;
}

/* What may keep us waiting is looked at by a worker first: then the kernel has it at hand. */
static void begin_probe(struct run *r, struct waiter *w)
{
	struct broker_request request = {.call = w->call,
					 .view = {.tid = w->who.tid, .tgid = w->pid},
					 .as = &r->self,
					 .meta = &w->meta,
					 .object = w->verdict.refused.object,
					 .probe = true};
	if (!w->listed)
		waiter_add(r, w);
	int err = broker_submit(r->broker, &request, &w->act);
	if (!err) {
		waiter_tell_holding(r);
		return;
	}
	run_say(r, "a call of %s could not be looked at: %s", w->call->ent->name, strerror(-err));
	waiter_refuse(r, w);
}

static void look_at_refused(struct run *r, struct waiter *w)
{
	struct call_view view = {w->who.tid, w->pid, r->names};
	int err = call_resolve(w->call, view);
	if (!err)
		err = who_calls(r, w);
	struct verdict_input in = {.call = w->call,
				   .view = view,
				   .as = &w->as,
				   .self = &r->self,
				   .ruleset = r->ruleset};
	/* A descriptor's missing name (tracer.h): is it missing only because we opened it? */
	if (!err && w->call->result == -ENOENT &&
	    !handed_has(&r->handed, &w->call->path[0].at.st)) {
		waiter_refuse(r, w);
		return;
	}
	if (!err)
		err = verdict_of(&in, &w->verdict);
	if (!err)
		recorder_anyway(r, w);
	if (err) {
		/* -ESRCH: gone. Anything else: unknown is refused. */
		if (err != -ESRCH)
			run_say(r, "a refused call of %s could not be looked at: %s",
				w->call->ent->name, strerror(-err));
		waiter_refuse(r, w);
		return;
	}
	if (w->verdict.verdict != VERDICT_SANDBOX) {
		notice_refused(r, w);
		record_refused(r, w, NULL, BY_NONE);
		waiter_refuse(r, w);
		return;
	}
	settle(r, w);
}

void refusal_begin(struct run *r, const struct tracer_event *ev)
{
	struct waiter *w = waiter_new(r, ev);
	if (!w) {
		tracer_deny(r->tracer, ev->who);
		return;
	}
	waiter_add(r, w);
	run_see_mounts(r);
	w->probes = slowfs_concerns(r->slowfs, w->call,
				    (struct call_view){.tid = w->who.tid, .tgid = w->pid});
	if (w->probes)
		begin_probe(r, w);
	else
		look_at_refused(r, w);
}

void refusal_noticed(struct run *r, const struct tracer_event *ev)
{
	struct waiter w = {.who = ev->who, .pid = ev->pid, .call = ev->call};
	struct call_view view = {.tid = ev->who.tid, .tgid = ev->pid};
	struct verdict_input in = {.call = ev->call, .view = view, .ruleset = r->ruleset};
	/* It goes on already and may be gone: then its words are told as they were given. */
	if (call_resolve(ev->call, view) || verdict_of(&in, &w.verdict))
		return;
	record_call(r, &w, NULL, false, BY_NONE, LIFETIME_ONCE);
	verdict_release(&w.verdict);
}

static void answer_at_door(struct run *r, struct waiter *w, int64_t result)
{
	waiter_return(r, w, result);
	if (w->listed)
		waiter_drop(r, w);
	else
		waiter_free(r, w);
}

static bool is_net_used(void *run, uint32_t number)
{
	const struct run *r = run;
	return tracer_has_net(r->tracer, number);
}

/* Who could add to the ruleset since deceives itself alone: until now it was not confined. */
void refusal_confined(struct run *r, const struct tracer_event *ev)
{
	struct call_view view = {.tid = ev->who.tid, .tgid = ev->pid};
	uint32_t number = TRACER_NET_UNKNOWN;
	int ruleset;
	if (!r->netdomains)
		r->netdomains = netdomains_new();
	int err = r->netdomains ? tracee_fd_take(r->fds, view, (int)ev->call->args[0], &ruleset)
				: -ENOMEM;
	tracer_roam(r->tracer); /* a thread is born */
	if (!err)
		err = netdomains_add(r->netdomains, ev->own_net, ruleset, is_net_used, r, &number);
	bool is_news = err && err != -ESRCH && err != r->netdomains_error;
	if (is_news) {
		r->netdomains_error = err;
		run_say(r,
			"a program confined its own connections, and none can be made for it: %s",
			strerror(-err));
	}
	tracer_confined(r->tracer, ev->who, number);
}

/* It would fail without any sandbox: it fails like that, and nothing is asked. */
static void fail_at_door(struct run *r, struct waiter *w, int error)
{
	w->call->result = error;
	if (error == -EACCES || error == -EPERM) {
		w->verdict.verdict = VERDICT_PERMISSIONS;
		record_refused(r, w, NULL, BY_NONE);
	}
	answer_at_door(r, w, error);
}

/* No rule has a say in it: told with its note alone. */
static void tell_other(struct run *r, struct waiter *w, int64_t result)
{
	w->call->result = result;
	w->verdict.verdict = VERDICT_OTHER;
	if (!w->verdict.need[0].access)
		w->verdict.need[0].access = doorstep_access(w);
	record_refused(r, w, NULL, BY_NONE);
}

/* Allowed since this session was asked, not by a rule before it? */
static bool is_by_answer(const struct run *r, const struct waiter *w, const struct ruling *ruling)
{
	const struct need *need = &w->verdict.need[0];
	if (ruling->rule && ruling->rule->source == RULE_ANSWER)
		return true;
	return need->at && need->at->real && (once_bits(r, w->pid, need->at->real) & need->access);
}

static void look_at_door(struct run *r, struct waiter *w)
{
	int64_t result;
	bool decide = doorstep_look(r, w, &result);
	if (!decide && w->probes) {
		begin_probe(r, w);
		return;
	}
	recorder_looks(r, w);
	if (!decide) {
		if (w->verdict.note)
			tell_other(r, w, result);
		answer_at_door(r, w, result);
		return;
	}
	/* What no policy speaks of (the network) is as good as allowed. */
	bool allowed = !w->verdict.need[0].access;
	if (!allowed) {
		struct ruling ruling = ruling_of(r, w);
		allowed = ruling.effect == EFFECT_ALLOW;
		w->was_asked = allowed && is_by_answer(r, w, &ruling);
	}
	if (allowed && doorstep_is_instant(w)) {
		inplace_at_door(r, w);
		waiter_free(r, w);
		return;
	}
	int error = doorstep_fails_anyway(r, w);
	if (error) {
		fail_at_door(r, w, error);
		return;
	}
	if (!w->listed)
		waiter_add(r, w);
	if (allowed)
		inplace_act(r, w);
	else
		settle(r, w);
}

void refusal_at_door(struct run *r, const struct tracer_event *ev)
{
	struct waiter *w = waiter_new(r, ev);
	if (!w) {
		tracer_deny(r->tracer, ev->who);
		return;
	}
	w->at_door = true;
	run_see_mounts(r);
	look_at_door(r, w);
}

void refusal_probed(struct run *r, struct waiter *w, int64_t result)
{
	w->probes = false;
	w->slow = true;
	run_see_mounts(r);
	/* The call is begun anew behind the signal, as one that the file system itself broke off.
	 */
	if (result == -EINTR)
		answer_at_door(r, w, -RUN_ERESTARTSYS);
	else if (w->at_door)
		look_at_door(r, w);
	else
		look_at_refused(r, w);
}

/*
 * It died while it waited: refused all the same, told with what the question knows of it. The call
 * itself is gone with the thread.
 */
static void record_gone(struct run *r, const struct waiter *w)
{
	const struct question *q = w->question && r->ask ? ask_find(r->ask, w->question) : NULL;
	if (!q)
		return;
	struct denial d = {.path = q->path,
			   .given = q->given,
			   .path2 = q->path2,
			   .note = q->note,
			   .access = q->access,
			   .call = q->call,
			   .error = EACCES,
			   .verdict = VERDICT_SANDBOX,
			   .by = BY_NONE,
			   .lifetime = LIFETIME_ONCE,
			   .count = 1,
			   .t_ms = clock_ms() - r->started_ms,
			   .run = r->number,
			   .pid = w->pid,
			   .exists = q->exists,
			   .exe = q->exe,
			   .argv0 = q->argv[0]};
	record_denial(r, &d); /* it copies what it keeps */
}

void refusal_gone(struct run *r, struct tracee_name who)
{
	struct waiter *w = waiter_of(r, who);
	if (!w)
		return;
	if (w->act)
		broker_cancel(r->broker, w->act);
	record_gone(r, w);
	waiter_leave_question(r, w, "exited");
	waiter_drop(r, w);
}

void refusal_give_up(struct run *r)
{
	for (struct waiter *w = r->waiters; w;) {
		if (w->act) {
			w = w->next;
			continue;
		}
		waiter_leave_question(r, w, "exited");
		waiter_refuse(r, w);
		w = r->waiters;
	}
}

void refusal_check_signals(struct run *r)
{
	for (struct waiter *w = r->waiters, *next; w; w = next) {
		next = w->next;
		bool ends;
		bool any = proc_signal_waits(w->who.tid, &ends);
		if (w->probes && any) {
			broker_cancel(r->broker, w->act);
			answer_at_door(r, w, -RUN_ERESTARTSYS);
		} else if (w->act && any) {
			broker_interrupt(r->broker, w->act); /* as a blocking open would be */
		} else if (!w->act && ends) {
			waiter_leave_question(r, w, "exited");
			waiter_return(r, w, -RUN_ERESTARTSYS);
			waiter_drop(r, w);
		}
	}
}

void refusal_release(struct run *r)
{
	while (r->waiters) {
		struct waiter *w = r->waiters;
		r->waiters = w->next;
		waiter_free(r, w);
	}
	free(r->spare);
	r->spare = NULL;
	budget_release(&r->budget);
	while (r->onces)
		once_forget(r, r->onces->pid);
}
