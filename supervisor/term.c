#include "supervisor/term.h"

#include "supervisor/ptyrelay.h"
#include "tracer/buf.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>

#define TERM_FOREGROUND_MS 300
#define TERM_OUT_MAX	   (1u << 20)
#define TERM_FLUSH_MS	   500

struct term {
	struct loop *loop;
	struct pty *pty; /* or NULL: the rest is used */
	int fd;
	uint64_t watch;
	uint64_t timer;
	bool changed; /* `saved` is to be put back */
	struct termios saved;
	struct buf out;
	pty_keys_fn *keys; /* not NULL: held */
	void *arg;
};

static void try_keys(struct term *t);

int term_new(struct loop *l, struct pty *p, struct term **ret)
{
	struct term *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->loop = l;
	t->pty = p;
	t->fd = -1;
	t->out.max = TERM_OUT_MAX;
	if (!p) {
		t->fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
		if (t->fd < 0) {
			free(t);
			return -ENXIO;
		}
	}
	*ret = t;
	return 0;
}

static int descriptor(const struct term *t)
{
	return t->pty ? pty_terminal(t->pty) : t->fd;
}

static bool in_foreground(const struct term *t)
{
	return tcgetpgrp(descriptor(t)) == getpgrp();
}

static void set_termios(const struct term *t, const struct termios *to)
{
	while (tcsetattr(t->fd, TCSANOW, to) && errno == EINTR)
		;
}

/* ---- out ---- */

static void flush(struct term *t)
{
	while (t->out.len) {
		ssize_t n = write(t->fd, t->out.data, t->out.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			buf_reset(&t->out);
		else
			buf_drop(&t->out, (size_t)n);
	}
}

static void watch(struct term *t)
{
	uint32_t events = EPOLLERR;
	if (t->changed)
		events |= EPOLLIN;
	if (t->out.len)
		events |= EPOLLOUT;
	loop_change_fd(t->loop, t->watch, events);
}

void term_write(struct term *t, const char *bytes, size_t n)
{
	if (t->pty) {
		pty_write(t->pty, bytes, n);
		return;
	}
	buf_add(&t->out, bytes, n);
	flush(t);
	watch(t);
}

/* ---- in ---- */

static void on_keys(struct term *t)
{
	char bytes[256];
	if (!in_foreground(t)) {
		t->changed = false; /* another's modes are there now */
		try_keys(t);
		return;
	}
	ssize_t n = read(t->fd, bytes, sizeof(bytes));
	if (n >= 0 && t->keys)
		t->keys(t->arg, bytes, (size_t)n);
}

static void on_event(void *arg, int fd, uint32_t events)
{
	struct term *t = arg;
	(void)fd;
	if (events & EPOLLOUT)
		flush(t);
	if (events & EPOLLIN)
		on_keys(t);
	else if (events & (EPOLLHUP | EPOLLERR) && t->keys)
		t->keys(t->arg, "", 0);
	watch(t);
}

static void on_timer(void *arg)
{
	struct term *t = arg;
	t->timer = 0;
	try_keys(t);
}

/* Non-canonical, no echo, no signals; or look again later. */
static void try_keys(struct term *t)
{
	if (!in_foreground(t)) {
		if (!t->timer)
			loop_add_timer(t->loop, TERM_FOREGROUND_MS, on_timer, t, &t->timer);
		return;
	}
	if (tcgetattr(t->fd, &t->saved))
		return;
	struct termios raw = t->saved;
	ptyrelay_question_modes(&raw);
	set_termios(t, &raw);
	t->changed = true;
	watch(t);
}

int term_hold(struct term *t, pty_keys_fn *keys, void *arg)
{
	if (t->pty)
		return pty_hold(t->pty, keys, arg);
	if (!t->keys) {
		int r = loop_add_fd(t->loop, t->fd, EPOLLERR, on_event, t, &t->watch);
		if (r)
			return r;
		t->keys = keys;
		t->arg = arg;
		try_keys(t);
	}
	return 0;
}

/* Our last line must be out before another has the terminal. */
static void flush_bounded(struct term *t)
{
	for (int i = 0; i < TERM_FLUSH_MS / 50 && t->out.len; i++) {
		struct pollfd f = {.fd = t->fd, .events = POLLOUT};
		poll(&f, 1, 50);
		flush(t);
	}
	buf_reset(&t->out);
}

void term_resume(struct term *t)
{
	if (t->pty) {
		pty_resume(t->pty);
		return;
	}
	if (!t->keys)
		return;
	t->keys = NULL;
	loop_remove(t->loop, t->watch);
	loop_remove(t->loop, t->timer);
	t->watch = t->timer = 0;
	flush_bounded(t);
	if (t->changed && in_foreground(t))
		set_termios(t, &t->saved);
	t->changed = false;
}

void term_free(struct term *t)
{
	if (!t)
		return;
	term_resume(t);
	if (t->fd >= 0)
		close(t->fd);
	buf_free(&t->out);
	free(t);
}

void term_size(const struct term *t, size_t *ret_columns, size_t *ret_rows)
{
	struct winsize size = {0};
	ioctl(descriptor(t), TIOCGWINSZ, &size);
	*ret_columns = size.ws_col ? size.ws_col : 80;
	*ret_rows = size.ws_row ? size.ws_row : 24;
}

bool term_hears(const struct term *t)
{
	return in_foreground(t) && (t->pty || t->changed);
}

bool term_has_keys(const struct term *t)
{
	struct pollfd f = {.fd = descriptor(t), .events = POLLIN};
	return poll(&f, 1, 0) > 0 && f.revents & POLLIN;
}

bool term_column_unknown(const struct term *t)
{
	return !t->pty;
}
