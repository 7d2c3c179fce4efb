#include "supervisor/replaypartial.h"

#include "landlock/llright.h"
#include "supervisor/escape.h"
#include "supervisor/tracewords.h"
#include "tracer/errname.h"
#include "tracer/json.h"
#include "tracer/util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FORMAT 1

struct replaypartial {
	/* Each list in any order; equal ones are joined when they are asked for. */
	struct denial *denial, *unsure;
	size_t denials, denials_cap, unsures, unsures_cap;
	struct replay_trace *trace;
	size_t traces;
	uint64_t events, dropped;
	struct replay_result merged;
};

/* ---- an order of denials ---- */

static int by_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int by_number(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

/* What makes two of them the same (denial_add). */
static int compare_kind(const struct denial *a, const struct denial *b)
{
	int n = by_text(a->path, b->path);
	n = n ? n : by_text(a->path2, b->path2);
	n = n ? n : by_number(a->access, b->access);
	n = n ? n : by_number(a->verdict, b->verdict);
	return n ? n : by_number(a->allowed, b->allowed);
}

static int compare_rest(const struct denial *a, const struct denial *b)
{
	int n = by_number(a->t_ms, b->t_ms);
	n = n ? n : by_number(a->run, b->run);
	n = n ? n : by_number(a->pid, b->pid);
	n = n ? n : by_text(a->exe, b->exe);
	n = n ? n : by_text(a->argv0, b->argv0);
	n = n ? n : by_text(a->given, b->given);
	n = n ? n : by_text(a->call, b->call);
	n = n ? n : by_number(a->error, b->error);
	n = n ? n : by_number(a->by, b->by);
	n = n ? n : by_number(a->lifetime, b->lifetime);
	n = n ? n : by_text(a->rule, b->rule);
	n = n ? n : by_text(a->note, b->note);
	n = n ? n : by_number(a->gained, b->gained);
	n = n ? n : by_number(a->after, b->after);
	n = n ? n : by_number(a->after_value, b->after_value);
	n = n ? n : by_number(a->is_dir, b->is_dir);
	n = n ? n : by_number(a->exists, b->exists);
	n = n ? n : by_number(a->nameless, b->nameless);
	n = n ? n : by_number(a->moot, b->moot);
	n = n ? n : by_number(a->forbidden, b->forbidden);
	n = n ? n : by_number(a->closed, b->closed);
	n = n ? n : by_number(a->unwalled, b->unwalled);
	return n ? n : by_number(a->path2_open, b->path2_open);
}

static int compare_denials(const void *a, const void *b)
{
	int n = compare_kind(a, b);
	return n ? n : compare_rest(a, b);
}

/* Sorted, and of the same kind one: the least, with all their counts. */
static size_t join(struct denial *item, size_t len)
{
	size_t to = 0;
	if (len)
		qsort(item, len, sizeof *item, compare_denials);
	for (size_t i = 0; i < len; i++) {
		if (to && !compare_kind(&item[to - 1], &item[i])) {
			item[to - 1].count += item[i].count;
			denial_release(&item[i]);
		} else {
			item[to++] = item[i];
		}
	}
	return to;
}

static int compare_traces(const void *a, const void *b)
{
	const struct replay_trace *x = a, *y = b;
	int n = strcmp(x->file, y->file);
	n = n ? n : by_number((int64_t)x->events, (int64_t)y->events);
	n = n ? n : by_number((int64_t)x->faults, (int64_t)y->faults);
	return n ? n : by_number(x->complete, y->complete);
}

/* ---- adding ---- */

int replaypartial_new(struct replaypartial **ret)
{
	*ret = calloc(1, sizeof **ret);
	return *ret ? 0 : -ENOMEM;
}

static void free_denials(struct denial *item, size_t len)
{
	for (size_t i = 0; i < len; i++)
		denial_release(&item[i]);
	free(item);
}

void replaypartial_free(struct replaypartial *p)
{
	if (!p)
		return;
	free_denials(p->denial, p->denials);
	free_denials(p->unsure, p->unsures);
	for (size_t i = 0; i < p->traces; i++)
		free(p->trace[i].file);
	free(p->trace);
	denial_list_release(&p->merged.denials);
	denial_list_release(&p->merged.unsure);
	free(p);
}

static int push(struct denial **item, size_t *len, size_t *cap, const struct denial *d)
{
	if (*len == *cap) {
		size_t more = *cap ? 2 * *cap : 32;
		struct denial *bigger = reallocarray(*item, more, sizeof **item);
		if (!bigger)
			return -ENOMEM;
		*item = bigger;
		*cap = more;
	}
	int err = denial_copy(d, &(*item)[*len]);
	*len += !err;
	return err;
}

static int push_trace(struct replaypartial *p, struct replay_trace t)
{
	struct replay_trace *more = reallocarray(p->trace, p->traces + 1, sizeof *more);
	char *file = strdup(t.file);
	if (more)
		p->trace = more;
	if (!more || !file) {
		free(file);
		return -ENOMEM;
	}
	t.file = file;
	p->trace[p->traces++] = t;
	p->events += t.events;
	return 0;
}

int replaypartial_add(struct replaypartial *p, const struct replay_result *r)
{
	int err = 0;
	for (size_t i = 0; !err && i < r->denials.len; i++)
		err = push(&p->denial, &p->denials, &p->denials_cap, &r->denials.item[i]);
	for (size_t i = 0; !err && i < r->unsure.len; i++)
		err = push(&p->unsure, &p->unsures, &p->unsures_cap, &r->unsure.item[i]);
	for (size_t i = 0; !err && i < r->traces; i++)
		err = push_trace(p, r->trace[i]);
	p->dropped += r->denials.dropped;
	return err;
}

bool replaypartial_is_empty(const struct replaypartial *p)
{
	return !p->traces;
}

/* ---- writing ---- */

static void write_flag(struct jsonw *w, const char *key, bool is)
{
	if (is)
		jsonw_kbool(w, key, true);
}

/* As in the report, and what a merged report needs of it beside. */
static void write_denial(struct jsonw *w, const struct denial *d)
{
	struct denial plain = *d;
	plain.by = plain.by == BY_YES ? BY_POLICY : plain.by;
	plain.unwalled = false;
	jsonw_begin_object(w);
	denial_write(w, &plain, true);
	write_flag(w, "yes", d->by == BY_YES);
	write_flag(w, "unwalled", d->unwalled);
	write_flag(w, "path2_open", d->path2_open);
	write_flag(w, "is_dir", d->is_dir);
	write_flag(w, "exists", d->exists);
	write_flag(w, "nameless", d->nameless);
	write_flag(w, "moot", d->moot);
	write_flag(w, "forbidden", d->forbidden);
	write_flag(w, "closed", d->closed);
	if (d->after != AFTER_UNKNOWN)
		jsonw_kint(w, d->after == AFTER_EXITED ? "exited" : "signal", d->after_value);
	jsonw_end_object(w);
}

static void write_denials(struct jsonw *w, const char *key, const struct denial *item, size_t len)
{
	jsonw_key(w, key);
	jsonw_begin_array(w);
	for (size_t i = 0; i < len; i++)
		write_denial(w, &item[i]);
	jsonw_end_array(w);
}

static void write_traces(struct jsonw *w, const struct replay_trace *t, size_t len)
{
	jsonw_key(w, "traces");
	jsonw_begin_array(w);
	for (size_t i = 0; i < len; i++) {
		jsonw_begin_object(w);
		jsonw_kpath(w, "file", t[i].file);
		jsonw_kint(w, "events", (int64_t)t[i].events);
		jsonw_kint(w, "faults", (int64_t)t[i].faults);
		jsonw_kbool(w, "complete", t[i].complete);
		jsonw_end_object(w);
	}
	jsonw_end_array(w);
}

static void settle(struct replaypartial *p)
{
	p->denials = join(p->denial, p->denials);
	p->unsures = join(p->unsure, p->unsures);
	if (p->traces)
		qsort(p->trace, p->traces, sizeof *p->trace, compare_traces);
}

int replaypartial_write(struct replaypartial *p, struct buf *out, bool *ret_stayed)
{
	struct buf text = {0};
	struct jsonw w;
	settle(p);
	jsonw_init(&w, &text);
	jsonw_begin_object(&w);
	jsonw_kint(&w, "warder_partial", FORMAT);
	write_traces(&w, p->trace, p->traces);
	write_denials(&w, "denials", p->denial, p->denials);
	write_denials(&w, "unsure", p->unsure, p->unsures);
	jsonw_kint(&w, "dropped", (int64_t)p->dropped);
	jsonw_end_object(&w);
	*ret_stayed = false;
	for (size_t i = 0; i < p->denials; i++)
		*ret_stayed |= denial_stayed(&p->denial[i]);
	int err = buf_error(&text);
	if (!err)
		escape_add_json(out, buf_str(&text), text.len);
	buf_add_char(out, '\n');
	buf_free(&text);
	return err ? err : buf_error(out);
}

struct replay_result *replaypartial_merged(struct replaypartial *p)
{
	struct replay_result *m = &p->merged;
	settle(p);
	for (size_t i = 0; i < p->denials; i++)
		denial_add(&m->denials, &p->denial[i]);
	for (size_t i = 0; i < p->unsures; i++)
		denial_add(&m->unsure, &p->unsure[i]);
	m->denials.dropped += p->dropped;
	m->trace = p->trace;
	m->traces = p->traces;
	m->events = p->events;
	return m;
}

/* ---- reading ---- */

static const char start[] = "{\"warder_partial\":";

bool replaypartial_is(struct traceinput *in)
{
	char *line;
	size_t n;
	int got = traceinput_line(in, &line, &n);
	bool is = got > 0 && n >= sizeof start - 1 && !memcmp(line, start, sizeof start - 1);
	if (got > 0)
		traceinput_back(in);
	return is;
}

static char *lent(const char *text)
{
	return (char *)(uintptr_t)text; /* denial_copy() copies it */
}

static bool flag(const struct json *v, const char *key)
{
	bool is = false;
	return json_bool(json_get(v, key), &is) && is;
}

static int64_t number(const struct json *v, const char *key)
{
	int64_t n = 0;
	json_get_int(v, key, &n);
	return n;
}

static uint32_t access_of(const struct json *list)
{
	uint32_t access = 0;
	for (const struct json *v = json_first(list); v; v = json_next(v))
		access |= tracewords_access(json_str(v));
	return access;
}

/* One that has no name was written as its number: E133. */
static int error_of(const char *name)
{
	int e = name ? errname_number(name, strlen(name)) : 0;
	return !e && name && name[0] == 'E' ? atoi(name + 1) : e;
}

static void read_flags(const struct json *v, struct denial *d)
{
	int64_t value;
	d->unwalled = flag(v, "unwalled");
	d->path2_open = flag(v, "path2_open");
	d->is_dir = flag(v, "is_dir");
	d->exists = flag(v, "exists");
	d->nameless = flag(v, "nameless");
	d->moot = flag(v, "moot");
	d->forbidden = flag(v, "forbidden");
	d->closed = flag(v, "closed");
	if (json_get_int(v, "exited", &value))
		d->after = AFTER_EXITED;
	else if (json_get_int(v, "signal", &value))
		d->after = AFTER_SIGNAL;
	else
		return;
	d->after_value = (int)value;
}

/* -EINVAL: it is none. */
static int read_denial(const struct json *v, struct denial **item, size_t *len, size_t *cap)
{
	char *room[5] = {0};
	const char *call = json_get_str(v, "call"), *answer = json_get_str(v, "answer");
	const struct sysent *ent = call ? sysent_by_name(call) : NULL;
	int64_t count = number(v, "count");
	struct denial d = {.path = lent(json_get_path(v, "path", &room[0])),
			   .given = lent(json_get_path(v, "given", &room[1])),
			   .path2 = lent(json_get_path(v, "path2", &room[2])),
			   .rule = lent(json_get_path(v, "rule", &room[3])),
			   .exe = lent(json_get_path(v, "exe", &room[4])),
			   .argv0 = lent(json_get_str(v, "argv0")),
			   .note = lent(json_get_str(v, "note")),
			   .call = ent ? ent->name : "",
			   .access = access_of(json_get(v, "access")),
			   .gained = access_of(json_get(v, "gained")),
			   .error = error_of(json_get_str(v, "errno")),
			   .allowed = answer && !strcmp(answer, "allow"),
			   .count = count > 0 ? (uint64_t)count : 1,
			   .t_ms = number(v, "t_ms"),
			   .run = (unsigned)number(v, "run"),
			   .pid = (pid_t)number(v, "pid")};
	bool ok = d.path && tracewords_parse_verdict(json_get_str(v, "verdict"), &d.verdict) &&
		  tracewords_parse_by(json_get_str(v, "by"), &d.by) &&
		  tracewords_parse_lifetime(json_get_str(v, "lifetime"), &d.lifetime);
	if (flag(v, "yes"))
		d.by = BY_YES;
	read_flags(v, &d);
	int err = ok ? push(item, len, cap, &d) : -EINVAL;
	for (size_t i = 0; i < ARRAY_LEN(room); i++)
		free(room[i]);
	return err;
}

static int read_trace(struct replaypartial *p, const struct json *v)
{
	char *room;
	const char *file = json_get_path(v, "file", &room);
	struct replay_trace t = {.file = lent(file ? file : ""),
				 .events = (uint64_t)number(v, "events"),
				 .faults = (uint64_t)number(v, "faults"),
				 .complete = flag(v, "complete")};
	int err = push_trace(p, t);
	free(room);
	return err;
}

static int read_result(struct replaypartial *p, const struct json *root)
{
	int err = number(root, "warder_partial") == FORMAT ? 0 : -EINVAL;
	const struct json *v = json_first(json_get(root, "traces"));
	for (; !err && v; v = json_next(v))
		err = read_trace(p, v);
	v = json_first(json_get(root, "denials"));
	for (; !err && v; v = json_next(v))
		err = read_denial(v, &p->denial, &p->denials, &p->denials_cap);
	v = json_first(json_get(root, "unsure"));
	for (; !err && v; v = json_next(v))
		err = read_denial(v, &p->unsure, &p->unsures, &p->unsures_cap);
	p->dropped += (uint64_t)number(root, "dropped");
	return err;
}

int replaypartial_read(struct replaypartial *p, struct traceinput *in,
		       struct trace_error *ret_error)
{
	char *line;
	size_t n;
	int got;
	while ((got = traceinput_line(in, &line, &n)) > 0) {
		struct json *root;
		if (!n)
			continue;
		int err = json_parse(line, n, &root, NULL);
		if (!err) {
			err = read_result(p, root);
			json_free(root);
		}
		if (err) {
			snprintf(ret_error->text, sizeof ret_error->text,
				 "%s:%" PRIu64 ": expected a whole result of warder replay "
				 "--partial",
				 traceinput_name(in), traceinput_number(in));
			return err;
		}
	}
	return got;
}

/* ---- a replay's report, and a ruleset ---- */

static void write_unsure(struct jsonw *w, const struct denial_list *l)
{
	jsonw_key(w, "unsure");
	jsonw_begin_array(w);
	for (size_t i = 0; i < l->len; i++) {
		const struct denial *d = &l->item[i];
		jsonw_begin_object(w);
		jsonw_kpath(w, "path", d->path);
		if (d->path2)
			jsonw_kpath(w, "path2", d->path2);
		access_write(w, "access", d->access);
		jsonw_kstr(w, "call", d->call);
		jsonw_kstr(w, "why", d->note);
		jsonw_kint(w, "count", (int64_t)d->count);
		jsonw_end_object(w);
	}
	jsonw_end_array(w);
}

void replaypartial_write_members(struct jsonw *w, const struct replay_result *r)
{
	jsonw_key(w, "replay");
	jsonw_begin_object(w);
	write_traces(w, r->trace, r->traces);
	jsonw_kint(w, "events", (int64_t)r->events);
	write_unsure(w, &r->unsure);
	jsonw_end_object(w);
}

static void write_rule(struct jsonw *w, const struct llrule *rule, const char *names)
{
	jsonw_begin_object(w);
	jsonw_kpath(w, "path", rule->label ? rule->label : "");
	jsonw_kstr(w, "rights", names);
	jsonw_end_object(w);
}

void replaypartial_write_ruleset(const struct llruleset *rs, bool json, bool truncated,
				 struct buf *out)
{
	struct buf text = {0};
	struct jsonw w;
	char names[512];
	uint64_t missing = llruleset_unenforced(rs);
	const struct llrule *rule;
	jsonw_init(&w, &text);
	llright_format(missing, names, sizeof names);
	jsonw_begin_object(&w);
	jsonw_kint(&w, "landlock_abi", llruleset_abi(rs)->abi);
	jsonw_kstr(&w, "not_enforced", names);
	jsonw_kbool(&w, "truncated", truncated);
	jsonw_key(&w, "rules");
	jsonw_begin_array(&w);
	if (!json)
		buf_addf(out, "# Landlock ABI %d, %zu rules%s\n", llruleset_abi(rs)->abi,
			 llruleset_count(rs),
			 truncated ? "; not all: the rest is done in place" : "");
	if (!json && missing)
		buf_addf(out, "# not enforced by this ABI: %s\n", names);
	for (size_t i = 0; (rule = llruleset_rule(rs, i)); i++) {
		llright_format(rule->rights, names, sizeof names);
		if (json) {
			write_rule(&w, rule, names);
		} else {
			escape_add_str(out, rule->label ? rule->label : "?");
			buf_addf(out, "  %s\n", names);
		}
	}
	jsonw_end_array(&w);
	jsonw_end_object(&w);
	if (json) {
		escape_add_json(out, buf_str(&text), text.len);
		buf_add_char(out, '\n');
	}
	buf_free(&text);
}
