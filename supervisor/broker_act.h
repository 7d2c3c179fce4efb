/*
 * broker_act: what performs each kind of call, on the worker's thread. Inside the broker.
 */
#pragma once

#include "supervisor/broker_job.h"

struct broker_act_result {
	int fd;
	bool stale;
	bool finds_itself;
};

/* 0 or -errno; an open's descriptor, an exec's copy in *r. */
typedef int broker_act_fn(const struct broker_job *j, struct broker_act_result *r);

/* One row a need: what performs it, whether it changes names. */
struct broker_act {
	broker_act_fn *fn;
	bool structural;
	bool own_thread; /* the act changes its thread for good */
};

/* What an O_PATH descriptor holds, opened with the flags of an open(2): a descriptor or -errno. */
int broker_act_reopen(int object, uint64_t flags);
/* fn NULL: nothing of this need is done in a process's place. */
const struct broker_act *broker_act_of(enum call_need need);
