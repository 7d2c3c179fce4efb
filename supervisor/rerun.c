/*
 * After the tree is gone: the questions that were not asked meanwhile, and whether to run again.
 */
#include "supervisor/run.h"

#include "supervisor/redact.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHANGES_SHOWN 12

static struct question *question_from(const struct run *r, const struct denial *d)
{
	struct question *q = calloc(1, sizeof *q);
	if (!q)
		return NULL;
	clock_gettime(CLOCK_REALTIME, &q->time);
	q->pid = d->pid;
	q->call = d->call;
	q->access = d->access;
	q->exists = d->exists;
	q->exe = strdup(d->exe);
	q->argv = d->argv ? redact_argv(d->argv) : calloc(2, sizeof *q->argv);
	q->cwd = strdup(r->cwd ? r->cwd : r->session->cwd);
	q->path = strdup(d->path);
	q->given = d->given ? strdup(d->given) : NULL;
	q->path2 = d->path2 ? strdup(d->path2) : NULL;
	q->note = denial_note(d);
	q->sensitive = policy_sensitive_for(r->session->policy, d->path, d->access);
	q->no_saving = !r->session->saving;
	if (q->argv && !q->argv[0])
		q->argv[0] = strdup(d->argv0);
	if (!q->exe || !q->argv || !q->argv[0] || !q->cwd || !q->path || inquiry_scopes(r, d, q)) {
		question_free(q);
		return NULL;
	}
	return q;
}

/* Has an answer given meanwhile decided it? */
static bool decided(const struct run *r, const struct denial *d, bool *ret_allowed)
{
	struct decision one = policy_decide_all(r->session->policy, d->path, d->access, NULL);
	struct decision two = {.effect = EFFECT_ALLOW};
	if (d->path2 && !d->path2_open)
		two = policy_decide_all(r->session->policy, d->path2, d->access, NULL);
	*ret_allowed = one.effect == EFFECT_ALLOW && two.effect == EFFECT_ALLOW;
	return *ret_allowed || one.effect == EFFECT_DENY || two.effect == EFFECT_DENY;
}

static void wait_for_answers(struct run *r)
{
	while (ask_first(r->ask) && r->end == RUN_GOES_ON)
		if (loop_turn(r->loop, -1) < 0)
			break;
}

void rerun_answered(struct run *r, const struct question *q, const struct answer *a)
{
	if (q->is_rerun) {
		r->run_again = a->allow;
		return;
	}
	struct denial *d = r->asked_about;
	BUG(!d);
	inquiry_count(r, q, a);
	/* "once" here means: for the rest of this command, which is run again as a whole. */
	struct answer lasting = *a;
	if (a->allow && a->lifetime == LIFETIME_ONCE) {
		lasting.lifetime = LIFETIME_SESSION;
		lasting.scope = answer_scope(q, a);
	}
	if (answer_apply(r, q, &lasting, 0))
		run_say(r, "no memory to remember an answer");
	else if (a->allow)
		r->rerun_useful = true;
	d->allowed = a->allow;
	d->by = a->by;
	d->lifetime = a->lifetime;
}

/* Ask about one denial, and wait. The answer is in the denial itself afterwards. */
static void ask_about(struct run *r, struct denial *d)
{
	bool allowed;
	uint64_t id;
	struct question *q = NULL;
	if (decided(r, d, &allowed)) {
		d->allowed = allowed;
		d->by = BY_USER;
		return;
	}
	if (r->command->yes && !policy_sensitive_for(r->session->policy, d->path, d->access)) {
		struct answer yes = {.allow = true, .by = BY_YES, .lifetime = LIFETIME_SESSION};
		q = question_from(r, d);
		if (!q)
			return;
		r->asked_about = d;
		rerun_answered(r, q, &yes);
		question_free(q);
		return;
	}
	if (!asker_answers(r) || r->end != RUN_GOES_ON || !(q = question_from(r, d)))
		return;
	r->asked_about = d;
	if (!ask_push(r->ask, q, &id))
		wait_for_answers(r);
	r->asked_about = NULL;
}

static void ask_about_all(struct run *r)
{
	for (size_t i = 0; i < r->unasked.len; i++) {
		struct denial *d = &r->unasked.item[i];
		ask_about(r, d);
		recorder_answered(r, d);
		record_denial(r, d);
	}
	denial_list_release(&r->unasked);
}

/* A pipe's bytes are gone once read; a file is read again from where it stood. */
static bool stdin_can_be_read_again(const struct run *r)
{
	struct stat st;
	int fd = r->command->stdio[0] >= 0 ? r->command->stdio[0] : STDIN_FILENO;
	if (fstat(fd, &st))
		return true; /* closed */
	if (S_ISREG(st.st_mode))
		return r->stdin_at < 0 || lseek(fd, r->stdin_at, SEEK_SET) >= 0;
	return !S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode);
}

static bool ask_to_run_again(struct run *r)
{
	struct buf text = {0};
	uint64_t id;
	struct question *q = calloc(1, sizeof *q);
	r->run_again = false;
	if (r->command->yes)
		return true;
	if (!asker_answers(r) || !q) {
		free(q);
		return false;
	}
	changes_write(&r->changes, CHANGES_SHOWN, &text);
	q->is_rerun = true;
	q->call = "rerun";
	q->text = buf_take(&text);
	q->path = strdup("");
	q->exe = strdup(r->file);
	q->argv = redact_argv(r->command->argv);
	q->cwd = strdup(r->cwd ? r->cwd : r->session->cwd);
	clock_gettime(CLOCK_REALTIME, &q->time);
	if (!q->text || !q->path || !q->exe || !q->argv || !q->cwd) {
		question_free(q);
		return false;
	}
	if (!ask_push(r->ask, q, &id))
		wait_for_answers(r);
	return r->run_again;
}

bool rerun_wanted(struct run *r)
{
	if (r->end != RUN_GOES_ON || r->out->timed_out)
		return false;
	ask_about_all(r);
	if (r->end != RUN_GOES_ON || !r->rerun_useful || r->number >= RUNS_MAX)
		return false;
	if (!stdin_can_be_read_again(r)) {
		run_say(r, "what was granted needs another run, which is not possible: stdin is "
			   "a pipe, and what was read of it is gone");
		return false;
	}
	return ask_to_run_again(r);
}
