#include "bench/floor.h"

#include "bench/clock.h"
#include "bench/listener.h"
#include "tracer/cpus.h"
#include "tracer/seccompabi.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* getppid() is done so. A listener, 0 or -errno. */
static int filter(uint32_t action, unsigned flags)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = ARRAY_LEN(f), .filter = f};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
	return fd < 0 ? -errno : (int)fd;
}

static void call(int n)
{
	for (int i = 0; i < n; i++)
		(void)syscall(SYS_getppid);
}

_Noreturn static void be_stopped(int n)
{
	raise(SIGSTOP);
	if (filter(SECCOMP_RET_TRACE, 0) < 0)
		_exit(1);
	call(n);
	_exit(0);
}

static int trace_to_the_end(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, WUNTRACED) != pid ||
	    ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL) < 0)
		return -errno;
	kill(pid, SIGCONT);
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status))
		ptrace(PTRACE_CONT, pid, NULL, NULL);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

_Noreturn static void be_told_of(int n, int talk)
{
	if (listener_hand(filter(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER), talk) <
	    0)
		_exit(1);
	call(n);
	_exit(0);
}

static int answer_to_the_end(pid_t pid, int n, int talk)
{
	int status, listener AUTOCLOSE = listener_take(pid, talk);

	if (listener < 0)
		return listener;
	for (int i = 0; i < n; i++) {
		struct seccomp_notif asked = {0};
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0)
			return -errno;
		struct seccomp_notif_resp answer = {.id = asked.id,
						    .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) < 0)
			return -errno;
	}
	return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -ECHILD;
}

/* With n calls and with one: the difference is theirs. */
static int run(bool stops, int n, double *ret)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	int ours AUTOCLOSE = pair[0], theirs AUTOCLOSE = pair[1];
	double start = clock_ns();
	pid_t pid = fork();
	if (pid == 0 && stops)
		be_stopped(n);
	else if (pid == 0)
		be_told_of(n, theirs);
	int r = pid < 0 ? -errno : stops ? trace_to_the_end(pid) : answer_to_the_end(pid, n, ours);
	*ret = clock_ns() - start;
	if (r < 0 && pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, __WALL);
	}
	return r;
}

static int on_one_processor(bool stops, int n, double *ret_ns)
{
	struct cpus own;
	double one, many;
	int r = cpus_own(&own);

	if (r == 0)
		r = cpus_bind(sched_getcpu());
	if (r == 0)
		r = run(stops, 1, &one);
	if (r == 0)
		r = run(stops, n + 1, &many);
	cpus_take(&own);
	if (r == 0)
		*ret_ns = (many - one) / n;
	return r;
}

int floor_stop(int n, double *ret_ns)
{
	return on_one_processor(true, n, ret_ns);
}

int floor_notification(int n, double *ret_ns)
{
	return on_one_processor(false, n, ret_ns);
}
