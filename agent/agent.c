#include "agent/agent.h"

#include "agent/interrupt.h"
#include "agent/notes.h"
#include "agent/system.h"
#include "supervisor/project.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A conversation shorter than this is no reason to ask how much the model takes. */
#define ASK_CONTEXT_FROM (48u << 10)

/* ---- conversations ---- */

/* notes: the project's own words for the model; may be NULL. 0 or -errno. */
static int write_system(const struct agent *a, const char *notes, struct buf *out)
{
	system_write(out, session_project(a->session)->dir);
	buf_add_str(out, notes ? notes : "");
	return buf_error(out);
}

int agent_start_convo(struct agent *a)
{
	struct buf text = {0};
	int err = write_system(a, NULL, &text);
	if (!err) {
		chatlog_next(&a->log);
		convo_truncate(&a->convo, 0);
		err = convo_add_text(&a->convo, CONVO_SYSTEM, buf_str(&text));
	}
	buf_free(&text);
	a->notes_read = false;
	a->gauge.tokens = 0;
	return err;
}

int agent_resume(struct agent *a, const char *id, struct policy_error *ret_error)
{
	struct provider_usage usage;
	unsigned turns;
	int err = chatlog_resume(&a->log, id, &usage, &turns, ret_error);
	if (err) {
		if (!a->convo.n)
			agent_start_convo(a);
		return err;
	}
	a->usage = usage;
	a->turns = turns;
	a->notes_read = false;
	a->gauge.tokens = 0;
	return 0;
}

/* What the project says to every agent, into the system message. Only this time's text counts. */
static void read_notes(struct agent *a, const struct turn_sink *sink)
{
	struct buf notes = {0}, text = {0};
	if (a->notes_read || !a->convo.n || a->convo.messages[0].role != CONVO_SYSTEM)
		return;
	a->notes_read = true;
	notes_read(&a->tools, session_project(a->session)->dir, &notes, sink);
	if (!buf_error(&notes) && !write_system(a, buf_str(&notes), &text))
		(void)convo_replace_system(&a->convo, buf_str(&text));
	buf_free(&notes);
	buf_free(&text);
}

/* ---- how much the model takes ---- */

static int64_t find_context(const struct agent *a, const struct provider_models *models)
{
	for (size_t i = 0; i < models->n; i++) {
		const struct provider_model *m = &models->items[i];
		if (a->model ? !strcmp(m->id, a->model) : m->preferred)
			return m->context > 0 ? m->context : 0;
	}
	return 0;
}

static void ask_context(struct agent *a)
{
	struct provider_models models = {0};
	struct provider_error error = {0};
	const char *model = a->model ? a->model : "";
	if (a->context) {
		a->gauge.context = a->context;
		return;
	}
	if (convo_bytes(&a->convo) < ASK_CONTEXT_FROM ||
	    (a->context_of && !strcmp(a->context_of, model)))
		return;
	free(a->context_of);
	a->context_of = strdup(model);
	a->gauge.context = 0;
	if (!a->provider->ops->models(a->provider, interrupt_flag(), &models, &error))
		a->gauge.context = find_context(a, &models);
	provider_models_free(&models);
}

/* ---- turns ---- */

static int run_tool(void *arg, const struct tool *t, const struct json *args,
		    const struct toolrun_sink *sink, struct tool_result *ret)
{
	return toolrun_call(arg, t, args, sink, ret);
}

static struct turn make_turn(struct agent *a)
{
	return (struct turn){
		.provider = a->provider,
		.convo = &a->convo,
		.model = a->model,
		.runner = {.arg = &a->tools, .call = run_tool},
		.cancel = interrupt_flag(),
		.steps = a->max_steps,
		.seconds = a->max_seconds,
		.gauge = &a->gauge,
	};
}

static void tell_unsaved(struct agent *a, const struct turn_sink *sink)
{
	char line[160];
	if (!a->log.error || a->log_failed || !sink->note)
		return;
	a->log_failed = true;
	snprintf(line, sizeof(line), "this session is not saved any more: %s",
		 strerror(-a->log.error));
	sink->note(sink->arg, line);
}

void agent_turn(struct agent *a, const char *words, const struct turn_sink *sink,
		struct turn_result *ret)
{
	struct turn t = make_turn(a);
	t.sink = *sink;
	read_notes(a, sink);
	ask_context(a);
	turn_run(&t, words, ret);
	a->turns++;
	chatlog_usage(&a->log, &ret->usage);
	chatlog_add_usage(&a->usage, &ret->usage);
	tell_unsaved(a, sink);
	for (size_t i = 0; i < ret->denials.len; i++)
		denial_add(&a->denials, &ret->denials.item[i]);
}

int agent_compact(struct agent *a, struct provider_error *ret_error)
{
	const struct turn t = make_turn(a);
	struct provider_usage usage = {-1, -1, -1};
	int err = turn_compact(&t, &usage, ret_error);
	chatlog_add_usage(&a->usage, &usage);
	/* Its last word is the user's; the next one will be, too. */
	if (!err)
		err = turn_close(&a->convo, "(Noted.)");
	return err;
}

void agent_release(struct agent *a)
{
	provider_free(a->provider);
	provider_config_free(&a->config);
	free(a->model);
	free(a->context_of);
	chatlog_release(&a->log);
	convo_free(&a->convo);
	toolrun_release(&a->tools);
	denial_list_release(&a->denials);
	details_release(&a->details);
	session_free(a->session);
	*a = (struct agent){0};
}
