#include "agent/toolanswer.h"

#include "supervisor/escape.h"
#include "supervisor/plan.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *hint_of(const struct denial *d)
{
	switch (d->verdict) {
	case VERDICT_PERMISSIONS:
		return "The file's own mode, owner or ACL refuses this; no grant can help.";
	case VERDICT_CROSS_DEVICE:
		return "The two paths are on different file systems; copy and delete instead.";
	case VERDICT_OTHER:
		return "Another policy of the kernel refuses this.";
	case VERDICT_SANDBOX:
		break;
	}
	switch (d->by) {
	case BY_USER:
		return "The user said no. Find another way, or explain to the user what you need.";
	case BY_POLICY:
		return "The user's policy refuses this. Find another way, or explain what you "
		       "need.";
	case BY_TIMEOUT:
		return "The user was asked and did not answer in time.";
	case BY_NONE:
	case BY_YES:
		break;
	}
	return "It is outside what the sandbox allows, and nobody could be asked.";
}

void toolanswer_write_denial(struct jsonw *w, const struct denial *d, bool for_model)
{
	jsonw_begin_object(w);
	jsonw_kpath(w, "path", d->path);
	if (d->path2)
		jsonw_kpath(w, "path2", d->path2);
	access_write(w, "access", d->access);
	jsonw_kstr(w, "call", d->call);
	jsonw_kstr(w, "errno", strerrorname_np(d->error));
	jsonw_kstr(w, "verdict", verdict_name(d->verdict));
	jsonw_kstr(w, "answer", d->allowed ? "allow" : "deny");
	jsonw_kstr(w, "by", answered_by_name(d->by));
	if (for_model) {
		jsonw_kbool(w, "do_not_retry", true);
		jsonw_kstr(w, "hint", hint_of(d));
	} else {
		jsonw_kstr(w, "lifetime", lifetime_name(d->lifetime));
		jsonw_kint(w, "count", (int64_t)d->count);
		jsonw_kstr(w, "exe", d->exe);
		jsonw_kstr(w, "argv0", d->argv0);
	}
	jsonw_end_object(w);
}

/* What the file system answers by itself (a PATH walk meets it every day) is told, not counted. */
static bool is_refusal(const struct denial *d)
{
	return !d->allowed && d->verdict == VERDICT_SANDBOX;
}

static void write_denied(struct jsonw *w, const struct denial_list *l)
{
	uint64_t told = 0, more = l->dropped;
	for (size_t i = 0; i < l->len; i++) {
		if (l->item[i].allowed)
			continue;
		if (told == TOOLRUN_DENIED_MAX) {
			more++;
			continue;
		}
		if (!told++) {
			jsonw_key(w, "denied");
			jsonw_begin_array(w);
		}
		toolanswer_write_denial(w, &l->item[i], true);
	}
	if (told)
		jsonw_end_array(w);
	if (more)
		jsonw_kint(w, "denied_more", (int64_t)more);
}

/* What the user could type, as at the end of `warder run`. Nothing where no rule would help. */
static void write_to_allow(struct jsonw *w, const struct toolrun *r, const struct denial_list *l)
{
	static const char use[] = "use ";
	char **rules = NULL;
	if (!r->tell_allow || plan_suggest(l, session_store(r->session)->home, &rules))
		return;
	if (rules && *rules) {
		jsonw_key(w, "to_allow");
		jsonw_begin_array(w);
	}
	for (char **rule = rules; rule && *rule; rule++) {
		struct buf command = {0};
		/* A preset is no saved rule: the server is started with it. */
		if (!strncmp(*rule, use, strlen(use)))
			buf_addf(&command, "warder mcp --preset %s", *rule + strlen(use));
		else
			buf_addf(&command, "warder policy %s", *rule);
		jsonw_str(w, buf_str(&command));
		buf_free(&command);
	}
	if (rules && *rules)
		jsonw_end_array(w);
	plan_free_rules(rules);
}

static void write_message(struct jsonw *w, const char *message)
{
	jsonw_key(w, "error");
	jsonw_begin_object(w);
	jsonw_kstr(w, "message", message);
	jsonw_end_object(w);
}

int toolanswer_refuse(const char *message, struct tool_result *ret)
{
	struct buf out = {0};
	struct jsonw w;
	jsonw_init(&w, &out);
	jsonw_begin_object(&w);
	write_message(&w, message);
	jsonw_end_object(&w);
	char *answer = buf_take(&out);
	buf_free(&out);
	if (!answer)
		return -ENOMEM;
	*ret = (struct tool_result){.answer = answer, .failed = true, .status = "error"};
	return 0;
}

/* How the tree ended, where that alone is the answer. NULL: it ended by itself. */
static const char *ended_how(const struct toolrun *r, const struct engine_outcome *o)
{
	if (r->cancel && *r->cancel)
		return "cancelled";
	return o->timed_out ? "timed out" : NULL;
}

static void write_shell(struct jsonw *w, const struct toolrun *r, const struct engine_outcome *o,
			const struct toolanswer_said *said, struct tool_result *ret)
{
	const struct report *report = &o->report;
	const char *how = ended_how(r, o);
	headtail_write(w, said->output);
	spool_write(w, said->spool);
	if (report->exited) {
		jsonw_kint(w, "exit", report->exit_code);
		snprintf(ret->status, sizeof(ret->status), "exit %d", report->exit_code);
	} else {
		const char *name = sigabbrev_np(report->signal);
		snprintf(ret->status, sizeof(ret->status), "SIG%s", name ? name : "?");
		jsonw_kstr(w, "signal", ret->status);
	}
	if (how)
		snprintf(ret->status, sizeof(ret->status), "%s", how);
	jsonw_kbool(w, "timed_out", o->timed_out);
	if (r->cancel && *r->cancel)
		jsonw_kstr(w, "note", "The user cancelled this.");
	ret->failed = !report->exited || report->exit_code || how;
}

/* The child's members as they are, and what they mean for a human. */
static void copy_members(struct jsonw *w, const struct json *answer, struct tool_result *ret)
{
	const struct json *error = json_get(answer, "error");
	for (const struct json *v = json_first(answer); v; v = json_next(v)) {
		jsonw_key(w, json_key(v));
		json_write(w, v);
	}
	ret->failed = error;
	/* Of a call the kernel's words, as the child has them, which may lie: not as they are. */
	struct buf why = {0};
	if (json_get_str(error, "errno")) /* other messages are for the model, and long */
		escape_add_str(&why, json_get_str(error, "message"));
	int64_t added = 0, removed = 0;
	if (!error && json_get_int(answer, "added", &added) &&
	    json_get_int(answer, "removed", &removed))
		snprintf(ret->status, sizeof(ret->status), "ok, +%lld -%lld", (long long)added,
			 (long long)removed);
	else
		snprintf(ret->status, sizeof(ret->status), "%s",
			 !error	   ? "ok"
			 : why.len ? buf_str(&why)
				   : "error");
	buf_free(&why);
}

static void write_file_tool(struct jsonw *w, const struct toolrun *r,
			    const struct engine_outcome *o, const struct toolanswer_said *said,
			    struct tool_result *ret)
{
	struct json *answer = NULL;
	const char *how = ended_how(r, o);
	if (!how && !said->too_long &&
	    !json_parse(buf_str(said->answer), said->answer->len, &answer, NULL)) {
		copy_members(w, answer, ret);
		json_free(answer);
		return;
	}
	char words[128];
	if (said->too_long)
		snprintf(words, sizeof(words), "The tool's answer was too long.");
	else if (how)
		snprintf(words, sizeof(words), "The tool was ended: %s.", how);
	else
		snprintf(words, sizeof(words), "The tool ended without an answer (%s %d).",
			 o->report.exited ? "exit" : "signal",
			 o->report.exited ? o->report.exit_code : o->report.signal);
	write_message(w, words);
	ret->failed = true;
	snprintf(ret->status, sizeof(ret->status), "%s", how ? how : "no answer");
}

/* The user was faster than the start of the command. */
static void write_ended(struct jsonw *w, const char *how, struct tool_result *ret)
{
	struct buf words = {0};
	buf_addf(&words, "Not run: %s.", how);
	write_message(w, buf_str(&words));
	buf_free(&words);
	ret->failed = true;
	snprintf(ret->status, sizeof(ret->status), "%s", how);
}

/* Nothing was run. A wrong cwd is the model's fault; anything else is the machine's. */
static void write_not_run(struct jsonw *w, const struct engine_outcome *o, const char *cwd,
			  struct tool_result *ret)
{
	struct buf words = {0};
	bool by_cwd = cwd && (o->error == -ENOENT || o->error == -ENOTDIR || o->error == -EACCES);
	if (by_cwd)
		buf_addf(&words, "Not run: the directory \"%s\" (cwd): %s.", cwd,
			 strerror(-o->error));
	else
		buf_addf(&words, "Not run: %s.",
			 o->why.text[0] ? o->why.text : strerror(-o->error));
	write_message(w, buf_str(&words));
	buf_free(&words);
	ret->failed = true;
	ret->fatal = !by_cwd;
	snprintf(ret->status, sizeof(ret->status), "not run");
}

int toolanswer_make(const struct toolrun *r, struct engine_outcome *o,
		    const struct toolanswer_said *said, struct tool_result *ret)
{
	struct tool_result result = {.held_ms = o->report.held_ms};
	struct buf out = {0};
	struct jsonw w;
	jsonw_init(&w, &out);
	jsonw_begin_object(&w);
	if (!o->ran && ended_how(r, o))
		write_ended(&w, ended_how(r, o), &result);
	else if (!o->ran)
		write_not_run(&w, o, said->cwd, &result);
	else if (said->output)
		write_shell(&w, r, o, said, &result);
	else
		write_file_tool(&w, r, o, said, &result);
	write_denied(&w, &o->report.denials);
	write_to_allow(&w, r, &o->report.denials);
	jsonw_end_object(&w);
	result.answer = buf_take(&out);
	buf_free(&out);
	if (!result.answer)
		return -ENOMEM;
	result.denials = o->report.denials;
	o->report.denials = (struct denial_list){0};
	for (size_t i = 0; i < result.denials.len && !result.refused; i++)
		result.refused = is_refusal(&result.denials.item[i]);
	*ret = result;
	return 0;
}
