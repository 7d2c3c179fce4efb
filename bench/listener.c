#include "bench/listener.h"

#include "tracer/seccompabi.h"
#include "tracer/util.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int listener_hand(int listener, int talk)
{
	int fd AUTOCLOSE = listener;
	char go;

	if (fd < 0)
		return fd;
	if (write(talk, &fd, sizeof(fd)) != sizeof(fd) || read(talk, &go, 1) != 1)
		return -ECHILD;
	return 0;
}

int listener_take(pid_t tracee, int talk)
{
	int number, pidfd AUTOCLOSE = (int)syscall(SYS_pidfd_open, tracee, 0);

	if (pidfd < 0 || read(talk, &number, sizeof(number)) != sizeof(number))
		return -ECHILD;
	int fd AUTOCLOSE = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	if (fd < 0 || write(talk, "g", 1) != 1)
		return -errno;
	(void)ioctl(fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	return TAKE_FD(fd);
}
