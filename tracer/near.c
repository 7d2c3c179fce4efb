#include "tracer/near.h"

#include "tracer/cpus.h"
#include "tracer/util.h"
#include "tracer/whereabouts.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>

#define SLICE_NS 100000 /* the shortest (kernel/sched/syscalls.c, __setparam_fair()) */
#define NOWHERE	 WHEREABOUTS_NOWHERE
#define GUESTS	 32

struct near {
	struct cpus own; /* the thread's, while it is not bound */
	int here;	 /* the processor it is bound to, or NOWHERE */
	pid_t met;	 /* who was met there last; 0: nobody */
	pid_t held;	 /* bound to it, too, for the moment; 0: nobody */
	pid_t lost;	 /* was held, and had no such number any more; 0: nobody */
	struct whereabouts seen;
	pid_t guest;	 /* at the door, last */
	unsigned guests; /* times in a row since its processor was asked for */
	bool busy;	 /* somebody was met since near_rest() */
	bool holds_none; /* some tracee looks at others' processors */
};

struct near *near_new(void)
{
	struct near *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->here = NOWHERE;
	/* Before 6.12 an ordinary thread's slice is not told. */
	if (cpus_own(&n->own) < 0 || CPU_COUNT(&n->own.now) < 2 || !n->own.has_slice) {
		free(n);
		return NULL;
	}
	return n;
}

/* What it has may be more by now, or less. */
static void roam(struct near *n)
{
	cpus_take(&n->own);
	n->here = NOWHERE;
	n->met = 0;
}

void near_free(struct near *n)
{
	if (!n)
		return;
	roam(n);
	whereabouts_free(&n->seen);
	free(n);
}

/* One that is let through before us: on its processor we might wait for as long as it likes. */
static bool is_ahead(const struct near *n, struct whereabouts_rank rank)
{
	return !rank.is_ordinary || rank.nice < n->own.nice;
}

static int cpu_of(struct near *n, pid_t tid)
{
	struct whereabouts_rank rank;
	int cpu = whereabouts_recent(&n->seen, tid);

	if (cpu != NOWHERE && cpu == n->here)
		return cpu;
	cpu = whereabouts_look(&n->seen, tid, &rank);
	return cpu != NOWHERE && is_ahead(n, rank) ? NOWHERE : cpu;
}

static int come_to(struct near *n, int cpu)
{
	if (cpu == n->here)
		return 0;
	int r = cpus_bind(cpu);
	if (r < 0)
		return r;
	/* Not when it roams: whoever is born then would inherit it. */
	if (n->here == NOWHERE)
		(void)cpus_slice(SLICE_NS);
	n->here = cpu;
	return 0;
}

void near_meet(struct near *n, pid_t tid)
{
	if (!n)
		return;
	int cpu = cpu_of(n, tid);
	n->met = 0;
	if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &n->own.now)) {
		roam(n);
		return;
	}
	n->busy = true;
	if (come_to(n, cpu) == 0)
		n->met = tid;
}

void near_meet_guest(struct near *n, pid_t tid)
{
	if (!n)
		return;
	if (n->guest == tid && n->here != NOWHERE && ++n->guests < GUESTS) {
		n->busy = true;
		return;
	}
	near_meet(n, tid);
	near_part(n);
	n->guest = tid;
	n->guests = 0;
}

void near_mourn(struct near *n, pid_t tid)
{
	if (!n)
		return;
	if (whereabouts_knows(&n->seen, tid))
		near_meet(n, tid);
	near_part(n);
	whereabouts_forget(&n->seen, tid);
}

void near_part(struct near *n)
{
	if (n)
		n->met = 0;
}

static bool has_just(pid_t tid, int cpu)
{
	cpu_set_t its;

	return sched_getaffinity(tid, sizeof(its), &its) == 0 && CPU_COUNT(&its) == 1 &&
	       CPU_ISSET(cpu, &its);
}

/* Who was given others than we have is left alone: only of ours it is known what to ask for. */
void near_hold(struct near *n, pid_t tid)
{
	cpu_set_t its, one;

	if (!n || n->met != tid || n->here == NOWHERE)
		return;
	n->met = 0;
	if (n->holds_none || sched_getaffinity(tid, sizeof(its), &its) < 0 ||
	    !CPU_EQUAL(&its, &n->own.now))
		return;
	CPU_ZERO(&one);
	CPU_SET(n->here, &one);
	if (sched_setaffinity(tid, sizeof(one), &one) < 0)
		return;
	n->held = tid;
	whereabouts_woken(&n->seen, tid, n->here);
}

void near_let_go(struct near *n)
{
	if (!n || !n->held)
		return;
	/* Else it is gone, its number is another's, or somebody has chosen for it meanwhile. */
	if (has_just(n->held, n->here))
		(void)sched_setaffinity(n->held, sizeof(n->own.asked), &n->own.asked);
	else
		n->lost = n->held;
	n->held = 0;
}

void near_execed(struct near *n, pid_t former, pid_t tid)
{
	if (!n || n->lost != former || former == tid)
		return;
	n->lost = 0;
	if (has_just(tid, n->here))
		(void)sched_setaffinity(tid, sizeof(n->own.asked), &n->own.asked);
}

void near_asked(struct near *n, pid_t asks, pid_t about)
{
	if (!n)
		return;
	n->met = 0;
	n->holds_none |= about != 0 && about != asks;
}

void near_born(struct near *n, pid_t creator, pid_t child)
{
	cpu_set_t its, childs;

	if (!n || sched_getaffinity(child, sizeof(childs), &childs) < 0 ||
	    CPU_EQUAL(&childs, &n->own.now))
		return;
	if (sched_getaffinity(creator, sizeof(its), &its) < 0 || CPU_EQUAL(&its, &childs))
		return;
	if (CPU_EQUAL(&its, &n->own.now))
		its = n->own.asked;
	(void)sched_setaffinity(child, sizeof(its), &its);
}

void near_roam(struct near *n)
{
	if (n && n->here != NOWHERE)
		roam(n);
}

bool near_rest(struct near *n)
{
	if (!n)
		return false;
	if (!n->busy)
		near_roam(n);
	n->busy = false;
	return n->here != NOWHERE;
}
