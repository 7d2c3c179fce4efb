/*
 * spawn: a child becomes the command, seized before it runs anything of its own.
 *
 * The child waits until it is seized; sets up its session, signals, descriptors and cwd; runs the
 * caller's prepare; installs the filter; and execs once its listener was taken. Everything between
 * fork and exec is async-signal-safe, so the caller may have threads.
 */
#pragma once

#include "tracer/filter.h"
#include "tracer/tracer.h"

#include <stdint.h>

struct spawn_result {
	pid_t pid;
	int listener; /* owned by the caller */
	int report; /* owned by the caller: reads a struct spawn_report if exec failed, else EOF */
};

struct spawn_report {
	int32_t stage;	  /* enum tracer_stage */
	int32_t error;	  /* -errno; in stage EXEC before the exec: 0 */
	int32_t listener; /* the child's number */
};

/*
 * 0, or -errno with *ret_stage: then no child is left. Blocks until the child has its filter.
 */
int spawn_start(const struct tracer_spawn *s, const struct filter_options *filter,
		struct spawn_result *ret, enum tracer_stage *ret_stage);
/* Is one of the descriptors that the child is to have a unix datagram socket? */
bool spawn_hands_datagram(const struct tracer_spawn *s);
/* Kill and reap a child of spawn_start(); blocks until it is gone. */
void spawn_end(pid_t pid);
/* What a failed exec left in `report`: -errno, or 0 (it did not fail). Does not block. */
int spawn_exec_error(int report);
