#include "tracer/near.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static cpu_set_t cpus_of(pid_t tid)
{
	cpu_set_t set;

	cr_assert_eq(sched_getaffinity(tid, sizeof(set), &set), 0);
	return set;
}

static bool are_same(cpu_set_t a, cpu_set_t b)
{
	return CPU_EQUAL(&a, &b);
}

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that stops in its middle */
		for (;;)
			pause();
	}
	cr_assert_gt(pid, 0);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The runtime of struct sched_attr (sched_getattr(2)), which glibc 2.36 does not know. */
static uint64_t slice_of(pid_t tid)
{
	uint64_t attr[6] = {0};

	cr_assert_eq(syscall(SYS_sched_getattr, tid, attr, sizeof(attr), 0), 0);
	return attr[3];
}

static struct near *near_or_skip(void)
{
	struct near *n = near_new();

	if (!n)
		cr_skip_test("one processor, or a kernel without slices");
	return n;
}

Test(near, nobody_is_allowed)
{
	near_meet(NULL, getpid());
	near_meet_guest(NULL, getpid());
	near_mourn(NULL, getpid());
	near_part(NULL);
	near_hold(NULL, getpid());
	near_let_go(NULL);
	near_execed(NULL, 1, 2);
	near_asked(NULL, 1, 2);
	near_born(NULL, 1, 2);
	near_roam(NULL);
	cr_expect_not(near_rest(NULL));
	near_free(NULL);
}

Test(near, it_binds_itself_and_for_a_moment_the_other)
{
	struct near *n = near_or_skip();
	cpu_set_t own = cpus_of(0);
	pid_t other = sleeper();

	near_meet(n, other);
	cpu_set_t here = cpus_of(0);
	cr_expect_eq(CPU_COUNT(&here), 1);
	cr_expect(are_same(cpus_of(other), own));
	near_hold(n, other);
	cr_expect(are_same(cpus_of(other), here));
	near_let_go(n);
	cr_expect(are_same(cpus_of(other), own));
	/* Held late, it is not where it was met. */
	near_hold(n, other);
	cr_expect(are_same(cpus_of(other), own));
	near_let_go(n);

	near_roam(n);
	cr_expect(are_same(cpus_of(0), own));
	near_meet(n, other);
	near_free(n);
	cr_expect(are_same(cpus_of(0), own));
	end(other);
}

Test(near, who_has_parted_or_chosen_is_left_alone)
{
	struct near *n = near_or_skip();
	pid_t other = sleeper();
	cpu_set_t own = cpus_of(other);

	near_meet(n, other);
	near_part(n);
	near_hold(n, other);
	cr_expect(are_same(cpus_of(other), own));
	near_let_go(n);

	near_meet(n, other);
	cpu_set_t chosen = cpus_of(0);
	cr_assert_eq(sched_setaffinity(other, sizeof(chosen), &chosen), 0);
	near_hold(n, other);
	near_let_go(n);
	cr_expect(are_same(cpus_of(other), chosen));
	near_free(n);
	end(other);
}

Test(near, a_guest_is_met_and_not_held)
{
	struct near *n = near_or_skip();
	pid_t other = sleeper();
	cpu_set_t own = cpus_of(0);

	for (int i = 0; i < 100; i++) {
		near_meet_guest(n, other);
		cpu_set_t here = cpus_of(0);
		cr_expect_eq(CPU_COUNT(&here), 1);
		near_hold(n, other);
		cr_expect(are_same(cpus_of(other), own));
		cr_expect(near_rest(n), "it was met since");
	}
	cr_expect_not(near_rest(n));
	cr_expect(are_same(cpus_of(0), own));
	near_free(n);
	end(other);
}

Test(near, a_child_has_its_creators)
{
	struct near *n = near_or_skip();
	pid_t creator = sleeper(), child = sleeper();
	cpu_set_t own = cpus_of(creator), one;

	CPU_ZERO(&one);
	for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
		if (CPU_ISSET(cpu, &own))
			CPU_SET(cpu, &one);
	cr_assert_eq(sched_setaffinity(child, sizeof(one), &one), 0);
	near_born(n, creator, child);
	cr_expect(are_same(cpus_of(child), own));
	near_free(n);
	end(creator);
	end(child);
}

Test(near, it_rests_after_a_while)
{
	struct near *n = near_or_skip();
	cpu_set_t own = cpus_of(0);
	pid_t other = sleeper();

	cr_expect_not(near_rest(n), "it was nowhere");
	near_meet(n, other);
	cr_expect(near_rest(n), "somebody was met since");
	cr_expect_not(near_rest(n));
	cr_expect(are_same(cpus_of(0), own));
	near_meet(n, other);
	cr_expect(near_rest(n), "it begins anew");
	near_free(n);
	end(other);
}

Test(near, who_is_gone_is_left_out)
{
	struct near *n = near_or_skip();
	pid_t other = sleeper();

	near_meet(n, other);
	end(other);
	near_meet(n, other);
	near_hold(n, other);
	near_let_go(n);
	near_born(n, getpid(), other);
	near_born(n, other, getpid());
	/* Its number again, by another: the descriptor that was open is the dead one's. */
	pid_t next = sleeper();
	near_meet(n, next);
	near_hold(n, next);
	cpu_set_t held = cpus_of(next);
	cr_expect_eq(CPU_COUNT(&held), 1);
	near_let_go(n);
	near_free(n);
	end(next);
}

Test(near, who_is_born_while_it_roams_inherits_nothing)
{
	uint64_t usual = slice_of(0);
	struct near *n = near_or_skip();
	pid_t other = sleeper(), before = sleeper();

	near_meet(n, other);
	cr_expect_lt(slice_of(0), usual);
	near_roam(n);
	pid_t after = sleeper();
	cr_expect_eq(slice_of(before), usual);
	cr_expect_eq(slice_of(after), usual);
	near_free(n);
	cr_expect_eq(slice_of(0), usual);
	end(other);
	end(before);
	end(after);
}

Test(near, a_choice_in_the_moment_stands)
{
	struct near *n = near_or_skip();
	pid_t other = sleeper();
	cpu_set_t own = cpus_of(0), chosen;

	near_meet(n, other);
	near_hold(n, other);
	cpu_set_t here = cpus_of(other);
	CPU_XOR(&chosen, &own, &here);
	cr_assert_eq(sched_setaffinity(other, sizeof(chosen), &chosen), 0);
	near_let_go(n);
	cr_expect(are_same(cpus_of(other), chosen));
	near_free(n);
	end(other);
}

Test(near, nobody_is_held_where_one_looks_at_another)
{
	struct near *n = near_or_skip();
	pid_t other = sleeper();
	cpu_set_t own = cpus_of(0), here;

	near_meet(n, other);
	near_asked(n, other, 0);
	near_meet(n, other);
	near_asked(n, other, other);
	near_meet(n, other);
	near_hold(n, other);
	here = cpus_of(other);
	cr_expect_eq(CPU_COUNT(&here), 1, "it was about itself");
	near_let_go(n);
	near_asked(n, other, getpid());
	near_meet(n, other);
	near_hold(n, other);
	cr_expect(are_same(cpus_of(other), own));
	near_let_go(n);
	near_free(n);
	end(other);
}

Test(near, an_exec_by_another_thread_takes_nothing_along)
{
	struct near *n = near_or_skip();
	pid_t thread = sleeper(), leader = sleeper();
	cpu_set_t own = cpus_of(0);

	near_meet(n, thread);
	near_hold(n, thread);
	cpu_set_t here = cpus_of(thread);
	/* It has the leader's number, and its own is nobody's. */
	end(thread);
	cr_assert_eq(sched_setaffinity(leader, sizeof(here), &here), 0);
	near_let_go(n);
	near_execed(n, thread, leader);
	cr_expect(are_same(cpus_of(leader), own));
	/* Once: what it chooses later is its own. */
	cr_assert_eq(sched_setaffinity(leader, sizeof(here), &here), 0);
	near_execed(n, thread, leader);
	cr_expect(are_same(cpus_of(leader), here));
	near_free(n);
	end(leader);
}

Test(near, who_is_let_through_before_us_is_not_waited_for)
{
	pid_t other = sleeper();
	cpu_set_t own = cpus_of(0);
	struct sched_param first = {.sched_priority = 1};
	int nice = getpriority(PRIO_PROCESS, 0);

	cr_assert_eq(setpriority(PRIO_PROCESS, 0, nice + 1), 0);
	struct near *n = near_or_skip();
	near_meet(n, other);
	cr_expect(are_same(cpus_of(0), own));
	cr_assert_eq(setpriority(PRIO_PROCESS, (id_t)other, nice + 1), 0);
	near_meet(n, other);
	cpu_set_t here = cpus_of(0);
	cr_expect_eq(CPU_COUNT(&here), 1);
	if (sched_setscheduler(other, SCHED_FIFO, &first) == 0) { /* root's alone */
		near_meet(n, other);
		cr_expect(are_same(cpus_of(0), own));
	}
	near_free(n);
	end(other);
}

/* Stopped, and on this processor. */
static pid_t stopped_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pid_t pid = fork();
	if (pid == 0) {
		sched_setaffinity(0, sizeof(one), &one);
		raise(SIGSTOP);
		_exit(1);
	}
	cr_assert_eq(waitpid(pid, NULL, WUNTRACED), pid);
	return pid;
}

/* The first two of them. */
static void two_of(cpu_set_t set, int ret[2])
{
	int n = 0;

	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			ret[n++] = i;
}

Test(near, it_comes_to_where_a_dead_one_was_if_it_has_met_it)
{
	struct near *n = near_or_skip();
	siginfo_t info;
	int cpu[2];

	two_of(cpus_of(0), cpu);
	for (int met = 0; met < 2; met++) {
		pid_t dead = stopped_on(cpu[0]), other = stopped_on(cpu[1]);
		if (met)
			near_meet(n, dead);
		near_meet(n, other);
		cpu_set_t then = cpus_of(0);
		cr_assert(CPU_ISSET(cpu[1], &then));
		kill(dead, SIGKILL);
		cr_assert_eq(waitid(P_PID, (id_t)dead, &info, WEXITED | WNOWAIT), 0);
		near_mourn(n, dead);
		cpu_set_t now = cpus_of(0);
		cr_expect_eq(CPU_COUNT(&now), 1);
		cr_expect(CPU_ISSET(cpu[met ? 0 : 1], &now));
		waitpid(dead, NULL, 0);
		end(other);
	}
	near_free(n);
}
