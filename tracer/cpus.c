#include "tracer/cpus.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* include/uapi/linux/sched/types.h, which does not go together with <sched.h> of glibc 2.36 */
struct slice_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static int slice_attr(struct slice_attr *ret)
{
	*ret = (struct slice_attr){.size = sizeof(*ret)};
	return syscall(SYS_sched_getattr, 0, ret, sizeof(*ret), 0) < 0 ? -errno : 0;
}

int cpus_slice(uint64_t ns)
{
	struct slice_attr a;
	int r = slice_attr(&a);

	if (r < 0)
		return r;
	a.runtime = ns;
	return syscall(SYS_sched_setattr, 0, &a, 0) < 0 ? -errno : 0;
}

int cpus_bind(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) < 0 ? -errno : 0;
}

/* What it gets when it asks for all: was it that before? Then nobody has chosen anything for it. */
static int find_asked(struct cpus *c)
{
	cpu_set_t all;

	memset(&c->asked, 0xff, sizeof(c->asked));
	if (sched_setaffinity(0, sizeof(c->asked), &c->asked) < 0 ||
	    sched_getaffinity(0, sizeof(all), &all) < 0)
		return -errno;
	if (CPU_EQUAL(&all, &c->now))
		return 0;
	c->asked = c->now;
	return sched_setaffinity(0, sizeof(c->asked), &c->asked) < 0 ? -errno : 0;
}

/* The same of its slice: is it the one that it gets when it asks for none? */
static void find_slice(struct cpus *c)
{
	struct slice_attr a, usual;

	if (slice_attr(&a) < 0)
		return;
	c->nice = a.nice;
	c->has_slice = a.policy == SCHED_OTHER && a.runtime != 0 && cpus_slice(0) == 0;
	if (!c->has_slice || slice_attr(&usual) < 0 || usual.runtime == a.runtime)
		return;
	c->slice = a.runtime;
	(void)cpus_slice(c->slice);
}

int cpus_own(struct cpus *ret)
{
	struct cpus c = {0};

	if (sched_getaffinity(0, sizeof(c.now), &c.now) < 0)
		return -errno;
	int r = find_asked(&c);
	if (r < 0)
		return r;
	find_slice(&c);
	*ret = c;
	return 0;
}

void cpus_take(struct cpus *c)
{
	(void)sched_setaffinity(0, sizeof(c->asked), &c->asked);
	(void)sched_getaffinity(0, sizeof(c->now), &c->now);
	if (c->has_slice)
		(void)cpus_slice(c->slice);
}
