#include "bench/least.h"

#include "bench/listener.h"
#include "tracer/seccompabi.h"
#include "tracer/util.h"

#include <errno.h>
#include <linux/filter.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What tar, cp and rsync change attributes by. */
static const uint32_t attribute_calls[] = {
#ifdef SYS_chmod
	SYS_chmod,     SYS_chown,    SYS_lchown,    SYS_utimes,
#endif
	SYS_fchmod,    SYS_fchmodat, SYS_fchown,    SYS_fchownat,
	SYS_utimensat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr,
};
#define CALLS ARRAY_LEN(attribute_calls)

/* A listener, or -errno. */
static int filter(void)
{
	struct sock_filter f[CALLS + 3] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		[CALLS + 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		[CALLS + 2] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog prog = {.len = ARRAY_LEN(f), .filter = f};

	for (unsigned i = 0; i < CALLS; i++)
		f[1 + i] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, attribute_calls[i], (uint8_t)(CALLS - i), 0);
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			  &prog);
	return fd < 0 ? -errno : (int)fd;
}

_Noreturn static void become(int (*confine)(void *arg), void *arg, char **program, int talk)
{
	if (confine(arg) < 0 || listener_hand(filter(), talk) < 0)
		_exit(125);
	execvp(program[0], program);
	_exit(127);
}

/* Whoever was interrupted meanwhile is asked about anew. */
static int answer(int listener)
{
	struct seccomp_notif asked = {0};

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0)
		return errno == ENOENT || errno == EINTR ? 0 : -errno;
	struct seccomp_notif_resp yes = {.id = asked.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &yes) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

static int supervise(pid_t pid, int talk)
{
	int status, r = 0, listener AUTOCLOSE = listener_take(pid, talk);
	struct pollfd door = {.fd = listener, .events = POLLIN};

	if (listener < 0)
		return listener;
	while (r == 0 && poll(&door, 1, -1) == 1 && (door.revents & POLLIN))
		r = answer(listener);
	if (r < 0)
		return r;
	if (waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int least_run(int (*confine)(void *arg), void *arg, char **program)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	int ours AUTOCLOSE = pair[0], theirs = pair[1];
	pid_t pid = fork();
	if (pid == 0)
		become(confine, arg, program, theirs);
	int err = pid < 0 ? -errno : 0;
	close(theirs);
	return err ? err : supervise(pid, ours);
}
