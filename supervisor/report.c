#include "supervisor/report.h"

#include "supervisor/escape.h"
#include "supervisor/madenames.h"
#include "supervisor/progname.h"
#include "supervisor/redact.h"
#include "supervisor/sha256.h"
#include "supervisor/shellword.h"
#include "supervisor/timestamp.h"
#include "tracer/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>

#define SUMMARY_LINES	     5
#define SUMMARY_PATH_COLUMNS 200

/* ---- the object ---- */

static void write_text(struct jsonw *w, const char *text, bool no_redact)
{
	struct buf b = {0};
	if (no_redact)
		buf_add_str(&b, text);
	else
		redact_add(&b, text);
	jsonw_str(w, buf_str(&b));
	w->out->failed |= b.failed;
	buf_free(&b);
}

static void write_list(struct jsonw *w, const char *key, char *const *list)
{
	jsonw_key(w, key);
	jsonw_begin_array(w);
	for (size_t i = 0; list && list[i]; i++)
		jsonw_str(w, list[i]);
	jsonw_end_array(w);
}

static void write_command(struct jsonw *w, const struct report *r)
{
	char **redacted = r->no_redact || !r->command ? NULL : redact_argv(r->command);
	if (!r->no_redact && r->command && !redacted)
		w->out->failed = true; /* no memory: nothing is better than the secret */
	write_list(w, "command", r->no_redact ? r->command : redacted);
	redact_free(redacted);
}

static void write_origin(struct jsonw *w, const struct report *r)
{
	char started[TIMESTAMP_LEN];
	struct utsname machine = {0};
	uname(&machine);
	const struct report_origin here = {.started = timestamp_format(&r->started, started),
					   .host = machine.nodename,
					   .kernel = machine.release,
					   .has_uid = true,
					   .uid = geteuid()};
	const struct report_origin *from = r->origin ? r->origin : &here;
	jsonw_kstr(w, "started", from->started);
	jsonw_kstr(w, "host", from->host);
	if (from->has_uid)
		jsonw_kint(w, "uid", from->uid);
	jsonw_kstr(w, "kernel", from->kernel);
}

static void write_head(struct jsonw *w, const struct report *r)
{
	jsonw_kint(w, "warder_report", 1);
	jsonw_kstr(w, "version", WARDER_VERSION);
	jsonw_kstr(w, "run", r->run);
	jsonw_kstr(w, "label", r->label);
	write_origin(w, r);
	write_command(w, r);
	jsonw_kpath(w, "cwd", r->cwd);
}

static void write_status(struct jsonw *w, const struct report *r)
{
	jsonw_key(w, "status");
	jsonw_begin_object(w);
	jsonw_kint(w, r->exited ? "exit" : "signal", r->exited ? r->exit_code : r->signal);
	jsonw_end_object(w);
	jsonw_kint(w, "runs", r->runs);
	jsonw_kint(w, "wall_ms", r->wall_ms);
	jsonw_kint(w, "held_ms", r->held_ms);
}

static void write_notes(struct jsonw *w, const struct report *r)
{
	struct buf dropped = {0};
	jsonw_key(w, "notes");
	jsonw_begin_array(w);
	for (size_t i = 0; r->engine.notes && r->engine.notes[i]; i++)
		jsonw_str(w, r->engine.notes[i]);
	if (r->denials.dropped) {
		buf_addf(&dropped, "%" PRIu64 " refusals beyond %d distinct ones are not listed",
			 r->denials.dropped, DENIAL_MAX);
		jsonw_str(w, buf_str(&dropped));
	}
	jsonw_end_array(w);
	buf_free(&dropped);
}

static void write_engine(struct jsonw *w, const struct report *r)
{
	jsonw_key(w, "engine");
	jsonw_begin_object(w);
	jsonw_kint(w, "landlock_abi", r->engine.landlock_abi);
	jsonw_kstr(w, "mode", r->engine.mode);
	jsonw_kbool(w, "fast", r->engine.fast);
	jsonw_kint(w, "patched", (int64_t)r->engine.patched);
	jsonw_kint(w, "stops", (int64_t)r->engine.stops);
	jsonw_kint(w, "brokered", (int64_t)r->engine.brokered);
	jsonw_kint(w, "unwound", (int64_t)r->engine.unwound);
	write_list(w, "degraded", r->engine.degraded);
	write_notes(w, r);
	jsonw_end_object(w);
}

static void write_policy(struct jsonw *w, const struct report *r)
{
	jsonw_key(w, "policy");
	jsonw_begin_array(w);
	for (size_t i = 0; i < r->sources_len; i++) {
		const struct report_source *s = &r->sources[i];
		jsonw_begin_object(w);
		jsonw_kstr(w, "source", s->source);
		jsonw_kpath(w, "path", s->path);
		jsonw_kstr(w, "sha256", s->sha256[0] ? s->sha256 : NULL);
		jsonw_end_object(w);
	}
	jsonw_end_array(w);
}

/* How the process ended that was refused. */
static void write_after(struct jsonw *w, const struct denial *d)
{
	jsonw_key(w, "after");
	if (d->after == AFTER_UNKNOWN) {
		jsonw_null(w);
		return;
	}
	jsonw_begin_object(w);
	jsonw_kint(w, d->after == AFTER_EXITED ? "exited" : "signal", d->after_value);
	jsonw_end_object(w);
}

static void write_denials(struct jsonw *w, const struct report *r)
{
	jsonw_key(w, "denials");
	jsonw_begin_array(w);
	for (size_t i = 0; i < r->denials.len; i++) {
		jsonw_begin_object(w);
		denial_write(w, &r->denials.item[i], r->no_redact);
		write_after(w, &r->denials.item[i]);
		denial_write_stack(w, &r->denials.item[i]);
		jsonw_end_object(w);
	}
	jsonw_end_array(w);
}

static void write_grants(struct jsonw *w, const struct report *r)
{
	jsonw_key(w, "grants");
	jsonw_begin_array(w);
	for (size_t i = 0; i < r->grants_len; i++) {
		const struct report_grant *g = &r->grants[i];
		jsonw_begin_object(w);
		jsonw_kpath(w, "path", g->path);
		access_write(w, "access", g->access);
		jsonw_kstr(w, "kind", scope_kind_name(g->kind));
		jsonw_kstr(w, "lifetime", lifetime_name(g->lifetime));
		jsonw_kstr(w, "by", answered_by_name(g->by));
		if (g->by == BY_YES)
			jsonw_kstr(w, "note", "--yes");
		jsonw_end_object(w);
	}
	jsonw_end_array(w);
}

static void write_leftovers(struct jsonw *w, const struct report *r)
{
	jsonw_key(w, "leftovers");
	jsonw_begin_array(w);
	for (size_t i = 0; i < r->leftovers_len; i++) {
		const struct report_leftover *l = &r->leftovers[i];
		jsonw_begin_object(w);
		jsonw_kint(w, "pid", l->pid);
		jsonw_kpath(w, "exe", l->exe);
		jsonw_key(w, "argv0");
		if (l->argv0)
			write_text(w, l->argv0, r->no_redact);
		else
			jsonw_null(w);
		jsonw_end_object(w);
	}
	jsonw_end_array(w);
}

int report_write(const struct report *r, struct buf *out)
{
	struct buf text = {0};
	struct jsonw w;
	jsonw_init(&w, &text);
	jsonw_begin_object(&w);
	write_head(&w, r);
	write_status(&w, r);
	write_engine(&w, r);
	write_policy(&w, r);
	write_denials(&w, r);
	write_grants(&w, r);
	write_leftovers(&w, r);
	write_list(&w, "suggested", r->suggested);
	if (r->more)
		r->more(&w, r->more_arg);
	jsonw_end_object(&w);
	int error = buf_error(&text);
	if (!error)
		escape_add_json(out, buf_str(&text), text.len);
	buf_free(&text);
	return error ? error : buf_error(out);
}

/* ---- the last lines on stderr ---- */

static void add_names(struct buf *out, uint32_t access)
{
	const char *comma = "";
	for (uint32_t bit = 1; bit & ACCESS_ALL; bit <<= 1) {
		if (!(access & bit))
			continue;
		buf_addf(out, "%s%s", comma, access_name(bit));
		comma = ",";
	}
}

static void add_program(struct buf *out, const char *argv0, const char *exe)
{
	struct buf shown = {0};
	redact_add(&shown, progname_of(argv0, exe));
	escape_add_fit(out, buf_str(&shown), 40);
	buf_free(&shown);
}

/* What became of it, where it was not well. */
static void add_after(struct buf *out, const struct denial *d)
{
	const char *name = sigabbrev_np(d->after_value);
	if (d->after == AFTER_EXITED && d->after_value)
		buf_addf(out, ", then exited %d", d->after_value);
	else if (d->after == AFTER_SIGNAL && name)
		buf_addf(out, ", then ended by SIG%s", name);
	else if (d->after == AFTER_SIGNAL)
		buf_addf(out, ", then ended by signal %d", d->after_value);
}

static void add_verb(struct buf *out, const struct denial *d)
{
	buf_add_str(out, d->unwalled ? "warder: would refuse " : "warder: refused ");
}

static void add_shown_path(struct buf *out, const char *path, const char *home)
{
	struct buf b = {0};
	plan_add_short(&b, path, home);
	escape_add_fit(out, buf_str(&b), SUMMARY_PATH_COLUMNS);
	buf_free(&b);
}

static void add_note(struct buf *out, const struct denial *d)
{
	char *note AUTOFREE = denial_note(d);
	if (!note)
		return;
	buf_add_str(out, d->verdict == VERDICT_OTHER ? ": " : "; ");
	escape_add_str(out, note);
}

/* Who was refused it, and how often; several: the line is about more than one path. */
static void add_part(struct buf *out, const struct plan_part *p, const struct denial *first,
		     bool several)
{
	buf_add_str(out, " (");
	add_program(out, p->argv0, p->exe);
	if (several)
		buf_addf(out, ", %zu path%s", p->paths, p->paths == 1 ? "" : "s");
	buf_addf(out, ", %" PRIu64 "×", p->count);
	add_after(out, first);
	add_note(out, first);
	buf_add_char(out, ')');
}

static bool is_sensitive(const struct plan_rule *r, const struct denial *denials)
{
	for (size_t i = 0; i < r->parts; i++)
		if (denials[r->part[i].first].sensitive)
			return true;
	return false;
}

/* Each access that was refused apart is told apart: "read ~/f (cat, 2×), write (sh, 1×)". */
static void add_rule_line(struct buf *out, const struct plan_rule *r, const struct denial *denials,
			  const char *home)
{
	add_verb(out, &denials[r->first]);
	for (size_t i = 0; i < r->parts; i++) {
		const struct plan_part *p = &r->part[i];
		bool last = i + 1 == r->parts && !r->rest.count;
		buf_add_str(out, !i ? "" : last ? " and " : ", ");
		add_names(out, p->needed);
		if (!i) {
			buf_add_char(out, ' ');
			add_shown_path(out, r->path, home);
		}
		add_part(out, p, &denials[p->first], r->paths > 1);
	}
	if (r->rest.count) {
		buf_add_str(out, " and ");
		add_names(out, r->rest.needed);
		buf_addf(out, " (%" PRIu64 "×)", r->rest.count);
	}
	if (is_sensitive(r, denials))
		buf_add_str(out, "; on the sensitive list");
	buf_add_str(out, "; to allow: warder policy allow ");
	access_format(out, r->access);
	buf_add_char(out, ' ');
	shellword_add_path(out, r->path, home);
	buf_add_str(out, r->kind == SCOPE_EXACT ? " exact\n" : "\n");
}

/* Whose word it was: a file and its line, or what was given to this run. */
static void add_by(struct buf *out, const struct denial *d, const char *home)
{
	static const char own[] = "command line";
	if (!d->rule)
		return;
	buf_add_str(out, strncmp(d->rule, own, strlen(own)) != 0 ? " by " : " by your ");
	add_shown_path(out, d->rule, home);
}

/* "refused read ~/x (cat, 2×", its parenthesis still open. */
static void add_refused(struct buf *out, const struct denial *d, const char *home)
{
	add_verb(out, d);
	add_names(out, d->access);
	buf_add_char(out, ' ');
	add_shown_path(out, d->path, home);
	buf_add_str(out, " (");
	add_program(out, d->argv0, d->exe);
	buf_addf(out, ", %" PRIu64 "×", d->count);
	add_after(out, d);
	add_note(out, d);
}

/* No rule can be suggested; what decided is named. */
static void add_closed_line(struct buf *out, const struct denial *d, const char *home)
{
	add_refused(out, d, home);
	buf_add_str(out, "); ");
	if (!d->forbidden && d->by == BY_USER) {
		buf_add_str(out, "to undo: warder policy --project forget ");
		shellword_add_path(out, d->path, home);
	} else {
		buf_add_str(out, d->nameless	? "no rule can name it"
				 : d->forbidden ? "forbidden"
						: "denied");
	}
	add_by(out, d, home);
	buf_add_char(out, '\n');
}

/* Its name will not come again: a preset may open all such, and a rule none. */
static void add_once_line(struct buf *out, const struct denial *d, const char *home)
{
	add_refused(out, d, home);
	if (d->preset)
		buf_addf(out, "); to allow: warder run --preset %s\n", d->preset);
	else
		buf_addf(out, "); made up for the moment, no rule fits the next name%s\n",
			 madenames_is_shared(d->path) ? ": let it use $TMPDIR" : "");
}

/* Who decided it, or what else refused it. */
static void add_why(struct buf *out, const struct denial *d, const char *home)
{
	bool decided = d->by == BY_POLICY || d->forbidden;
	if (d->verdict == VERDICT_OTHER && d->note) {
		escape_add_str(out, d->note);
		return;
	}
	if (d->verdict != VERDICT_SANDBOX) {
		buf_add_str(out, d->verdict == VERDICT_PERMISSIONS    ? "the file's own permissions"
				 : d->verdict == VERDICT_CROSS_DEVICE ? "between two file systems"
								      : "another kernel policy");
	} else if (d->allowed) {
		buf_add_str(out, d->unwalled ? "it was not refused (--permissive)"
					     : "allowed when it was asked");
	} else {
		buf_add_str(out, d->forbidden	    ? "forbidden"
				 : decided	    ? "denied"
				 : d->by == BY_USER ? "the answer was no"
						    : "no rule allows it");
	}
	add_by(out, d, home);
	add_note(out, d);
}

static void add_call(struct buf *out, const struct denial *d, const char *home)
{
	add_names(out, d->access);
	buf_add_char(out, ' ');
	add_shown_path(out, d->path, home);
	if (d->path2) {
		buf_add_str(out, " and ");
		add_shown_path(out, d->path2, home);
	}
	buf_add_str(out, " (");
	add_program(out, d->argv0, d->exe);
	buf_addf(out, ", %s, %" PRIu64 "×", d->call, d->count);
	add_after(out, d);
	buf_add_str(out, "): ");
}

void report_line(const struct denial *d, const char *home, struct buf *out)
{
	buf_add_str(out, d->unwalled ? "would refuse " : d->allowed ? "allowed " : "refused ");
	add_call(out, d, home);
	add_why(out, d, home);
	buf_add_char(out, '\n');
}

void report_unsure_line(const struct denial *d, const char *home, struct buf *out)
{
	buf_add_str(out, "unsure: ");
	add_call(out, d, home);
	escape_add_str(out, d->note ? d->note : "");
	buf_add_char(out, '\n');
}

static bool is_closed(const struct denial *d)
{
	return (d->forbidden || d->closed || d->nameless) && !d->moot && denial_stayed(d);
}

static void add_lines(const struct report *r, const struct plan_rules *rules, const char *home,
		      struct buf *out)
{
	size_t total = rules->len + rules->once_len, written = 0;
	for (size_t i = 0; i < r->denials.len; i++)
		total += is_closed(&r->denials.item[i]);
	size_t room = total <= SUMMARY_LINES ? total : SUMMARY_LINES - 1;
	for (size_t i = 0; i < rules->len && written < room; i++, written++)
		add_rule_line(out, &rules->item[i], r->denials.item, home);
	for (size_t i = 0; i < rules->once_len && written < room; i++, written++)
		add_once_line(out, &r->denials.item[rules->once[i]], home);
	for (size_t i = 0; i < r->denials.len && written < room; i++) {
		if (!is_closed(&r->denials.item[i]))
			continue;
		add_closed_line(out, &r->denials.item[i], home);
		written++;
	}
	if (total > written)
		buf_addf(
			out,
			r->denials.item[0].unwalled
				? "warder: would refuse: and %zu more; --report has them all\n"
				: "warder: refused: and %zu more; all of them: warder why --last\n",
			total - written);
}

void report_summary(const struct report *r, const char *home, struct buf *out)
{
	struct plan_rules rules = {0};
	if (plan_hints(&r->denials, home, &rules) < 0) {
		out->failed = true;
		return;
	}
	add_lines(r, &rules, home, out);
	plan_rules_release(&rules);
}

/* ---- the rest ---- */

void report_sha256(const void *bytes, size_t n, char ret[65])
{
	sha256_hex(bytes, n, ret);
}

static void free_list(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
}

void report_release(struct report *r)
{
	denial_list_release(&r->denials);
	for (size_t i = 0; i < r->sources_len; i++)
		free(r->sources[i].path);
	for (size_t i = 0; i < r->grants_len; i++)
		free(r->grants[i].path);
	for (size_t i = 0; i < r->leftovers_len; i++) {
		free(r->leftovers[i].exe);
		free(r->leftovers[i].argv0);
	}
	free(r->sources);
	free(r->grants);
	free(r->leftovers);
	free_list(r->engine.degraded);
	free_list(r->engine.notes);
	plan_free_rules(r->suggested);
	*r = (struct report){0};
}
