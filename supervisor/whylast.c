#include "supervisor/whylast.h"

#include "supervisor/compile.h"
#include "supervisor/escape.h"
#include "supervisor/lastreport.h"
#include "supervisor/progname.h"
#include "supervisor/shellword.h"
#include "tracer/json.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STATUS_FINE = 0, STATUS_NO = 1, STATUS_TROUBLE = 125 };

int whylast_open(const struct session_options *o, struct whylast_place *ret,
		 struct policy_error *ret_error)
{
	struct llabi abi;
	struct compile_stats stats;
	struct whylast_place p = {0};
	struct session_options asking = *o;
	asking.asks_only = true;
	int err = session_new(&asking, &p.session, ret_error);
	if (err)
		return err;
	if (!llabi_detect(&abi))
		compile_policy(session_policy(p.session), &abi, 0, &p.ruleset, &stats);
	*ret = p;
	return 0;
}

void whylast_close(struct whylast_place *p)
{
	llruleset_free(p->ruleset);
	session_free(p->session);
	*p = (struct whylast_place){0};
}

/* ---- that run's policy ---- */

struct sources {
	char **presets, **lines, **files; /* owned, NULL-terminated; the strings are the report's */
};

static void sources_release(struct sources *s)
{
	free(s->presets);
	free(s->lines);
	free(s->files);
}

static int sources_of(const struct json *report, struct sources *ret)
{
	const struct json *list = json_get(report, "policy");
	size_t n = json_len(list) + 1, presets = 0, lines = 0, files = 0;
	*ret = (struct sources){.presets = calloc(n, sizeof(char *)),
				.lines = calloc(n, sizeof(char *)),
				.files = calloc(n, sizeof(char *))};
	if (!ret->presets || !ret->lines || !ret->files)
		return -ENOMEM;
	for (const struct json *s = json_first(list); s; s = json_next(s)) {
		const char *source = json_get_str(s, "source"), *path = json_get_str(s, "path");
		if (!source || !path)
			continue;
		if (!strcmp(source, "preset"))
			ret->presets[presets++] = (char *)path;
		else if (!strcmp(source, "command line"))
			ret->lines[lines++] = (char *)path;
		else if (!strcmp(source, "file"))
			ret->files[files++] = (char *)path;
	}
	return 0;
}

static int open_place(char *const *env, const struct json *report, struct whylast_place *ret,
		      struct policy_error *e)
{
	struct sources s;
	const char *cwd = json_get_str(report, "cwd");
	if (cwd && chdir(cwd) < 0) {
		struct buf name = {0};
		escape_add_str(&name, cwd);
		snprintf(e->text, sizeof e->text, "%s: the last run's directory: %s",
			 buf_str(&name), strerror(errno));
		buf_free(&name);
		return -errno;
	}
	int err = sources_of(report, &s);
	struct session_options o = {.env = env,
				    .presets = s.presets,
				    .no_default_presets = true,
				    .rule_lines = s.lines,
				    .policy_files = !err && s.files[0] ? s.files : NULL};
	if (err)
		snprintf(e->text, sizeof e->text, "no memory");
	else
		err = whylast_open(&o, ret, e);
	sources_release(&s);
	return err;
}

/* ---- one denial ---- */

static uint32_t access_of(const struct json *denial, const char *key)
{
	uint32_t mask = 0, bit;
	size_t at;
	const struct json *list = json_get(denial, key);
	for (const struct json *a = json_first(list); a; a = json_next(a)) {
		const char *name = json_str(a);
		if (name && !access_parse(name, strlen(name), &bit, &at))
			mask |= bit;
	}
	return mask;
}

static bool is_str(const struct json *object, const char *key, const char *value)
{
	const char *s = json_get_str(object, key);
	return s && !strcmp(s, value);
}

/* No rule has a say in it: then the report's note is all there is to say. */
static bool is_others(const struct json *d)
{
	return is_str(d, "verdict", "other");
}

static void add_reason(struct buf *out, const struct json *d)
{
	const char *note = json_get_str(d, "note"), *rule = json_get_str(d, "rule");
	uint32_t gained = access_of(d, "gained");
	if (is_others(d) && note) {
		escape_add_str(out, note);
		return;
	}
	if (is_str(d, "verdict", "permissions"))
		buf_add_str(out, "the file's own mode, owner or ACL, whatever a rule says");
	else if (is_str(d, "verdict", "cross-device"))
		buf_add_str(out, "the two places are on different file systems");
	else if (!is_str(d, "verdict", "sandbox"))
		buf_add_str(out, "another policy of this system");
	else if (is_str(d, "by", "user"))
		buf_add_str(out, "you said no");
	else if (is_str(d, "by", "timeout"))
		buf_add_str(out, "no answer came in time");
	else if (is_str(d, "by", "policy"))
		buf_add_str(out, "a rule said so");
	else
		buf_add_str(out, "nobody was asked");
	if (rule) {
		buf_add_str(out, ": ");
		escape_add_str(out, rule);
	}
	if (note || gained) {
		buf_add_str(out, " (");
		escape_add_str(out, note ? note : "");
		buf_add_str(out, note && gained ? "; " : "");
		denial_add_gained(out, gained);
		buf_add_char(out, ')');
	}
}

static void add_head(struct buf *out, size_t number, const struct json *d)
{
	int64_t count = 1;
	const char *call = json_get_str(d, "call");
	json_get_int(d, "count", &count);
	buf_addf(out, "\n%zu. ", number);
	escape_add_str(out, progname_of(json_get_str(d, "argv0"), json_get_str(d, "exe")));
	buf_addf(out, " was refused ");
	access_format(out, access_of(d, "access"));
	buf_addf(out, " (%s, %" PRId64 "×)", call ? call : "?", count);
	if (is_others(d) && json_get_str(d, "path")) {
		buf_add_char(out, ' ');
		escape_add_str(out, json_get_str(d, "path"));
	}
	buf_add_str(out, ": ");
	add_reason(out, d);
	buf_add_char(out, '\n');
}

struct telling {
	struct whylast_place place;
	struct buf *out;
	struct jsonw *json; /* NULL: text */
	bool all_allowed;
};

static int tell_path(struct telling *t, const char *path, uint32_t mask, bool of_call,
		     bool permitted)
{
	struct why w = {.path = path,
			.of_call = of_call,
			.permitted = permitted,
			.policy = session_policy(t->place.session),
			.ruleset = t->place.ruleset,
			.home = session_store(t->place.session)->home};
	int err = why_ask(&w, mask);
	if (!err && t->json) {
		jsonw_begin_object(t->json);
		why_write(&w, t->json);
		jsonw_end_object(t->json);
	} else if (!err) {
		why_format(&w, t->out);
	}
	t->all_allowed &= !err && why_all_allowed(&w);
	why_release(&w);
	return err;
}

static int tell_denial(struct telling *t, size_t number, const struct json *d)
{
	const char *path[] = {json_get_str(d, "path"), json_get_str(d, "path2")};
	uint32_t mask = access_of(d, "access");
	int err = 0;
	if (t->json) {
		jsonw_begin_object(t->json);
		jsonw_key(t->json, "denial");
		json_write(t->json, d);
		jsonw_key(t->json, "now");
		jsonw_begin_array(t->json);
	} else {
		add_head(t->out, number, d);
	}
	t->all_allowed &= !is_others(d);
	for (size_t i = 0; !err && !is_others(d) && i < ARRAY_LEN(path); i++)
		if (path[i] && path[i][0] == '/' && mask)
			err = tell_path(t, path[i], mask, i == 0, is_str(d, "verdict", "sandbox"));
	if (t->json) {
		jsonw_end_array(t->json);
		jsonw_end_object(t->json);
	}
	return err;
}

static void add_run(struct buf *out, const struct json *report)
{
	const char *started = json_get_str(report, "started"), *cwd = json_get_str(report, "cwd");
	const struct json *status = json_get(report, "status"), *list = json_get(report, "command");
	struct buf words = {0};
	int64_t n = 0;
	for (const struct json *a = json_first(list); a; a = json_next(a)) {
		buf_add_str(&words, words.len ? " " : "");
		shellword_add(&words, json_str(a) ? json_str(a) : "");
	}
	escape_add_fit(out, buf_str(&words), 200);
	buf_free(&words);
	buf_add_str(out, " (");
	escape_add_str(out, started);
	if (json_get_int(status, "exit", &n))
		buf_addf(out, ", exit %" PRId64, n);
	else if (json_get_int(status, "signal", &n))
		buf_addf(out, ", signal %" PRId64, n);
	buf_add_str(out, ", in ");
	escape_add_str(out, cwd);
	buf_add_str(out, ")\n");
}

/* What was refused beside the paths (mounts, namespaces), and what explains a program's failure. */
static void add_notes(struct buf *out, const struct json *list)
{
	buf_add_str(out, json_len(list) ? "\n" : "");
	for (const struct json *note = json_first(list); note; note = json_next(note)) {
		buf_add_str(out, "note: ");
		escape_add_str(out, json_str(note) ? json_str(note) : "");
		buf_add_char(out, '\n');
	}
}

static int tell_all(struct telling *t, const struct json *report)
{
	const struct json *list = json_get(report, "denials");
	const struct json *notes = json_get(json_get(report, "engine"), "notes");
	size_t refused = 0, allowed = 0;
	int err = 0;
	for (const struct json *d = json_first(list); !err && d; d = json_next(d)) {
		if (is_str(d, "answer", "allow"))
			allowed++;
		else
			err = tell_denial(t, ++refused, d);
	}
	if (!t->json && !refused)
		buf_add_str(t->out,
			    json_len(notes) ? "no path was refused\n" : "nothing was refused\n");
	if (!t->json && allowed)
		buf_addf(t->out, "\n%zu more asked about or watched, and allowed\n", allowed);
	if (!t->json)
		add_notes(t->out, notes);
	return err;
}

static int explain(struct telling *t, const struct json *report, bool json)
{
	struct jsonw w;
	if (!json) {
		add_run(t->out, report);
		return tell_all(t, report);
	}
	t->json = &w;
	jsonw_init(&w, t->out);
	jsonw_begin_object(&w);
	jsonw_kint(&w, "warder_why", 1);
	jsonw_kstr(&w, "run", json_get_str(report, "run"));
	jsonw_kstr(&w, "started", json_get_str(report, "started"));
	jsonw_key(&w, "command");
	if (json_get(report, "command"))
		json_write(&w, json_get(report, "command"));
	else
		jsonw_null(&w);
	jsonw_key(&w, "denials");
	jsonw_begin_array(&w);
	int err = tell_all(t, report);
	jsonw_end_array(&w);
	if (json_get(json_get(report, "engine"), "notes")) {
		jsonw_key(&w, "notes");
		json_write(&w, json_get(json_get(report, "engine"), "notes"));
	}
	jsonw_end_object(&w);
	buf_add_char(t->out, '\n');
	return err;
}

static int load(char *const *env, struct json **ret, struct policy_error *e)
{
	struct store store;
	int err = store_open(env, &store, e);
	if (err)
		return err;
	err = lastreport_load(&store, ret);
	if (err == -ENOENT)
		snprintf(e->text, sizeof e->text,
			 "there is no last report: nothing was run yet (warder run -- COMMAND)");
	else if (err)
		snprintf(e->text, sizeof e->text,
			 "the last report can't be read (%s); the next run writes a new one",
			 err == -EINVAL ? "it is no report" : ownfile_strerror(err));
	store_release(&store);
	return err;
}

int whylast(char *const *env, bool json, struct buf *out, struct policy_error *e)
{
	struct json *report = NULL;
	struct telling t = {.out = out, .all_allowed = true};
	int err = load(env, &report, e);
	if (err)
		return STATUS_TROUBLE;
	err = open_place(env, report, &t.place, e);
	if (!err) {
		err = explain(&t, report, json);
		if (err)
			snprintf(e->text, sizeof e->text, "%s", strerror(-err));
		whylast_close(&t.place);
	}
	json_free(report);
	return err ? STATUS_TROUBLE : t.all_allowed ? STATUS_FINE : STATUS_NO;
}
