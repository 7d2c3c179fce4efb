#include "supervisor/warder.h"

#include "supervisor/engine.h"
#include "supervisor/protocol_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- questions, as the caller sees them ---- */

static void show_scopes(const struct question *q, struct warder_scope *to)
{
	for (size_t i = 0; i < q->scopes.len; i++) {
		const struct scope *s = &q->scopes.item[i];
		to[i] = (struct warder_scope){.kind = scope_kind_name(s->kind),
					      .path = s->path,
					      .rule = s->rule,
					      .surplus = s->surplus,
					      .surplus_more = s->surplus_more,
					      .sensitive = s->sensitive};
	}
}

static struct answer meant(enum warder_answer answer, unsigned scope)
{
	struct answer a = {.scope = scope, .by = BY_USER, .lifetime = LIFETIME_SESSION};
	switch (answer) {
	case WARDER_NO:
		break;
	case WARDER_NEVER:
		a.lifetime = LIFETIME_ALWAYS;
		break;
	case WARDER_ONCE:
		a.allow = true;
		a.lifetime = LIFETIME_ONCE;
		break;
	case WARDER_SESSION:
		a.allow = true;
		break;
	case WARDER_ALWAYS:
		a.allow = true;
		a.lifetime = LIFETIME_ALWAYS;
		break;
	}
	return a;
}

static void on_question(void *arg, const struct question *q, struct answer *ret)
{
	const struct warder_options *o = arg;
	struct warder_scope scopes[PLAN_SCOPES_MAX];
	struct buf access = {0}, json = {0};
	struct jsonw w;
	unsigned scope = 0;
	access_format(&access, q->access);
	jsonw_init(&w, &json);
	protocol_text_question(&w, q);
	show_scopes(q, scopes);
	const struct warder_question shown = {.path = q->is_rerun ? NULL : q->path,
					      .path2 = q->path2,
					      .given = q->given,
					      .access = buf_str(&access),
					      .call = q->call,
					      .exe = q->exe,
					      .argv = q->argv,
					      .cwd = q->cwd,
					      .pid = q->pid,
					      .exists = q->exists,
					      .sensitive = q->sensitive,
					      .may_be_saved = !q->no_saving && !q->is_rerun,
					      .text = q->is_rerun ? q->text : NULL,
					      .scopes = scopes,
					      .scopes_len = q->scopes.len,
					      .json = buf_str(&json)};
	/* Without memory it would be shown half: that is a no. */
	if (!buf_error(&access) && !buf_error(&json)) {
		enum warder_answer answer = o->ask(o->ask_arg, &shown, &scope);
		*ret = meant(answer, scope);
	}
	buf_free(&access);
	buf_free(&json);
}

/* ---- a run ---- */

static void say_nothing(void *arg, const char *line)
{
	(void)arg;
	(void)line;
}

static int run_in(struct session *s, const struct warder_options *o, char *const *argv,
		  struct warder_result *ret)
{
	extern char **environ;
	struct engine_outcome out;
	struct buf text = {0};
	bool asks = o->ask || o->answers_fd > 0;
	struct engine_command c = {.argv = argv,
				   .env = o->env ? o->env : environ,
				   .stdio = {-1, -1, -1},
				   .own_terminal = true,
				   .mode = asks ? ENGINE_HOLD : ENGINE_REPORT,
				   .ask = ENGINE_ASK_NONE,
				   .events = o->events_fd > 0 ? o->events_fd : -1,
				   .answers = o->answers_fd > 0 ? o->answers_fd : -1,
				   .timeout_ms = o->timeout_ms,
				   .hooks = {.arg = (void *)o,
					     .say = say_nothing,
					     .answer = o->ask ? on_question : NULL}};
	int err = engine_run(s, &c, &out);
	ret->status = engine_exit_status(&out, false);
	snprintf(ret->error, sizeof ret->error, "%s", out.why.text);
	if (!err && out.ran)
		err = report_write(&out.report, &text);
	ret->report = err || !out.ran ? NULL : buf_take(&text);
	buf_free(&text);
	report_release(&out.report);
	return err;
}

int warder_run(const struct warder_options *o, char *const *argv, struct warder_result *ret)
{
	extern char **environ;
	static char *const no_files[] = {NULL};
	struct policy_error why;
	struct session *s;
	struct session_options so = {.env = o->env ? o->env : environ,
				     .project = o->project,
				     .policy_files = o->use_saved ? NULL : no_files,
				     .presets = o->presets,
				     .rule_lines = o->rules,
				     .label = o->label,
				     .name = o->session};
	*ret = (struct warder_result){.status = 125};
	if (!argv || !argv[0])
		return -EINVAL;
	int err = session_new(&so, &s, &why);
	if (err) {
		snprintf(ret->error, sizeof ret->error, "%s", why.text);
		return err == -ENOMEM ? err : 0;
	}
	err = run_in(s, o, argv, ret);
	session_free(s);
	return err;
}

void warder_result_release(struct warder_result *r)
{
	free(r->report);
	r->report = NULL;
}

const char *warder_version(void)
{
	return WARDER_VERSION;
}
