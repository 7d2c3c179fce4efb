/*
 * confine: what the child does to itself before it becomes the command: capabilities that reach
 * round the wall are dropped for ever, then the Landlock domain is entered. Async-signal-safe.
 */
#pragma once

#include "landlock/llruleset.h"

#include <stdbool.h>
#include <sys/resource.h>

struct confine {
	struct rlimit files; /* RLIMIT_NOFILE as the command shall have it */
	const struct llruleset *ruleset;
	bool open; /* no wall: neither of the two */
};

/* For tracer_spawn's prepare. arg: struct confine. 0 or -errno: nothing may be run. */
int confine_prepare(void *arg);
