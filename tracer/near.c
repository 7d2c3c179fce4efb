#include "tracer/near.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define SLICE_NS      100000 /* the shortest (kernel/sched/syscalls.c, __setparam_fair()) */
#define NOWHERE	      -1
#define GUESTS	      32
#define STAT_MAX      1024
#define STAT_CPU      39 /* field of /proc/PID/stat, counted from 1 */
#define STAT_AT_STATE 3	 /* the first behind the name, which may hold anything */

/* include/uapi/linux/sched/types.h, which does not go together with <sched.h> of glibc 2.36 */
struct slice_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

struct near {
	cpu_set_t own; /* the thread's, before it was bound */
	uint64_t own_slice;
	int here;   /* the processor it is bound to, or NOWHERE */
	pid_t met;  /* who was met there last; 0: nobody */
	pid_t held; /* bound to it, too, for the moment; 0: nobody */
	cpu_set_t held_own;
	pid_t stat_of; /* whose /proc/TID/stat is open */
	int stat;
	pid_t guest;	 /* at the door, last */
	unsigned guests; /* times in a row since its processor was asked for */
	bool busy;	 /* somebody was met since near_rest() */
};

static int slice_attr(struct slice_attr *ret)
{
	*ret = (struct slice_attr){.size = sizeof(*ret)};
	return (int)syscall(SYS_sched_getattr, 0, ret, sizeof(*ret), 0);
}

static int set_slice(uint64_t ns)
{
	struct slice_attr a;

	if (slice_attr(&a) < 0)
		return -errno;
	a.runtime = ns;
	return syscall(SYS_sched_setattr, 0, &a, 0) < 0 ? -errno : 0;
}

struct near *near_new(void)
{
	struct near *n = calloc(1, sizeof(*n));
	struct slice_attr a;

	if (!n)
		return NULL;
	n->here = NOWHERE;
	n->stat = -1;
	/* Before 6.12 an ordinary thread's slice is not told. */
	if (sched_getaffinity(0, sizeof(n->own), &n->own) < 0 || CPU_COUNT(&n->own) < 2 ||
	    slice_attr(&a) < 0 || a.policy != SCHED_OTHER || a.runtime == 0 ||
	    set_slice(SLICE_NS) < 0) {
		free(n);
		return NULL;
	}
	n->own_slice = a.runtime;
	return n;
}

void near_free(struct near *n)
{
	if (!n)
		return;
	near_roam(n);
	(void)set_slice(n->own_slice);
	if (n->stat >= 0)
		close(n->stat);
	free(n);
}

static int bind_to(pid_t tid, int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(tid, sizeof(one), &one);
}

/* The descriptor is of this very thread, whoever has its number later (fs/proc/base.c). */
static int open_stat(struct near *n, pid_t tid)
{
	char path[64];

	if (n->stat >= 0 && n->stat_of == tid)
		return 0;
	if (n->stat >= 0)
		close(n->stat);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)tid, (int)tid);
	n->stat = open(path, O_RDONLY | O_CLOEXEC);
	n->stat_of = tid;
	return n->stat < 0 ? -errno : 0;
}

static int cpu_in(const char *stat)
{
	const char *at = strrchr(stat, ')');

	for (int field = STAT_AT_STATE - 1; at && field < STAT_CPU; field++)
		at = strchr(at + 1, ' ');
	return at ? atoi(at + 1) : NOWHERE;
}

static int cpu_of(struct near *n, pid_t tid)
{
	char text[STAT_MAX];

	/* The first look may find a former thread of that number. */
	for (int look = 0; look < 2 && open_stat(n, tid) == 0; look++) {
		ssize_t len = pread(n->stat, text, sizeof(text) - 1, 0);
		if (len > 0) {
			text[len] = '\0';
			return cpu_in(text);
		}
		n->stat_of = 0;
	}
	return NOWHERE;
}

void near_meet(struct near *n, pid_t tid)
{
	if (!n)
		return;
	int cpu = cpu_of(n, tid);
	n->busy = true;
	n->met = 0;
	if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &n->own))
		return;
	if (cpu != n->here && bind_to(0, cpu) < 0)
		return;
	n->here = cpu;
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

void near_part(struct near *n)
{
	if (n)
		n->met = 0;
}

void near_hold(struct near *n, pid_t tid)
{
	if (!n || n->met != tid || n->here == NOWHERE)
		return;
	n->met = 0;
	if (sched_getaffinity(tid, sizeof(n->held_own), &n->held_own) < 0 ||
	    bind_to(tid, n->here) < 0)
		return;
	n->held = tid;
}

void near_let_go(struct near *n)
{
	if (!n || !n->held)
		return;
	(void)sched_setaffinity(n->held, sizeof(n->held_own), &n->held_own); /* ESRCH: killed */
	n->held = 0;
}

void near_born(struct near *n, pid_t creator, pid_t child)
{
	cpu_set_t its, childs;

	if (!n || sched_getaffinity(creator, sizeof(its), &its) < 0 ||
	    sched_getaffinity(child, sizeof(childs), &childs) < 0 || CPU_EQUAL(&its, &childs))
		return;
	(void)sched_setaffinity(child, sizeof(its), &its);
}

void near_roam(struct near *n)
{
	if (!n || n->here == NOWHERE)
		return;
	(void)sched_setaffinity(0, sizeof(n->own), &n->own);
	n->here = NOWHERE;
	n->met = 0;
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
