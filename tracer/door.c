#include "tracer/door.h"

#include "tracer/seccompabi.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define PIDFD_OF_A_THREAD O_EXCL /* PIDFD_THREAD, 6.9 */

struct door {
	int epoll;
	int bell; /* an eventfd */
	int *listeners;
	size_t len;
};

/* Flags are looked at before the filter, which is none (kernel/seccomp.c). */
static bool has_killable_wait(void)
{
	unsigned long flags =
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, NULL) < 0 && errno == EFAULT;
}

static bool has_pidfd_of_thread(void)
{
	int fd AUTOCLOSE = (int)syscall(SYS_pidfd_open, getpid(), PIDFD_OF_A_THREAD);

	return fd >= 0;
}

size_t door_lacks(const char *ret[DOOR_LACKS_MAX])
{
	size_t n = 0;

	if (!has_killable_wait())
		ret[n++] =
			"a signal during a call that is done in a thread's place (chmod, connect) "
			"has it done twice (not from Linux 5.19 on)";
	if (!has_pidfd_of_thread())
		ret[n++] = "a thread with a descriptor table of its own is taken to have its "
			   "process's (not from Linux 6.9 on)";
	return n;
}

int door_new(struct door **ret)
{
	struct door *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	d->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = d->bell};
	if (d->epoll < 0 || d->bell < 0 || epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->bell, &ev) < 0) {
		int err = -errno;
		door_free(d);
		return err;
	}
	*ret = d;
	return 0;
}

void door_free(struct door *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->len; i++)
		close(d->listeners[i]);
	if (d->bell >= 0)
		close(d->bell);
	if (d->epoll >= 0)
		close(d->epoll);
	free(d->listeners);
	free(d);
}

int door_fd(const struct door *d)
{
	return d->epoll;
}

size_t door_fds(const struct door *d, int ret[DOOR_FDS])
{
	ret[0] = d->bell;
	if (d->len == 0)
		return 1;
	ret[1] = d->listeners[d->len - 1];
	return 2;
}

int door_add(struct door *d, int listener)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = listener};
	int fd AUTOCLOSE = listener;
	int *more = reallocarray(d->listeners, d->len + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	d->listeners = more;
	if (epoll_ctl(d->epoll, EPOLL_CTL_ADD, listener, &ev) < 0)
		return -errno;
	/*
	 * Whoever is woken runs at once on this CPU: guest and host take turns. Where the kernel
	 * has no such word it is only slower.
	 */
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	d->listeners[d->len++] = TAKE_FD(fd);
	return 0;
}

/*
 * Every tracee under this filter is gone. It stays open, as its number is lent out (door_fds), but
 * says nothing more here.
 */
static void forget(struct door *d, int listener)
{
	(void)epoll_ctl(d->epoll, EPOLL_CTL_DEL, listener, NULL);
}

/*
 * 1 and the guest; 0: it left since epoll_wait(), which asks the listener itself. RECV does not
 * block for that: whoever comes is counted, leaving takes nothing off, and with a count but no
 * guest it is ENOENT (kernel/seccomp.c, recv_wait_event()).
 */
static int receive(int listener, struct door_guest *ret)
{
	struct seccomp_notif n;

	memset(&n, 0, sizeof(n));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0)
		return errno == ENOENT || errno == EINTR ? 0 : -errno;
	*ret = (struct door_guest){.listener = listener,
				   .id = n.id,
				   .tid = (pid_t)n.pid,
				   .audit_arch = n.data.arch,
				   .nr = n.data.nr,
				   .ip = n.data.instruction_pointer};
	memcpy(ret->args, n.data.args, sizeof(ret->args));
	return 1;
}

void door_ring(struct door *d)
{
	/* EAGAIN: it rings already. */
	(void)eventfd_write(d->bell, 1);
}

int door_next(struct door *d, struct door_guest *ret)
{
	struct epoll_event ev;

	for (;;) {
		int n = epoll_wait(d->epoll, &ev, 1, 0);
		if (n <= 0)
			return n == 0 || errno == EINTR ? 0 : -errno;
		if (ev.data.fd == d->bell) {
			eventfd_t count;
			(void)eventfd_read(d->bell, &count);
			continue;
		}
		if (ev.events & EPOLLIN)
			return receive(ev.data.fd, ret);
		forget(d, ev.data.fd);
	}
}

bool door_is_listener(const struct door *d, int fd)
{
	return d->len > 0 && d->listeners[d->len - 1] == fd;
}

int door_take(const struct door *d, int listener, struct door_guest *ret)
{
	BUG(!door_is_listener(d, listener));
	return receive(listener, ret);
}

int door_give(const struct door_guest *guest, int fd, bool cloexec)
{
	struct seccomp_notif_addfd add = {.id = guest->id,
					  .flags = SECCOMP_ADDFD_FLAG_SEND,
					  .srcfd = (uint32_t)fd,
					  .newfd_flags = cloexec ? O_CLOEXEC : 0};

	/* Interrupted before the tracee took it: nothing has happened, ask again. */
	while (ioctl(guest->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

void door_answer(const struct door_guest *guest, int64_t result)
{
	struct seccomp_notif_resp resp = {.id = guest->id};

	if (result < 0)
		resp.error = (int)result;
	else
		resp.val = result;
	/* ENOENT: the guest left. Nothing else can fail for a notification we received. */
	(void)ioctl(guest->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

bool door_waits(const struct door_guest *guest)
{
	return ioctl(guest->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &guest->id) == 0;
}
