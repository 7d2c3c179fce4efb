#include "supervisor/pty.h"

#include "supervisor/ptyrelay.h"
#include "tracer/clock.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define PTY_OUT_HARD_MAX (8u << 20) /* with our own paint */
#define PTY_HOLD_DRAIN                                                                             \
	(256u << 10)	  /* the most a question waits for, of what was written before             \
			   */
#define PTY_REPAINT_MS 60 /* how long a program sees the other size */
#define PTY_QUIET_MS   200
#define PTY_CLOSE_MS   2000
#define PTY_SUSPEND_MS 500

/* ---- making it ---- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Before Linux 4.13 there is no TIOCGPTPEER; with it, no mounted devpts is needed. */
static int open_slave(int master)
{
	int fd = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	char name[64];
	if (fd >= 0)
		return fd;
	if (ptsname_r(master, name, sizeof(name)))
		return -errno;
	fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_side(struct pty *p, struct ptyrelay_side *s, loop_fd_fn *fn)
{
	struct termios t;
	struct winsize size;
	s->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (s->master < 0 || grantpt(s->master) || unlockpt(s->master))
		return -errno;
	s->slave = open_slave(s->master);
	if (s->slave < 0)
		return s->slave;
	if (tcgetattr(p->tty, &t) || ioctl(p->tty, TIOCGWINSZ, &size))
		return -errno;
	/* What only drains leaves the work on line ends to the real terminal. */
	if (s == &p->err)
		t.c_oflag &= ~(tcflag_t)OPOST;
	if (tcsetattr(s->slave, TCSANOW, &t) || ioctl(s->master, TIOCSWINSZ, &size))
		return -errno;
	return loop_add_fd(p->loop, s->master, 0, fn, p, &s->watch);
}

/* Is fd our controlling terminal? tcgetsid() answers for no other slave. */
static bool is_ours(const struct pty *p, int fd)
{
	unsigned mine, real;
	return isatty(fd) && tcgetsid(fd) == getsid(0) && !ioctl(fd, TIOCGDEV, &mine) &&
	       !ioctl(p->tty, TIOCGDEV, &real) && mine == real;
}

static bool is_pipe(int fd)
{
	struct stat st;
	return !fstat(fd, &st) && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

static void look(struct pty *p)
{
	for (int i = 0; i < 3; i++)
		p->ours[i] = is_ours(p, i);
	p->lazy = !p->ours[1] && (is_pipe(1) || !p->ours[0]);
	p->pipeline = p->lazy || is_pipe(0);
	p->relaying = !p->lazy;
}

int pty_open(struct loop *l, const struct pty_hooks *hooks, struct pty **ret)
{
	int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (tty < 0) {
		/* ENXIO: none; ENOENT and the like: a root without devices. */
		*ret = NULL;
		return errno == ENOMEM || errno == EMFILE || errno == ENFILE ? -errno : 0;
	}
	struct pty *p = calloc(1, sizeof(*p));
	if (!p) {
		close(tty);
		return -ENOMEM;
	}
	p->loop = l;
	p->hooks = *hooks;
	p->tty = tty;
	p->main.master = p->main.slave = p->err.master = p->err.slave = -1;
	p->in.max = PTY_IN_HARD_MAX;
	p->out.max = PTY_OUT_HARD_MAX;
	look(p);
	int r = loop_add_fd(l, tty, 0, ptyrelay_on_tty, p, &p->tty_watch);
	if (!r)
		r = open_side(p, &p->main, ptyrelay_on_main);
	if (!r && p->lazy && p->ours[2])
		r = open_side(p, &p->err, ptyrelay_on_err);
	if (r) {
		pty_close(p);
		return r;
	}
	*ret = p;
	return 0;
}

void pty_child_stdio(const struct pty *p, int stdio[3], int *ret_ctty)
{
	for (int i = 0; i < 3; i++)
		stdio[i] = p->ours[i] && !p->lazy ? p->main.slave : -1;
	if (p->lazy && p->ours[2])
		stdio[2] = p->err.slave;
	*ret_ctty = p->main.slave;
}

void pty_spawned(struct pty *p)
{
	p->spawned = true;
	if (p->lazy)
		close_fd(&p->main.slave);
	ptyrelay_update(p);
}

int pty_terminal(const struct pty *p)
{
	return p->tty;
}

void pty_write(struct pty *p, const char *bytes, size_t n)
{
	buf_add(&p->out, bytes, n);
	ptyrelay_write_out(p);
	ptyrelay_watch(p);
}

/* ---- the question ---- */

/* What the tree has written by now belongs before the question; what it goes on writing does not.
 */
static void drain_now(struct pty *p)
{
	size_t end = p->out.len + PTY_HOLD_DRAIN;
	while (p->out.len < end && ptyrelay_read_side(p, &p->main) == PTYRELAY_READ)
		;
	while (p->out.len < end && ptyrelay_read_side(p, &p->err) == PTYRELAY_READ)
		;
	ptyrelay_write_out(p);
}

static void collect_keys(struct pty *p)
{
	char bytes[PTY_CHUNK];
	ssize_t n;
	while (ptyrelay_in_foreground(p) && p->mode != PTYRELAY_ASIDE &&
	       p->in.len < PTY_IN_HARD_MAX / 2 && (n = read(p->tty, bytes, sizeof(bytes))) > 0)
		buf_add(&p->in, bytes, (size_t)n);
}

static void begin_hold(struct pty *p)
{
	drain_now(p);
	collect_keys(p);
	struct buf leave = {0};
	screen_leave(&p->screen, &leave);
	buf_add(&p->out, buf_str(&leave), leave.len);
	buf_free(&leave);
}

int pty_hold(struct pty *p, pty_keys_fn *keys, void *arg)
{
	if (p->hung)
		return -EIO;
	if (!p->keys)
		begin_hold(p);
	p->keys = keys;
	p->keys_arg = arg;
	ptyrelay_update(p);
	ptyrelay_write_out(p);
	ptyrelay_watch(p);
	return 0;
}

bool pty_held(const struct pty *p)
{
	return p->keys;
}

static void end_hold(struct pty *p)
{
	struct buf back = {0};
	p->keys = NULL;
	screen_return(&p->screen, &back);
	buf_add(&p->out, buf_str(&back), back.len);
	buf_free(&back);
}

static void copy_size(struct pty *p)
{
	struct winsize size;
	if (ioctl(p->tty, TIOCGWINSZ, &size))
		return;
	ioctl(p->main.master, TIOCSWINSZ, &size);
	if (p->err.master >= 0)
		ioctl(p->err.master, TIOCSWINSZ, &size);
}

static void on_repaint_timer(void *arg)
{
	struct pty *p = arg;
	p->repaint_timer = 0;
	copy_size(p);
}

/* Programs ignore a SIGWINCH that changed nothing: let them see another size for a moment. */
static void make_repaint(struct pty *p)
{
	struct winsize size;
	struct termios t;
	if (!screen_needs_repaint(&p->screen) || p->repaint_timer ||
	    tcgetattr(p->main.master, &t) || (!p->screen.alternate && t.c_lflag & ICANON))
		return;
	if (ioctl(p->tty, TIOCGWINSZ, &size) || size.ws_row < 2 ||
	    loop_add_timer(p->loop, PTY_REPAINT_MS, on_repaint_timer, p, &p->repaint_timer))
		return;
	size.ws_row--;
	ioctl(p->main.master, TIOCSWINSZ, &size);
}

void pty_resume(struct pty *p)
{
	if (!p->keys)
		return;
	end_hold(p);
	ptyrelay_update(p);
	make_repaint(p);
	ptyrelay_write_out(p);
	ptyrelay_write_in(p);
	ptyrelay_watch(p);
}

/* ---- signals ---- */

bool pty_is_gone(const struct pty *p)
{
	struct pollfd f = {.fd = p->tty};
	return p->hung || (poll(&f, 1, 0) > 0 && f.revents & POLLHUP);
}

pid_t pty_foreground(const struct pty *p)
{
	pid_t group = tcgetpgrp(p->main.master);
	return group < 0 ? -errno : group;
}

void pty_signal(struct pty *p, int signo)
{
	/* By value; the kernel sends it, so no identity can be in the way. */
	ioctl(p->main.master, TIOCSIG, signo);
}

void pty_interrupt(struct pty *p)
{
	pty_signal(p, SIGINT);
}

static void flush_bounded(struct pty *p, int64_t ms)
{
	int64_t end = clock_ms() + ms, left;
	while (p->out.len && !p->hung && (left = end - clock_ms()) > 0) {
		struct pollfd f = {.fd = p->tty, .events = POLLOUT};
		if (poll(&f, 1, (int)left) > 0 && f.revents & (POLLHUP | POLLERR | POLLNVAL))
			return;
		ptyrelay_write_out(p);
	}
}

void pty_suspend(struct pty *p)
{
	if (!p->keys)
		drain_now(p);
	flush_bounded(p, PTY_SUSPEND_MS);
	p->suspended = true;
	ptyrelay_update(p);
}

void pty_continue(struct pty *p)
{
	p->suspended = false;
	pty_resized(p);
	ptyrelay_update(p);
}

void pty_command_ended(struct pty *p)
{
	p->ended = true;
	ptyrelay_follow_isig(p);
}

void pty_resized(struct pty *p)
{
	loop_remove(p->loop, p->repaint_timer);
	p->repaint_timer = 0;
	copy_size(p);
}

/* ---- the end ---- */

static bool wait_for_output(struct pty *p, bool room, int64_t ms)
{
	struct pollfd f[3] = {
		{.fd = room ? p->main.master : -1, .events = POLLIN},
		{.fd = room ? p->err.master : -1, .events = POLLIN},
		{.fd = p->out.len && !p->hung ? p->tty : -1, .events = POLLOUT},
	};
	return poll(f, ARRAY_LEN(f), (int)ms) > 0 &&
	       !(f[2].revents & (POLLHUP | POLLERR | POLLNVAL));
}

static void drain(struct pty *p)
{
	int64_t end = clock_ms() + PTY_CLOSE_MS, left;
	while ((left = end - clock_ms()) > 0) {
		bool room = p->out.len < PTY_OUT_MAX;
		enum ptyrelay_state m = room ? ptyrelay_read_side(p, &p->main) : PTYRELAY_EMPTY;
		enum ptyrelay_state e = room ? ptyrelay_read_side(p, &p->err) : PTYRELAY_EMPTY;
		ptyrelay_write_out(p);
		if (m == PTYRELAY_READ || e == PTYRELAY_READ)
			continue;
		/* A closed side would make poll return at once, for ever. */
		if (m == PTYRELAY_CLOSED)
			close_fd(&p->main.master);
		if (e == PTYRELAY_CLOSED)
			close_fd(&p->err.master);
		if (p->main.master < 0 && p->err.master < 0 && !p->out.len)
			return;
		if (!wait_for_output(p, room, !room || left < PTY_QUIET_MS ? left : PTY_QUIET_MS))
			return;
	}
}

static void forget_watches(struct pty *p)
{
	const uint64_t id[] = {p->tty_watch, p->main.watch, p->err.watch, p->repaint_timer,
			       p->foreground_timer};
	for (size_t i = 0; i < ARRAY_LEN(id); i++)
		loop_remove(p->loop, id[i]);
	p->foreground_timer = 0;
}

void pty_close(struct pty *p)
{
	if (!p)
		return;
	if (p->keys)
		end_hold(p);
	forget_watches(p);
	close_fd(&p->main.slave);
	close_fd(&p->err.slave);
	if (p->spawned)
		drain(p);
	ptyrelay_set_mode(p, PTYRELAY_ASIDE, ptyrelay_in_foreground(p));
	close_fd(&p->main.master);
	close_fd(&p->err.master);
	close(p->tty);
	screen_release(&p->screen);
	buf_free(&p->in);
	buf_free(&p->out);
	free(p);
}
