#include "supervisor/tracee_fd.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PIDFD_OF_A_THREAD O_EXCL /* PIDFD_THREAD, 6.9 */

#define KEPT 16

struct tracee_fds {
	struct kept {
		pid_t tid, tgid; /* both: before 6.9 the pidfd is the process's */
		int pidfd;
	} kept[KEPT];
};

struct tracee_fds *tracee_fds_new(void)
{
	struct tracee_fds *f = calloc(1, sizeof *f);
	for (int i = 0; f && i < KEPT; i++)
		f->kept[i].pidfd = -1;
	return f;
}

void tracee_fds_free(struct tracee_fds *f)
{
	for (int i = 0; f && i < KEPT; i++)
		util_close(&f->kept[i].pidfd);
	free(f);
}

static int open_pidfd(struct call_view view)
{
	int pidfd = (int)syscall(SYS_pidfd_open, view.tid, PIDFD_OF_A_THREAD);
	if (pidfd < 0 && errno == EINVAL)
		pidfd = (int)syscall(SYS_pidfd_open, view.tgid, 0);
	return pidfd < 0 ? -errno : pidfd;
}

static int copy_of(int pidfd, int number, int *ret)
{
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

int tracee_fd_take(struct tracee_fds *f, struct call_view view, int number, int *ret)
{
	struct kept *k = f ? &f->kept[(unsigned)view.tid % KEPT] : NULL;
	if (k && k->pidfd >= 0 && k->tid == view.tid && k->tgid == view.tgid) {
		int err = copy_of(k->pidfd, number, ret);
		if (err != -ESRCH)
			return err;
	}
	int pidfd AUTOCLOSE = open_pidfd(view);
	if (pidfd < 0)
		return pidfd;
	int err = copy_of(pidfd, number, ret);
	if (!err && k) {
		util_close(&k->pidfd);
		*k = (struct kept){view.tid, view.tgid, TAKE_FD(pidfd)};
	}
	return err;
}
