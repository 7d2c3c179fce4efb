/*
 * `warder session`: what runs with --session NAME share.
 */
#include "supervisor/cli.h"

#include "supervisor/escape.h"
#include "supervisor/named.h"
#include "supervisor/timestamp.h"
#include "tracer/json.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
	"Usage: warder session list [--json]\n"
	"       warder session end NAME...\n"
	"Runs with --session NAME share their answers and a temporary directory until the\n"
	"session is ended: what was answered \"session\" in one is not asked in the next.\n"
	"\n"
	"  list              each session: since when, how many answers, whether in use\n"
	"  end               forget the answers, remove the temporary directory\n"
	"\n"
	"  warder run --session nightly -- make\n"
	"  warder session end nightly\n"
	"\n"
	"Status: 0 fine, 1 no such session, or a run uses it, 2 usage, 125 failed.\n";

static const char list_help[] =
	"Usage: warder session list [--json]\n"
	"Each session: since when, how many answers, whether a run uses it, its TMPDIR.\n"
	"\n"
	"  --json            one JSON object on stdout\n"
	"\n"
	"  warder session list\n"
	"  warder session list --json | jq -r '.sessions[].name'\n";

static const char end_help[] =
	"Usage: warder session end NAME...\n"
	"Forget what was answered in the sessions, and remove their TMPDIRs.\n"
	"\n"
	"  warder session end nightly\n"
	"  warder session end $(warder session list --json | jq -r '.sessions[].name')\n"
	"\n"
	"Status: 0 ended, 1 no such session, or a run uses it, 2 usage, 125 failed.\n";

static int usage(const char *what, const char *word)
{
	cli_complain("session: %s%s%s%s; see warder session --help", what, word ? " '" : "",
		     word ? word : "", word ? "'" : "");
	return CLI_EXIT_USAGE;
}

/* ---- list ---- */

static int add_line(void *arg, const struct named_info *i)
{
	char begun[TIMESTAMP_LEN];
	struct buf *out = arg;
	buf_addf(out, "%-20s since %.16s  %zu answer%s%s", i->name,
		 timestamp_format(&i->begun, begun), i->answers, i->answers == 1 ? "" : "s",
		 i->in_use ? "  in use" : "");
	if (i->tmpdir) {
		buf_add_str(out, "  ");
		escape_add_str(out, i->tmpdir);
	}
	buf_add_char(out, '\n');
	return 0;
}

static int add_object(void *arg, const struct named_info *i)
{
	char begun[TIMESTAMP_LEN];
	struct jsonw *w = arg;
	jsonw_begin_object(w);
	jsonw_kstr(w, "name", i->name);
	jsonw_kstr(w, "begun", timestamp_format(&i->begun, begun));
	jsonw_kint(w, "answers", (int64_t)i->answers);
	jsonw_kbool(w, "in_use", i->in_use);
	jsonw_kpath(w, "tmpdir", i->tmpdir);
	jsonw_end_object(w);
	return 0;
}

static int list(const char *state_dir, bool json)
{
	struct buf out = {0};
	struct jsonw w;
	int err;
	if (json) {
		jsonw_init(&w, &out);
		jsonw_begin_object(&w);
		jsonw_key(&w, "sessions");
		jsonw_begin_array(&w);
		err = named_each(state_dir, add_object, &w);
		jsonw_end_array(&w);
		jsonw_end_object(&w);
		buf_add_char(&out, '\n');
	} else {
		err = named_each(state_dir, add_line, &out);
	}
	if (!err)
		err = buf_error(&out);
	if (!err && (fwrite(buf_str(&out), 1, out.len, stdout) != out.len || fflush(stdout)))
		err = -errno;
	buf_free(&out);
	if (err)
		cli_complain("the sessions in %s can't be listed: %s", state_dir, strerror(-err));
	return err ? CLI_EXIT_TROUBLE : 0;
}

/* ---- end ---- */

static int end(const char *state_dir, const char *name)
{
	int err = named_end(state_dir, name);
	if (!err)
		return 0;
	if (err == -ENOENT)
		cli_complain("there is no session %s; see warder session list", name);
	else if (err == -EBUSY)
		cli_complain("a run uses the session %s: end that first", name);
	else
		cli_complain("the session %s could not be removed whole: %s", name,
			     err == -EPERM ? strerror(-err) : ownfile_strerror(err));
	return err == -ENOENT || err == -EBUSY ? 1 : CLI_EXIT_TROUBLE;
}

static int end_all(const char *state_dir, char **names)
{
	int worst = 0;
	for (; *names; names++) {
		int status = end(state_dir, *names);
		worst = status > worst ? status : worst;
	}
	return worst;
}

/* What was given; loans of argv. */
struct request {
	const char *word;
	char **names;
	bool json, help;
};

static const char *help_of(const struct request *q)
{
	if (q->word && !strcmp(q->word, "list"))
		return list_help;
	return q->word && !strcmp(q->word, "end") ? end_help : help;
}

static int parse(struct request *q, int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	opterr = 0;
	optind = 0; /* a fresh scan: the caller may have used getopt itself */
	for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
		if (c == '?')
			return usage("unknown option", argv[optind - 1]);
		q->json |= c == 'j';
		q->help |= c == 'h';
	}
	q->word = argv[optind];
	q->names = argv + optind + !!q->word;
	return 0;
}

static int act(const char *state_dir, const struct request *q)
{
	bool lists = q->word && !strcmp(q->word, "list");
	if (!lists && (!q->word || strcmp(q->word, "end") != 0))
		return q->word ? usage("expected list or end, not", q->word)
			       : usage("expected list or end", NULL);
	if (lists)
		return q->names[0] ? usage("list takes no name, not", q->names[0])
				   : list(state_dir, q->json);
	if (q->json)
		return usage("--json goes with list, not with end", NULL);
	return q->names[0] ? end_all(state_dir, q->names) : usage("end needs a name", NULL);
}

int cli_session(int argc, char **argv)
{
	extern char **environ;
	struct policy_error why = {0};
	struct request q = {0};
	struct store store;
	int status = parse(&q, argc, argv);
	if (status)
		return status;
	if (q.help) {
		fputs(help_of(&q), stdout);
		return 0;
	}
	if (store_open(environ, &store, &why)) {
		cli_complain("%s", why.text);
		return CLI_EXIT_TROUBLE;
	}
	status = act(store.state_dir, &q);
	store_release(&store);
	return status;
}
