/*
 * loop: one thread, one epoll: descriptors, timers and signals, dispatched to callbacks.
 *
 * Watches are named by id, so that a callback may remove any watch, its own too, and a stale event
 * never reaches a freed one. Callbacks must not block.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>

struct loop;

typedef void loop_fd_fn(void *arg, int fd, uint32_t epoll_events);
typedef void loop_timer_fn(void *arg);
typedef void loop_signal_fn(void *arg, const struct signalfd_siginfo *info);

struct loop_signal {
	int signo;
	loop_signal_fn *fn;
};

int loop_new(struct loop **ret);
/* Watches end; their descriptors stay open (the caller's). Signals taken are given back. */
void loop_free(struct loop *l);

/*
 * Watch fd for EPOLLIN|EPOLLOUT|... Ids are never reused. Regular files (epoll_ctl says EPERM) are
 * called each turn. Events 0 means silence, hang-ups and errors included; EPOLLERR alone asks for
 * just those. One watch a descriptor (-EEXIST); remove it before closing the descriptor.
 */
int loop_add_fd(struct loop *l, int fd, uint32_t events, loop_fd_fn *fn, void *arg,
		uint64_t *ret_id);
/* 0, -ENOENT, or -errno of epoll_ctl. */
int loop_change_fd(struct loop *l, uint64_t id, uint32_t events);
/* One shot, after delay_ms (monotonic). */
int loop_add_timer(struct loop *l, int64_t delay_ms, loop_timer_fn *fn, void *arg,
		   uint64_t *ret_id);
/* Any kind of watch; an id that is gone (or 0) is fine. */
void loop_remove(struct loop *l, uint64_t id);
/*
 * Take a signal: it is blocked in this thread and arrives here by signalfd; the mask and
 * disposition before are restored by loop_free. One callback a signal; -EBUSY for a second.
 * Dispositions stay as they are (a blocked signal is queued even where it is ignored), so that a
 * child inherits them; only an ignored SIGCHLD becomes the default one, or no child could be waited
 * for.
 */
int loop_take_signal(struct loop *l, int signo, loop_signal_fn *fn, void *arg);
/* Several, all or none. The same errors. */
int loop_take_signals(struct loop *l, const struct loop_signal *list, size_t n, void *arg);
/* Give all back before loop_free: unblocked again where they were open, so that pending ones are
 * delivered. */
void loop_give_signals(struct loop *l);
/* The signal mask from before the first of them was taken: what a child must get back. */
const sigset_t *loop_original_mask(const struct loop *l);

/* Dispatch until loop_stop(). 0, or -errno of epoll. */
int loop_run(struct loop *l);
/*
 * In a watch's callback: was its descriptor all that this turn found ready? Then nothing has been
 * done since the kernel was asked, and what it said of the descriptor, and of every other one,
 * still holds as far as it is for us to change.
 */
bool loop_is_alone(const struct loop *l);
/* One turn, waiting at most timeout_ms (-1: until something happens). */
int loop_turn(struct loop *l, int timeout_ms);
void loop_stop(struct loop *l);
