#include "supervisor/policychange.h"

#include "supervisor/escape.h"
#include "supervisor/missing.h"
#include "supervisor/shellword.h"
#include "supervisor/store.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * The path of the command line as a policy's: it is a shell's word already, so nothing in it but *
 * ? (and \ before them) has a meaning, and a relative one starts at the cwd, not at the project.
 */
static void add_path(const struct policycli *c, struct buf *out, const char *path)
{
	if (!strchr("/~$", path[0])) {
		policy_format_path(out, c->cwd, false);
		buf_add_char(out, '/');
	}
	policy_format_path(out, path, true);
}

struct request {
	const char *access, *path; /* loans of argv; access may be NULL */
	bool exact;
};

static int read_request(int argc, char **argv, struct request *ret)
{
	struct request q = {0};
	size_t at;
	uint32_t mask;
	if (argc > 1 && strcmp(argv[argc - 1], "exact") == 0) {
		q.exact = true;
		argc--;
	}
	if (argc < 1)
		return policycli_usage(
			"expected a path, with an access before it where not all are meant", NULL);
	if (argc > 2)
		return policycli_usage("expected one path, not also", argv[2]);
	q.path = argv[argc - 1];
	q.access = argc == 2 ? argv[0] : NULL;
	if (q.access && access_parse(q.access, strlen(q.access), &mask, &at) < 0)
		return policycli_usage("expected an access such as r, rw or read,list, not",
				       q.access);
	if (!q.access && access_parse(q.path, strlen(q.path), &mask, &at) == 0)
		return policycli_usage("expected a path after", q.path);
	if (!q.path[0])
		return policycli_usage("expected a path, not", q.path);
	*ret = q;
	return 0;
}

static int parse_request(struct policycli *c, const char *effect, const struct request *q,
			 struct policy *p)
{
	struct buf line = {0};
	buf_addf(&line, "%s ", effect);
	if (q->access)
		buf_addf(&line, "%s ", q->access);
	add_path(c, &line, q->path);
	buf_add_str(&line, q->exact ? " exact" : "");
	int r = buf_error(&line);
	if (r == 0)
		r = policyfile_parse_line(p, buf_str(&line), RULE_USER, &c->vars, &c->error);
	buf_free(&line);
	if (r == 0 && policy_len(p) == 0) {
		snprintf(c->error.text, sizeof(c->error.text),
			 "$TMPDIR is another directory in every run: there is nothing to save");
		return -EINVAL;
	}
	return r;
}

/* Does something that is saved elsewhere, or a preset, decide otherwise all the same? */
void policychange_say_overruled(struct policycli *c, const struct rule *saved)
{
	struct policy *p;
	if (policy_new(&p) < 0)
		return;
	bool loaded = policycli_load_presets(c, p) == 0 && policycli_load_saved(c, p) == 0;
	bool glob = saved->kind == RULE_GLOB || saved->kind == RULE_GLOB_EXACT;
	struct decision d = policy_decide_all(p, saved->path, saved->access, NULL);
	if (loaded && !glob && d.rule && d.effect != saved->effect) {
		struct buf text = {0};
		policy_format_rule(&text, d.rule);
		buf_add_str(&text, " (");
		escape_add_str(&text, d.rule->origin);
		buf_addf(&text, ":%u)", d.rule->line);
		fprintf(stderr, "warder: this still decides: %s\n", buf_str(&text));
		buf_free(&text);
	}
	policy_free(p);
}

static int say_forbidden(const struct policycli *c, const struct rule *rule)
{
	struct buf path = {0};
	if (rule->kind == RULE_GLOB || rule->kind == RULE_GLOB_EXACT)
		shellword_add_glob(&path, rule->path, c->store.home);
	else
		shellword_add_path(&path, rule->path, c->store.home);
	fprintf(stderr, "warder: %s; to do without it first: warder policy %sforget %s\n",
		c->error.text, c->for_project ? "--project " : "", buf_str(&path));
	buf_free(&path);
	return POLICYCLI_NO;
}

static int save(struct policycli *c, const struct rule *rule)
{
	size_t changed = 0;
	int r = store_put_rule(policycli_file(c), rule, NULL, &c->vars, &changed, &c->error);
	if (r == -EPERM && c->error.text[0])
		return say_forbidden(c, rule);
	if (r == -EINVAL)
		policyfile_add_remedy(policycli_file(c), c->for_project ? RULE_PROJECT : RULE_USER,
				      &c->error);
	if (r < 0)
		return policycli_trouble(c->error.text);
	struct buf out = {0};
	policy_format_rule(&out, rule);
	buf_add_str(&out, "  # saved in ");
	escape_add_str(&out, policycli_file(c));
	if (changed)
		buf_addf(&out, ", in place of %zu other rule%s", changed, changed == 1 ? "" : "s");
	buf_add_char(&out, '\n');
	int status = policycli_put(&out);
	policychange_say_overruled(c, rule);
	return status;
}

static void warn(struct policycli *c, const struct policy *p)
{
	struct buf text = {0};
	policycli_warn_sensitive(c, p, 0);
	if (missing_add_likely(&text, policy_at(p, 0), ""))
		fprintf(stderr, "warder: warning: %s\n", buf_str(&text));
	buf_free(&text);
}

int policychange(struct policycli *c, const char *effect, int argc, char **argv)
{
	struct request q;
	int status = read_request(argc, argv, &q);
	if (status)
		return status;
	struct policy *p;
	if (policy_new(&p) < 0)
		return policycli_trouble("out of memory");
	int r = parse_request(c, effect, &q, p);
	status = r < 0 ? policycli_usage(c->error.text, NULL) : save(c, policy_at(p, 0));
	if (r == 0 && status == POLICYCLI_FINE)
		warn(c, p);
	policy_free(p);
	return status;
}

/* Of the two files that `show` lists, is it the other one that has rules about the path? */
static void say_saved_elsewhere(struct policycli *c, const char *path, uint32_t access)
{
	const char *other = c->for_project ? c->user_file : c->project_file;
	struct policy *p;
	if (policy_new(&p) < 0)
		return;
	bool found = false, loaded = policycli_load_saved(c, p) == 0;
	for (size_t i = 0; loaded && i < policy_len(p) && !found; i++) {
		const struct rule *rule = policy_at(p, i);
		found = !strcmp(rule->path, path) && (rule->access & access) &&
			!strcmp(rule->origin, other);
	}
	if (found)
		fprintf(stderr,
			"warder: %s saved policy has such a rule: say the same with%s --project\n",
			c->for_project ? "your own" : "the project's", c->for_project ? "out" : "");
	policy_free(p);
}

static int forget_path(struct policycli *c, const char *path, uint32_t access)
{
	size_t removed = 0;
	int r = store_forget(policycli_file(c), path, access, &c->vars, &removed, &c->error);
	if (r == -EINVAL)
		policyfile_add_remedy(policycli_file(c), c->for_project ? RULE_PROJECT : RULE_USER,
				      &c->error);
	if (r < 0)
		return policycli_trouble(c->error.text);
	struct buf out = {0};
	if (removed)
		buf_addf(&out, "%zu rule%s removed from ", removed, removed == 1 ? "" : "s");
	else
		buf_add_str(&out, "no such rule is in ");
	escape_add_str(&out, policycli_file(c));
	buf_add_char(&out, '\n');
	int status = policycli_put(&out);
	if (!status && !removed)
		say_saved_elsewhere(c, path, access);
	return status ? status : removed ? POLICYCLI_FINE : POLICYCLI_NO;
}

int policychange_forget(struct policycli *c, int argc, char **argv)
{
	uint32_t access = ACCESS_ALL;
	size_t at;
	if (argc < 1 || argc > 2)
		return policycli_usage("forget takes a path, and an access", NULL);
	if (argc == 2 && access_parse(argv[1], strlen(argv[1]), &access, &at) < 0)
		return policycli_usage("expected an access such as r, rw or read,list, not",
				       argv[1]);
	struct request q = {.path = argv[0]};
	struct policy *p;
	if (policy_new(&p) < 0)
		return policycli_trouble("out of memory");
	int r = parse_request(c, "allow", &q, p);
	int status = r < 0 ? policycli_usage(c->error.text, NULL)
			   : forget_path(c, policy_at(p, 0)->path, access);
	policy_free(p);
	return status;
}
