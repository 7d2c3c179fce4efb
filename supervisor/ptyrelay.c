#include "supervisor/ptyrelay.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PTY_FOREGROUND_MS 300 /* bash's fg tells a running job nothing */

/* ---- the real terminal's mode ---- */

bool ptyrelay_in_foreground(const struct pty *p)
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

/* Others of our group want ^C too; and once the command has ended its terminal sends nobody any. */
static bool wants_isig(const struct pty *p)
{
	struct termios t;
	return p->ended || (p->pipeline && !tcgetattr(p->main.master, &t) && t.c_lflag & ISIG);
}

static void apply_raw(struct pty *p)
{
	struct termios t = p->saved;
	cfmakeraw(&t);
	t.c_cflag = p->saved.c_cflag; /* a serial line keeps its bits and parity */
	if (p->lazy)
		t.c_oflag = p->saved.c_oflag; /* others write there too */
	p->outer_isig = wants_isig(p);
	if (p->outer_isig)
		t.c_lflag |= ISIG;
	set_termios(p, &t);
}

void ptyrelay_question_modes(struct termios *t)
{
	t->c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL | ISIG | IEXTEN);
	t->c_iflag &= ~(tcflag_t)(IXON | INLCR | IGNCR);
	t->c_oflag |= OPOST | ONLCR;
	t->c_cc[VMIN] = 1;
	t->c_cc[VTIME] = 0;
}

static void apply_question(const struct pty *p)
{
	struct termios t = p->saved;
	ptyrelay_question_modes(&t);
	set_termios(p, &t);
}

void ptyrelay_set_mode(struct pty *p, enum ptyrelay_mode mode, bool foreground)
{
	if (mode == p->mode)
		return;
	if (p->mode == PTYRELAY_ASIDE && tcgetattr(p->tty, &p->saved))
		return;
	p->mode = mode;
	switch (mode) {
	case PTYRELAY_ASIDE:
		/* In the background the terminal is another's, with its own modes. */
		if (foreground)
			set_termios(p, &p->saved);
		return;
	case PTYRELAY_RAW:
		apply_raw(p);
		return;
	case PTYRELAY_QUESTION:
		apply_question(p);
		return;
	}
}

/* A program that turns ISIG off (an editor) wants ^C as a key. */
void ptyrelay_follow_isig(struct pty *p)
{
	if (p->mode == PTYRELAY_RAW && wants_isig(p) != p->outer_isig && ptyrelay_in_foreground(p))
		apply_raw(p);
}

static enum ptyrelay_mode wanted_mode(const struct pty *p, bool foreground)
{
	if (!foreground || p->suspended || !p->spawned)
		return PTYRELAY_ASIDE;
	if (p->keys)
		return PTYRELAY_QUESTION;
	return p->relaying ? PTYRELAY_RAW : PTYRELAY_ASIDE;
}

static void on_foreground_timer(void *arg)
{
	struct pty *p = arg;
	p->foreground_timer = 0;
	ptyrelay_update(p);
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
	if (p->mode == PTYRELAY_QUESTION)
		return true;
	return p->mode == PTYRELAY_RAW && p->in.len < PTY_IN_MAX;
}

static void watch_side(struct pty *p, struct ptyrelay_side *s)
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

void ptyrelay_watch(struct pty *p)
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
void ptyrelay_update(struct pty *p)
{
	bool foreground = ptyrelay_in_foreground(p);
	ptyrelay_set_mode(p, wanted_mode(p, foreground), foreground);
	watch_foreground(p, foreground);
	ptyrelay_watch(p);
}

static void hang_up(struct pty *p)
{
	if (p->hung)
		return;
	p->hung = true;
	p->mode = PTYRELAY_ASIDE;
	buf_reset(&p->out);
	ptyrelay_update(p);
	if (p->keys)
		p->keys(p->keys_arg, "", 0);
	if (p->hooks.hangup)
		p->hooks.hangup(p->hooks.arg);
}

/* ---- out: masters to the real terminal ---- */

void ptyrelay_write_out(struct pty *p)
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

static bool has_input(const struct ptyrelay_side *s)
{
	struct pollfd f = {.fd = s->master, .events = POLLIN};
	return s->master >= 0 && poll(&f, 1, 0) > 0 && f.revents & POLLIN;
}

enum ptyrelay_state ptyrelay_read_side(struct pty *p, struct ptyrelay_side *s)
{
	char bytes[PTY_CHUNK];
	if (s->master < 0)
		return PTYRELAY_CLOSED;
	ssize_t n = read(s->master, bytes, sizeof(bytes));
	if (n > 0) {
		screen_feed(&p->screen, bytes, (size_t)n);
		if (!p->hung)
			buf_add(&p->out, bytes, (size_t)n);
		return PTYRELAY_READ;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? PTYRELAY_EMPTY : PTYRELAY_CLOSED;
}

/* Somebody speaks on the inner terminal, or the last one has left it. */
static void heed_use(struct pty *p, enum ptyrelay_state state)
{
	bool relaying =
		p->lazy ? state == PTYRELAY_READ || (p->relaying && state != PTYRELAY_CLOSED)
			: p->relaying;
	if (state == PTYRELAY_CLOSED && p->lazy)
		buf_reset(&p->in);
	if (relaying == p->relaying)
		return;
	p->relaying = relaying;
	ptyrelay_update(p);
}

static void read_while_room(struct pty *p, struct ptyrelay_side *s)
{
	enum ptyrelay_state state = PTYRELAY_READ;
	while (state == PTYRELAY_READ && !p->keys && p->out.len < PTY_OUT_MAX) {
		state = ptyrelay_read_side(p, s);
		if (s == &p->main)
			heed_use(p, state);
	}
}

static void pump(struct pty *p, struct ptyrelay_side *s)
{
	/* Told once only (EPOLLET), so as long as the real terminal takes it all there is no pause.
	 */
	do {
		read_while_room(p, s);
		ptyrelay_write_out(p);
	} while (s->slave < 0 && !p->keys && has_input(s) && p->out.len < PTY_OUT_MAX);
	ptyrelay_follow_isig(p);
}

/* ---- in: keys to the inner terminal ---- */

void ptyrelay_write_in(struct pty *p)
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
	size_t used = p->keys ? p->keys(p->keys_arg, bytes, n) : 0;
	if (p->in.len < PTY_IN_HARD_MAX / 2)
		buf_add(&p->in, bytes + used, n - used);
	ptyrelay_write_in(p);
}

static void read_keys(struct pty *p)
{
	char bytes[PTY_CHUNK];
	/* Read in the background and SIGTTIN stops us: look first. */
	if (!ptyrelay_in_foreground(p)) {
		ptyrelay_update(p);
		return;
	}
	ssize_t n = read(p->tty, bytes, sizeof(bytes));
	if (n > 0)
		take_keys(p, bytes, (size_t)n);
	else if (!n)
		hang_up(p);
}

void ptyrelay_on_tty(void *arg, int fd, uint32_t events)
{
	struct pty *p = arg;
	(void)fd;
	if (events & EPOLLIN)
		read_keys(p);
	if (events & (EPOLLHUP | EPOLLERR))
		hang_up(p);
	if (events & EPOLLOUT)
		ptyrelay_write_out(p);
	ptyrelay_watch(p);
}

static void on_side(struct pty *p, struct ptyrelay_side *s, uint32_t events)
{
	if (events & (EPOLLIN | EPOLLHUP))
		pump(p, s);
	if (s == &p->main && events & EPOLLOUT)
		ptyrelay_write_in(p);
	ptyrelay_watch(p);
}

void ptyrelay_on_main(void *arg, int fd, uint32_t events)
{
	struct pty *p = arg;
	(void)fd;
	on_side(p, &p->main, events);
}

void ptyrelay_on_err(void *arg, int fd, uint32_t events)
{
	struct pty *p = arg;
	(void)fd;
	on_side(p, &p->err, events);
}
