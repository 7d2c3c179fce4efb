/*
 * confine: what the child does to itself before it becomes the command: capabilities that reach
 * round the wall are dropped for ever, and then, once it is complete, the Landlock domain is
 * entered. Async-signal-safe.
 */
#pragma once

#include "landlock/llruleset.h"

#include <stdbool.h>
#include <sys/resource.h>

struct confine {
	struct rlimit files;		 /* RLIMIT_NOFILE as the command shall have it */
	const struct llruleset *ruleset; /* its rules may still be made */
	bool open;			 /* no wall: neither of the two */
};

/* For tracer_spawn's prepare and enter. arg: struct confine. 0 or -errno: nothing may be run. */
int confine_prepare(void *arg);
int confine_enter(void *arg, uint32_t mark);
