#include "tracer/whereabouts.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A stopped child, bound to the processor we are on. Ended by end(). */
static pid_t stopped_here(int *ret_cpu)
{
	cpu_set_t one;

	*ret_cpu = sched_getcpu();
	CPU_ZERO(&one);
	CPU_SET(*ret_cpu, &one);
	pid_t pid = fork();
	if (pid == 0) {
		sched_setaffinity(0, sizeof(one), &one);
		raise(SIGSTOP);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, NULL, WUNTRACED), pid);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(whereabouts, the_processor_and_the_rank_of_a_thread)
{
	struct whereabouts w = {0};
	struct whereabouts_rank rank;
	int cpu;
	pid_t pid = stopped_here(&cpu);

	cr_expect_not(whereabouts_knows(&w, pid));
	cr_expect_eq(whereabouts_look(&w, pid, &rank), cpu);
	cr_expect(rank.is_ordinary);
	cr_expect_eq(rank.nice, nice(0));
	cr_expect(whereabouts_knows(&w, pid));
	whereabouts_forget(&w, pid);
	cr_expect_not(whereabouts_knows(&w, pid));
	end(pid);
	cr_expect_eq(whereabouts_look(&w, pid, &rank), WHEREABOUTS_NOWHERE);
	whereabouts_free(&w);
}

Test(whereabouts, a_dead_one_is_still_told_of_until_it_is_reaped)
{
	struct whereabouts w = {0};
	struct whereabouts_rank rank;
	int cpu;
	siginfo_t info;
	pid_t pid = stopped_here(&cpu);

	cr_assert_eq(whereabouts_look(&w, pid, &rank), cpu);
	kill(pid, SIGKILL);
	cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	cr_expect_eq(whereabouts_look(&w, pid, &rank), cpu);
	waitpid(pid, NULL, 0);
	whereabouts_free(&w);
}

Test(whereabouts, who_was_woken_is_taken_to_be_there_for_a_moment)
{
	struct whereabouts w = {0};
	struct timespec more = {.tv_nsec = 1000000};

	cr_expect_eq(whereabouts_recent(&w, getpid()), WHEREABOUTS_NOWHERE);
	whereabouts_woken(&w, getpid(), 5);
	nanosleep(&more, NULL);
	cr_expect_eq(whereabouts_recent(&w, getpid()), WHEREABOUTS_NOWHERE, "the moment is over");
	/* Whatever keeps us between the two, once in many times it is no longer than a moment. */
	int cpu = WHEREABOUTS_NOWHERE;
	for (int i = 0; i < 10000 && cpu == WHEREABOUTS_NOWHERE; i++) {
		whereabouts_woken(&w, getpid(), 5);
		cpu = whereabouts_recent(&w, getpid());
	}
	cr_expect_eq(cpu, 5);
	whereabouts_free(&w);
}

Test(whereabouts, the_last_few_are_kept)
{
	struct whereabouts w = {0};
	struct whereabouts_rank rank;
	pid_t pid[WHEREABOUTS_MAX + 1];
	int cpu;

	for (int i = 0; i <= WHEREABOUTS_MAX; i++) {
		pid[i] = stopped_here(&cpu);
		cr_expect_eq(whereabouts_look(&w, pid[i], &rank), cpu);
	}
	cr_expect_not(whereabouts_knows(&w, pid[0]));
	for (int i = 1; i <= WHEREABOUTS_MAX; i++)
		cr_expect(whereabouts_knows(&w, pid[i]));
	whereabouts_free(&w);
	for (int i = 0; i <= WHEREABOUTS_MAX; i++)
		end(pid[i]);
}
