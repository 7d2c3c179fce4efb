#include "supervisor/tracee_fd.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PIDFD_OF_A_THREAD O_EXCL /* PIDFD_THREAD, 6.9 */

int tracee_fd_take(struct call_view view, int number, int *ret)
{
	int pidfd AUTOCLOSE = (int)syscall(SYS_pidfd_open, view.tid, PIDFD_OF_A_THREAD);
	if (pidfd < 0 && errno == EINVAL)
		pidfd = (int)syscall(SYS_pidfd_open, view.tgid, 0);
	if (pidfd < 0)
		return -errno;
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}
