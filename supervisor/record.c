/*
 * The record of a refusal: into the report, the audit and the events.
 */
#include "supervisor/run.h"

#include "supervisor/judge.h"
#include "supervisor/proc.h"
#include "supervisor/redact.h"
#include "tracer/clock.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

static char *rule_place(const struct rule *rule)
{
	struct buf b = {0};
	if (!rule)
		return NULL;
	policy_format_place(&b, rule);
	return buf_take(&b);
}

static void denied_event(struct jsonw *w, const void *arg)
{
	denial_write(w, arg, false);
	denial_write_stack(w, arg);
}

void record_denial(struct run *r, const struct denial *d)
{
	struct denial *kept = denial_add(&r->out->report.denials, d);
	if (kept && kept->count > 1)
		return;
	int err = audit_decision(&r->session->audit, d);
	if (err && !r->session->audit_failed) {
		r->session->audit_failed = true;
		run_say(r, "the audit can't be written: %s", strerror(-err));
	}
	asker_event(r, d->allowed ? "granted" : "denied", denied_event, d);
}

static uint32_t all_bits(const struct waiter *w, const struct ruling *ruling)
{
	uint32_t asked = 0, needed = 0;
	for (unsigned i = 0; i < CALL_PATHS; i++) {
		asked |= ruling ? ruling->asked[i] : 0;
		needed |= w->verdict.need[i].access;
	}
	return asked ? asked : needed;
}

/* What it really is; where that is not known, what was said, and from where it was meant. */
static char *name_of(const struct waiter *w, const struct call_path *p, const struct path_at *at)
{
	if (at->real || at->told)
		return strdup(at->real ? at->real : at->told);
	if (!p->given || !p->error)
		return strdup(p->given ? p->given : "");
	return proc_absolute(w->who.tid, p->dirfd, p->given);
}

/* All but the program. */
static void describe_call(const struct run *r, const struct waiter *w, const struct ruling *ruling,
			  struct denial *d)
{
	const struct call *c = w->call;
	/* Of two paths the one that needs something comes first. */
	bool unnamed = ruling_is_unnamed(c, 0);
	unsigned first = unnamed || (ruling && !ruling->asked[0] && ruling->asked[1]) ? 1 : 0;
	unsigned second = 1 - first;
	const struct path_at *at =
		w->verdict.need[first].at ? w->verdict.need[first].at : &c->path[first].at;
	const char *given = c->path[first].given;
	*d = (struct denial){.call = c->ent->name,
			     .error = (int)-c->result,
			     .verdict = w->verdict.verdict,
			     .access = all_bits(w, ruling),
			     .by = BY_POLICY,
			     .lifetime = LIFETIME_ONCE,
			     .t_ms = clock_ms() - r->started_ms,
			     .run = r->number,
			     .count = 1,
			     .pid = w->pid,
			     .exists = at->exists,
			     .is_dir = at->exists && S_ISDIR(at->st.st_mode)};
	d->path = name_of(w, &c->path[first], at);
	d->nameless = !at->real;
	if (given && given[0] && d->path && strcmp(given, d->path) != 0)
		d->given = strdup(given);
	if (!unnamed && c->path[second].need != CALL_NEED_NONE) {
		d->path2 = name_of(w, &c->path[second], &c->path[second].at);
		d->nameless |= !c->path[second].at.real;
		d->path2_open = ruling && !ruling->asked[second];
	}
	d->rule = ruling ? rule_place(ruling->rule) : NULL;
	d->forbidden = ruling && ruling->rule && ruling->rule->effect == EFFECT_FORBID;
	d->moot = ruling && judge_is_moot(ruling->rule);
	d->sensitive = d->path && policy_sensitive_for(r->session->policy, d->path, d->access);
	d->gained = ruling ? ruling->gained : 0;
	const char *note = ruling && ruling->note ? ruling->note : w->verdict.note;
	d->note = note ? strdup(note) : NULL;
}

static void describe_program(const struct run *r, const struct waiter *w, struct denial *d)
{
	d->exe = proc_link(w->who.tid, "exe");
	char **argv = proc_argv(w->who.tid);
	d->argv0 = strdup(argv && argv[0] ? argv[0] : "");
	if (r->mode == ENGINE_RETRY)
		d->argv = argv;
	else
		redact_free(argv);
}

void record_describe(const struct run *r, const struct waiter *w, const struct ruling *ruling,
		     struct denial *d)
{
	describe_call(r, w, ruling, d);
	describe_program(r, w, d);
}

/* Only the first of its kind is told with its program. */
static void describe_first(const struct run *r, const struct waiter *w,
			   const struct denial_list *list, struct denial *d)
{
	if (!denial_find(list, d))
		describe_program(r, w, d);
}

void record_call(struct run *r, const struct waiter *w, const struct ruling *ruling, bool allowed,
		 enum answered_by by, enum lifetime lifetime)
{
	struct denial d;
	describe_call(r, w, ruling, &d);
	d.allowed = allowed;
	d.by = by;
	d.lifetime = lifetime;
	describe_first(r, w, &r->out->report.denials, &d);
	caller_add(r, w, &d);
	recorder_decided(r, w, ruling, &d);
	record_denial(r, &d);
	denial_release(&d);
}

/* In `retry` it may still be asked about at the end. */
static bool is_kept(const struct run *r, const struct denial *d)
{
	return r->mode == ENGINE_RETRY && d->verdict == VERDICT_SANDBOX && d->by == BY_NONE;
}

void record_unasked(struct run *r, const struct denial *d)
{
	if (is_kept(r, d))
		denial_add(&r->unasked, d);
	else
		record_denial(r, d);
}

void record_refused(struct run *r, const struct waiter *w, const struct ruling *ruling,
		    enum answered_by by)
{
	struct denial d;
	describe_call(r, w, ruling, &d);
	d.by = by;
	d.lifetime = by == BY_POLICY ? LIFETIME_SESSION : LIFETIME_ONCE;
	bool walks = w->call->path[0].need == CALL_NEED_EXEC && d.error == EACCES;
	if (walks)
		describe_program(r, w, &d);
	else
		describe_first(r, w, is_kept(r, &d) ? &r->unasked : &r->out->report.denials, &d);
	caller_add(r, w, &d);
	recorder_decided(r, w, ruling, &d);
	if (walks) {
		walk_refused(&r->walks, w->who.gen, w->pid, w->call->path[0].given, &d);
	} else {
		walk_over(&r->walks, w->who.gen);
		record_unasked(r, &d);
	}
	denial_release(&d);
}

static void tell_walk(void *run, const struct denial *d)
{
	record_unasked(run, d);
}

static void pass_over(void *run, const char *name)
{
	notice_by(run, RUN_NOTICE_PASSED_OVER, name);
}

void record_begin(struct run *r)
{
	r->walks = (struct walks){.arg = r, .tell = tell_walk, .passed_over = pass_over};
}
