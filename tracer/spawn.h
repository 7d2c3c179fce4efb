/*
 * spawn: a child becomes the command, seized before it runs anything of its own.
 *
 * The child waits until it is seized; sets up its session, signals and cwd; runs the caller's
 * prepare; and installs the filter, which takes the kernel longer than all the rest: meanwhile the
 * caller may still be making what `enter` needs. Once that is there and the listener was taken it
 * runs `enter`, sorts its descriptors, and execs. Everything between fork and exec is
 * async-signal-safe, so the caller may have threads.
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

/* A child that was begun; it waits for ever, and dies with us. */
struct spawn {
	pid_t pid;
	int talk;
	struct filter_options filter; /* which it has, or will have */
};

/*
 * Fork, and let it go as far as the filter: it has what s says now. 0 and *ret, for spawn_finish()
 * or spawn_abandon(); or -errno with *ret_stage. Does not block.
 */
int spawn_begin(const struct tracer_spawn *s, const struct filter_options *filter,
		struct spawn *ret, enum tracer_stage *ret_stage);
/* 0, or -errno with *ret_stage: then no child is left. Blocks until the child has its filter. */
int spawn_finish(const struct spawn *begun, struct spawn_result *ret, enum tracer_stage *ret_stage);
/* Kill and reap it; blocks until it is gone. */
void spawn_abandon(const struct spawn *begun);
/* Is one of the descriptors that the child is to have a unix datagram socket? */
bool spawn_hands_datagram(const struct tracer_spawn *s);
/* Kill and reap a child of spawn_start(); blocks until it is gone. */
void spawn_end(pid_t pid);
/*
 * What `enter` or the exec left in `report` when it failed: -errno with *ret_stage, or 0 (it did
 * not fail). Does not block.
 */
int spawn_exec_error(int report, enum tracer_stage *ret_stage);
