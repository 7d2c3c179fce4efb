/*
 * doorstep: a call that waits at the door (TRACER_WAITS) and has not run: what it wants, looked at
 * once; and, where the decision is yes, the act.
 *
 * Private to the inside of the engine (run.h). Attribute calls are done at once, on the engine's
 * own thread: they take microseconds, and whatever could make them wait (a slow file system) made
 * the look-up before them wait as well. Connects go to the broker's workers.
 */
#pragma once

#include "supervisor/run.h"

/*
 * Read and resolve the call and what it needs. True: it is to be decided on. False: it returns
 * *ret_result whatever anybody thinks of it (a missing path, a broken argument); with
 * w->verdict.note where that is worth telling.
 */
bool doorstep_look(const struct run *r, struct waiter *w, int64_t *ret_result);
/* What such a call needs at all. */
uint32_t doorstep_access(const struct waiter *w);
/* 0, or the errno (negative) that it gets however it is decided, as its caller's own permissions
 * have it. */
int doorstep_fails_anyway(const struct run *r, const struct waiter *w);
/* Is it done in no time (doorstep_perform), rather than by the broker? */
bool doorstep_is_instant(const struct waiter *w);
/* Do it, as its caller. The call's result. */
int64_t doorstep_perform(const struct run *r, const struct waiter *w);
