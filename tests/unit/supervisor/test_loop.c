#include "supervisor/loop.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct seen {
	struct loop *loop;
	int calls;
	uint32_t events;
	uint64_t id;	/* own watch */
	uint64_t other; /* removed by the callback */
	char order[16];
};

static void on_fd(void *arg, int fd, uint32_t events)
{
	struct seen *s = arg;
	char c;
	s->calls++;
	s->events = events;
	if (events & EPOLLIN && read(fd, &c, 1) < 0)
		s->calls = -1000;
	loop_remove(s->loop, s->other);
}

static void on_silent(void *arg, int fd, uint32_t events)
{
	struct seen *s = arg;
	(void)fd;
	s->calls++;
	s->events = events;
}

Test(loop, fd_is_called_when_ready)
{
	struct loop *l;
	int p[2];
	cr_assert_eq(loop_new(&l), 0);
	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	struct seen s = {.loop = l};
	cr_assert_eq(loop_add_fd(l, p[0], EPOLLIN, on_fd, &s, &s.id), 0);
	cr_assert_eq(loop_turn(l, 0), 0);
	cr_assert_eq(s.calls, 0);
	cr_assert_eq(write(p[1], "x", 1), 1);
	loop_turn(l, 0);
	cr_assert_eq(s.calls, 1);
	uint64_t second;
	cr_assert_eq(loop_add_fd(l, p[0], EPOLLIN, on_fd, &s, &second), -EEXIST);
	loop_free(l);
	cr_assert_eq(fcntl(p[0], F_GETFD), FD_CLOEXEC, "descriptors stay the caller's");
}

static void on_alone(void *arg, int fd, uint32_t events)
{
	struct seen *s = arg;
	(void)fd, (void)events;
	s->order[s->calls++] = loop_is_alone(s->loop) ? 'a' : 't';
}

Test(loop, is_alone_where_one_thing_was_ready)
{
	struct loop *l;
	int p[2], q[2];
	uint64_t id;
	cr_assert_eq(loop_new(&l), 0);
	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(q, O_CLOEXEC), 0);
	struct seen s = {.loop = l};
	cr_assert_eq(loop_add_fd(l, p[0], EPOLLIN, on_alone, &s, &id), 0);
	cr_assert_eq(loop_add_fd(l, q[0], EPOLLIN, on_alone, &s, &id), 0);
	cr_assert_eq(write(p[1], "x", 1), 1);
	loop_turn(l, 0);
	cr_expect_not(loop_is_alone(l));
	cr_assert_eq(write(q[1], "x", 1), 1);
	loop_turn(l, 0);
	cr_expect_str_eq(s.order, "att");
	loop_free(l);
}

/* Two ready watches, each removing the other: exactly one runs, whichever comes first. */
Test(loop, callback_removes_the_other)
{
	struct loop *l;
	int a[2], b[2];
	cr_assert_eq(loop_new(&l), 0);
	cr_assert(!pipe(a) && !pipe(b));
	struct seen one = {.loop = l}, two = {.loop = l};
	loop_add_fd(l, a[0], EPOLLIN, on_fd, &one, &one.id);
	loop_add_fd(l, b[0], EPOLLIN, on_fd, &two, &two.id);
	one.other = two.id;
	two.other = one.id;
	cr_assert(write(a[1], "x", 1) == 1 && write(b[1], "x", 1) == 1);
	loop_turn(l, 0);
	loop_turn(l, 0);
	cr_assert_eq(one.calls + two.calls, 1);
	loop_free(l);
}

static void on_nothing(void *arg)
{
	(void)arg;
}

Test(loop, ids_are_never_used_again)
{
	struct loop *l;
	struct seen s = {0};
	uint64_t last = 0, id;
	cr_assert_eq(loop_new(&l), 0);
	s.loop = l;
	for (int i = 0; i < 100; i++) {
		cr_assert_eq(loop_add_timer(l, 1000, on_nothing, &s, &id), 0);
		cr_assert_gt(id, last);
		last = id;
		loop_remove(l, id);
		loop_remove(l, id);
	}
	loop_remove(l, 0);
	loop_free(l);
}

Test(loop, no_events_is_silence_even_at_hang_up)
{
	struct loop *l;
	int p[2];
	struct seen s = {0};
	cr_assert_eq(loop_new(&l), 0);
	cr_assert(!pipe(p));
	s.loop = l;
	loop_add_fd(l, p[0], EPOLLIN, on_silent, &s, &s.id);
	cr_assert_eq(loop_change_fd(l, s.id, 0), 0);
	close(p[1]);
	for (int i = 0; i < 3; i++)
		loop_turn(l, 0);
	cr_assert_eq(s.calls, 0);
	cr_assert_eq(loop_change_fd(l, s.id, EPOLLIN), 0);
	loop_turn(l, 0);
	cr_assert_eq(s.calls, 1);
	cr_assert(s.events & EPOLLHUP);
	cr_assert_eq(loop_change_fd(l, 12345, EPOLLIN), -ENOENT);
	loop_free(l);
}

Test(loop, regular_file_is_ready_each_turn)
{
	struct loop *l;
	struct seen s = {0};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	cr_assert_eq(loop_new(&l), 0);
	s.loop = l;
	cr_assert_eq(loop_add_fd(l, fd, EPOLLIN, on_silent, &s, &s.id), 0);
	loop_turn(l, -1);
	loop_turn(l, -1);
	cr_assert_eq(s.calls, 2);
	cr_assert_eq(s.events, EPOLLIN);
	loop_remove(l, s.id);
	loop_turn(l, 0);
	cr_assert_eq(s.calls, 2);
	loop_free(l);
	close(fd);
}

struct tick {
	struct seen *seen;
	char name;
};

static void on_tick(void *arg)
{
	struct tick *t = arg;
	t->seen->order[t->seen->calls++] = t->name;
	if (t->name == '3')
		loop_stop(t->seen->loop);
}

Test(loop, timers_fire_by_time)
{
	struct loop *l;
	struct seen s = {0};
	struct tick t[] = {{&s, '3'}, {&s, '1'}, {&s, '2'}, {&s, 'x'}};
	static const int ms[] = {60, 5, 30, 40};
	uint64_t id[4];
	struct timespec from, to;
	cr_assert_eq(loop_new(&l), 0);
	s.loop = l;
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		loop_add_timer(l, ms[i], on_tick, &t[i], &id[i]);
	loop_remove(l, id[3]);
	clock_gettime(CLOCK_MONOTONIC, &from);
	cr_assert_eq(loop_run(l), 0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	cr_assert_str_eq(s.order, "123");
	cr_assert_geq((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000, 59);
	loop_free(l);
}

static void on_again(void *arg)
{
	struct seen *s = arg;
	s->calls++;
	loop_add_timer(s->loop, 0, on_again, s, &s->id);
}

Test(loop, a_timer_that_sets_itself_does_not_starve)
{
	struct loop *l;
	struct seen s = {0};
	cr_assert_eq(loop_new(&l), 0);
	s.loop = l;
	loop_add_timer(l, 0, on_again, &s, &s.id);
	for (int i = 1; i <= 5; i++) {
		loop_turn(l, -1);
		cr_assert_eq(s.calls, i);
	}
	loop_free(l);
}

static void on_ready(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	++*(int *)arg;
}

/* Not by when the clock has gone on. */
Test(loop, a_timer_without_delay_has_the_next_turn)
{
	struct loop *l;
	struct seen s = {0};
	struct tick t = {&s, '1'};
	uint64_t id, ready;
	int ready_times = 0, fd = eventfd(1, EFD_CLOEXEC);
	cr_assert_eq(loop_new(&l), 0);
	s.loop = l;
	cr_assert_eq(loop_add_fd(l, fd, EPOLLIN, on_ready, &ready_times, &ready), 0);
	for (int i = 0; i < 100; i++) {
		s.calls = 0;
		loop_add_timer(l, 0, on_tick, &t, &id);
		loop_turn(l, -1);
		cr_assert_eq(s.calls, 1);
	}
	loop_free(l);
	close(fd);
}

Test(loop, timers_fire_while_descriptors_are_always_ready)
{
	struct loop *l;
	struct seen s = {0};
	struct tick t[] = {{&s, '1'}, {&s, '2'}, {&s, 'x'}};
	uint64_t id[3], ready;
	int ready_times = 0, fd = eventfd(1, EFD_CLOEXEC);
	cr_assert_eq(loop_new(&l), 0);
	s.loop = l;
	cr_assert_eq(loop_add_fd(l, fd, EPOLLIN, on_ready, &ready_times, &ready), 0);
	loop_add_timer(l, 1, on_tick, &t[2], &id[2]);
	loop_add_timer(l, 20, on_tick, &t[1], &id[1]);
	loop_add_timer(l, 5, on_tick, &t[0], &id[0]);
	loop_remove(l, id[2]); /* the first one: the next is the first now */
	for (int turns = 0; s.calls < 2 && turns < 10000; turns++) {
		loop_turn(l, -1);
		usleep(100);
	}
	cr_assert_str_eq(s.order, "12");
	cr_assert_gt(ready_times, 2);
	/* With none left it waits for as long as it is told. */
	loop_remove(l, ready);
	loop_turn(l, 0);
	cr_assert_eq(s.calls, 2);
	loop_free(l);
	close(fd);
}

static void on_signal(void *arg, const struct signalfd_siginfo *info)
{
	struct seen *s = arg;
	s->order[s->calls++] = (char)info->ssi_signo;
}

Test(loop, signals_are_taken_and_given_back)
{
	struct loop *l;
	struct seen s = {0};
	sigset_t before, during, after;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	cr_assert_eq(loop_new(&l), 0);
	s.loop = l;
	cr_assert_eq(loop_take_signal(l, SIGUSR1, on_signal, &s), 0);
	cr_assert_eq(loop_take_signal(l, SIGWINCH, on_signal, &s), 0);
	cr_assert_eq(loop_take_signal(l, SIGUSR1, on_signal, &s), -EBUSY);
	cr_assert_eq(loop_take_signal(l, SIGKILL, on_signal, &s), -EINVAL);
	raise(SIGUSR1);
	loop_turn(l, 0);
	raise(SIGWINCH);
	loop_turn(l, 0);
	cr_assert_eq(s.calls, 2);
	cr_assert(s.order[0] == SIGUSR1 && s.order[1] == SIGWINCH);
	pthread_sigmask(SIG_SETMASK, NULL, &during);
	cr_assert(sigismember(&during, SIGUSR1) && !sigismember(loop_original_mask(l), SIGUSR1));
	loop_give_signals(l);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	cr_assert(!sigismember(&after, SIGUSR1) && !sigismember(&after, SIGWINCH));
	cr_assert_eq(loop_take_signal(l, SIGUSR1, on_signal, &s), 0, "and again");
	raise(SIGUSR1);
	loop_turn(l, 0);
	cr_assert_eq(s.calls, 3);
	loop_free(l);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int i = 1; i < NSIG; i++)
		cr_assert_eq(sigismember(&before, i), sigismember(&after, i), "signal %d", i);
}

Test(loop, several_signals_are_taken_or_none)
{
	struct loop *l;
	struct seen s = {0};
	const struct loop_signal two[] = {{SIGUSR1, on_signal}, {SIGUSR2, on_signal}};
	const struct loop_signal wrong[] = {{SIGWINCH, on_signal}, {SIGKILL, on_signal}};
	const struct loop_signal again[] = {{SIGWINCH, on_signal}, {SIGUSR2, on_signal}};
	sigset_t during;
	cr_assert_eq(loop_new(&l), 0);
	s.loop = l;
	cr_assert_eq(loop_take_signals(l, two, 2, &s), 0);
	cr_assert_eq(loop_take_signals(l, wrong, 2, &s), -EINVAL);
	cr_assert_eq(loop_take_signals(l, again, 2, &s), -EBUSY);
	pthread_sigmask(SIG_SETMASK, NULL, &during);
	cr_assert(!sigismember(&during, SIGWINCH));
	raise(SIGUSR2);
	loop_turn(l, 0);
	raise(SIGUSR1);
	loop_turn(l, 0);
	cr_assert(s.calls == 2 && s.order[0] == SIGUSR2 && s.order[1] == SIGUSR1);
	loop_free(l);
}

Test(loop, ignored_signals_arrive_and_stay_ignored)
{
	struct loop *l;
	struct seen s = {0};
	signal(SIGHUP, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	cr_assert_eq(loop_new(&l), 0);
	s.loop = l;
	loop_take_signal(l, SIGHUP, on_signal, &s);
	loop_take_signal(l, SIGCHLD, on_signal, &s);
	raise(SIGHUP);
	loop_turn(l, 0);
	cr_assert_eq(s.calls, 1);
	struct sigaction now;
	sigaction(SIGHUP, NULL, &now);
	cr_assert_eq(now.sa_handler, SIG_IGN, "a child inherits it as it was");
	pid_t pid = fork();
	if (!pid)
		_exit(7);
	int status;
	cr_assert_eq(waitpid(pid, &status, 0), pid, "children can be waited for");
	cr_assert_eq(WEXITSTATUS(status), 7);
	loop_free(l);
	sigaction(SIGCHLD, NULL, &now);
	cr_assert_eq(now.sa_handler, SIG_IGN);
}
