#include "supervisor/policyshow.h"

#include "supervisor/escape.h"
#include "supervisor/policycheck.h"
#include "supervisor/rulehistory.h"
#include "tracer/json.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What is told of a rule: since when it stands, and when it last decided something. */
struct told {
	const char *since; /* "": that is not known, */
	const char *last;  /* nor that; NULL: nobody asked */
};

static void show_rule(struct buf *out, const struct rule *r, struct told told)
{
	size_t start = out->len;
	policy_format_rule(out, r);
	while (out->len < start + 48 && !out->failed)
		buf_add_char(out, ' ');
	buf_add_str(out, "  # ");
	escape_add_str(out, r->origin);
	if (r->line)
		buf_addf(out, ":%u", r->line);
	if (told.last && told.since[0])
		buf_addf(out, ", since %s", told.since);
	if (told.last && told.last[0]) {
		buf_add_str(out, ", last decided ");
		escape_add_str(out, told.last);
	}
	buf_add_char(out, '\n');
}

static const char *source_name(enum rule_source s)
{
	static const char *const names[] = {
		[RULE_BUILTIN] = "builtin", [RULE_PRESET] = "preset", [RULE_USER] = "user",
		[RULE_PROJECT] = "project", [RULE_FILE] = "file",     [RULE_LINE] = "command line",
		[RULE_ANSWER] = "answer"};
	return names[s];
}

static void json_rule(struct jsonw *w, const struct rule *r, struct told told)
{
	static const char *const kinds[] = {[RULE_TREE] = "tree",
					    [RULE_EXACT] = "exact",
					    [RULE_GLOB] = "glob",
					    [RULE_GLOB_EXACT] = "glob exact"};
	struct buf line = {0};
	jsonw_begin_object(w);
	jsonw_kstr(w, "effect", r->sensitive ? "sensitive" : effect_name(r->effect));
	access_write(w, "access", r->access);
	jsonw_kpath(w, "path", r->path);
	jsonw_kstr(w, "kind", kinds[r->kind]);
	jsonw_kstr(w, "source", source_name(r->source));
	jsonw_kpath(w, "origin", r->origin);
	jsonw_kint(w, "line", r->line);
	jsonw_kstr(w, "since", told.since[0] ? told.since : NULL);
	jsonw_kstr(w, "last", told.last && told.last[0] ? told.last : NULL);
	policy_format_rule(&line, r);
	jsonw_kstr(w, "rule", buf_str(&line));
	jsonw_end_object(w);
	buf_free(&line);
}

struct shown {
	const struct policy *p;
	struct rulehistory history;
	struct rulehistory_days days;
};

static struct told told_of(struct shown *s, size_t i)
{
	return (struct told){.since = rulehistory_since(&s->days, policy_at(s->p, i)),
			     .last = i < s->history.len ? s->history.last[i] : NULL};
}

static void show_json(const struct policycli *c, struct shown *s, struct buf *out)
{
	struct jsonw w;
	jsonw_init(&w, out);
	jsonw_begin_object(&w);
	jsonw_kint(&w, "warder_policy", 1);
	jsonw_kpath(&w, "user", c->user_file);
	jsonw_kpath(&w, "project_dir", c->project.dir);
	jsonw_kpath(&w, "project", c->project_file);
	jsonw_key(&w, "rules");
	jsonw_begin_array(&w);
	for (size_t i = 0; i < policy_len(s->p); i++)
		json_rule(&w, policy_at(s->p, i), told_of(s, i));
	jsonw_end_array(&w);
	jsonw_end_object(&w);
	buf_add_char(out, '\n');
}

/* Nothing is no answer to a person; to a script it is one. */
static void say_none(const struct policycli *c)
{
	struct buf file = {0};
	escape_add_str(&file, policycli_file(c));
	fprintf(stderr,
		"warder: no rule is saved yet, in %s or for this project; warder policy show "
		"--effective lists the rules that apply all the same\n",
		buf_str(&file));
	buf_free(&file);
}

static int show_all(struct policycli *c, const struct policy *p)
{
	struct shown s = {.p = p};
	struct buf out = {0};
	if (c->effective && rulehistory_read(c->store.state_dir, p, &s.history) < 0)
		return policycli_trouble("out of memory");
	for (size_t i = 0; !c->json && i < policy_len(p); i++)
		show_rule(&out, policy_at(p, i), told_of(&s, i));
	if (c->json)
		show_json(c, &s, &out);
	else if (!policy_len(p))
		say_none(c);
	rulehistory_release(&s.history);
	rulehistory_days_release(&s.days);
	return policycli_put(&out);
}

int policyshow(struct policycli *c, int argc, char **argv)
{
	struct policy *p;
	if (argc)
		return policycli_usage("show takes no argument, not", argv[0]);
	if (policy_new(&p) < 0)
		return policycli_trouble("out of memory");
	int r = c->effective ? policycli_load_presets(c, p) : 0;
	if (r == 0)
		r = policycli_load_saved(c, p);
	int status = r < 0 ? policycli_trouble(c->error.text) : show_all(c, p);
	policy_free(p);
	return status;
}

/* ---- check ---- */

struct findings {
	struct buf errors, warnings; /* lines */
	struct buf more;	     /* how many errors are not among them, in words */
	size_t errors_len;	     /* all of them */
};

static int add_faults(struct policycli *c, struct policy *p, const char *file,
		      const struct buf *text, enum rule_source source, struct findings *f)
{
	struct policy_faults faults;
	int r = policyfile_faults(p, file, buf_str(text), text->len, source, &c->vars, &faults,
				  &c->error);
	buf_add(&f->errors, buf_str(&faults.lines), faults.lines.len);
	policyfile_faults_add_more(&faults, &f->more);
	f->errors_len += faults.len;
	policyfile_faults_release(&faults);
	return r;
}

/* The rules of one file within p, as far as they read well. */
static int check_file(struct policycli *c, struct policy *p, const char *file,
		      enum rule_source source, bool must_exist, struct findings *f)
{
	struct buf text = {0};
	int r = policyfile_read(file, policyfile_place(source), &text, &c->error);
	if (r == 0)
		r = add_faults(c, p, file, &text, source, f);
	else if (r == -ENOENT && !must_exist)
		r = 0;
	buf_free(&text);
	if (r == -EINVAL) {
		buf_addf(&f->errors, "%s\n", c->error.text);
		f->errors_len++;
		return 0;
	}
	return r;
}

static void json_lines(struct jsonw *w, const char *key, const struct buf *lines)
{
	jsonw_key(w, key);
	jsonw_begin_array(w);
	for (const char *at = buf_str(lines); *at;) {
		size_t n = strcspn(at, "\n");
		jsonw_bytes(w, at, n);
		at += n + 1;
	}
	jsonw_end_array(w);
}

static int say_findings(const struct policycli *c, struct findings *f)
{
	struct buf out = {0};
	int status = f->errors.len ? POLICYCLI_NO : POLICYCLI_FINE;
	if (c->json) {
		struct jsonw w;
		jsonw_init(&w, &out);
		jsonw_begin_object(&w);
		jsonw_kbool(&w, "ok", !f->errors.len);
		json_lines(&w, "errors", &f->errors);
		jsonw_kint(&w, "errors_total", (int64_t)f->errors_len);
		json_lines(&w, "warnings", &f->warnings);
		jsonw_end_object(&w);
		buf_add_char(&out, '\n');
	} else {
		buf_add_str(&out, buf_str(&f->errors));
		buf_add_str(&out, buf_str(&f->more));
		buf_add_str(&out, buf_str(&f->warnings));
		if (!out.len)
			buf_add_str(&out, "nothing to complain about\n");
	}
	int put_status = policycli_put(&out);
	return put_status ? put_status : status;
}

static int check_loaded(struct policycli *c, struct policy *p, const char *file, struct findings *f)
{
	int r = policycli_load_presets(c, p);
	if (r < 0)
		return r;
	/* A single file is seen beside the saved ones where these can be read; they have their own
	 * `check`. */
	if (file) {
		policycli_load_saved(c, p);
		r = check_file(c, p, file, RULE_FILE, true, f);
	} else {
		r = check_file(c, p, c->user_file, RULE_USER, false, f);
		if (r == 0)
			r = check_file(c, p, c->project_file, RULE_PROJECT, false, f);
	}
	if (r < 0)
		return r;
	policycheck_rules(p, file ? file : c->user_file, &c->vars, &f->warnings);
	if (!file)
		policycheck_rules(p, c->project_file, &c->vars, &f->warnings);
	return 0;
}

int policyshow_check(struct policycli *c, int argc, char **argv)
{
	if (argc > 1)
		return policycli_usage("check takes one file, not also", argv[1]);
	struct policy *p;
	struct findings f = {0};
	if (policy_new(&p) < 0)
		return policycli_trouble("out of memory");
	int r = check_loaded(c, p, argc ? argv[0] : NULL, &f);
	int status = r < 0 ? policycli_trouble(c->error.text) : say_findings(c, &f);
	buf_free(&f.errors);
	buf_free(&f.more);
	buf_free(&f.warnings);
	policy_free(p);
	return status;
}
