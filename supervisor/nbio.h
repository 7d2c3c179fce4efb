/*
 * nbio: reading and writing without blocking on descriptors that others share.
 *
 * O_NONBLOCK belongs to the open file, so setting it on an inherited descriptor changes it for the
 * shell too. Pipes are opened anew through /proc/self/fd (a description of our own), sockets are
 * told by each call, regular files never block; what can't be opened anew is asked by poll first
 * and written in pieces that a writable pipe takes whole (PIPE_BUF). Never raises SIGPIPE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum nbio_kind { NBIO_OWN, NBIO_SOCKET, NBIO_SHARED };

struct nbio {
	int fd; /* owned */
	enum nbio_kind kind;
};

/* Takes fd over (its number may change); for one direction. 0 or -EBADF. */
int nbio_open(int fd, bool for_writing, struct nbio *ret);
void nbio_close(struct nbio *n);
/* Bytes, or -errno: -EAGAIN where it would block, -EPIPE where nobody reads. */
ssize_t nbio_write(const struct nbio *n, const void *bytes, size_t len);
/* Bytes, 0 at the end, or -errno. */
ssize_t nbio_read(const struct nbio *n, void *bytes, size_t len);
