/*
 * What the tracer's live tests share: a Landlock wall by three raw system calls, a run of a fixture
 * with a callback, and a way to run one test as several users. A case returns NULL or what is
 * wrong.
 */
#pragma once

#include "tracer/tracer.h"

#include "tracer/buf.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WALL_RIGHTS ((1ull << 14) - 1) /* ABI 2: everything but truncate */
#define WALL_RX                                                                                    \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define NOBODY	     65534
#define CASE_SECONDS 50

static inline void wall_allow(int ruleset, const char *path, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = rights};
	struct stat st;
	int fd AUTOCLOSE = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
				       LANDLOCK_ACCESS_FS_WRITE_FILE;
	rule.parent_fd = fd;
	syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

/* A ruleset under which the system and the fixtures can be read and run, and nothing else. */
static inline int wall_new(void)
{
	static const char *const paths[] = {"/usr", "/lib",  "/lib64", "/bin",
					    "/etc", "/proc", "/dev",   FIXTURES};
	struct landlock_ruleset_attr attr = {.handled_access_fs = WALL_RIGHTS};
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	for (size_t i = 0; fd >= 0 && i < ARRAY_LEN(paths); i++)
		wall_allow(fd, paths[i], WALL_RX);
	if (fd >= 0)
		wall_allow(fd, "/dev/null", WALL_RX | LANDLOCK_ACCESS_FS_WRITE_FILE);
	return fd;
}

static inline int wall_up(void *arg)
{
	return syscall(SYS_landlock_restrict_self, *(int *)arg, 0) < 0 ? -errno : 0;
}

struct run {
	struct tracer *tracer;
	pid_t pid;
	int status; /* of the command, once it ended */
	bool ended;
	bool stop;				/* set by on_event: leave the loop */
	unsigned seen[TRACER_SPAWN_FAILED + 1]; /* events by kind */
	struct buf out;				/* what the command wrote */
	void (*on_event)(struct run *run, const struct tracer_event *e);
	void *arg;
};

static inline void run_drain_output(struct run *run, int fd)
{
	char text[4096];
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0)
		buf_add(&run->out, text, (size_t)n);
}

static inline int run_events(struct run *run)
{
	struct tracer_event e;
	int r = 0;

	while (!run->stop && (r = tracer_next(run->tracer, &e)) > 0) {
		run->seen[e.kind]++;
		if (e.kind == TRACER_EXITED && e.pid == run->pid) {
			run->status = e.status;
			run->ended = true;
		}
		if (run->on_event)
			run->on_event(run, &e);
		else if (e.kind == TRACER_REFUSED)
			tracer_deny(run->tracer, e.who);
		/* Any program may look for a daemon's socket: a shell without HOME asks nscd. */
		if (e.kind == TRACER_WAITS)
			tracer_deny(run->tracer, e.who);
	}
	return run->stop ? -ECANCELED : r;
}

/* Until no tracee is left: 0, or what tracer_next() said. */
static inline int run_loop(struct run *run, int out)
{
	sigset_t set;
	int r = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	int child AUTOCLOSE = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	while (r == 0) {
		struct pollfd p[] = {{.fd = child, .events = POLLIN},
				     {.fd = tracer_fd(run->tracer), .events = POLLIN},
				     {.fd = out, .events = POLLIN}};
		struct signalfd_siginfo info;
		r = run_events(run);
		run_drain_output(run, out);
		if (r != 0)
			break;
		poll(p, ARRAY_LEN(p), 10000);
		while (read(child, &info, sizeof(info)) > 0)
			;
	}
	return r == -ECHILD ? 0 : r;
}

static inline void block_sigchld(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Run argv (argv[0] a path) behind the wall. NULL or what is wrong. */
static inline const char *run_command(struct run *run, int wall, char *const *argv)
{
	struct tracer_options options = {.see_changes = false};
	enum tracer_stage stage = TRACER_STAGE_SETUP;
	int pipes[2];

	block_sigchld();
	if (!run->tracer && tracer_new(&options, &run->tracer) < 0)
		return "tracer_new";
	if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) < 0)
		return "pipe";
	fcntl(pipes[1], F_SETFL, 0);
	struct tracer_spawn spawn = {.file = argv[0],
				     .argv = argv,
				     .envp = environ,
				     .stdio = {-1, pipes[1], -1},
				     .ctty = -1,
				     .prepare = wall >= 0 ? wall_up : NULL,
				     .prepare_arg = &wall};
	int r = tracer_spawn(run->tracer, &spawn, &run->pid, &stage);
	close(pipes[1]);
	if (r == 0)
		r = run_loop(run, pipes[0]);
	run_drain_output(run, pipes[0]);
	close(pipes[0]);
	if (r < 0) {
		static char text[64];
		snprintf(text, sizeof(text), "run: %s (stage %d)", strerror(-r), (int)stage);
		return text;
	}
	return NULL;
}

static inline void run_end(struct run *run)
{
	tracer_free(run->tracer);
	buf_free(&run->out);
}

static inline const char *failf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline const char *failf(const char *fmt, ...)
{
	static char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return text;
}

/* An emulated machine is so many times as slow. */
static inline int case_slow(void)
{
	const char *slow = getenv("WARDER_SLOW");

	return slow && atoi(slow) > 0 ? atoi(slow) : 1;
}

/* A directory of its own for a case: made, entered, and removed by case_run(). */
static inline void case_child(const char *(*f)(void), uid_t uid, const char *dir, int say)
{
	const char *wrong = NULL;

	alarm((unsigned)(CASE_SECONDS * case_slow()));
	if (uid != getuid() && (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0))
		wrong = "setuid";
	/* setuid made us undumpable: then /proc/self belongs to root. */
	if (!wrong && prctl(PR_SET_DUMPABLE, 1) < 0)
		wrong = "dumpable";
	if (!wrong && chdir(dir) < 0)
		wrong = "chdir";
	if (!wrong)
		wrong = f();
	if (wrong && write(say, wrong, strlen(wrong)) < 0)
		_exit(2);
	_exit(wrong ? 1 : 0);
}

static inline void case_run(const char *(*f)(void), uid_t uid)
{
	char dir[] = "/tmp/warder-test-XXXXXX";
	char wrong[1024] = "";
	char remove[64];
	int pipes[2], status;

	cr_assert(mkdtemp(dir));
	cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
	if (uid != 0)
		cr_assert_eq(chown(dir, uid, uid), 0);
	pid_t pid = fork();
	if (pid == 0)
		case_child(f, uid, dir, pipes[1]);
	close(pipes[1]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	ssize_t n = read(pipes[0], wrong, sizeof(wrong) - 1);
	wrong[n < 0 ? 0 : n] = '\0';
	close(pipes[0]);
	snprintf(remove, sizeof(remove), "rm -rf %s", dir);
	cr_assert_eq(system(remove), 0);
	cr_assert(status == 0, "uid %d: status %x: %s", (int)uid, status, wrong);
}

/* As ourselves; and, where we are root, as an ordinary user too. */
static inline void case_both(const char *(*f)(void))
{
	case_run(f, getuid());
	if (getuid() == 0)
		case_run(f, NOBODY);
}

static inline int write_file(const char *path, const char *text)
{
	int fd AUTOCLOSE = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}
