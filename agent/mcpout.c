#include "agent/mcpout.h"

#include "supervisor/nbio.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>

#define LAST_TRIES  20
#define LAST_TRY_MS 100

struct mcp_out {
	struct loop *loop;
	struct nbio io;
	struct buf queue;
	uint64_t watch;
	bool gone;
};

/* False: the rest has to wait. */
static bool flush(struct mcp_out *o)
{
	while (o->queue.len && !o->gone) {
		ssize_t n = nbio_write(&o->io, o->queue.data, o->queue.len);
		if (n == -EAGAIN)
			return false;
		if (n == -EINTR)
			continue;
		o->gone = n < 0;
		if (n > 0)
			buf_drop(&o->queue, (size_t)n);
	}
	return true;
}

static void on_writable(void *arg, int fd, uint32_t events)
{
	struct mcp_out *o = arg;
	(void)fd;
	(void)events;
	if (!flush(o))
		return;
	loop_remove(o->loop, o->watch);
	o->watch = 0;
}

int mcpout_new(struct loop *l, int fd, struct mcp_out **ret)
{
	struct mcp_out *o = calloc(1, sizeof(*o));
	int own AUTOCLOSE = fcntl(fd, F_DUPFD_CLOEXEC, 10);
	if (!o || own < 0) {
		int err = o ? -errno : -ENOMEM;
		free(o);
		return err;
	}
	o->loop = l;
	o->queue.max = MCPOUT_QUEUE_MAX;
	int err = nbio_open(TAKE_FD(own), true, &o->io);
	if (err) {
		free(o);
		return err;
	}
	*ret = o;
	return 0;
}

void mcpout_free(struct mcp_out *o)
{
	if (!o)
		return;
	for (int i = 0; i < LAST_TRIES && !flush(o); i++)
		poll(&(struct pollfd){.fd = o->io.fd, .events = POLLOUT}, 1, LAST_TRY_MS);
	loop_remove(o->loop, o->watch);
	nbio_close(&o->io);
	buf_free(&o->queue);
	free(o);
}

bool mcpout_line(struct mcp_out *o, const char *bytes, size_t n)
{
	buf_add(&o->queue, bytes, n);
	buf_add_char(&o->queue, '\n');
	o->gone = o->gone || o->queue.failed;
	if (!flush(o) && !o->watch &&
	    loop_add_fd(o->loop, o->io.fd, EPOLLOUT, on_writable, o, &o->watch))
		o->gone = true;
	return !o->gone;
}
