#include "supervisor/nbio.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A description of our own for the same pipe, or -1. */
static int reopen(int fd, bool for_writing)
{
	char path[40];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, (for_writing ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

int nbio_open(int fd, bool for_writing, struct nbio *ret)
{
	struct stat st;
	if (fstat(fd, &st))
		return -errno;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	*ret = (struct nbio){.fd = fd, .kind = NBIO_SHARED};
	if (S_ISSOCK(st.st_mode)) {
		ret->kind = NBIO_SOCKET;
	} else if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
		int own = reopen(fd, for_writing);
		if (own < 0)
			return 0;
		close(fd);
		*ret = (struct nbio){.fd = own, .kind = NBIO_OWN};
	}
	return 0;
}

void nbio_close(struct nbio *n)
{
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
}

static bool is_ready(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};
	return poll(&p, 1, 0) > 0;
}

static ssize_t write_plain(const struct nbio *n, const void *bytes, size_t len)
{
	if (n->kind == NBIO_SHARED) {
		if (!is_ready(n->fd, POLLOUT))
			return -EAGAIN;
		if (len > PIPE_BUF)
			len = PIPE_BUF;
	}
	ssize_t r = write(n->fd, bytes, len);
	return r < 0 ? -errno : r;
}

/* write() raises SIGPIPE in the calling thread: block it, and take back what this write added. */
static ssize_t write_unsignalled(const struct nbio *n, const void *bytes, size_t len)
{
	sigset_t pipe_only, before, pending;
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	sigpending(&pending);
	if (sigismember(&pending, SIGPIPE))
		return write_plain(n, bytes, len);
	pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	ssize_t r = write_plain(n, bytes, len);
	if (r == -EPIPE) {
		const struct timespec none = {0};
		while (sigtimedwait(&pipe_only, NULL, &none) < 0 && errno == EINTR)
			;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

ssize_t nbio_write(const struct nbio *n, const void *bytes, size_t len)
{
	if (n->kind != NBIO_SOCKET)
		return write_unsignalled(n, bytes, len);
	ssize_t r = send(n->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return r < 0 ? -errno : r;
}

ssize_t nbio_read(const struct nbio *n, void *bytes, size_t len)
{
	ssize_t r;
	if (n->kind == NBIO_SOCKET)
		r = recv(n->fd, bytes, len, MSG_DONTWAIT);
	else if (n->kind == NBIO_SHARED && !is_ready(n->fd, POLLIN))
		return -EAGAIN;
	else
		r = read(n->fd, bytes, len);
	return r < 0 ? -errno : r;
}
