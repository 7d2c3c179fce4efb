/*
 * A denied call, from the stop to its end: verdict, decision, question, act.
 */
#include "supervisor/run.h"

#include "supervisor/devices.h"
#include "supervisor/doorstep.h"
#include "supervisor/proc.h"
#include "supervisor/reach.h"
#include "supervisor/redact.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>

/* The kernel's own "make the call again after the signal" (include/linux/errno.h). */
#define KERNEL_ERESTARTSYS 512

/* ---- waiters ---- */

static void waiter_free(struct waiter *w)
{
	broker_meta_release(&w->meta);
	broker_connect_release(&w->connect);
	verdict_release(&w->verdict);
	free(w);
}

/* NULL: no memory. Not in the list yet. */
static struct waiter *waiter_new(const struct tracer_event *ev)
{
	struct waiter *w = calloc(1, sizeof *w);
	if (!w)
		return NULL;
	*w = (struct waiter){.who = ev->who,
			     .pid = ev->pid,
			     .call = ev->call,
			     .since_ms = run_now_ms(),
			     .own_domain = ev->own_domain};
	path_init(&w->verdict.refused);
	w->meta.fd = -1;
	w->connect.socket = -1;
	return w;
}

/* Who connects waits for the other side, as without us. */
static void tell_holding(struct run *r)
{
	bool held = false;
	for (const struct waiter *w = r->waiters; w && !held; w = w->next)
		held = !w->at_door || !w->act;
	lifecycle_holding(r, held);
	lifecycle_watch_signals(r, r->waiters != NULL);
}

static void waiter_add(struct run *r, struct waiter *w)
{
	w->next = r->waiters;
	r->waiters = w;
	tell_holding(r);
}

static void waiter_drop(struct run *r, struct waiter *w)
{
	struct waiter **p = &r->waiters;
	while (*p && *p != w)
		p = &(*p)->next;
	BUG(!*p);
	*p = w->next;
	waiter_free(w);
	tell_holding(r);
}

static struct waiter *waiter_of(struct run *r, struct tracee_name who)
{
	for (struct waiter *w = r->waiters; w; w = w->next)
		if (w->who.tid == who.tid && w->who.gen == who.gen)
			return w;
	return NULL;
}

static bool anyone_asks(const struct run *r, uint64_t question)
{
	for (const struct waiter *w = r->waiters; w; w = w->next)
		if (w->question == question)
			return true;
	return false;
}

/* The waiter no longer stands behind its question; the last one takes it away. */
static void leave_question(struct run *r, struct waiter *w, const char *reason)
{
	uint64_t id = w->question;
	w->question = 0;
	if (id && r->ask && !anyone_asks(r, id) && ask_find(r->ask, id))
		ask_cancel(r->ask, id, reason);
}

/* error: what the call returns; 0: what the kernel said. */
static void refuse_with(struct run *r, struct waiter *w, int error)
{
	leave_question(r, w, "covered");
	if (error)
		tracer_set_result(r->tracer, w->who, error);
	else
		tracer_deny(r->tracer, w->who);
	waiter_drop(r, w);
}

static void refuse(struct run *r, struct waiter *w)
{
	refuse_with(r, w, 0);
}

/* ---- allowed: the broker ---- */

/* What these give depends on who opens them: the supervisor must not, for somebody else. */
static bool depends_on_opener(const struct path_at *at)
{
	struct statfs fs;
	int fd = at->object >= 0 ? at->object : at->parent;
	if (at->exists && S_ISCHR(at->st.st_mode) && at->st.st_rdev == makedev(5, 0))
		return true; /* /dev/tty */
	if (fd < 0 || fstatfs(fd, &fs))
		return true;
	switch ((unsigned long)fs.f_type) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case TRACEFS_MAGIC:
	case DEBUGFS_MAGIC:
	case SECURITYFS_MAGIC:
		return true;
	default:
		return false;
	}
}

/* Was it not the named program that was refused, but one that it needs to run? */
static bool needs_another(const struct waiter *w)
{
	return w->call->path[0].need == CALL_NEED_EXEC &&
	       w->verdict.need[0].at != &w->call->path[0].at;
}

/*
 * Run from a copy it would make calls of ours (tracer/execfd.h), and a filter of its own beside the
 * one that it has from us may kill it for such.
 */
static bool has_own_filter(const struct waiter *w)
{
	return proc_filters(w->who.tid) > proc_filters(getpid()) + 1;
}

static bool can_be_done_in_place(const struct waiter *w)
{
	if (w->at_door)
		return true;
	if (w->call->path[0].need == CALL_NEED_EXEC && has_own_filter(w))
		return false;
	return broker_can(w->call) && !depends_on_opener(&w->call->path[0].at);
}

/* May a name be made everywhere below the directory of this one? */
static bool is_open_around(const struct run *r, const struct path_at *at)
{
	struct reach below;
	char *dir AUTOFREE = NULL;
	if (at->parent < 0 || path_of_fd(at->parent, &dir))
		return false;
	reach_of(r->session->policy, dir, &below);
	return below.allow & ACCESS_CREATE;
}

/* While it was asked about the thread may have died, and its number be another's. */
static void act_at_door(struct run *r, struct waiter *w)
{
	if (!tracer_is_held(r->tracer, w->who))
		return;
	int64_t result = doorstep_perform(r, w);
	r->brokered += w->was_asked && result >= 0;
	tracer_set_result(r->tracer, w->who, result);
}

/*
 * A device is opened: are its ioctls not allowed? A terminal has them all the same: the filter does
 * not see them refused there (devices.h), and a terminal without is none.
 */
static bool is_without_ioctl(const struct run *r, const struct waiter *w)
{
	const struct path_at *at = &w->call->path[0].at;
	bool device = at->exists && (S_ISCHR(at->st.st_mode) || S_ISBLK(at->st.st_mode));
	if (w->call->path[0].need != CALL_NEED_OPEN || !device || !at->real ||
	    devices_is_terminal(&at->st))
		return false;
	return policy_decide(r->session->policy, at->real, ACCESS_IOCTL).effect != EFFECT_ALLOW &&
	       !(ruling_once_bits(r, w->pid, at->real) & ACCESS_IOCTL);
}

static void act(struct run *r, struct waiter *w)
{
	if (!can_be_done_in_place(w)) {
		r->rerun_useful = true;
		refuse(r, w);
		return;
	}
	leave_question(r, w, "covered");
	if (w->at_door && doorstep_is_instant(w)) {
		act_at_door(r, w);
		waiter_drop(r, w);
		return;
	}
	struct broker_request request = {.call = w->call,
					 .view = {w->who.tid, w->pid},
					 .as = &w->as,
					 .as_given = is_open_around(r, &w->call->path[0].at),
					 .scripts_alone = needs_another(w),
					 .connect = w->at_door ? &w->connect : NULL,
					 .no_ioctl = is_without_ioctl(r, w),
					 .pool = ruling_pool(r, w)};
	int err = broker_submit(r->broker, &request, &w->act);
	if (!err) {
		tell_holding(r);
		return;
	}
	run_say(r, "%s could not be done in the command's place: %s", w->call->ent->name,
		strerror(-err));
	refuse(r, w);
}

/* It takes another run, in which the ruleset knows: what was allowed once holds there too. */
static void leave_to_rerun(struct run *r, struct waiter *w)
{
	const struct need *need = &w->verdict.need[0];
	struct rule rule = {.effect = EFFECT_ALLOW,
			    .kind = RULE_EXACT,
			    .access = ruling_once_bits(r, w->pid, need->at->real),
			    .path = need->at->real,
			    .origin = (char *)"answer"};
	if (rule.access && session_grant(r->session, &rule))
		run_say(r, "no memory to remember an answer");
	r->rerun_useful = true;
	refuse(r, w);
}

/*
 * A copy runs in the program's place. One that the user was asked for, and that looks for its own
 * file, would be led astray: that one is run as it is, in another run.
 */
static void run_copy(struct run *r, struct waiter *w, const struct broker_done *done)
{
	int fd AUTOCLOSE = done->fd;
	if (fd < 0 || (w->was_asked && done->finds_itself)) {
		leave_to_rerun(r, w);
		return;
	}
	r->brokered++;
	r->noticed[RUN_NOTICE_COPIED]++;
	if (needs_another(w))
		ruling_once_keep(r, w->pid);
	tracer_exec_fd(r->tracer, w->who, TAKE_FD(fd));
	waiter_drop(r, w);
}

void refusal_act_done(struct run *r, const struct broker_done *done)
{
	struct waiter *w = r->waiters;
	while (w && w->act != done->id)
		w = w->next;
	int fd AUTOCLOSE = done->fd;
	if (!w)
		return; /* the thread died meanwhile */
	w->act = 0;
	if (w->at_door) {
		r->brokered += w->was_asked && done->result >= 0;
		tracer_set_result(r->tracer, w->who, done->result);
		waiter_drop(r, w);
		return;
	}
	if (w->call->path[0].need == CALL_NEED_EXEC) {
		struct broker_done copy = *done;
		copy.fd = TAKE_FD(fd);
		run_copy(r, w, &copy);
		return;
	}
	if (!done->stale && (fd >= 0 || done->result >= 0))
		changes_add(&r->changes, w->call, r->session->tmpdir);
	if (done->stale) {
		tracer_again(r->tracer, w->who);
	} else if (fd >= 0) {
		r->brokered++;
		handed_add(&r->handed, fd);
		bool cloexec = w->call->open_flags & O_CLOEXEC;
		tracer_hand_over(r->tracer, w->who, TAKE_FD(fd), cloexec);
	} else {
		r->brokered += done->result >= 0;
		int64_t result = done->result == -EINTR ? -KERNEL_ERESTARTSYS : done->result;
		tracer_set_result(r->tracer, w->who, result);
	}
	waiter_drop(r, w);
}

/* ---- ask ---- */

/* The command itself, by its own file: a tool's name is not lent to whatever it runs. */
static const char *title_of(const struct run *r, pid_t tid)
{
	char exe[64];
	struct stat runs, own;
	snprintf(exe, sizeof exe, "/proc/%d/exe", tid);
	if (!r->command->title || stat(exe, &runs) || stat(r->file, &own))
		return NULL;
	return runs.st_dev == own.st_dev && runs.st_ino == own.st_ino ? r->command->title : NULL;
}

static struct question *question_about(struct run *r, const struct waiter *w,
				       const struct denial *d)
{
	struct question *q = calloc(1, sizeof *q);
	if (!q)
		return NULL;
	q->pid = w->pid;
	clock_gettime(CLOCK_REALTIME, &q->time);
	q->exe = strdup(d->exe);
	const char *title = title_of(r, w->who.tid);
	q->title = title ? strdup(title) : NULL;
	q->argv = proc_argv(w->who.tid);
	q->cwd = proc_link(w->who.tid, "cwd");
	q->call = d->call;
	q->path = strdup(d->path);
	q->given = d->given ? strdup(d->given) : NULL;
	q->path2 = d->path2 ? strdup(d->path2) : NULL;
	q->access = d->access;
	q->exists = d->exists;
	q->sensitive = policy_sensitive_for(r->session->policy, d->path, d->access) ||
		       (d->path2 && policy_sensitive_for(r->session->policy, d->path2, d->access));
	q->no_saving = !r->session->saving;
	if (!q->exe || !q->argv || !q->cwd || !q->path ||
	    plan_scopes(d, r->session->policy, r->session->home, &q->scopes)) {
		question_free(q);
		return NULL;
	}
	return q;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static uint64_t same_question(const struct run *r, const struct denial *d)
{
	for (const struct question *q = ask_first(r->ask); q; q = ask_next(r->ask, q))
		if (!q->is_rerun && q->access == d->access && same_text(q->path, d->path) &&
		    same_text(q->path2, d->path2))
			return q->id;
	return 0;
}

static void put_question(struct run *r, struct waiter *w, struct denial *d)
{
	w->question = same_question(r, d);
	if (w->question)
		return;
	struct question *q = question_about(r, w, d);
	/* A front whose peer is gone answers at once, before the waiter stands behind it. */
	uint64_t id = 0;
	if (!q || ask_push(r->ask, q, &id) || !ask_find(r->ask, id)) {
		d->by = BY_NONE;
		caller_add(r, w, d);
		record_denial(r, d);
		refuse(r, w);
		return;
	}
	w->question = id;
}

static bool may_ask_now(const struct run *r)
{
	return r->mode == ENGINE_HOLD && asker_answers(r) && r->end == RUN_GOES_ON;
}

/* Nobody is asked now: refused, and remembered for the end in `retry`. */
static void refuse_unasked(struct run *r, struct waiter *w, const struct ruling *ruling)
{
	record_refused(r, w, ruling, BY_NONE);
	refuse(r, w);
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
	if (can_be_done_in_place(w))
		return ruling_once_add(r, w->pid, path, access);
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
	act(r, w);
	return true;
}

static void ask_or_refuse(struct run *r, struct waiter *w, const struct ruling *ruling)
{
	if (answer_yes(r, w, ruling))
		return;
	if (!may_ask_now(r)) {
		refuse_unasked(r, w, ruling);
		return;
	}
	struct denial d;
	record_describe(r, w, ruling, &d);
	put_question(r, w, &d);
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
		act(r, w);
		break;
	case EFFECT_ASK:
		if (w->verdict.anyway)
			refuse_with(r, w, w->verdict.anyway);
		else if (!w->question)
			ask_or_refuse(r, w, &ruling);
		break;
	case EFFECT_DENY:
	case EFFECT_FORBID:
		record_refused(r, w, &ruling, BY_POLICY);
		refuse_with(r, w, ruling.error);
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

/* "Once" is about the path that was asked for, whatever wider scope is marked. */
static unsigned scope_meant(const struct question *q, const struct answer *a)
{
	bool narrow = q->scopes.item[a->scope].kind == SCOPE_EXACT;
	return a->lifetime == LIFETIME_ONCE && !narrow ? 0 : a->scope;
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
		answer_add_grant(r, &q->scopes.item[scope_meant(q, a)], a);
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
			refuse(r, w);
		else
			settle(r, w);
		w = r->waiters;
	}
}

static bool takes_another_run(const struct run *r, uint64_t question)
{
	for (const struct waiter *w = r->waiters; w; w = w->next)
		if (w->question == question && !can_be_done_in_place(w))
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
	if (!anyone_asks(r, q->id))
		return;
	uint64_t id = q->id;
	record_answer(r, q, a);
	/* Once, for what can't be done in place: in the run that it takes. */
	struct answer lasting = *a;
	if (a->allow && a->lifetime == LIFETIME_ONCE && takes_another_run(r, id))
		lasting = (struct answer){.allow = true,
					  .scope = scope_meant(q, a),
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

/* ---- from outside ---- */

void refusal_begin(struct run *r, const struct tracer_event *ev)
{
	struct waiter *w = waiter_new(ev);
	if (!w) {
		tracer_deny(r->tracer, ev->who);
		return;
	}
	waiter_add(r, w);
	struct call_view view = {ev->who.tid, ev->pid};
	int err = call_resolve(ev->call, view);
	if (!err)
		err = identity_of(ev->who.tid, &w->as);
	struct verdict_input in = {.call = ev->call,
				   .view = view,
				   .as = &w->as,
				   .self = &r->self,
				   .ruleset = r->ruleset};
	/* A descriptor's missing name (tracer.h): is it missing only because we opened it? */
	if (!err && ev->call->result == -ENOENT &&
	    !handed_has(&r->handed, &ev->call->path[0].at.st)) {
		refuse(r, w);
		return;
	}
	if (!err)
		err = verdict_of(&in, &w->verdict);
	if (err) {
		/* -ESRCH: gone. Anything else: unknown is refused. */
		if (err != -ESRCH)
			run_say(r, "a refused %s could not be looked at: %s", ev->call->ent->name,
				strerror(-err));
		refuse(r, w);
		return;
	}
	if (w->verdict.verdict != VERDICT_SANDBOX) {
		r->noticed[RUN_NOTICE_HIDDEN] += w->verdict.hidden;
		record_refused(r, w, NULL, BY_NONE);
		refuse(r, w);
		return;
	}
	settle(r, w);
}

void refusal_noticed(struct run *r, const struct tracer_event *ev)
{
	struct waiter w = {.who = ev->who, .pid = ev->pid, .call = ev->call};
	struct call_view view = {ev->who.tid, ev->pid};
	struct verdict_input in = {.call = ev->call, .view = view, .ruleset = r->ruleset};
	/* It goes on already and may be gone: then its words are told as they were given. */
	if (call_resolve(ev->call, view) || verdict_of(&in, &w.verdict))
		return;
	record_call(r, &w, NULL, false, BY_NONE, LIFETIME_ONCE);
	verdict_release(&w.verdict);
}

/* It would fail without any sandbox: it fails like that, and nothing is asked. */
static void fail_at_door(struct run *r, struct waiter *w, int error)
{
	w->call->result = error;
	if (error == -EACCES || error == -EPERM) {
		w->verdict.verdict = VERDICT_PERMISSIONS;
		record_refused(r, w, NULL, BY_NONE);
	}
	tracer_set_result(r->tracer, w->who, error);
	waiter_free(w);
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
	return need->at && need->at->real &&
	       (ruling_once_bits(r, w->pid, need->at->real) & need->access);
}

void refusal_at_door(struct run *r, const struct tracer_event *ev)
{
	struct waiter *w = waiter_new(ev);
	int64_t result;
	if (!w) {
		tracer_deny(r->tracer, ev->who);
		return;
	}
	w->at_door = true;
	if (!doorstep_look(r, w, &result)) {
		if (w->verdict.note)
			tell_other(r, w, result);
		tracer_set_result(r->tracer, w->who, result);
		waiter_free(w);
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
		act_at_door(r, w);
		waiter_free(w);
		return;
	}
	int error = doorstep_fails_anyway(r, w);
	if (error) {
		fail_at_door(r, w, error);
		return;
	}
	waiter_add(r, w);
	if (allowed)
		act(r, w);
	else
		settle(r, w);
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
			   .access = q->access,
			   .call = q->call,
			   .error = EACCES,
			   .verdict = VERDICT_SANDBOX,
			   .by = BY_NONE,
			   .lifetime = LIFETIME_ONCE,
			   .count = 1,
			   .t_ms = run_now_ms() - r->started_ms,
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
	leave_question(r, w, "exited");
	waiter_drop(r, w);
}

void refusal_give_up(struct run *r)
{
	for (struct waiter *w = r->waiters; w;) {
		if (w->act) {
			w = w->next;
			continue;
		}
		leave_question(r, w, "exited");
		refuse(r, w);
		w = r->waiters;
	}
}

void refusal_check_signals(struct run *r)
{
	for (struct waiter *w = r->waiters, *next; w; w = next) {
		next = w->next;
		bool ends;
		bool any = proc_signal_waits(w->who.tid, &ends);
		if (w->act && any) {
			broker_cancel(r->broker, w->act); /* as a blocking open would be */
		} else if (!w->act && ends) {
			leave_question(r, w, "exited");
			tracer_set_result(r->tracer, w->who, -KERNEL_ERESTARTSYS);
			waiter_drop(r, w);
		}
	}
}

void refusal_release(struct run *r)
{
	while (r->waiters) {
		struct waiter *w = r->waiters;
		r->waiters = w->next;
		waiter_free(w);
	}
	while (r->onces)
		ruling_once_forget(r, r->onces->pid);
}
