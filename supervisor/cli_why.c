#include "supervisor/cli_why.h"

#include "supervisor/cli.h"
#include "supervisor/compile.h"
#include "supervisor/escape.h"
#include "supervisor/whylast.h"
#include "tracer/json.h"
#include "tracer/util.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
	"Usage: warder why [OPTIONS] PATH [ACCESS]  what the policy says of PATH, and why\n"
	"       warder why [--json] [--last]        what the last run was refused and why\n"
	"\n"
	"Which rule decides each access, where it stands and since when; what the kernel\n"
	"does; whether the file's own permissions refuse it anyway; and the command that\n"
	"changes it. Of --last: under today's policy, with the run's presets and rules.\n"
	"\n"
	"  -r -w -x --rule --deny --policy --preset --no-preset --no-presets --project\n"
	"                    as for warder run: what it would say with them\n"
	"  --json            one JSON object on stdout\n"
	"\n"
	"ACCESS is r, w, x together, or names with commas (read,list); none: all of them.\n"
	"\n"
	"  warder why ~/.ssh/id_rsa read\n"
	"  warder why --preset git ~/.gitconfig\n"
	"\n"
	"Status: 0 allowed, 1 refused or asked about, 2 usage, 125 could not do it.\n";

struct request {
	struct cli_options o;
	bool last;
	const char *path, *access; /* loans of argv */
	uint32_t mask;
};

static int usage(const char *what, const char *word)
{
	cli_complain("%s%s%s%s; see warder why --help", what, word ? " '" : "", word ? word : "",
		     word ? "'" : "");
	return CLI_EXIT_USAGE;
}

/* The options of a run that say what its policy is. */
static bool is_policy_option(const char *word)
{
	static const char *const names[] = {"--read",	    "--write",	 "--exec",   "--rule",
					    "--deny",	    "--policy",	 "--preset", "--no-preset",
					    "--no-presets", "--project", "--json",   "--help",
					    "-r",	    "-w",	 "-x",	     "-h"};
	size_t n = word[1] == '-' ? strcspn(word, "=") : 2;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == n && !strncmp(names[i], word, n))
			return true;
	return false;
}

static int parse_words(struct request *q, int argc, char **argv, int i)
{
	size_t at;
	if (argc - i > 2)
		return usage("expected one path and one access, not also", argv[i + 2]);
	q->path = i < argc ? argv[i] : NULL;
	q->access = i + 1 < argc ? argv[i + 1] : NULL;
	q->last |= !q->path;
	if (q->last && q->path)
		return usage("--last is about the last run's denials, not about", q->path);
	if (q->path && !q->path[0])
		return usage("expected a path, not", q->path);
	if (q->access && access_parse(q->access, strlen(q->access), &q->mask, &at) < 0)
		return usage("expected an access such as r, rw or read,list, not", q->access);
	return 0;
}

/* 0; a status; -1: help was wanted. */
static int parse(struct request *q, int argc, char **argv)
{
	int i = 1;
	while (i < argc && argv[i][0] == '-' && argv[i][1]) {
		bool known = false;
		if (!strcmp(argv[i], "--")) {
			i++;
			break;
		}
		if (!strcmp(argv[i], "--last")) {
			q->last = true;
			i++;
			continue;
		}
		if (!is_policy_option(argv[i]))
			return usage("unknown option", argv[i]);
		enum cli_parse p = cli_option(&q->o, argc, argv, &i, false, &known);
		if (p != CLI_PARSED)
			return p == CLI_HELP ? -1 : CLI_EXIT_USAGE;
	}
	return parse_words(q, argc, argv, i);
}

/* The word as a path: ~/ too, which a quoting shell left alone; through all symlinks. */
static int resolve(const struct session *s, const char *word, char **ret)
{
	struct buf full = {0};
	const char *home = session_store(s)->home;
	if (word[0] == '~' && (!word[1] || word[1] == '/') && home) {
		buf_addf(&full, "%s%s", home, word + 1);
	} else if (word[0] != '/') {
		char cwd[PATH_MAX];
		if (!getcwd(cwd, sizeof cwd))
			return -errno;
		buf_addf(&full, "%s/%s", cwd, word);
	} else {
		buf_add_str(&full, word);
	}
	int err = buf_error(&full);
	if (!err)
		err = policyfile_canonical(buf_str(&full), ret);
	buf_free(&full);
	return err;
}

static int put(struct buf *out, int status)
{
	bool bad = buf_error(out) < 0 || fwrite(buf_str(out), 1, out->len, stdout) != out->len ||
		   fflush(stdout) != 0;
	buf_free(out);
	if (!bad)
		return status;
	cli_complain("could not write to stdout");
	return CLI_EXIT_TROUBLE;
}

static int tell(const struct request *q, struct whylast_place *place, const char *path)
{
	struct buf out = {0};
	struct why w = {.path = path,
			.policy = session_policy(place->session),
			.ruleset = place->ruleset,
			.home = session_store(place->session)->home};
	int err = why_ask(&w, q->mask);
	if (err) {
		why_release(&w);
		cli_complain("%s", strerror(-err));
		return CLI_EXIT_TROUBLE;
	}
	if (q->o.json) {
		struct jsonw j;
		jsonw_init(&j, &out);
		jsonw_begin_object(&j);
		jsonw_kint(&j, "warder_why", 1);
		why_write(&w, &j);
		jsonw_end_object(&j);
		buf_add_char(&out, '\n');
	} else {
		why_format(&w, &out);
	}
	int status = why_all_allowed(&w) ? 0 : 1;
	why_release(&w);
	return put(&out, status);
}

static int ask(const struct request *q)
{
	extern char **environ;
	struct session_options so;
	struct whylast_place place = {0};
	struct policy_error why;
	char *path AUTOFREE = NULL;
	cli_session_options(&q->o, environ, &so);
	if (whylast_open(&so, &place, &why)) {
		cli_complain("%s", why.text);
		return CLI_EXIT_TROUBLE;
	}
	int err = resolve(place.session, q->path, &path);
	int status = CLI_EXIT_TROUBLE;
	if (err == -EOPNOTSUPP)
		cli_complain("%s: /proc/self is another thing to every process; name /proc/PID",
			     q->path);
	else if (err)
		cli_complain("%s: %s", q->path, strerror(-err));
	else
		status = tell(q, &place, path);
	whylast_close(&place);
	return status;
}

static int ask_last(const struct request *q)
{
	extern char **environ;
	struct buf out = {0};
	struct policy_error why;
	int status = whylast(environ, q->o.json, &out, &why);
	if (status == CLI_EXIT_TROUBLE) {
		buf_free(&out);
		cli_complain("%s", why.text);
		return status;
	}
	return put(&out, status);
}

int cli_why(int argc, char **argv)
{
	struct request q = {0};
	cli_options_init(&q.o);
	int status = parse(&q, argc, argv);
	if (status == -1)
		status = fputs(help, stdout) < 0 ? CLI_EXIT_TROUBLE : 0;
	else if (!status)
		status = q.last ? ask_last(&q) : ask(&q);
	cli_options_release(&q.o);
	return status;
}
