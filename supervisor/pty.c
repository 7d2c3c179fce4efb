#include "supervisor/pty.h"

#include "supervisor/screen.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>

#define PTY_CHUNK	 4096
#define PTY_OUT_MAX	 (64u << 10) /* program output on its way: beyond it masters are not read */
#define PTY_OUT_HARD_MAX (8u << 20)  /* with our own paint */
#define PTY_IN_MAX	 (64u << 10) /* keys on their way: beyond it the terminal is not read */
#define PTY_IN_HARD_MAX	 (4u << 20)  /* typed ahead of a question */
#define PTY_HOLD_DRAIN                                                                             \
	(256u << 10) /* the most a question waits for, of what was written before                  \
		      */
#define PTY_AHEAD_MS	  300
#define PTY_FOREGROUND_MS 300 /* bash's fg tells a running job nothing */
#define PTY_REPAINT_MS	  60  /* how long a program sees the other size */
#define PTY_QUIET_MS	  200
#define PTY_CLOSE_MS	  2000
#define PTY_SUSPEND_MS	  500

enum mode {
	MODE_ASIDE, /* as it was: not ours at the moment */
	MODE_RAW,
	MODE_QUESTION,
};

struct side {
	int master;
	int slave; /* held open, so that the master never hangs up; -1 once the child alone has it
		    */
	uint64_t watch;
};

struct pty {
	struct loop *loop;
	struct pty_hooks hooks;
	int tty;
	uint64_t tty_watch;
	struct side main;
	struct side err; /* drains stderr; -1 where there is none */
	bool ours[3];	 /* stdio that is the real terminal */
	bool lazy;	 /* keys are relayed only while somebody uses the inner terminal */
	bool pipeline;	 /* others of our process group want ^C too */
	bool spawned;
	bool relaying;
	bool suspended;
	bool hung; /* the real terminal is gone */
	enum mode mode;
	struct termios saved; /* the real one's, from before `mode` */
	bool outer_isig;
	struct buf in;	/* keys for the inner terminal */
	struct buf out; /* bytes for the real one */
	struct screen screen;
	pty_keys_fn *keys; /* not NULL: held */
	void *keys_arg;
	bool ahead; /* keys still go to the program */
	uint64_t ahead_timer;
	uint64_t foreground_timer;
	uint64_t repaint_timer;
};

static void update(struct pty *p);

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* ---- the real terminal's mode ---- */

static bool in_foreground(const struct pty *p)
{
	return !p->hung && tcgetpgrp(p->tty) == getpgrp();
}

/*
 * Called in the foreground only. Should the shell take the terminal in between, SIGTTOU stops us as
 * it does every program, and the call goes on when we are back.
 */
static void set_termios(const struct pty *p, const struct termios *t)
{
	while (tcsetattr(p->tty, TCSANOW, t) && errno == EINTR)
		;
}

static bool inner_isig(const struct pty *p)
{
	struct termios t;
	return !tcgetattr(p->main.master, &t) && t.c_lflag & ISIG;
}

static void apply_raw(struct pty *p)
{
	struct termios t = p->saved;
	cfmakeraw(&t);
	t.c_cflag = p->saved.c_cflag; /* a serial line keeps its bits and parity */
	if (p->lazy)
		t.c_oflag = p->saved.c_oflag; /* others write there too */
	p->outer_isig = p->pipeline && inner_isig(p);
	if (p->outer_isig)
		t.c_lflag |= ISIG;
	set_termios(p, &t);
}

static void apply_question(const struct pty *p)
{
	struct termios t = p->saved;
	t.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL | ISIG | IEXTEN);
	t.c_iflag &= ~(tcflag_t)(IXON | INLCR | IGNCR);
	t.c_oflag |= OPOST | ONLCR;
	t.c_cc[VMIN] = 1;
	t.c_cc[VTIME] = 0;
	set_termios(p, &t);
}

static void set_mode(struct pty *p, enum mode mode, bool foreground)
{
	if (mode == p->mode)
		return;
	if (p->mode == MODE_ASIDE && tcgetattr(p->tty, &p->saved))
		return;
	p->mode = mode;
	switch (mode) {
	case MODE_ASIDE:
		/* In the background the terminal is another's, with its own modes. */
		if (foreground)
			set_termios(p, &p->saved);
		return;
	case MODE_RAW:
		apply_raw(p);
		return;
	case MODE_QUESTION:
		apply_question(p);
		return;
	}
}

/* A program that turns ISIG off (an editor) wants ^C as a key. */
static void follow_isig(struct pty *p)
{
	if (p->pipeline && p->mode == MODE_RAW && inner_isig(p) != p->outer_isig &&
	    in_foreground(p))
		apply_raw(p);
}

static enum mode wanted_mode(const struct pty *p, bool foreground)
{
	if (!foreground || p->suspended || !p->spawned)
		return MODE_ASIDE;
	if (p->keys)
		return MODE_QUESTION;
	return p->relaying ? MODE_RAW : MODE_ASIDE;
}

static void on_foreground_timer(void *arg)
{
	struct pty *p = arg;
	p->foreground_timer = 0;
	update(p);
}

static void watch_foreground(struct pty *p, bool foreground)
{
	bool wanted =
		!foreground && !p->hung && !p->suspended && p->spawned && (p->keys || p->relaying);
	if (wanted && !p->foreground_timer)
		loop_add_timer(p->loop, PTY_FOREGROUND_MS, on_foreground_timer, p,
			       &p->foreground_timer);
	if (!wanted) {
		loop_remove(p->loop, p->foreground_timer);
		p->foreground_timer = 0;
	}
}

/* ---- what is watched ---- */

static bool reads_keys(const struct pty *p)
{
	if (p->mode == MODE_QUESTION)
		return !p->ahead || p->in.len < PTY_IN_MAX;
	return p->mode == MODE_RAW && p->in.len < PTY_IN_MAX;
}

static void watch_side(struct pty *p, struct side *s)
{
	uint32_t events = 0;
	if (s->master < 0)
		return;
	if (!p->keys && p->out.len < PTY_OUT_MAX)
		events |= EPOLLIN;
	if (s == &p->main && !p->keys && p->in.len)
		events |= EPOLLOUT;
	/* A master without slaves hangs up, again and again, until somebody opens one: tell once.
	 */
	if (events && s->slave < 0)
		events |= EPOLLET;
	loop_change_fd(p->loop, s->watch, events);
}

static void watch_all(struct pty *p)
{
	uint32_t events = EPOLLERR;
	if (!p->spawned)
		return;
	if (reads_keys(p))
		events |= EPOLLIN;
	if (p->out.len)
		events |= EPOLLOUT;
	loop_change_fd(p->loop, p->tty_watch, p->hung ? 0 : events);
	watch_side(p, &p->main);
	watch_side(p, &p->err);
}

/* The one place that decides the real terminal's mode and what we wait for. */
static void update(struct pty *p)
{
	bool foreground = in_foreground(p);
	set_mode(p, wanted_mode(p, foreground), foreground);
	watch_foreground(p, foreground);
	watch_all(p);
}

static void hang_up(struct pty *p)
{
	if (p->hung)
		return;
	p->hung = true;
	p->mode = MODE_ASIDE;
	buf_reset(&p->out);
	update(p);
	if (p->keys)
		p->keys(p->keys_arg, "", 0);
	if (p->hooks.hangup)
		p->hooks.hangup(p->hooks.arg);
}

/* ---- out: masters to the real terminal ---- */

static void write_out(struct pty *p)
{
	while (p->out.len && !p->hung) {
		ssize_t n = write(p->tty, p->out.data, p->out.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			/* EIO: hung up (the watch tells), or nobody could continue us after
			 * SIGTTOU. */
			buf_reset(&p->out);
			return;
		}
		buf_drop(&p->out, (size_t)n);
	}
	if (p->hung)
		buf_reset(&p->out);
}

void pty_write(struct pty *p, const char *bytes, size_t n)
{
	buf_add(&p->out, bytes, n);
	write_out(p);
	watch_all(p);
}

static bool has_input(const struct side *s)
{
	struct pollfd f = {.fd = s->master, .events = POLLIN};
	return s->master >= 0 && poll(&f, 1, 0) > 0 && f.revents & POLLIN;
}

enum side_state { SIDE_EMPTY, SIDE_READ, SIDE_CLOSED };

static enum side_state read_side(struct pty *p, struct side *s)
{
	char bytes[PTY_CHUNK];
	if (s->master < 0)
		return SIDE_CLOSED;
	ssize_t n = read(s->master, bytes, sizeof(bytes));
	if (n > 0) {
		screen_feed(&p->screen, bytes, (size_t)n);
		if (!p->hung)
			buf_add(&p->out, bytes, (size_t)n);
		return SIDE_READ;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? SIDE_EMPTY : SIDE_CLOSED;
}

/* Somebody speaks on the inner terminal, or the last one has left it. */
static void heed_use(struct pty *p, enum side_state state)
{
	bool relaying =
		p->lazy ? state == SIDE_READ || (p->relaying && state != SIDE_CLOSED) : p->relaying;
	if (state == SIDE_CLOSED && p->lazy)
		buf_reset(&p->in);
	if (relaying == p->relaying)
		return;
	p->relaying = relaying;
	update(p);
}

static void read_while_room(struct pty *p, struct side *s)
{
	enum side_state state = SIDE_READ;
	while (state == SIDE_READ && !p->keys && p->out.len < PTY_OUT_MAX) {
		state = read_side(p, s);
		if (s == &p->main)
			heed_use(p, state);
	}
}

static void pump(struct pty *p, struct side *s)
{
	/* Told once only (EPOLLET), so as long as the real terminal takes it all there is no pause.
	 */
	do {
		read_while_room(p, s);
		write_out(p);
	} while (s->slave < 0 && !p->keys && has_input(s) && p->out.len < PTY_OUT_MAX);
	follow_isig(p);
}

/* ---- in: keys to the inner terminal ---- */

static void write_in(struct pty *p)
{
	while (p->in.len && !p->keys) {
		ssize_t n = write(p->main.master, p->in.data, p->in.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			buf_reset(&p->in); /* nobody has the inner terminal open */
		else
			buf_drop(&p->in, (size_t)n);
	}
}

static void take_keys(struct pty *p, const char *bytes, size_t n)
{
	size_t used = 0;
	if (p->keys && !p->ahead)
		used = p->keys(p->keys_arg, bytes, n);
	/* Keys after the last answer are the program's; in an open question what was not used is
	 * nothing. */
	if (!p->keys || p->ahead)
		buf_add(&p->in, bytes + used, n - used);
	write_in(p);
}

static void read_keys(struct pty *p)
{
	char bytes[PTY_CHUNK];
	/* Read in the background and SIGTTIN stops us: look first. */
	if (!in_foreground(p)) {
		update(p);
		return;
	}
	ssize_t n = read(p->tty, bytes, sizeof(bytes));
	if (n > 0)
		take_keys(p, bytes, (size_t)n);
	else if (!n)
		hang_up(p);
}

static void on_tty(void *arg, int fd, uint32_t events)
{
	struct pty *p = arg;
	(void)fd;
	if (events & EPOLLIN)
		read_keys(p);
	if (events & (EPOLLHUP | EPOLLERR))
		hang_up(p);
	if (events & EPOLLOUT)
		write_out(p);
	watch_all(p);
}

static void on_side(struct pty *p, struct side *s, uint32_t events)
{
	if (events & (EPOLLIN | EPOLLHUP))
		pump(p, s);
	if (s == &p->main && events & EPOLLOUT)
		write_in(p);
	watch_all(p);
}

static void on_main(void *arg, int fd, uint32_t events)
{
	struct pty *p = arg;
	(void)fd;
	on_side(p, &p->main, events);
}

static void on_err(void *arg, int fd, uint32_t events)
{
	struct pty *p = arg;
	(void)fd;
	on_side(p, &p->err, events);
}

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

static int open_side(struct pty *p, struct side *s, loop_fd_fn *fn)
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
	int r = loop_add_fd(l, tty, 0, on_tty, p, &p->tty_watch);
	if (!r)
		r = open_side(p, &p->main, on_main);
	if (!r && p->lazy && p->ours[2])
		r = open_side(p, &p->err, on_err);
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
	update(p);
}

int pty_terminal(const struct pty *p)
{
	return p->tty;
}

/* ---- the question ---- */

/* What the tree has written by now belongs before the question; what it goes on writing does not.
 */
static void drain_now(struct pty *p)
{
	size_t end = p->out.len + PTY_HOLD_DRAIN;
	while (p->out.len < end && read_side(p, &p->main) == SIDE_READ)
		;
	while (p->out.len < end && read_side(p, &p->err) == SIDE_READ)
		;
	write_out(p);
}

static void collect_keys(struct pty *p)
{
	char bytes[PTY_CHUNK];
	ssize_t n;
	while (in_foreground(p) && p->mode != MODE_ASIDE && p->in.len < PTY_IN_HARD_MAX / 2 &&
	       (n = read(p->tty, bytes, sizeof(bytes))) > 0)
		buf_add(&p->in, bytes, (size_t)n);
}

static void on_ahead_timer(void *arg)
{
	struct pty *p = arg;
	p->ahead_timer = 0;
	collect_keys(p);
	p->ahead = false;
	watch_all(p);
}

static void end_ahead(struct pty *p)
{
	loop_remove(p->loop, p->ahead_timer);
	p->ahead_timer = 0;
	p->ahead = false;
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
	uint64_t timer;
	if (p->hung)
		return -EIO;
	int r = loop_add_timer(p->loop, PTY_AHEAD_MS, on_ahead_timer, p, &timer);
	if (r)
		return r;
	if (!p->keys)
		begin_hold(p);
	loop_remove(p->loop, p->ahead_timer);
	p->ahead_timer = timer;
	p->ahead = true;
	p->keys = keys;
	p->keys_arg = arg;
	update(p);
	write_out(p);
	watch_all(p);
	return 0;
}

bool pty_held(const struct pty *p)
{
	return p->keys;
}

static void end_hold(struct pty *p)
{
	struct buf back = {0};
	end_ahead(p);
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
	update(p);
	make_repaint(p);
	write_out(p);
	write_in(p);
	watch_all(p);
}

/* ---- signals ---- */

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
	int64_t end = now_ms() + ms, left;
	while (p->out.len && !p->hung && (left = end - now_ms()) > 0) {
		struct pollfd f = {.fd = p->tty, .events = POLLOUT};
		if (poll(&f, 1, (int)left) > 0 && f.revents & (POLLHUP | POLLERR | POLLNVAL))
			return;
		write_out(p);
	}
}

void pty_suspend(struct pty *p)
{
	if (!p->keys)
		drain_now(p);
	flush_bounded(p, PTY_SUSPEND_MS);
	p->suspended = true;
	update(p);
}

void pty_continue(struct pty *p)
{
	p->suspended = false;
	pty_resized(p);
	update(p);
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
	int64_t end = now_ms() + PTY_CLOSE_MS, left;
	while ((left = end - now_ms()) > 0) {
		bool room = p->out.len < PTY_OUT_MAX;
		enum side_state m = room ? read_side(p, &p->main) : SIDE_EMPTY;
		enum side_state e = room ? read_side(p, &p->err) : SIDE_EMPTY;
		write_out(p);
		if (m == SIDE_READ || e == SIDE_READ)
			continue;
		/* A closed side would make poll return at once, for ever. */
		if (m == SIDE_CLOSED)
			close_fd(&p->main.master);
		if (e == SIDE_CLOSED)
			close_fd(&p->err.master);
		if (p->main.master < 0 && p->err.master < 0 && !p->out.len)
			return;
		if (!wait_for_output(p, room, !room || left < PTY_QUIET_MS ? left : PTY_QUIET_MS))
			return;
	}
}

static void forget_watches(struct pty *p)
{
	const uint64_t id[] = {p->tty_watch,	 p->main.watch,	      p->err.watch,
			       p->repaint_timer, p->foreground_timer, p->ahead_timer};
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
	set_mode(p, MODE_ASIDE, in_foreground(p));
	close_fd(&p->main.master);
	close_fd(&p->err.master);
	close(p->tty);
	screen_release(&p->screen);
	buf_free(&p->in);
	buf_free(&p->out);
	free(p);
}
