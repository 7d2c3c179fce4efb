#include "supervisor/desk.h"

#include "tracer/outfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

struct desk {
	struct loop *loop;
	struct ask *ask;
	struct desk_options options;
	int dir;    /* the sockets' directory */
	int socket; /* listening */
	uint64_t watch;
	uint64_t sweep; /* a timer: who has gone is shown out */
	struct protocol *visitor[DESK_VISITORS_MAX];
	bool gone[DESK_VISITORS_MAX];
	bool told; /* that questions wait */
};

/* ---- the place ---- */

/* The directory of the sockets, made where it is missing; -errno. */
static int open_directory(const char *state_dir)
{
	int state AUTOCLOSE = outfile_open(state_dir, O_PATH | O_DIRECTORY, 0);
	struct stat st;
	if (state < 0)
		return state;
	if (mkdirat(state, DESK_DIRECTORY, 0700) && errno != EEXIST)
		return -errno;
	int dir AUTOCLOSE =
		openat(state, DESK_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st))
		return -errno;
	if (st.st_uid != geteuid() || fchmod(dir, 0700))
		return -EPERM;
	return TAKE_FD(dir);
}

int desk_prepare(const char *state_dir)
{
	int dir AUTOCLOSE = open_directory(state_dir);
	return dir < 0 ? dir : 0;
}

/* A path of a socket has 107 bytes, a state directory may have more: by its descriptor. */
static int address(int dir, const char *name, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	int n = snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/%s", dir, name);
	return n < (int)sizeof ret->sun_path ? 0 : -ENAMETOOLONG;
}

/* It has its name only when somebody listens: who is refused there takes it for a leftover. */
static int listen_at(int dir, const char *name)
{
	struct sockaddr_un at;
	char hidden[64];
	if (snprintf(hidden, sizeof hidden, ".%s", name) >= (int)sizeof hidden)
		return -ENAMETOOLONG;
	int err = address(dir, hidden, &at);
	if (err)
		return err;
	int fd AUTOCLOSE = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at))
		return -errno;
	if (fchmodat(dir, hidden, 0600, 0) || listen(fd, DESK_VISITORS_MAX) ||
	    renameat(dir, hidden, dir, name)) {
		err = -errno;
		(void)unlinkat(dir, hidden, 0);
		return err;
	}
	return TAKE_FD(fd);
}

int desk_connect(const char *state_dir, const char *run)
{
	struct sockaddr_un at;
	int dir AUTOCLOSE = open_directory(state_dir);
	if (dir < 0)
		return dir;
	int err = address(dir, run, &at);
	int fd AUTOCLOSE = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (err)
		return err;
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&at, sizeof at))
		return TAKE_FD(fd);
	err = -errno;
	if (err == -ECONNREFUSED)
		(void)unlinkat(dir, run, 0); /* its run was killed; who comes next sees it, too */
	return err;
}

/* ---- who is here ---- */

static bool nobody_is_here(const struct desk *d)
{
	for (size_t i = 0; i < DESK_VISITORS_MAX; i++)
		if (d->visitor[i] && !d->gone[i])
			return false;
	return true;
}

static void on_sweep(void *arg)
{
	struct desk *d = arg;
	d->sweep = 0;
	for (size_t i = 0; i < DESK_VISITORS_MAX; i++) {
		if (!d->gone[i])
			continue;
		protocol_free(d->visitor[i]);
		d->visitor[i] = NULL;
		d->gone[i] = false;
	}
}

static void tell_waits(struct desk *d)
{
	if (d->told || !ask_len(d->ask) || !nobody_is_here(d))
		return;
	d->told = true;
	if (d->options.waits)
		d->options.waits(d->options.arg);
}

static void on_gone(void *arg, struct protocol *p)
{
	struct desk *d = arg;
	for (size_t i = 0; i < DESK_VISITORS_MAX; i++)
		if (d->visitor[i] == p)
			d->gone[i] = true;
	if (!d->sweep && loop_add_timer(d->loop, 0, on_sweep, d, &d->sweep))
		d->sweep = 0; /* no memory: shown out with the next one, or at the end */
	tell_waits(d);
}

static bool is_welcome(const struct desk *d, int fd)
{
	struct ucred who;
	socklen_t n = sizeof who;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n))
		return false;
	if (who.uid != 0 && who.uid != geteuid())
		return false;
	return !d->options.is_stranger || !d->options.is_stranger(d->options.arg, who.pid);
}

static struct protocol **free_place(struct desk *d)
{
	for (size_t i = 0; i < DESK_VISITORS_MAX; i++)
		if (!d->visitor[i])
			return &d->visitor[i];
	return NULL;
}

static void on_visitor(void *arg, int fd, uint32_t events)
{
	struct desk *d = arg;
	(void)events;
	if (!free_place(d)) { /* who has gone is swept out now */
		loop_remove(d->loop, d->sweep);
		on_sweep(d);
	}
	struct protocol **place = free_place(d);
	int visitor = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	if (visitor < 0)
		return; /* it has changed its mind */
	if (!place || !is_welcome(d, visitor)) {
		close(visitor);
		return;
	}
	struct protocol_options o = {.events = visitor,
				     .answers = visitor,
				     .run = d->options.run,
				     .label = d->options.label,
				     .command = d->options.command,
				     .gone = on_gone,
				     .arg = d};
	d->told = false;
	if (protocol_new(d->loop, d->ask, &o, place))
		*place = NULL;
}

/* ---- being a front: questions may be put even where nobody is here yet ---- */

static void on_asked(void *self, const struct question *q)
{
	(void)q;
	tell_waits(self);
}

int desk_open(struct loop *l, struct ask *a, const struct desk_options *o, struct desk **ret)
{
	struct desk *d = calloc(1, sizeof *d);
	if (!d)
		return -ENOMEM;
	*d = (struct desk){.loop = l, .ask = a, .options = *o, .socket = -1};
	const struct ask_front front = {.self = d, .answers = true, .asked = on_asked};
	int err = d->dir = open_directory(o->state_dir);
	if (err >= 0)
		err = d->socket = listen_at(d->dir, o->run);
	if (err >= 0)
		err = loop_add_fd(l, d->socket, EPOLLIN, on_visitor, d, &d->watch);
	if (err >= 0)
		err = ask_add_front(a, &front);
	if (err < 0) {
		desk_close(d);
		return err;
	}
	*ret = d;
	return 0;
}

void desk_close(struct desk *d)
{
	if (!d)
		return;
	ask_remove_front(d->ask, d);
	for (size_t i = 0; i < DESK_VISITORS_MAX; i++)
		protocol_free(d->visitor[i]);
	loop_remove(d->loop, d->sweep);
	loop_remove(d->loop, d->watch);
	if (d->socket >= 0) {
		(void)unlinkat(d->dir, d->options.run, 0);
		close(d->socket);
	}
	if (d->dir >= 0)
		close(d->dir);
	free(d);
}

void desk_event(struct desk *d, const char *name, protocol_fill_fn *fill, const void *arg)
{
	for (size_t i = 0; i < DESK_VISITORS_MAX; i++)
		if (d->visitor[i] && !d->gone[i])
			protocol_event(d->visitor[i], name, fill, arg);
}
