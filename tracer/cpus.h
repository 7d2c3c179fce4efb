/*
 * cpus: which processors a thread has, and how long a slice, so that it can be bound for a while
 * and have back what it had.
 *
 * The kernel keeps what was asked for a thread beside what it gets (user_cpus_ptr of struct
 * task_struct): one that asked for today's two is given no third when its cpuset grows or a
 * processor comes back. So who has all that there are gets all back that there will be.
 *
 * A thread that is born inherits both, its creator's slice too (kernel/sched/core.c, sched_fork()).
 * Nothing blocks.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct cpus {
	cpu_set_t now;	 /* what it gets */
	cpu_set_t asked; /* what is to be asked for it */
	bool has_slice;	 /* an ordinary thread, on a kernel that tells slices (6.12) */
	uint64_t slice;	 /* ns; 0: the usual one */
	int nice;
};

/* The calling thread's. 0 or -errno. */
int cpus_own(struct cpus *ret);
/* The calling thread has these, and no others. `now` becomes what that is today. */
void cpus_take(struct cpus *c);
/* The calling thread is bound to this one. 0 or -errno. */
int cpus_bind(int cpu);
/* The calling thread's slice; 0: the usual one. 0 or -errno. */
int cpus_slice(uint64_t ns);
