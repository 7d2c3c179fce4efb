#include "tracer/spawn.h"

#include "tracer/filter.h"
#include "tracer/seccompabi.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define KEEP_MAX      64 /* descriptors kept beside 0-2 */
#define LOOK_EVERY_MS 20 /* how often the handshake looks for a stop of the child */
#define EXEC_FAILED   127

#define SEIZE_OPTIONS                                                                              \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE |                     \
	 PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)

/* What the child needs; made before the fork. */
struct child {
	const struct tracer_spawn *s;
	int talk;   /* the child's end */
	int theirs; /* the parent's */
	const struct filter_options *options;
	struct sock_filter filter[FILTER_MAX]; /* made by the child, while we go on */
	size_t filter_len;
	char **script; /* sh, the file, its arguments: for a file that no format claims */
};

/* ---- the child: only async-signal-safe calls ---- */

_Noreturn static void child_fail(const struct child *c, enum tracer_stage stage, int error)
{
	struct spawn_report report = {.stage = (int32_t)stage, .error = error, .listener = -1};

	/* Where the parent is gone there is nobody to tell; EXITKILL is on its way. */
	if (write(c->talk, &report, sizeof(report)) < 0)
		_exit(EXEC_FAILED);
	_exit(EXEC_FAILED);
}

static void child_wait(const struct child *c, enum tracer_stage stage)
{
	char go;
	ssize_t n;

	do
		n = read(c->talk, &go, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		child_fail(c, stage, n < 0 ? -errno : -EPIPE);
}

/* Everything is blocked here; the command's own mask comes last. */
static int child_signals(const struct tracer_spawn *s)
{
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction now;
		if (sigaction(sig, NULL, &now) < 0)
			continue; /* glibc keeps two for itself */
		bool ignore =
			s->ignored ? sigismember(s->ignored, sig) == 1 : now.sa_handler == SIG_IGN;
		struct sigaction then = {.sa_handler = ignore ? SIG_IGN : SIG_DFL};
		if (sig == SIGKILL || sig == SIGSTOP)
			continue;
		if (sigaction(sig, &then, NULL) < 0)
			return -errno;
	}
	return 0;
}

static int child_session(const struct tracer_spawn *s)
{
	if ((s->new_session || s->ctty >= 0) && setsid() < 0)
		return -errno;
	if (s->ctty >= 0 && ioctl(s->ctty, TIOCSCTTY, 0) < 0)
		return -errno;
	if (s->cwd && chdir(s->cwd) < 0)
		return -errno;
	return 0;
}

static int highest_target(const struct tracer_spawn *s)
{
	int top = 2;

	for (size_t i = 0; i < s->keep_len; i++)
		if (s->keep_to[i] > top)
			top = s->keep_to[i];
	return top;
}

/*
 * First everything goes up above all targets, so that no target tramples a source; the copies up
 * there are CLOEXEC, the targets are not.
 */
static int child_move(struct child *c)
{
	const struct tracer_spawn *s = c->s;
	int base = highest_target(s) + 1;
	int up[3 + KEEP_MAX];

	int talk = fcntl(c->talk, F_DUPFD_CLOEXEC, base);
	if (talk < 0)
		return -errno;
	c->talk = talk;
	for (size_t i = 0; i < 3 + s->keep_len; i++) {
		int from = i < 3 ? s->stdio[i] : s->keep_from[i - 3];
		up[i] = from < 0 ? -1 : fcntl(from, F_DUPFD_CLOEXEC, base);
		if (from >= 0 && up[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < 3 + s->keep_len; i++) {
		int to = i < 3 ? (int)i : s->keep_to[i - 3];
		if (up[i] >= 0 && dup2(up[i], to) < 0)
			return -errno;
	}
	return 0;
}

static int close_between(int low, int high)
{
	if (low > high)
		return 0;
	return syscall(SYS_close_range, (unsigned)low, (unsigned)high, 0) < 0 ? -errno : 0;
}

/* The smallest kept number >= low; INT_MAX: none. */
static int next_kept(const struct child *c, int low)
{
	int best = c->talk >= low ? c->talk : INT_MAX;

	for (size_t i = 0; i < c->s->keep_len; i++)
		if (c->s->keep_to[i] >= low && c->s->keep_to[i] < best)
			best = c->s->keep_to[i];
	return best;
}

static int child_close(const struct child *c)
{
	for (int low = 3;;) {
		int kept = next_kept(c, low);
		int r = close_between(low, kept == INT_MAX ? INT_MAX : kept - 1);
		if (r < 0 || kept == INT_MAX)
			return r;
		low = kept + 1;
	}
}

static int child_try_filter(const struct child *c)
{
	struct sock_fprog prog = {.len = (unsigned short)c->filter_len,
				  .filter = (struct sock_filter *)c->filter};
	unsigned long flags =
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);

	if (fd < 0 && errno == EINVAL) /* before 5.19 */
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			     &prog);
	return fd < 0 ? -errno : (int)fd;
}

static int child_no_privileges(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* Natively programs may gain privileges; but only who has CAP_SYS_ADMIN gets a filter so (EACCES).
 */
static int child_filter(const struct child *c)
{
	int fd = child_try_filter(c);

	if (fd != -EACCES)
		return fd;
	int r = child_no_privileges();
	return r < 0 ? r : child_try_filter(c);
}

static void child_try(const struct child *c, enum tracer_stage stage, int result)
{
	if (result < 0)
		child_fail(c, stage, result);
}

/* Shells take what has a NUL near its start for a program of another machine. */
static bool child_is_text(const char *file)
{
	char head[80];
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head));

	if (fd >= 0)
		close(fd);
	return n >= 0 && !memchr(head, 0, (size_t)n);
}

_Noreturn static void child_main(struct child *c)
{
	const struct tracer_spawn *s = c->s;
	sigset_t mask;

	close(c->theirs); /* else the parent's death would not be seen */
	child_wait(c, TRACER_STAGE_SETUP);
	child_try(c, TRACER_STAGE_SETUP, child_signals(s));
	child_try(c, TRACER_STAGE_SETUP, child_session(s));
	if (!c->options->native)
		child_try(c, TRACER_STAGE_SETUP, child_no_privileges());
	if (s->prepare)
		child_try(c, TRACER_STAGE_PREPARE, s->prepare(s->prepare_arg));

	child_try(c, TRACER_STAGE_FILTER,
		  filter_build(c->options, c->filter, FILTER_MAX, &c->filter_len));
	struct spawn_report ready = {.stage = TRACER_STAGE_EXEC, .listener = child_filter(c)};
	child_try(c, TRACER_STAGE_FILTER, ready.listener);
	if (write(c->talk, &ready, sizeof(ready)) != sizeof(ready))
		_exit(EXEC_FAILED);
	child_wait(c, TRACER_STAGE_FILTER);
	if (s->enter)
		child_try(c, TRACER_STAGE_PREPARE, s->enter(s->prepare_arg, c->options->enter));
	child_try(c, TRACER_STAGE_SETUP, child_move(c));
	child_try(c, TRACER_STAGE_SETUP, child_close(c));

	sigemptyset(&mask);
	sigprocmask(SIG_SETMASK, s->sigmask ? s->sigmask : &mask, NULL);
	execve(s->file, s->argv, s->envp);
	int error = -errno;
	if (error == -ENOEXEC && child_is_text(s->file)) /* a script without #!: as execvp(3) */
		execve(c->script[0], c->script, s->envp);
	child_fail(c, TRACER_STAGE_EXEC, error);
}

/* ---- the parent ---- */

/*
 * Signals are blocked in the child, but SIGSTOP cannot be: a stop that comes during the handshake
 * is passed over, else both sides would wait for each other.
 */
static void pass_over_stop(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};

	if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | __WALL) == 0 && info.si_pid)
		(void)ptrace(PTRACE_CONT, pid, NULL, NULL); /* ESRCH: killed; read() will see EOF */
}

static int read_report(pid_t pid, int talk, struct spawn_report *ret)
{
	struct pollfd p = {.fd = talk, .events = POLLIN};
	int n;

	while ((n = poll(&p, 1, LOOK_EVERY_MS)) <= 0) {
		if (n < 0 && errno != EINTR)
			return -errno;
		pass_over_stop(pid);
	}
	ssize_t got = read(talk, ret, sizeof(*ret));
	if (got < 0)
		return -errno;
	return got == sizeof(*ret) ? 0 : -ECHILD; /* it died without a word */
}

static int take_listener(pid_t pid, int number, int *ret)
{
	int pidfd AUTOCLOSE = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd < 0)
		return -errno;
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0); /* CLOEXEC by itself */
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

static int let_go(int talk)
{
	return send(talk, "g", 1, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

/* Its filter is there, and nobody else has its listener: it may enter its sandbox, and exec. */
static int handshake(const struct spawn *begun, int *ret_listener, enum tracer_stage *stage)
{
	struct spawn_report report;
	int r = read_report(begun->pid, begun->talk, &report);

	*stage = TRACER_STAGE_SETUP;
	if (r < 0)
		return r;
	*stage = (enum tracer_stage)report.stage;
	if (report.error < 0)
		return report.error;
	*stage = TRACER_STAGE_FILTER;
	int listener AUTOCLOSE = -1;
	r = take_listener(begun->pid, report.listener, &listener);
	if (r == 0)
		r = let_go(begun->talk);
	if (r < 0)
		return r;
	*ret_listener = TAKE_FD(listener);
	return 0;
}

/* Everything blocked, so that no handler of the caller's runs in the child. */
static pid_t fork_blocked(struct child *c)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid_t pid = fork();
	if (pid == 0)
		child_main(c);
	int err = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = err;
	return pid;
}

void spawn_end(pid_t pid)
{
	siginfo_t info;

	kill(pid, SIGKILL);
	while (waitid(P_PID, (id_t)pid, &info, WEXITED | __WALL) < 0 && errno == EINTR)
		;
}

static int start(struct child *c, pid_t *ret)
{
	pid_t pid = fork_blocked(c);

	close(c->talk);
	if (pid < 0)
		return -errno;
	int r = ptrace(PTRACE_SEIZE, pid, NULL, SEIZE_OPTIONS) < 0 ? -errno : let_go(c->theirs);
	if (r < 0)
		spawn_end(pid);
	else
		*ret = pid;
	return r;
}

static char **script_argv(const struct tracer_spawn *s)
{
	size_t n = 0;

	while (s->argv[n])
		n++;
	char **argv = calloc(n + 3, sizeof(*argv));
	if (!argv)
		return NULL;
	argv[0] = (char *)"/bin/sh";
	argv[1] = (char *)s->file;
	for (size_t i = 1; i < n; i++)
		argv[i + 1] = s->argv[i];
	return argv;
}

int spawn_begin(const struct tracer_spawn *s, const struct filter_options *filter,
		struct spawn *ret, enum tracer_stage *ret_stage)
{
	struct child c = {.s = s, .options = filter};
	struct spawn begun = {.filter = *filter};
	int pair[2];

	*ret_stage = TRACER_STAGE_SETUP;
	if (s->keep_len > KEEP_MAX)
		return -E2BIG;
	char **script AUTOFREE = script_argv(s);
	c.script = script;
	if (!script)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	int talk AUTOCLOSE = pair[0];
	c.talk = pair[1];
	c.theirs = pair[0];
	int r = start(&c, &begun.pid);
	if (r < 0)
		return r;
	begun.talk = TAKE_FD(talk);
	*ret = begun;
	return 0;
}

int spawn_finish(const struct spawn *begun, struct spawn_result *ret, enum tracer_stage *ret_stage)
{
	struct spawn_result result = {.pid = begun->pid, .report = begun->talk};
	int r = handshake(begun, &result.listener, ret_stage);

	if (r < 0)
		spawn_abandon(begun);
	else
		*ret = result;
	return r;
}

void spawn_abandon(const struct spawn *begun)
{
	spawn_end(begun->pid);
	close(begun->talk);
}

static bool is_datagram(int fd)
{
	int domain, type;
	socklen_t len = sizeof(domain);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && domain == AF_UNIX &&
	       type == SOCK_DGRAM;
}

bool spawn_hands_datagram(const struct tracer_spawn *s)
{
	bool any = false;

	for (int i = 0; i < 3; i++)
		any |= is_datagram(s->stdio[i] < 0 ? i : s->stdio[i]);
	for (size_t i = 0; i < s->keep_len; i++)
		any |= is_datagram(s->keep_from[i]);
	return any;
}

int spawn_exec_error(int report, enum tracer_stage *ret_stage)
{
	struct spawn_report text;

	if (recv(report, &text, sizeof(text), MSG_DONTWAIT) != sizeof(text) || !text.error)
		return 0;
	*ret_stage = (enum tracer_stage)text.stage;
	return text.error;
}
