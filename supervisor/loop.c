#include "supervisor/loop.h"

#include "tracer/clock.h"
#include "tracer/util.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#define LOOP_EVENTS_MAX 32
#define LOOP_SIGNAL_ID	0 /* in epoll's data; watches count from 1 */
#define NEVER		INT64_MAX

enum watch_kind { WATCH_FD, WATCH_TIMER };

struct watch {
	uint64_t id;
	enum watch_kind kind;
	int fd;
	uint32_t events;
	bool in_epoll;
	bool always; /* a regular file: epoll refuses it, it is always ready */
	int64_t due_ns;
	loop_fd_fn *fd_fn;
	loop_timer_fn *timer_fn;
	void *arg;
};

struct loop {
	int epoll;
	int signals; /* signalfd, or -1 */
	bool stopped;
	bool alone; /* one thing was ready, and its callback runs */
	uint64_t next_id;
	struct watch *watch; /* by rising id */
	size_t len;
	size_t cap;
	size_t always;	/* of them, regular files */
	int64_t due_ns; /* of the first timer; NEVER: there is none */
	sigset_t original;
	sigset_t taken;
	struct sigaction sigchld;
	bool sigchld_ignored;
	struct {
		loop_signal_fn *fn;
		void *arg;
	} signal[NSIG];
};

int loop_new(struct loop **ret)
{
	struct loop *l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->signals = -1;
	l->next_id = 1;
	l->due_ns = NEVER;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0) {
		int e = -errno;
		free(l);
		return e;
	}
	sigemptyset(&l->taken);
	pthread_sigmask(SIG_SETMASK, NULL, &l->original);
	*ret = l;
	return 0;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	loop_give_signals(l);
	if (l->signals >= 0)
		close(l->signals);
	close(l->epoll);
	free(l->watch);
	free(l);
}

static struct watch *find(const struct loop *l, uint64_t id)
{
	size_t low = 0, high = l->len;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (l->watch[mid].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low < l->len && l->watch[low].id == id ? &l->watch[low] : NULL;
}

static int add(struct loop *l, const struct watch *w, uint64_t *ret_id)
{
	if (l->len == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 16;
		struct watch *grown = reallocarray(l->watch, cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		l->watch = grown;
		l->cap = cap;
	}
	l->watch[l->len] = *w;
	l->watch[l->len].id = l->next_id;
	l->len++;
	*ret_id = l->next_id++;
	return 0;
}

/* Bring epoll's idea of the watch up to w->events. */
static int arm(struct loop *l, struct watch *w)
{
	struct epoll_event e = {.events = w->events, .data.u64 = w->id};
	int op = !w->events ? EPOLL_CTL_DEL : w->in_epoll ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	if (w->always || (op == EPOLL_CTL_DEL && !w->in_epoll))
		return 0;
	if (epoll_ctl(l->epoll, op, w->fd, &e)) {
		if (op == EPOLL_CTL_ADD && errno == EPERM) {
			w->always = true;
			l->always++;
			return 0;
		}
		if (op != EPOLL_CTL_DEL)
			return -errno;
	}
	w->in_epoll = op != EPOLL_CTL_DEL;
	return 0;
}

int loop_add_fd(struct loop *l, int fd, uint32_t events, loop_fd_fn *fn, void *arg,
		uint64_t *ret_id)
{
	struct watch w = {.kind = WATCH_FD, .fd = fd, .events = events, .fd_fn = fn, .arg = arg};
	uint64_t id;
	int r = add(l, &w, &id);
	if (r)
		return r;
	r = arm(l, &l->watch[l->len - 1]);
	if (r) {
		l->len--;
		return r;
	}
	*ret_id = id;
	return 0;
}

int loop_change_fd(struct loop *l, uint64_t id, uint32_t events)
{
	struct watch *w = find(l, id);
	if (!w || w->kind != WATCH_FD)
		return -ENOENT;
	if (w->events == events)
		return 0;
	uint32_t before = w->events;
	w->events = events;
	int r = arm(l, w);
	if (r)
		w->events = before;
	return r;
}

int loop_add_timer(struct loop *l, int64_t delay_ms, loop_timer_fn *fn, void *arg, uint64_t *ret_id)
{
	int64_t delay_ns = delay_ms > INT64_MAX / 4 / 1000000 ? INT64_MAX / 4 : delay_ms * 1000000;
	struct watch w = {.kind = WATCH_TIMER,
			  .fd = -1,
			  /* Without delay it is not late by a tick either (wait_ms()). */
			  .due_ns = delay_ms > 0 ? clock_ns() + delay_ns : 0,
			  .timer_fn = fn,
			  .arg = arg};
	int r = add(l, &w, ret_id);
	if (!r && w.due_ns < l->due_ns)
		l->due_ns = w.due_ns;
	return r;
}

static const struct watch *earliest(const struct loop *l, uint64_t below_id)
{
	const struct watch *best = NULL;
	for (size_t i = 0; i < l->len; i++) {
		const struct watch *w = &l->watch[i];
		if (w->kind == WATCH_TIMER && w->id < below_id &&
		    (!best || w->due_ns < best->due_ns))
			best = w;
	}
	return best;
}

void loop_remove(struct loop *l, uint64_t id)
{
	struct watch *w = find(l, id);
	if (!w)
		return;
	if (w->in_epoll)
		epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	bool timer = w->kind == WATCH_TIMER;
	l->always -= w->always;
	size_t i = (size_t)(w - l->watch);
	memmove(w, w + 1, (l->len - i - 1) * sizeof(*w));
	l->len--;
	const struct watch *first = timer ? earliest(l, UINT64_MAX) : NULL;
	if (timer)
		l->due_ns = first ? first->due_ns : NEVER;
}

/* ---- signals ---- */

static int open_signals(struct loop *l, const sigset_t *set)
{
	int fd = signalfd(l->signals, set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (l->signals >= 0)
		return 0;
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = LOOP_SIGNAL_ID};
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e)) {
		int r = -errno;
		close(fd);
		return r;
	}
	l->signals = fd;
	return 0;
}

static void heed_sigchld(struct loop *l)
{
	if (sigaction(SIGCHLD, NULL, &l->sigchld) || l->sigchld.sa_handler != SIG_IGN)
		return;
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	l->sigchld_ignored = !sigaction(SIGCHLD, &dfl, NULL);
}

/* As it was before: those of the set that were open are so again. */
static void unblock(const struct loop *l, const sigset_t *set)
{
	sigset_t open;
	sigemptyset(&open);
	for (int s = 1; s < NSIG; s++)
		if (sigismember(set, s) == 1 && !sigismember(&l->original, s))
			sigaddset(&open, s);
	pthread_sigmask(SIG_UNBLOCK, &open, NULL);
}

static int check_signals(const struct loop *l, const struct loop_signal *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int s = list[i].signo;
		if (s <= 0 || s >= NSIG || s == SIGKILL || s == SIGSTOP)
			return -EINVAL;
		if (l->signal[s].fn)
			return -EBUSY;
	}
	return 0;
}

int loop_take_signals(struct loop *l, const struct loop_signal *list, size_t n, void *arg)
{
	sigset_t set = l->taken, new;
	int r = check_signals(l, list, n);
	if (r)
		return r;
	sigemptyset(&new);
	for (size_t i = 0; i < n; i++) {
		sigaddset(&new, list[i].signo);
		sigaddset(&set, list[i].signo);
	}
	/* Blocked first: one that arrives in between waits for the descriptor. */
	r = -pthread_sigmask(SIG_BLOCK, &new, NULL);
	if (!r)
		r = open_signals(l, &set);
	if (r) {
		unblock(l, &new);
		return r;
	}
	l->taken = set;
	for (size_t i = 0; i < n; i++) {
		l->signal[list[i].signo].fn = list[i].fn;
		l->signal[list[i].signo].arg = arg;
		if (list[i].signo == SIGCHLD)
			heed_sigchld(l);
	}
	return 0;
}

int loop_take_signal(struct loop *l, int signo, loop_signal_fn *fn, void *arg)
{
	return loop_take_signals(l, &(struct loop_signal){signo, fn}, 1, arg);
}

void loop_give_signals(struct loop *l)
{
	sigset_t given = l->taken;
	if (l->signals < 0)
		return;
	sigemptyset(&l->taken);
	memset(l->signal, 0, sizeof(l->signal));
	/* The descriptor stays, with no signals: narrowing an existing one can't fail. */
	BUG(signalfd(l->signals, &l->taken, SFD_CLOEXEC | SFD_NONBLOCK) < 0);
	if (l->sigchld_ignored)
		sigaction(SIGCHLD, &l->sigchld, NULL);
	l->sigchld_ignored = false;
	unblock(l, &given);
}

const sigset_t *loop_original_mask(const struct loop *l)
{
	return &l->original;
}

static void dispatch_signal(struct loop *l)
{
	struct signalfd_siginfo info;

	/* One: of what is left, or came meanwhile, the next turn is told. */
	if (read(l->signals, &info, sizeof(info)) == (ssize_t)sizeof(info) &&
	    info.ssi_signo < NSIG && l->signal[info.ssi_signo].fn)
		l->signal[info.ssi_signo].fn(l->signal[info.ssi_signo].arg, &info);
}

/* ---- turning ---- */

static void dispatch_fd(struct loop *l, uint64_t id, uint32_t events)
{
	const struct watch *w = find(l, id);
	if (!w || w->kind != WATCH_FD || !w->events)
		return;
	/* Hang-up and error always count, as in epoll; the rest only while it is still wanted. */
	events &= w->events | EPOLLHUP | EPOLLERR;
	if (events)
		w->fd_fn(w->arg, w->fd, events);
}

/* The next regular file after id, to be called once in this turn. */
static uint64_t next_always(const struct loop *l, uint64_t id)
{
	for (size_t i = 0; i < l->len; i++)
		if (l->watch[i].id > id && l->watch[i].always && l->watch[i].events)
			return l->watch[i].id;
	return 0;
}

static void dispatch_always(struct loop *l)
{
	uint64_t end = l->next_id;
	for (uint64_t id = next_always(l, 0); id && id < end; id = next_always(l, id))
		dispatch_fd(l, id, find(l, id)->events & (EPOLLIN | EPOLLOUT));
}

/* Timers that were set before this turn: one that sets itself again can't starve the rest. */
static void dispatch_timers(struct loop *l)
{
	uint64_t below = l->next_id;
	int64_t now = clock_ns();
	const struct watch *w;
	while ((w = earliest(l, below)) && w->due_ns <= now) {
		loop_timer_fn *fn = w->timer_fn;
		void *arg = w->arg;
		loop_remove(l, w->id);
		fn(arg);
	}
}

/* By the last tick's time, which costs next to nothing: a timer may be late by a tick. */
static int wait_ms(const struct loop *l, int timeout_ms)
{
	if (l->always && next_always(l, 0))
		return 0;
	if (l->due_ns == NEVER)
		return timeout_ms;
	int64_t ms = (l->due_ns - clock_ns_of(CLOCK_MONOTONIC_COARSE) + 999999) / 1000000;
	if (ms < 0)
		ms = 0;
	if (timeout_ms >= 0 && timeout_ms < ms)
		return timeout_ms;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

int loop_turn(struct loop *l, int timeout_ms)
{
	struct epoll_event event[LOOP_EVENTS_MAX];
	int ms = wait_ms(l, timeout_ms);
	int n = epoll_wait(l->epoll, event, LOOP_EVENTS_MAX, ms);
	if (n < 0 && errno != EINTR)
		return -errno;
	l->alone = n == 1;
	for (int i = 0; i < n; i++) {
		if (event[i].data.u64 == LOOP_SIGNAL_ID)
			dispatch_signal(l);
		else
			dispatch_fd(l, event[i].data.u64, event[i].events);
	}
	l->alone = false;
	if (l->always)
		dispatch_always(l);
	/* What comes due while descriptors are ready makes the next turn's wait one of none. */
	if (n <= 0 || ms == 0)
		dispatch_timers(l);
	return 0;
}

bool loop_is_alone(const struct loop *l)
{
	return l->alone;
}

int loop_run(struct loop *l)
{
	int r = 0;
	while (!l->stopped && !r)
		r = loop_turn(l, -1);
	l->stopped = false;
	return r;
}

void loop_stop(struct loop *l)
{
	l->stopped = true;
}
