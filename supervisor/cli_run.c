#include "supervisor/cli.h"

#include "supervisor/environ.h"
#include "supervisor/escape.h"
#include "supervisor/progname.h"
#include "supervisor/report.h"
#include "supervisor/session.h"
#include "tracer/outfile.h"
#include "tracer/status.h"
#include "tracer/tracewrite.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void help(bool all)
{
	puts("Usage: warder run [OPTIONS] [--] COMMAND [ARG...]\n"
	     "Run COMMAND behind a wall: what the policy does not allow is refused by the\n"
	     "kernel, named exactly, asked about, and where granted done in place.");
	if (!all)
		putchar('\n');
	cli_options_help(false, all);
	puts("\nStatus: the command's own; 123 --fail-on-denial, 124 timeout, 125 warder failed\n"
	     "and nothing was run, 126 not executable, 127 not found.\n\n"
	     "  warder run -- npm install      ask about what it touches outside the project\n"
	     "  warder run --on-denial report --report r.json -r ~/.gitconfig -- make -j4");
}

static void help_record(bool all)
{
	puts("Usage: warder record -o TRACE [OPTIONS] [--] COMMAND [ARG...]\n"
	     "Run COMMAND as `warder run` does, with its options and its status, and write\n"
	     "down every watched call: what it named, what it returned, what was decided.\n\n"
	     "  -o, --output TRACE                the file, complete once so named; *.zst:\n"
	     "                                    compressed");
	if (all)
		cli_options_help(false, true);
	else
		puts("      --permissive                  no wall: learn what a program that one\n"
		     "                                    trusts needs\n"
		     "  -h, --help [all]                  this text; all: run's options, too");
	puts("\nRead a trace with warder replay, learn from it with warder learn;\n"
	     "warder-trace(5) tells each field.\n\n"
	     "  warder record -o t.jsonl -- make test\n"
	     "  warder record --permissive -o t.jsonl.zst -- npm install");
}

/* Descriptors that the caller left open for the command, as `cmd <(...)` does. */
struct inherited {
	int *fd;
	size_t len;
};

/* Two descriptors of one pipe or socket. */
static bool same_channel(int a, int b)
{
	struct stat x, y;
	return a >= 0 && b >= 0 && !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino && (S_ISFIFO(x.st_mode) || S_ISSOCK(x.st_mode));
}

static bool is_channel(const struct cli_options *o, int fd)
{
	return same_channel(fd, o->answers) || same_channel(fd, o->events);
}

/*
 * Who has an end of the answers' pipe has both (/proc/self/fd/N): the command would answer its own
 * questions; on the events' it would put words into our mouth.
 */
static bool channels_are_apart(const struct cli_options *o)
{
	for (int fd = 0; fd < 3; fd++) {
		if (!is_channel(o, fd))
			continue;
		cli_complain(
			"descriptor %d is the command's own as well: it could answer for you; give "
			"--events and --answers pipes of their own",
			fd);
		return false;
	}
	return true;
}

static bool inherited_find(const struct cli_options *o, struct inherited *in)
{
	DIR *d = opendir("/proc/self/fd");
	if (!d)
		return false;
	bool ok = true;
	for (const struct dirent *e; ok && (e = readdir(d));) {
		int fd = atoi(e->d_name);
		int flags = fcntl(fd, F_GETFD);
		if (fd < 3 || fd == dirfd(d) || flags < 0 || (flags & FD_CLOEXEC) ||
		    is_channel(o, fd))
			continue;
		int *longer = realloc(in->fd, (in->len + 1) * sizeof *longer);
		ok = longer != NULL;
		if (ok) {
			in->fd = longer;
			in->fd[in->len++] = fd;
		}
	}
	closedir(d);
	return ok;
}

static void say(void *arg, const char *line)
{
	const struct cli_options *o = arg;
	if (!o->quiet)
		cli_complain("%s", line);
}

static void say_notes(const struct cli_options *o, struct session *s)
{
	for (char *const *n = session_notes(s); *n && !o->quiet; n++)
		cli_complain("%s", *n);
	if (o->permissive && !o->quiet)
		cli_complain("--permissive: there is no wall; what the policy would refuse is "
			     "reported, and not refused");
	if (o->yes && !o->quiet)
		cli_complain("--yes: everything that is not on the sensitive list is allowed once");
}

/* Whatever the policy says, the command writes nothing of its own there, nor moves it away. */
static int protect(const char *path, const char *what, struct session *s)
{
	struct rule rule = {.effect = EFFECT_FORBID,
			    .kind = RULE_EXACT,
			    .source = RULE_BUILTIN,
			    .access = ACCESS_W,
			    .path = (char *)path,
			    .origin = (char *)what};
	return session_add_rule(s, &rule);
}

static int protect_report(const char *real, int fd, struct session *s)
{
	struct stat st;
	if (fstat(fd, &st))
		return -errno;
	return S_ISREG(st.st_mode) ? protect(real, "the report", s) : 0;
}

/* Where nothing is refused there is nothing to ask about. */
static bool permissive_is_alone(const struct cli_options *o)
{
	const char *other = o->mode == ENGINE_HOLD    ? "--on-denial hold"
			    : o->mode == ENGINE_RETRY ? "--on-denial retry"
			    : o->yes		      ? "--yes"
			    : o->answers >= 0	      ? "--answers"
						      : NULL;
	if (o->permissive && other)
		cli_complain("--permissive refuses nothing and asks nothing: it can't be used "
			     "with %s",
			     other);
	return !o->permissive || !other;
}

static void say_link(const char *option, const char *link)
{
	struct buf name = {0};
	escape_add_str(&name, link);
	cli_complain("%s: %s is a symlink that a command could have made: name the file itself",
		     option, buf_str(&name));
	buf_free(&name);
}

/* -ELOOP: since it was looked at, by a command of another run. */
static void say_not_opened(const char *option, const char *file, int err)
{
	struct buf name = {0};
	escape_add_str(&name, file);
	cli_complain("%s: %s: %s", option, buf_str(&name),
		     err == -ELOOP ? "a symlink is on the way that was not there just now"
				   : strerror(-err));
	buf_free(&name);
}

/*
 * Nothing is written where a symlink of an earlier command's leads. The real name, owned, which is
 * the one that was judged; NULL: told.
 */
static char *meant_file(const char *option, const char *file, const struct session *s)
{
	char *link AUTOFREE = NULL;
	char *real = NULL;
	int err = session_doubts_file(s, file, &real, &link);
	if (link)
		say_link(option, link);
	else if (err)
		say_not_opened(option, file, err);
	return real;
}

/* The report's file is opened before anything runs, so that the command can't put another in its
 * place. */
static int open_report(const struct cli_options *o, struct session *s)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY;
	if (!o->report || !strcmp(o->report, "-"))
		return -1;
	char *real AUTOFREE = meant_file("--report", o->report, s);
	if (!real)
		return -1;
	bool device = outfile_is_device(o->report);
	int fd = device ? open(o->report, flags, 0600) : outfile_open(real, flags, 0600);
	int err = fd >= 0 ? protect_report(real, fd, s) : device ? -errno : fd;
	if (!err)
		return fd;
	say_not_opened("--report", o->report, err);
	if (fd >= 0)
		close(fd);
	return -1;
}

/*
 * As the report: there before anything runs, and out of the command's reach, under the name that it
 * has meanwhile and the one that it is to have. False: told.
 */
static bool open_trace(const struct cli_options *o, struct session *s, struct tracewrite **ret)
{
	struct trace_error why;
	*ret = NULL;
	if (!o->trace)
		return true;
	char *real AUTOFREE = meant_file("the trace", o->trace, s);
	if (!real)
		return false;
	int err = tracewrite_open(real, ret, &why);
	if (err) {
		cli_complain("the trace can't be written: %s", why.text);
		return false;
	}
	if (!tracewrite_is_temporary(*ret))
		return true;
	err = protect(tracewrite_name(*ret), "the trace", s);
	if (!err)
		err = protect(tracewrite_final_name(*ret), "the trace", s);
	if (err)
		cli_complain("%s", strerror(-err));
	return !err;
}

/* The engine has told of a file that could not be written. False: there is no whole trace. */
static bool put_trace(struct tracewrite *w)
{
	if (!w || !tracewrite_has_header(w))
		return true; /* nothing was run */
	bool failed = tracewrite_failure(w) != 0;
	int err = tracewrite_finish(w);
	if (err && !failed)
		cli_complain("the trace could not be finished: %s; what there is of it stays in %s",
			     strerror(-err), tracewrite_name(w));
	return !err;
}

static int put_report(const struct cli_options *o, struct report *rep, int fd)
{
	struct buf text = {0};
	bool to_stdout = o->json || (o->report && !strcmp(o->report, "-"));
	if (fd < 0 && !to_stdout)
		return 0;
	rep->no_redact = o->no_redact;
	int err = report_write(rep, &text);
	buf_add_char(&text, '\n');
	if (!err && to_stdout)
		err = buf_write_to(STDOUT_FILENO, buf_str(&text), text.len);
	if (!err && fd >= 0)
		err = buf_write_to(fd, buf_str(&text), text.len);
	buf_free(&text);
	if (err)
		cli_complain("the report could not be written: %s", strerror(-err));
	return err;
}

static void say_leftovers(const struct report *rep)
{
	struct buf line = {0};
	if (!rep->leftovers_len)
		return;
	for (size_t i = 0; i < rep->leftovers_len; i++) {
		buf_addf(&line, "%s%s (%d)", i ? ", " : "",
			 progname_of(rep->leftovers[i].argv0, rep->leftovers[i].exe),
			 rep->leftovers[i].pid);
	}
	cli_complain("ended what outlived the command: %s", buf_str(&line));
	buf_free(&line);
}

/* -v: what is otherwise in the report alone. */
static void say_engine(const struct report *rep)
{
	cli_complain("mode %s, Landlock ABI %d, %" PRIu64 " stops, %" PRIu64
		     " calls done in the command's place, %lld ms, %lld of them held",
		     rep->engine.mode, rep->engine.landlock_abi, rep->engine.stops,
		     rep->engine.brokered, (long long)rep->wall_ms, (long long)rep->held_ms);
	for (char **n = rep->engine.degraded; n && *n; n++)
		cli_complain("this kernel: %s", *n);
	for (char **n = rep->engine.notes; n && *n; n++)
		cli_complain("%s", *n);
}

/* What explains a program that failed though nothing was refused to it. */
static void say_told_notes(const struct report *rep)
{
	for (size_t i = 0; i < rep->engine.notes_told; i++)
		cli_complain("%s", rep->engine.notes[i]);
}

static void say_end(const struct cli_options *o, struct session *s,
		    const struct engine_outcome *out)
{
	struct buf lines = {0};
	if (out->why.text[0])
		cli_complain("%s%s%s",
			     out->not_found || out->not_executable ? out->report.command[0] : "",
			     out->not_found || out->not_executable ? ": " : "", out->why.text);
	if (o->quiet)
		return;
	if (out->timed_out)
		cli_complain("the time limit was reached");
	say_leftovers(&out->report);
	if (o->verbose && out->report.engine.mode)
		say_engine(&out->report);
	else
		say_told_notes(&out->report);
	report_summary(&out->report, session_store(s)->home, &lines);
	fputs(buf_str(&lines), stderr);
	buf_free(&lines);
}

/* End as the command did: a shell loop stops at Ctrl-C only if we die by the signal, too. */
static int die_by(int sig)
{
	struct rlimit none = {0, 0};
	sigset_t one;
	setrlimit(RLIMIT_CORE, &none);
	signal(sig, SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, sig);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	raise(sig);
	return 128 + sig;
}

static int run_command(const struct cli_options *o, char **argv, struct session *s,
		       const struct inherited *in, const struct status *self)
{
	extern char **environ;
	const char *no = environ_get(environ, "NO_COLOR");
	struct engine_command c;
	struct engine_outcome out;
	struct tracewrite *trace = NULL;
	int report_fd AUTOCLOSE = open_report(o, s);
	if ((o->report && strcmp(o->report, "-") != 0 && report_fd < 0) ||
	    !open_trace(o, s, &trace)) {
		tracewrite_free(trace);
		return CLI_EXIT_TROUBLE;
	}
	cli_engine_command(o, &c);
	c.trace = trace;
	c.argv = argv;
	c.env = environ;
	c.self = self->text[0] ? self : NULL;
	c.own_terminal = true;
	c.keep_from = c.keep_to = in->fd;
	c.keep_len = in->len;
	c.color = isatty(STDERR_FILENO) && !(no && *no);
	c.hooks.say = say;
	c.hooks.arg = (void *)o;
	int err = engine_run(s, &c, &out);
	if (err)
		cli_complain("%s", strerror(-err));
	say_end(o, s, &out);
	int status = engine_exit_status(&out, o->fail_on_denial);
	if (!put_trace(trace) && status == 0)
		status = CLI_EXIT_TROUBLE;
	tracewrite_free(trace);
	if (put_report(o, &out.report, report_fd) && status == 0)
		status = CLI_EXIT_TROUBLE;
	report_release(&out.report);
	return status;
}

static int run_in_session(const struct cli_options *o, char **argv, const struct inherited *in)
{
	extern char **environ;
	struct session_options so;
	struct session *s;
	struct policy_error why;
	struct status self;
	if (engine_is_traced(&self)) {
		/* Before our own files are looked at: another warder's wall keeps them from us. */
		cli_complain("already traced (a debugger, strace or another warder): the command "
			     "would not be supervised, and was not run");
		return CLI_EXIT_TROUBLE;
	}
	cli_session_options(o, environ, &so);
	if (session_new(&so, &s, &why)) {
		cli_complain("%s", why.text);
		return CLI_EXIT_TROUBLE;
	}
	say_notes(o, s);
	int status = run_command(o, argv, s, in, &self);
	int err = session_remove_tmpdir(s);
	if (err)
		cli_complain("the temporary directory %s could not be removed whole: %s",
			     session_tmpdir(s), strerror(-err));
	session_free(s);
	return status;
}

/* `run`, and `record`, which is a run that is about its trace. */
struct flavour {
	const char *name;
	void (*help)(bool all);
	bool records;
};

/* record's -o FILE, -oFILE. */
static bool is_output(const struct flavour *f, const char *word)
{
	return f->records && (!strncmp(word, "-o", 2) || !strcmp(word, "--output"));
}

static enum cli_parse take_output(struct cli_options *o, int argc, char **argv, int *i)
{
	const char *word = argv[(*i)++];
	if (word[1] == 'o' && word[2]) {
		o->trace = word + 2;
		return CLI_PARSED;
	}
	if (*i >= argc) {
		cli_complain("%s needs a value: the trace's file", word);
		return CLI_WRONG;
	}
	o->trace = argv[(*i)++];
	return CLI_PARSED;
}

static enum cli_parse parse(const struct flavour *f, struct cli_options *o, int argc, char **argv,
			    int *i)
{
	while (*i < argc && argv[*i][0] == '-' && argv[*i][1]) {
		bool known = true;
		if (!strcmp(argv[*i], "--")) {
			++*i;
			break;
		}
		enum cli_parse p = is_output(f, argv[*i])
					   ? take_output(o, argc, argv, i)
					   : cli_option(o, argc, argv, i, false, &known);
		if (!known)
			cli_unknown_option(argv[*i], false, NULL, f->name);
		if (p != CLI_PARSED)
			return p;
	}
	if (f->records && !o->trace) {
		cli_complain("where to? warder record -o TRACE -- COMMAND; see warder record "
			     "--help");
		return CLI_WRONG;
	}
	if (*i < argc)
		return CLI_PARSED;
	cli_complain("no command given; see warder %s --help", f->name);
	return CLI_WRONG;
}

static int run_as(const struct flavour *f, int argc, char **argv)
{
	struct cli_options o;
	struct inherited in = {0};
	int i = 1, status;
	cli_options_init(&o);
	switch (parse(f, &o, argc, argv, &i)) {
	case CLI_HELP:
		f->help(cli_help_of_all(argc, argv, i));
		status = 0;
		break;
	case CLI_WRONG:
		status = CLI_EXIT_TROUBLE; /* nothing was run: never a status the command could have
					    */
		break;
	case CLI_PARSED:
	default:
		if (!permissive_is_alone(&o) || !channels_are_apart(&o)) {
			status = CLI_EXIT_TROUBLE;
		} else if (inherited_find(&o, &in)) {
			status = run_in_session(&o, argv + i, &in);
		} else {
			cli_complain("/proc/self/fd can't be read: is /proc mounted?");
			status = CLI_EXIT_TROUBLE;
		}
	}
	free(in.fd);
	cli_options_release(&o);
	return status < 0 ? die_by(-status) : status;
}

int cli_run(int argc, char **argv)
{
	const struct flavour run = {"run", help, false};
	return run_as(&run, argc, argv);
}

int cli_record(int argc, char **argv)
{
	const struct flavour record = {"record", help_record, true};
	return run_as(&record, argc, argv);
}
