/*
 * doorstep: a call that waits at the door (TRACER_WAITS) and has not run: what it wants, looked at
 * once; and, where the decision is yes, the act.
 *
 * Private to the inside of the engine (run.h). Attribute calls are done at once, on the engine's
 * own thread: they take microseconds. Where a file system may have them wait (slowfs.h) they go to
 * the broker's workers, as connects and messages do, and so does the first look at what they name.
 */
#pragma once

#include "supervisor/run.h"

/*
 * Read and resolve the call and what it needs. True: it is to be decided on. False: it returns
 * *ret_result whatever anybody thinks of it (a missing path, a broken argument); with
 * w->verdict.note where that is worth telling. With w->probes it is only to be looked at first, and
 * then again.
 */
bool doorstep_look(const struct run *r, struct waiter *w, int64_t *ret_result);
/* What such a call needs at all. */
uint32_t doorstep_access(const struct waiter *w);
/* 0, or the errno (negative) that it gets however it is decided, as its caller's own permissions
 * have it. */
int doorstep_fails_anyway(const struct run *r, const struct waiter *w);
/* What the broker is to do: rq->meta or rq->connect. 0, or -errno as the call's result. */
int doorstep_request(const struct run *r, struct waiter *w, struct broker_request *rq);
/* Is it done in no time (doorstep_perform), rather than by the broker? */
bool doorstep_is_instant(const struct waiter *w);
/* Do it, as its caller. The call's result. */
int64_t doorstep_perform(const struct run *r, const struct waiter *w);
