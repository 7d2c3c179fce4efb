#include "supervisor/cli_policy.h"

#include "supervisor/escape.h"
#include "supervisor/policycheck.h"
#include "supervisor/presets.h"
#include "supervisor/store.h"
#include "tracer/json.h"
#include "tracer/util.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { STATUS_FINE = 0, STATUS_NO = 1, STATUS_USAGE = 2, STATUS_TROUBLE = 125 };

static const char help[] =
	"Usage: warder policy show [--effective] [--json]     the saved rules, or all that apply\n"
	"       warder policy check [--json] [FILE]           errors, and rules that look wrong\n"
	"       warder policy allow|deny|ask|forbid [ACCESS] PATH [exact]\n"
	"       warder policy forget PATH [ACCESS]            remove the rules about exactly PATH\n"
	"       warder policy path                            the file they are saved in\n"
	"\n"
	"  --project[=DIR]   the project's saved policy (and the project of DIR, not of the cwd)\n"
	"  --effective       presets and both saved policies, and where each rule comes from\n"
	"  --json            one JSON object on stdout\n"
	"\n"
	"ACCESS is r, w, x together, or full names with commas; none means all of them:\n"
	"  read list exec write create delete move meta connect ioctl\n"
	"PATH and everything below it; with `exact` only itself; * ? and ** make a pattern.\n"
	"\n"
	"  warder policy allow rw ~/.npm\n"
	"  warder policy --project deny r '**/.env'\n"
	"\n"
	"Status: 0 fine, 1 no (nothing to forget, errors found), 2 usage, 125 could not do it.\n";

struct cli {
	struct store store;
	struct project project;
	struct policy_vars vars;
	char *cwd;	    /* owned */
	char *user_file;    /* owned */
	char *project_file; /* owned */
	struct policy_error error;
	/* options */
	bool effective, json, for_project;
	const char *project_dir; /* a loan of argv; NULL: of the cwd */
};

static const char *target_file(const struct cli *c)
{
	return c->for_project ? c->project_file : c->user_file;
}

static int usage(const char *what, const char *word)
{
	struct buf text = {0};
	if (word)
		escape_add_str(&text, word);
	fprintf(stderr, "warder policy: %s%s%s%s; see warder policy --help\n", what,
		word ? " '" : "", buf_str(&text), word ? "'" : "");
	buf_free(&text);
	return STATUS_USAGE;
}

static int trouble(const char *sentence)
{
	fprintf(stderr, "warder: %s\n", sentence);
	return STATUS_TROUBLE;
}

static int put(struct buf *out)
{
	int status = STATUS_FINE;
	bool bad = buf_error(out) < 0 || fwrite(buf_str(out), 1, out->len, stdout) != out->len ||
		   fflush(stdout) != 0;
	if (bad)
		status = trouble("could not write to stdout");
	buf_free(out);
	return status;
}

/* ---- what is there ---- */

static void cli_release(struct cli *c)
{
	store_release(&c->store);
	project_release(&c->project);
	free(c->cwd);
	free(c->user_file);
	free(c->project_file);
}

static int cli_open(struct cli *c)
{
	int r = store_open(environ, &c->store, &c->error);
	if (r < 0)
		return trouble(c->error.text);
	const char *homes[] = {c->store.home, NULL};
	c->cwd = getcwd(NULL, 0);
	r = c->cwd ? project_find(c->cwd, c->project_dir, homes, &c->project) : -errno;
	if (r < 0)
		return trouble(c->cwd ? "the project directory can't be found"
				      : "the current directory can't be found");
	c->user_file = store_user_policy(&c->store);
	c->project_file = store_project_policy(&c->store, &c->project);
	c->vars = (struct policy_vars){
		.home = c->store.home, .project = c->project.dir, .env = environ};
	return c->user_file && c->project_file ? STATUS_FINE : trouble("out of memory");
}

/* A file that is not there has no rules. 0, or -errno with c->error. */
static int load(struct cli *c, struct policy *p, const char *file, enum rule_source source)
{
	int r = policyfile_load(p, file, source, &c->vars, &c->error);
	return r == -ENOENT ? 0 : r;
}

static int load_saved(struct cli *c, struct policy *p)
{
	int r = load(c, p, c->user_file, RULE_USER);
	return r < 0 ? r : load(c, p, c->project_file, RULE_PROJECT);
}

static int load_presets(struct cli *c, struct policy *p)
{
	char *note AUTOFREE = NULL;
	int r = preset_add(p, "system", &c->vars, &c->error);
	if (r == 0)
		r = preset_add(p, "tmp", &c->vars, &c->error);
	if (r == 0)
		r = preset_add_project(p, &c->project, &c->vars, &note, &c->error);
	if (r == 0)
		r = store_protect(&c->store, p);
	if (r == 0 && note)
		fprintf(stderr, "warder: %s\n", note);
	return r;
}

/* ---- show ---- */

static void show_rule(struct buf *out, const struct rule *r)
{
	size_t start = out->len;
	policy_format_rule(out, r);
	while (out->len < start + 48 && !out->failed)
		buf_add_char(out, ' ');
	buf_add_str(out, "  # ");
	escape_add_str(out, r->origin);
	if (r->line)
		buf_addf(out, ":%u", r->line);
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

static void json_rule(struct jsonw *w, const struct rule *r)
{
	static const char *const kinds[] = {[RULE_TREE] = "tree",
					    [RULE_EXACT] = "exact",
					    [RULE_GLOB] = "glob",
					    [RULE_GLOB_EXACT] = "glob exact"};
	struct buf line = {0};
	jsonw_begin_object(w);
	jsonw_kstr(w, "effect", r->sensitive ? "sensitive" : effect_name(r->effect));
	jsonw_key(w, "access");
	jsonw_begin_array(w);
	for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1)
		if (r->access & bit)
			jsonw_str(w, access_name(bit));
	jsonw_end_array(w);
	jsonw_kpath(w, "path", r->path);
	jsonw_kstr(w, "kind", kinds[r->kind]);
	jsonw_kstr(w, "source", source_name(r->source));
	jsonw_kpath(w, "origin", r->origin);
	jsonw_kint(w, "line", r->line);
	policy_format_rule(&line, r);
	jsonw_kstr(w, "rule", buf_str(&line));
	jsonw_end_object(w);
	buf_free(&line);
}

static void show_json(const struct cli *c, const struct policy *p, struct buf *out)
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
	for (size_t i = 0; i < policy_len(p); i++)
		json_rule(&w, policy_at(p, i));
	jsonw_end_array(&w);
	jsonw_end_object(&w);
	buf_add_char(out, '\n');
}

static int show(struct cli *c, int argc, char **argv)
{
	if (argc)
		return usage("show takes no argument, not", argv[0]);
	struct policy *p;
	struct buf out = {0};
	if (policy_new(&p) < 0)
		return trouble("out of memory");
	int r = c->effective ? load_presets(c, p) : 0;
	if (r == 0)
		r = load_saved(c, p);
	if (r < 0) {
		policy_free(p);
		return trouble(c->error.text);
	}
	for (size_t i = 0; !c->json && i < policy_len(p); i++)
		show_rule(&out, policy_at(p, i));
	if (c->json)
		show_json(c, p, &out);
	policy_free(p);
	return put(&out);
}

/* ---- check ---- */

struct findings {
	struct buf errors, warnings; /* lines */
	size_t count;
};

/* The rules of one file within p. */
static int check_file(struct cli *c, struct policy *p, const char *file, enum rule_source source,
		      bool must_exist, struct findings *f)
{
	int r = policyfile_load(p, file, source, &c->vars, &c->error);
	if (r == -ENOENT && !must_exist)
		return 0;
	if (r == -EINVAL) {
		buf_addf(&f->errors, "%s\n", c->error.text);
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

static int say_findings(const struct cli *c, struct findings *f)
{
	struct buf out = {0};
	int status = f->errors.len ? STATUS_NO : STATUS_FINE;
	if (c->json) {
		struct jsonw w;
		jsonw_init(&w, &out);
		jsonw_begin_object(&w);
		jsonw_kbool(&w, "ok", !f->errors.len);
		json_lines(&w, "errors", &f->errors);
		json_lines(&w, "warnings", &f->warnings);
		jsonw_end_object(&w);
		buf_add_char(&out, '\n');
	} else {
		buf_add_str(&out, buf_str(&f->errors));
		buf_add_str(&out, buf_str(&f->warnings));
		if (!out.len)
			buf_add_str(&out, "nothing to complain about\n");
	}
	int put_status = put(&out);
	return put_status ? put_status : status;
}

static int check_loaded(struct cli *c, struct policy *p, const char *file, struct findings *f)
{
	int r = load_presets(c, p);
	if (r < 0)
		return r;
	/* A single file is seen beside the saved ones where these can be read; they have their own
	 * `check`. */
	if (file) {
		load_saved(c, p);
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

static int check(struct cli *c, int argc, char **argv)
{
	if (argc > 1)
		return usage("check takes one file, not also", argv[1]);
	struct policy *p;
	struct findings f = {0};
	if (policy_new(&p) < 0)
		return trouble("out of memory");
	int r = check_loaded(c, p, argc ? argv[0] : NULL, &f);
	int status = r < 0 ? trouble(c->error.text) : say_findings(c, &f);
	buf_free(&f.errors);
	buf_free(&f.warnings);
	policy_free(p);
	return status;
}

/* ---- change ---- */

/*
 * The path of the command line as a policy's: it is a shell's word already, so nothing in it but *
 * ? (and \ before them) has a meaning, and a relative one starts at the cwd, not at the project.
 */
static void add_path(const struct cli *c, struct buf *out, const char *path)
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
		return usage("expected an access and a path", NULL);
	if (argc > 2)
		return usage("expected one path, not also", argv[2]);
	q.path = argv[argc - 1];
	q.access = argc == 2 ? argv[0] : NULL;
	if (q.access && access_parse(q.access, strlen(q.access), &mask, &at) < 0)
		return usage("expected an access such as r, rw or read,list, not", q.access);
	if (!q.access && access_parse(q.path, strlen(q.path), &mask, &at) == 0)
		return usage("expected a path after", q.path);
	if (!q.path[0])
		return usage("expected a path, not", q.path);
	*ret = q;
	return 0;
}

static int parse_request(struct cli *c, const char *effect, const struct request *q,
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
static void say_overruled(struct cli *c, const struct rule *saved)
{
	struct policy *p;
	if (policy_new(&p) < 0)
		return;
	bool loaded = load_presets(c, p) == 0 && load_saved(c, p) == 0;
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

static int save(struct cli *c, const struct rule *rule)
{
	size_t changed = 0;
	int r = store_put_rule(target_file(c), rule, NULL, &c->vars, &changed, &c->error);
	if (r < 0)
		return trouble(c->error.text);
	struct buf out = {0};
	policy_format_rule(&out, rule);
	buf_add_str(&out, "  # saved in ");
	escape_add_str(&out, target_file(c));
	if (changed)
		buf_addf(&out, ", instead of %zu other", changed);
	buf_add_char(&out, '\n');
	int status = put(&out);
	say_overruled(c, rule);
	return status;
}

static int change(struct cli *c, const char *effect, int argc, char **argv)
{
	struct request q;
	int status = read_request(argc, argv, &q);
	if (status)
		return status;
	struct policy *p;
	if (policy_new(&p) < 0)
		return trouble("out of memory");
	int r = parse_request(c, effect, &q, p);
	status = r < 0 ? usage(c->error.text, NULL) : save(c, policy_at(p, 0));
	policy_free(p);
	return status;
}

static int forget_path(struct cli *c, const char *path, uint32_t access)
{
	size_t removed = 0;
	int r = store_forget(target_file(c), path, access, &c->vars, &removed, &c->error);
	if (r < 0)
		return trouble(c->error.text);
	struct buf out = {0};
	buf_addf(&out, "%zu removed from ", removed);
	escape_add_str(&out, target_file(c));
	buf_add_char(&out, '\n');
	int status = put(&out);
	return status ? status : removed ? STATUS_FINE : STATUS_NO;
}

static int forget(struct cli *c, int argc, char **argv)
{
	uint32_t access = ACCESS_ALL;
	size_t at;
	if (argc < 1 || argc > 2)
		return usage("forget takes a path, and an access", NULL);
	if (argc == 2 && access_parse(argv[1], strlen(argv[1]), &access, &at) < 0)
		return usage("expected an access such as r, rw or read,list, not", argv[1]);
	struct request q = {.path = argv[0]};
	struct policy *p;
	if (policy_new(&p) < 0)
		return trouble("out of memory");
	int r = parse_request(c, "allow", &q, p);
	int status =
		r < 0 ? usage(c->error.text, NULL) : forget_path(c, policy_at(p, 0)->path, access);
	policy_free(p);
	return status;
}

static int path(struct cli *c, int argc, char **argv)
{
	if (argc)
		return usage("path takes no argument, not", argv[0]);
	struct buf out = {0};
	/* For scripts: the bytes as they are, unless a terminal would read them. */
	if (isatty(STDOUT_FILENO))
		escape_add_str(&out, target_file(c));
	else
		buf_add_str(&out, target_file(c));
	buf_add_char(&out, '\n');
	return put(&out);
}

static int run(struct cli *c, const char *word, int argc, char **argv)
{
	if (strcmp(word, "show") == 0)
		return show(c, argc, argv);
	if (strcmp(word, "check") == 0)
		return check(c, argc, argv);
	if (strcmp(word, "forget") == 0)
		return forget(c, argc, argv);
	if (strcmp(word, "path") == 0)
		return path(c, argc, argv);
	return change(c, word, argc, argv);
}

static bool is_known(const char *word)
{
	static const char *const words[] = {"show", "check",  "allow",	"deny",
					    "ask",  "forbid", "forget", "path"};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

int cli_policy(int argc, char **argv)
{
	static const struct option options[] = {{"effective", no_argument, NULL, 'e'},
						{"json", no_argument, NULL, 'j'},
						{"project", optional_argument, NULL, 'p'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	struct cli c = {0};
	opterr = 0;
	optind = 0; /* a fresh scan: the caller may have used getopt itself */
	for (int o; (o = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
		if (o == 'h')
			return fputs(help, stdout) < 0 ? STATUS_TROUBLE : STATUS_FINE;
		if (o == '?')
			return usage("unknown option", argv[optind - 1]);
		c.effective |= o == 'e';
		c.json |= o == 'j';
		c.for_project |= o == 'p';
		if (o == 'p')
			c.project_dir = optarg;
	}
	if (optind == argc)
		return usage("expected show, check, allow, deny, ask, forbid, forget or path",
			     NULL);
	if (!is_known(argv[optind]))
		return usage("expected show, check, allow, deny, ask, forbid, forget or path, not",
			     argv[optind]);
	bool shows = strcmp(argv[optind], "show") == 0;
	if (c.json && !shows && strcmp(argv[optind], "check") != 0)
		return usage("--json goes with show and check, not", argv[optind]);
	if (c.effective && !shows)
		return usage("--effective goes with show, not", argv[optind]);
	int status = cli_open(&c);
	if (status == STATUS_FINE)
		status = run(&c, argv[optind], argc - optind - 1, argv + optind + 1);
	cli_release(&c);
	return status;
}
