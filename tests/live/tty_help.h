/*
 * tty_help: a person at a terminal (the test), and a supervisor of the least kind in it.
 *
 * The supervisor runs in a forked child, as a job of a session leader that has the terminal. It has
 * a loop, an inner terminal, the queue and the prompt, and starts its command as tracer_spawn does
 * (setsid, controlling terminal), but traces nothing. SIGUSR1 makes it ask; what happens it
 * tells on a pipe.
 */
#pragma once

#include "supervisor/prompt.h"
#include "supervisor/pty.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>

struct person {
	int screen; /* the terminal's master end */
	int slave;  /* for looking at its settings */
	int told;   /* the supervisor's words */
	pid_t leader;
	pid_t supervisor;
	struct buf seen;
	size_t at; /* looked at up to here */
	struct buf words;
	struct termios before;
};

struct supervisor_options {
	bool as_nobody;	    /* setuid 65534 first */
	bool background;    /* not in the foreground until SIGUSR2 reaches the leader */
	bool piped_out;	    /* stdout is a pipe, read into `words` */
	bool piped_in;	    /* stdin is a pipe at its end */
	bool no_pty;	    /* no inner terminal: the prompt opens /dev/tty */
	unsigned questions; /* how many SIGUSR1 asks at once; 0: 1 */
};

/* ---- the supervisor ---- */

struct tty_supervisor {
	struct loop *loop;
	struct pty *pty;
	struct ask *ask;
	struct prompt *prompt;
	const struct supervisor_options *o;
	pid_t child;
	int status;
	int tell;
	int asked;
};

static inline void tty_on_answered(void *arg, const struct question *q, const struct answer *a)
{
	struct tty_supervisor *s = arg;
	dprintf(s->tell, "%s %s %u %s\n", a->allow ? "allow" : "deny", q->path, a->scope,
		lifetime_name(a->lifetime));
}

static inline struct question *tty_question(int n)
{
	struct question *q = calloc(1, sizeof(*q));
	char path[64];
	snprintf(path, sizeof(path), "/denied/%d", n);
	q->call = "openat";
	q->path = strdup(path);
	q->exe = strdup("/usr/bin/cat");
	q->access = ACCESS_READ;
	q->scopes.len = 3;
	for (size_t i = 0; i < 3; i++)
		q->scopes.item[i] = (struct scope){.kind = i ? SCOPE_TREE : SCOPE_EXACT,
						   .path = strdup("/denied"),
						   .access = ACCESS_READ,
						   .rule = strdup("allow read /denied")};
	return q;
}

static inline void tty_on_usr1(void *arg, const struct signalfd_siginfo *info)
{
	struct tty_supervisor *s = arg;
	uint64_t id;
	(void)info;
	for (unsigned i = 0; i < (s->o->questions ? s->o->questions : 1); i++)
		ask_push(s->ask, tty_question(++s->asked), &id);
}

static inline void tty_on_winch(void *arg, const struct signalfd_siginfo *info)
{
	struct tty_supervisor *s = arg;
	(void)info;
	if (s->pty)
		pty_resized(s->pty);
}

static inline void tty_on_key_signal(void *arg, const struct signalfd_siginfo *info)
{
	struct tty_supervisor *s = arg;
	dprintf(s->tell, "signal %d\n", (int)info->ssi_signo);
	if (s->pty)
		pty_signal(s->pty, (int)info->ssi_signo);
}

/* The session's leader dies of the hangup, and its end sends SIGHUP to us: not what we end of. */
static inline void tty_on_sighup(void *arg, const struct signalfd_siginfo *info)
{
	(void)arg;
	(void)info;
}

static inline void tty_on_child(void *arg, const struct signalfd_siginfo *info)
{
	struct tty_supervisor *s = arg;
	(void)info;
	if (waitpid(s->child, &s->status, WNOHANG | WUNTRACED) != s->child)
		return;
	if (!WIFSTOPPED(s->status)) {
		loop_stop(s->loop);
		return;
	}
	pty_suspend(s->pty);
	dprintf(s->tell, "suspended\n");
	kill(getpid(), SIGSTOP);
	pty_continue(s->pty);
	kill(s->child, SIGCONT);
}

static inline void tty_on_hangup(void *arg)
{
	struct tty_supervisor *s = arg;
	dprintf(s->tell, "hangup\n");
	kill(s->child, SIGKILL);
}

static inline void tty_on_interrupt(void *arg)
{
	struct tty_supervisor *s = arg;
	dprintf(s->tell, "interrupt\n");
}

static inline pid_t tty_spawn(const struct tty_supervisor *s, char *const argv[])
{
	int stdio[3] = {-1, -1, -1}, ctty = -1;
	if (s->pty)
		pty_child_stdio(s->pty, stdio, &ctty);
	pid_t pid = fork();
	if (pid)
		return pid;
	if (s->pty) {
		setsid();
		ioctl(ctty, TIOCSCTTY, 0);
	}
	for (int i = 0; i < 3; i++)
		if (stdio[i] >= 0)
			dup2(stdio[i], i);
	sigprocmask(SIG_SETMASK, loop_original_mask(s->loop), NULL);
	execvp(argv[0], argv);
	_exit(127);
}

static inline void tty_become_nobody(void)
{
	if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
		_exit(99);
}

static inline int tty_supervise(char *const argv[], const struct supervisor_options *o, int tell)
{
	struct tty_supervisor s = {.o = o, .tell = tell};
	const struct pty_hooks hooks = {&s, tty_on_hangup};
	const struct prompt_options po = {.interrupt = o->no_pty ? tty_on_interrupt : NULL,
					  .arg = &s};
	if (o->as_nobody)
		tty_become_nobody();
	if (loop_new(&s.loop) || loop_take_signal(s.loop, SIGCHLD, tty_on_child, &s) ||
	    loop_take_signal(s.loop, SIGUSR1, tty_on_usr1, &s) ||
	    loop_take_signal(s.loop, SIGWINCH, tty_on_winch, &s) ||
	    loop_take_signal(s.loop, SIGINT, tty_on_key_signal, &s) ||
	    loop_take_signal(s.loop, SIGHUP, tty_on_sighup, &s) ||
	    (!o->no_pty && (pty_open(s.loop, &hooks, &s.pty) || !s.pty)))
		return 98;
	if (ask_new(s.loop, 0, tty_on_answered, &s, &s.ask) ||
	    prompt_new(s.loop, s.ask, s.pty, &po, &s.prompt))
		return 97;
	s.child = tty_spawn(&s, argv);
	if (s.pty)
		pty_spawned(s.pty);
	dprintf(tell, "pid %d\n", (int)getpid());
	loop_run(s.loop);
	prompt_free(s.prompt);
	ask_free(s.ask);
	pty_close(s.pty);
	loop_free(s.loop);
	dprintf(tell, "closed\n");
	return WIFEXITED(s.status) ? WEXITSTATUS(s.status) : 64 + WTERMSIG(s.status);
}

static inline void tty_job(char *const argv[], const struct supervisor_options *o, int tell)
{
	int in[2];
	setpgid(0, 0);
	if (!o->background) {
		signal(SIGTTOU, SIG_IGN);
		tcsetpgrp(0, getpid());
		signal(SIGTTOU, SIG_DFL);
	}
	if (o->piped_out)
		dup2(tell, 1);
	if (o->piped_in && !pipe(in)) {
		dup2(in[0], 0);
		close(in[0]);
		close(in[1]);
	}
	_exit(tty_supervise(argv, o, tell));
}

/* A shell of the least kind: one job, `fg` by SIGUSR2. */
static inline void tty_lead(char *const argv[], const struct supervisor_options *o, int tell)
{
	sigset_t set;
	int status = 0, signo;
	signal(SIGTTOU, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pid_t job = fork();
	if (!job) {
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		signal(SIGTTOU, SIG_DFL);
		tty_job(argv, o, tell);
	}
	for (;;) {
		sigwait(&set, &signo);
		if (signo == SIGUSR2)
			tcsetpgrp(0, job);
		pid_t done = waitpid(job, &status, WNOHANG | WUNTRACED);
		if (done == job && !WIFSTOPPED(status)) {
			/* Stay: the end of a session's leader changes the terminal's settings. */
			dprintf(tell, "status %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128);
			pause();
		}
		if (done == job)
			tcsetpgrp(0, getpgrp());
	}
}

/* ---- the person ---- */

static inline int64_t tty_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static inline void tty_read(int fd, struct buf *into, int ms)
{
	char bytes[16384];
	struct pollfd f = {.fd = fd, .events = POLLIN};
	if (poll(&f, 1, ms) <= 0)
		return;
	ssize_t n = read(fd, bytes, sizeof(bytes));
	if (n > 0)
		buf_add(into, bytes, (size_t)n);
	else if (ms > 0)
		usleep(1000); /* the end: do not spin until the time is over */
}

/* Read the screen until `text` comes; looks on from behind it. */
static inline bool tty_expect(struct person *p, const char *text, int ms)
{
	int64_t end = tty_now() + ms;
	for (;;) {
		const char *found = p->seen.len > p->at
					    ? memmem(p->seen.data + p->at, p->seen.len - p->at,
						     text, strlen(text))
					    : NULL;
		if (found) {
			p->at = (size_t)(found - p->seen.data) + strlen(text);
			return true;
		}
		int64_t left = end - tty_now();
		if (left <= 0)
			return false;
		tty_read(p->screen, &p->seen, (int)left);
	}
}

/* Read for ms; what came since the last expectation. */
static inline const char *tty_watch(struct person *p, int ms)
{
	int64_t end = tty_now() + ms, left;
	while ((left = end - tty_now()) > 0)
		tty_read(p->screen, &p->seen, (int)left);
	return buf_str(&p->seen) + p->at;
}

/* Wait until the supervisor has told `text`; the screen is read meanwhile. */
static inline bool tty_told(struct person *p, const char *text, int ms)
{
	int64_t end = tty_now() + ms;
	while (!p->words.len || !memmem(p->words.data, p->words.len, text, strlen(text))) {
		if (tty_now() > end)
			return false;
		tty_read(p->told, &p->words, 5);
		tty_read(p->screen, &p->seen, 5);
	}
	return true;
}

static inline void tty_type(struct person *p, const char *keys)
{
	ssize_t n = write(p->screen, keys, strlen(keys));
	(void)n; /* a lost key fails the expectation after it */
}

static inline bool tty_start(struct person *p, char *const argv[],
			     const struct supervisor_options *o)
{
	static const struct supervisor_options plain;
	const struct winsize size = {.ws_row = 24, .ws_col = 80};
	int tell[2];
	memset(p, 0, sizeof(*p));
	if (pipe2(tell, O_CLOEXEC) || openpty(&p->screen, &p->slave, NULL, NULL, &size))
		return false;
	fcntl(p->screen, F_SETFD, FD_CLOEXEC);
	/* Something of its own in the settings, to see it come back. */
	tcgetattr(p->slave, &p->before);
	p->before.c_cc[VERASE] = 0x08;
	p->before.c_iflag |= IXANY;
	tcsetattr(p->slave, TCSANOW, &p->before);
	tcgetattr(p->slave, &p->before);
	p->leader = fork();
	if (!p->leader) {
		int slave = p->slave;
		close(p->screen);
		login_tty(slave);
		tty_lead(argv, o ? o : &plain, tell[1]);
	}
	close(tell[1]);
	p->told = tell[0];
	if (!tty_told(p, "pid ", 5000))
		return false;
	while (!memchr(p->words.data, '\n', p->words.len))
		tty_read(p->told, &p->words, 100);
	p->supervisor = atoi(strstr(p->words.data, "pid ") + 4);
	return true;
}

/* Wait for the end; the supervisor's exit status, or -1 where it did not end in time. */
static inline int tty_end(struct person *p)
{
	bool ended = tty_told(p, "status ", 8000);
	tty_watch(p, 20);
	if (!ended) {
		kill(p->supervisor, SIGKILL);
		return -1;
	}
	return atoi(strstr(p->words.data, "status ") + 7);
}

static inline void tty_leave(struct person *p)
{
	kill(p->leader, SIGKILL);
	waitpid(p->leader, NULL, 0);
	close(p->screen);
	close(p->slave);
	close(p->told);
	buf_free(&p->seen);
	buf_free(&p->words);
}

static inline bool tty_same_settings(const struct person *p)
{
	struct termios now;
	memset(&now, 0, sizeof(now)); /* its padding too */
	return !tcgetattr(p->slave, &now) && !memcmp(&now, &p->before, sizeof(now));
}

static inline bool tty_is_raw(const struct person *p)
{
	struct termios now;
	return !tcgetattr(p->slave, &now) && !(now.c_lflag & (ICANON | ECHO));
}

/* Until it is so, at most ms. */
static inline bool tty_becomes(struct person *p, bool (*is)(const struct person *), bool wanted,
			       int ms)
{
	int64_t end = tty_now() + ms;
	while (is(p) != wanted) {
		if (tty_now() > end)
			return false;
		tty_watch(p, 5);
	}
	return true;
}
