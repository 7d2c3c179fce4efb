/*
 * bench_micro WORK OUTSIDE SAMPLES OPENS: what single acts cost. WORK is bench_work; OUTSIDE a
 * directory that no rule opens, with a file `file` in it; the current directory is the project.
 * Prints one JSON line an act: {"name":…,"what":…,"ns":[a sample each]}.
 *
 * The acts of a run (stop, report, brokered open) are differences between two runs that do few and
 * many of them, so that starting and ending cost nothing here.
 */
#include "bench/clock.h"
#include "bench/floor.h"
#include "landlock/llmodel.h"
#include "supervisor/compile.h"
#include "supervisor/engine.h"
#include "supervisor/learn.h"
#include "supervisor/warder.h"
#include "tracer/trace.h"
#include "tracer/tracer.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define SAMPLES_MAX 100
#define DECISIONS   10000
#define MODELLED    1000
#define WAIT_MS	    10000

extern char **environ;

struct bench {
	char *work;
	const char *outside;
	char *file; /* in outside */
	int samples;
	int opens; /* in one sample of those that are made of opens */
	struct session *session;
	struct llabi abi;
	struct llruleset *ruleset;
	int dir;    /* the project's descriptor */
	FILE *tell; /* our stdout; descriptor 1 is the commands' and leads nowhere */
};

/* ---- acts without a process: ns each ---- */

static int decide(struct bench *b, double *ret)
{
	const struct policy *p = session_policy(b->session);
	size_t allowed = 0;
	double start = clock_ns();
	for (int i = 0; i < DECISIONS; i++)
		allowed += policy_decide(p, b->file, ACCESS_READ).effect == EFFECT_ALLOW;
	*ret = (clock_ns() - start) / DECISIONS;
	return allowed ? -EINVAL : 0;
}

static int model(struct bench *b, double *ret)
{
	const struct lldomain domain = lldomain_of(b->ruleset);
	double start = clock_ns();
	for (int i = 0; i < MODELLED; i++) {
		uint64_t rights;
		int r = llmodel_granted(&domain, b->dir, &rights);
		if (r < 0)
			return r;
	}
	*ret = (clock_ns() - start) / MODELLED;
	return 0;
}

static int compile(struct bench *b, double *ret)
{
	struct llruleset *rs;
	struct compile_stats stats;
	double start = clock_ns();
	int r = compile_policy(session_policy(b->session), &b->abi, (uint32_t)b->abi.scoped, &rs,
			       &stats);
	*ret = clock_ns() - start;
	if (r == 0)
		llruleset_free(rs);
	return r;
}

/* A typical line of each kind that a program has many of, over and over. */
static const char strace_text[] =
	"10 newfstatat(AT_FDCWD, \"/usr/include/linux/falloc.h\", {st_mode=S_IFREG|0644, "
	"st_size=3584, ...}, 0) = 0\n"
	"10 openat(AT_FDCWD, \"/usr/include/linux/falloc.h\", O_RDONLY|O_NOCTTY) = 4\n"
	"10 read(4, \"/* SPDX-License-Identifier: GPL-2\"..., 3584) = 3584\n"
	"10 mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0\n"
	"10 close(4) = 0\n"
	"10 openat(AT_FDCWD, \"falloc.o\", O_RDWR|O_CREAT|O_TRUNC, 0666) = -1 EACCES (Permission "
	"denied)\n"
	"10 access(\"sub/falloc.d\", F_OK) = -1 ENOENT (No such file or directory)\n";
#define STRACE_LINES  7
#define STRACE_COPIES 3000

/* One line of strace's text, read as a trace: `warder replay` without a decision. */
static int import(struct bench *b, double *ret)
{
	struct trace_options options = {.cwd = "/project"};
	struct trace_error error = {{0}};
	struct trace_reader *r = NULL;
	struct trace_event ev;
	char name[64];
	(void)b;
	int fd AUTOCLOSE = memfd_create("strace", MFD_CLOEXEC);
	for (int i = 0; i < STRACE_COPIES; i++)
		if (write(fd, strace_text, sizeof(strace_text) - 1) < 0)
			return -errno;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	double start = clock_ns();
	int got = trace_open(name, &options, &r, &error);
	if (got < 0)
		return got;
	uint64_t events = 0;
	while ((got = trace_next(r, &ev, &error)) == 1)
		events++;
	bool whole = trace_faults(r) == 0 && events == 2 * STRACE_COPIES;
	trace_close(r);
	*ret = (clock_ns() - start) / (STRACE_COPIES * STRACE_LINES);
	return got < 0 ? got : whole ? 0 : -EINVAL;
}

/* One event of many, of 30,000 different paths, into what `warder learn` has seen. */
#define LEARNED 200000

static int learn(struct bench *b, double *ret)
{
	const struct learn_options options = {.home = "/home/u"};
	const struct trace_header header = {
		.home = "/home/u", .cwd = "/home/u/p", .project = "/home/u/p"};
	struct policy_error error;
	struct buf text = {0};
	struct learn *l = NULL;
	size_t rules = 0;
	char path[64];
	(void)b;
	double start = clock_ns();
	int err = learn_new(&options, &l, &error);
	if (!err)
		err = learn_begin(l, &header, &error);
	for (unsigned i = 0; !err && i < LEARNED; i++) {
		snprintf(path, sizeof(path), "/home/u/%s/%u/%u", i % 2 ? "data" : "p", i % 300,
			 i % 30000);
		err = learn_event(
			l, &(struct trace_event){.kind = TRACE_CALL,
						 .exe = "/usr/bin/tool",
						 .call = "openat",
						 .returned = true,
						 .paths = 1,
						 .path = {{.real = path, .access = "read"}}});
	}
	if (!err)
		err = learn_write(l, &text, &rules);
	*ret = (clock_ns() - start) / LEARNED;
	buf_free(&text);
	learn_free(l);
	return err ? err : rules == 1 ? 0 : -EINVAL;
}

/* ---- a stop: the same opens with the bare tracer, and without it ---- */

static int run_untraced(char *const *argv)
{
	pid_t pid;
	int status, r = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
	if (r)
		return -r;
	return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -ECHILD;
}

static int drain(struct tracer *t)
{
	struct tracer_event e;
	int r;
	while ((r = tracer_next(t, &e)) > 0)
		if (e.kind == TRACER_REFUSED)
			tracer_deny(t, e.who);
	return r;
}

static int run_traced(char *const *argv, uint64_t *ret_stops)
{
	struct tracer_options options = {.fast = false};
	enum tracer_stage stage;
	struct tracer *t;
	sigset_t set;
	pid_t pid;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	int child AUTOCLOSE = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	int r = child < 0 ? -errno : tracer_new(&options, &t);
	if (r < 0)
		return r;
	struct tracer_spawn spawn = {
		.file = argv[0], .argv = argv, .envp = environ, .stdio = {-1, -1, -1}, .ctty = -1};
	r = tracer_spawn(t, &spawn, &pid, &stage);
	while (r == 0 && (r = drain(t)) == 0) {
		struct pollfd p[] = {{.fd = child, .events = POLLIN},
				     {.fd = tracer_fd(t), .events = POLLIN}};
		struct signalfd_siginfo info;
		poll(p, ARRAY_LEN(p), WAIT_MS);
		while (read(child, &info, sizeof(info)) > 0)
			;
	}
	*ret_stops = tracer_counts(t).stops;
	tracer_free(t);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return r == -ECHILD ? 0 : r;
}

static int stop(struct bench *b, double *ret)
{
	char many[16];
	char *argv[] = {b->work, "opens", many, b->file, NULL};
	uint64_t stops = 0;
	snprintf(many, sizeof(many), "%d", b->opens);
	double start = clock_ns();
	int r = run_untraced(argv);
	double untraced = clock_ns() - start;
	if (r < 0)
		return r;
	start = clock_ns();
	r = run_traced(argv, &stops);
	*ret = (clock_ns() - start - untraced) / (double)stops;
	return r < 0 ? r : stops < (uint64_t)b->opens ? -EINVAL : 0;
}

/* ---- what the kernel takes for itself ---- */

static int bare_stop(struct bench *b, double *ret)
{
	return floor_stop(b->opens, ret);
}

static int bare_notification(struct bench *b, double *ret)
{
	return floor_notification(b->opens, ret);
}

/* ---- acts of a whole run ---- */

static int supervised(struct bench *b, const char *rule, int n, const char *path, double *ret)
{
	char count[16];
	char *const rules[] = {(char *)rule, NULL};
	char *const argv[] = {b->work, "opens", count, (char *)path, NULL};
	struct warder_options o = {.rules = rule ? rules : NULL};
	struct warder_result result;
	snprintf(count, sizeof(count), "%d", n);
	double start = clock_ns();
	int r = warder_run(&o, argv, &result);
	*ret = clock_ns() - start;
	if (r < 0)
		return r;
	if (result.status)
		fprintf(stderr, "bench_micro: status %d %s\n", result.status, result.error);
	warder_result_release(&result);
	return result.status ? -ECHILD : 0;
}

static int each_open(struct bench *b, const char *rule, const char *path, double *ret)
{
	double few, many;
	int r = supervised(b, rule, 1, path, &few);
	if (r == 0)
		r = supervised(b, rule, b->opens + 1, path, &many);
	if (r == 0)
		*ret = (many - few) / b->opens;
	return r;
}

static int refused(struct bench *b, double *ret)
{
	return each_open(b, NULL, b->file, ret);
}

/* A directory alone, without what is in it, is what no Landlock rule can say. */
static int brokered(struct bench *b, double *ret)
{
	char *rule AUTOFREE = NULL;
	if (asprintf(&rule, "allow list %s exact", b->outside) < 0)
		return -ENOMEM;
	return each_open(b, rule, b->outside, ret);
}

static const struct act {
	const char *name, *what;
	int (*sample)(struct bench *b, double *ret_ns);
} acts[] = {
	{"decide", "one access on one path under the default policy", decide},
	{"model", "what the kernel would grant on a directory", model},
	{"compile", "the default policy into a Landlock ruleset", compile},
	{"import", "a line of strace's text, read as a trace", import},
	{"learn", "one of 200,000 events, learned from", learn},
	{"bare-stop", "a stop about which nothing is done, on one processor", bare_stop},
	{"bare-notification", "a notification that is answered at once, on one processor",
	 bare_notification},
	{"stop", "one ptrace stop of an open, all in", stop},
	{"report", "a refused open, reported, beside the open itself", refused},
	{"brokered", "an open that the broker does in place", brokered},
};

static int measure(struct bench *b, const struct act *act)
{
	double ns[SAMPLES_MAX];
	for (int i = 0; i < b->samples; i++) {
		int r = act->sample(b, &ns[i]);
		if (r < 0)
			return r;
	}
	fprintf(b->tell, "{\"name\":\"%s\",\"what\":\"%s\",\"ns\":[", act->name, act->what);
	for (int i = 0; i < b->samples; i++)
		fprintf(b->tell, "%s%.0f", i ? "," : "", ns[i]);
	fputs("]}\n", b->tell);
	return 0;
}

static int move_stdout(struct bench *b)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int null AUTOCLOSE = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || null < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -errno;
	b->tell = fdopen(fd, "w");
	return b->tell ? 0 : -ENOMEM;
}

static int prepare(struct bench *b)
{
	static char *const no_files[] = {NULL};
	struct session_options options = {.env = environ, .policy_files = no_files};
	struct policy_error why = {.text = ""};
	struct compile_stats stats;
	if (asprintf(&b->file, "%s/file", b->outside) < 0)
		return -ENOMEM;
	int r = session_new(&options, &b->session, &why);
	if (r < 0)
		fprintf(stderr, "bench_micro: %s\n", why.text);
	if (r == 0)
		r = llabi_detect(&b->abi);
	if (r == 0)
		r = compile_policy(session_policy(b->session), &b->abi, (uint32_t)b->abi.scoped,
				   &b->ruleset, &stats);
	b->dir = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return r < 0 ? r : b->dir < 0 ? -errno : 0;
}

int main(int argc, char **argv)
{
	struct bench b = {.dir = -1};
	if (argc != 5 || (b.samples = atoi(argv[3])) < 1 || b.samples > SAMPLES_MAX ||
	    (b.opens = atoi(argv[4])) < 1) {
		fputs("Usage: bench_micro WORK OUTSIDE SAMPLES OPENS\n", stderr);
		return 2;
	}
	b.work = argv[1];
	b.outside = argv[2];
	int r = move_stdout(&b);
	if (r == 0)
		r = prepare(&b);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(acts); i++) {
		r = measure(&b, &acts[i]);
		if (r < 0)
			fprintf(stderr, "bench_micro: %s: %s\n", acts[i].name, strerror(-r));
	}
	llruleset_free(b.ruleset);
	session_free(b.session);
	util_close(&b.dir);
	free(b.file);
	if (b.tell && fclose(b.tell))
		r = -EIO;
	return r < 0;
}
