#include "supervisor/cli_learn.h"

#include "supervisor/cli.h"
#include "supervisor/escape.h"
#include "supervisor/learn.h"
#include "supervisor/store.h"
#include "tracer/util.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
	"Usage: warder learn [OPTIONS] TRACE...\n"
	"The narrowest sensible policy for what the traces did, on stdout: a rule a line,\n"
	"behind it who needed it, how often, and what else it opens. Sensitive things\n"
	"make no rule; they are listed at the end. It is for runs with the presets\n"
	"system, tmp and project.\n"
	"\n"
	"TRACE is of warder record, or the text of strace -f; - is standard input.\n"
	"\n"
	"  --verify        go through the traces again under that policy: is all of it\n"
	"                  allowed, and nothing more than the comments say? To stderr\n"
	"  --diff OLD      only what the traces need beyond the policy OLD\n"
	"  --project DIR   the project of the result (default: the first trace's)\n"
	"  --cwd DIR       where the first process of a strace started (default: here)\n"
	"\n"
	"  warder learn trace.jsonl | warder policy import -\n"
	"  warder learn --verify --diff old.policy monday.jsonl tuesday.jsonl\n"
	"\n"
	"Status: 0 fine, 1 not verified, or --diff found something, 2 usage, 125 failed.\n";

struct request {
	bool verify;
	const char *old, *project, *cwd; /* loans of argv */
	char **trace;
	size_t traces;
	/* found */
	char *home;	   /* owned */
	char *project_dir; /* owned */
	struct buf old_text;
};

static int usage(const char *what, const char *word)
{
	cli_complain("%s%s%s%s; see warder learn --help", what, word ? " '" : "", word ? word : "",
		     word ? "'" : "");
	return CLI_EXIT_USAGE;
}

static int trouble(const char *sentence)
{
	fprintf(stderr, "warder: %s\n", sentence); /* escaped where it was made */
	return CLI_EXIT_TROUBLE;
}

/* ---- the traces ---- */

typedef int event_fn(struct learn *l, const struct trace_event *ev);

static int read_events(struct learn *l, struct trace_reader *r, event_fn *take,
		       struct trace_error *e)
{
	struct trace_event ev;
	int n;
	while ((n = trace_next(r, &ev, e)) > 0) {
		int err = take(l, &ev);
		if (err) {
			snprintf(e->text, sizeof e->text, "out of memory");
			return err;
		}
	}
	return n;
}

static void say_reading(const struct trace_reader *r)
{
	if (!trace_is_complete(r))
		cli_complain("%s is incomplete: it was read up to its last whole line",
			     trace_name(r));
	if (trace_faults(r))
		cli_complain("%s: %" PRIu64 " lines could not be read and were passed over",
			     trace_name(r), trace_faults(r));
}

/* The i-th and those that belong to it (strace -ff's): *ret_n of them. A status. */
static int read_trace(const struct request *q, struct learn *l, size_t i, event_fn *take,
		      bool first_time, size_t *ret_n)
{
	const char *file = q->trace[i];
	unsigned told = 0;
	const struct trace_options o = {
		.cwd = q->cwd, .fault = first_time ? cli_tell_fault : NULL, .fault_arg = &told};
	struct trace_reader *r;
	struct trace_error e = {""};
	struct policy_error why = {""};
	if (trace_open_first((const char *const *)q->trace + i, q->traces - i, &o, &r, ret_n, &e))
		return trouble(e.text);
	int err = learn_begin(l, trace_header(r), &why), status = 0;
	if (err) {
		cli_complain("%s: the policy in its header: %s", file,
			     why.text[0] ? why.text : strerror(-err));
		status = CLI_EXIT_TROUBLE;
	} else if (read_events(l, r, take, &e)) {
		status = trouble(e.text);
	} else if (first_time) {
		say_reading(r);
	}
	trace_close(r);
	return status;
}

static int read_all(const struct request *q, struct learn *l, event_fn *take, bool first_time)
{
	int status = 0;
	size_t taken = 1;
	for (size_t i = 0; !status && i < q->traces; i += taken)
		status = read_trace(q, l, i, take, first_time, &taken);
	return status;
}

/* ---- the result ---- */

static int put(const struct buf *out)
{
	if (fwrite(buf_str(out), 1, out->len, stdout) == out->len && !fflush(stdout))
		return 0;
	cli_complain("could not write to stdout");
	return CLI_EXIT_TROUBLE;
}

static int say_verdict(struct learn_verdict *v)
{
	if (v->missed)
		cli_complain("not verified: %" PRIu64
			     " accesses are still not allowed, the first is "
			     "%s",
			     v->missed, v->first_missed ? v->first_missed : "?");
	if (v->wider)
		cli_complain(
			"not verified: %zu things are open that no comment tells of, the first "
			"is %s",
			v->wider, v->first_wider ? v->first_wider : "?");
	if (!v->missed && !v->wider)
		cli_complain("verified: %" PRIu64 " accesses are allowed, %" PRIu64
			     " are listed as left out, and nothing else is open but what the "
			     "comments say",
			     v->allowed, v->left_out);
	bool wrong = v->missed || v->wider;
	free(v->first_missed);
	free(v->first_wider);
	return wrong ? 1 : 0;
}

static int verify(const struct request *q, struct learn *l, const struct buf *text)
{
	struct policy_error why;
	struct learn_verdict v;
	int err = learn_check_begin(l, buf_str(text), text->len, &why);
	if (err)
		return trouble(why.text);
	int status = read_all(q, l, learn_check, false);
	if (!status && !(err = learn_check_end(l, &v)))
		status = say_verdict(&v);
	return err ? trouble(strerror(-err)) : status;
}

static int learn_all(const struct request *q, struct learn *l)
{
	struct buf text = {0};
	size_t rules = 0;
	int status = read_all(q, l, learn_event, true);
	if (!status && learn_write(l, &text, &rules))
		status = trouble("out of memory");
	if (!status)
		status = put(&text);
	if (!status && q->verify)
		status = verify(q, l, &text);
	buf_free(&text);
	return !status && q->old && rules ? 1 : status;
}

/* ---- the words ---- */

static int find_place(struct request *q)
{
	extern char **environ;
	struct store store;
	struct policy_error why;
	if (store_open(environ, &store, &why))
		return trouble(why.text);
	q->home = store.home ? strdup(store.home) : NULL;
	store_release(&store);
	if (!q->home)
		return trouble("there is no home directory: HOME is not set");
	if (q->project && !(q->project_dir = realpath(q->project, NULL))) {
		cli_complain("--project: %s: %s", q->project, strerror(errno));
		return CLI_EXIT_TROUBLE;
	}
	if (q->old && policyfile_read(q->old, POLICYFILE_NAMED, &q->old_text, &why))
		return trouble(why.text);
	return 0;
}

static int run(struct request *q)
{
	struct policy_error why;
	struct learn *l;
	int status = find_place(q);
	if (status)
		return status;
	const struct learn_options o = {.home = q->home,
					.project = q->project_dir,
					.old = q->old ? buf_str(&q->old_text) : NULL,
					.old_name = q->old};
	if (learn_new(&o, &l, &why))
		return trouble(why.text[0] ? why.text : "out of memory");
	status = learn_all(q, l);
	learn_free(l);
	return status;
}

static int parse(struct request *q, int argc, char **argv)
{
	static const struct option options[] = {
		{"verify", no_argument, NULL, 'v'},	   {"diff", required_argument, NULL, 'd'},
		{"project", required_argument, NULL, 'p'}, {"cwd", required_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},	   {0}};
	opterr = 0;
	optind = 0;
	for (int o; (o = getopt_long(argc, argv, "+:h", options, NULL)) != -1;) {
		if (o == 'h')
			return -1;
		if (o == ':')
			return usage("a value is missing behind", argv[optind - 1]);
		if (o == '?')
			return usage("unknown option", argv[optind - 1]);
		q->verify |= o == 'v';
		if (o == 'd')
			q->old = optarg;
		if (o == 'p')
			q->project = optarg;
		if (o == 'c')
			q->cwd = optarg;
	}
	q->trace = argv + optind;
	q->traces = (size_t)(argc - optind);
	if (!q->traces)
		return usage("expected a trace", NULL);
	for (size_t i = 0; i < q->traces; i++)
		if (q->verify && !strcmp(q->trace[i], "-"))
			return usage("--verify reads the traces twice, and can't read twice from",
				     "-");
	return 0;
}

int cli_learn(int argc, char **argv)
{
	char here[PATH_MAX];
	struct request q = {0};
	int status = parse(&q, argc, argv);
	if (!status && !q.cwd)
		q.cwd = getcwd(here, sizeof here);
	if (status == -1)
		status = fputs(help, stdout) < 0 ? CLI_EXIT_TROUBLE : 0;
	else if (!status)
		status = run(&q);
	free(q.home);
	free(q.project_dir);
	buf_free(&q.old_text);
	return status;
}
