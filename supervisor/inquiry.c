/*
 * The question about a held call: what it says, and that nothing is asked twice.
 */
#include "supervisor/run.h"

#include "supervisor/proc.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

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

/*
 * One was asked about as much below a directory already: this question is about all of it. Not
 * where two paths are meant, nor for a program, which may take another run.
 */
int inquiry_scopes(const struct run *r, const struct denial *d, struct question *q)
{
	const char *home = r->session->home;
	size_t n = d->path2 || (d->access & ACCESS_EXEC)
			   ? 0
			   : budget_spent(&r->budget, d->path, d->access, home);
	char *below AUTOFREE = n ? strndup(d->path, n) : NULL;
	int err =
		below ? plan_scopes_below(d, below, r->session->policy, home, &q->scopes) : -ENOENT;
	if (!err) {
		q->below = TAKE_PTR(below);
		q->marked = 1;
	}
	return err == -ENOENT ? plan_scopes(d, r->session->policy, home, &q->scopes) : err;
}

void inquiry_count(struct run *r, const struct question *q, const struct answer *a)
{
	bool narrow = !a->allow || a->lifetime == LIFETIME_ONCE ||
		      q->scopes.item[a->scope].kind == SCOPE_EXACT;
	if (narrow && !q->below && a->by == BY_USER && budget_add(&r->budget, q->path, q->access))
		run_say(r, "no memory to count an answer");
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
	q->note = denial_note(d);
	q->access = d->access;
	q->exists = d->exists;
	q->sensitive = policy_sensitive_for(r->session->policy, d->path, d->access) ||
		       (d->path2 && policy_sensitive_for(r->session->policy, d->path2, d->access));
	q->no_saving = !r->session->saving;
	if (!q->exe || !q->argv || !q->cwd || !q->path || inquiry_scopes(r, d, q)) {
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

void inquiry_put(struct run *r, struct waiter *w, struct denial *d)
{
	w->question = same_question(r, d);
	if (w->question)
		return;
	struct question *q = question_about(r, w, d);
	/* Whoever is asked may take long, and may start what he likes. */
	tracer_roam(r->tracer);
	/* A front whose peer is gone answers at once, before the waiter stands behind it. */
	uint64_t id = 0;
	if (!q || ask_push(r->ask, q, &id) || !ask_find(r->ask, id)) {
		d->by = BY_NONE;
		caller_add(r, w, d);
		record_denial(r, d);
		waiter_refuse(r, w);
		return;
	}
	w->question = id;
}

bool inquiry_may(const struct run *r)
{
	return r->mode == ENGINE_HOLD && asker_answers(r) && r->end == RUN_GOES_ON;
}
