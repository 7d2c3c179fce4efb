/*
 * What an answer means: rules in the session, lines in the saved policy, grants in the report.
 */
#include "supervisor/run.h"

#include "supervisor/presets.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* Who wanted it, and when. */
static void add_comment(struct buf *out, const struct question *q)
{
	struct tm tm;
	char date[32];
	time_t now = time(NULL);
	gmtime_r(&now, &tm);
	strftime(date, sizeof date, "%Y-%m-%d", &tm);
	buf_addf(out, "%s %s %s", date, q->exe, q->call);
}

/* A rule, or the name of a preset: into the project's policy. */
static void save(struct run *r, const struct rule *rule, const char *preset,
		 const struct question *q)
{
	char *file AUTOFREE = store_project_policy(&r->session->store, &r->session->project);
	struct policy_error why = {"no memory"};
	struct policy_vars vars = session_vars(r->session, r->env);
	struct buf comment = {0};
	add_comment(&comment, q);
	int err = file ? buf_error(&comment) : -ENOMEM;
	if (!err)
		err = rule ? store_put_rule(file, rule, buf_str(&comment), &vars, NULL, &why)
			   : store_append_use(file, preset, buf_str(&comment), &why);
	if (err)
		run_say(r, "the answer was not saved: %s", why.text);
	buf_free(&comment);
}

/* --session: the other runs of that name hear of it. */
static void share(struct run *r, const struct rule *rule, const char *preset,
		  const struct question *q)
{
	struct policy_error why = {"no memory"};
	struct buf comment = {0};
	add_comment(&comment, q);
	if (session_tell_others(r->session, rule, preset, buf_str(&comment), &why))
		run_say(r, "the answer is not shared with the session: %s", why.text);
	buf_free(&comment);
}

static int add_answer_rule(struct run *r, const struct question *q, const struct answer *a,
			   enum rule_kind kind, const char *path, uint32_t access)
{
	struct rule rule = {.effect = a->allow ? EFFECT_ALLOW : EFFECT_DENY,
			    .kind = kind,
			    .source = RULE_ANSWER,
			    .access = access,
			    .path = (char *)path,
			    .origin = (char *)"an answer"};
	int err = session_grant(r->session, &rule);
	if (!err && a->lifetime == LIFETIME_ALWAYS && r->session->saving)
		save(r, &rule, NULL, q); /* said there; the session's rule holds all the same */
	if (!err)
		share(r, &rule, NULL, q);
	return err;
}

static int apply_preset(struct run *r, const struct question *q, const struct answer *a,
			const char *name)
{
	struct policy_error why;
	struct policy_vars vars = session_vars(r->session, r->env);
	int err = preset_add(r->session->policy, name, &vars, &why);
	r->session->policy_version++;
	if (!err && a->lifetime == LIFETIME_ALWAYS && r->session->saving)
		save(r, NULL, name, q);
	if (!err)
		share(r, NULL, name, q);
	return err;
}

void answer_add_grant(struct run *r, const struct scope *scope, const struct answer *a)
{
	struct report *rep = &r->out->report;
	struct report_grant *list = realloc(rep->grants, (rep->grants_len + 1) * sizeof *list);
	char *path = strdup(scope->path);
	if (list)
		rep->grants = list;
	if (!list || !path) {
		free(path);
		return;
	}
	rep->grants[rep->grants_len++] = (struct report_grant){.path = path,
							       .access = scope->access,
							       .kind = scope->kind,
							       .lifetime = a->lifetime,
							       .by = a->by};
}

unsigned answer_scope(const struct question *q, const struct answer *a)
{
	bool narrow = q->scopes.item[a->scope].kind == SCOPE_EXACT;
	if (a->lifetime != LIFETIME_ONCE || narrow)
		return a->scope;
	return q->below && a->scope >= q->marked ? q->marked : 0;
}

int answer_apply(struct run *r, const struct question *q, const struct answer *a, pid_t pid)
{
	const struct scope *scope = &q->scopes.item[a->allow ? a->scope : q->marked];
	if (!a->allow && a->by != BY_USER)
		return 0; /* silence is not remembered as a word */
	if (a->allow && a->lifetime == LIFETIME_ONCE && pid && q->below && a->scope >= q->marked)
		return once_add_below(r, pid, q->below, q->scopes.item[q->marked].access);
	if (a->allow && a->lifetime == LIFETIME_ONCE && pid) {
		int err = once_add(r, pid, q->path, scope->access);
		if (!err && scope->path2)
			err = once_add(r, pid, scope->path2, scope->access);
		return err;
	}
	if (scope->kind == SCOPE_PRESET)
		return apply_preset(r, q, a, scope->path);
	enum rule_kind kind = scope->kind == SCOPE_EXACT ? RULE_EXACT : RULE_TREE;
	int err = add_answer_rule(r, q, a, kind, scope->path, scope->access);
	if (!err && scope->path2)
		err = add_answer_rule(r, q, a, kind, scope->path2, scope->access);
	return err;
}

int answer_allow_process(struct run *r, const struct question *q, pid_t pid)
{
	const struct scope *narrowest = &q->scopes.item[0];
	int err = once_add(r, pid, q->path, narrowest->access);
	if (!err && narrowest->path2)
		err = once_add(r, pid, narrowest->path2, narrowest->access);
	return err;
}
