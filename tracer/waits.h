/*
 * waits: calls that wait at the door before they run, and never run. Inside the room.
 *
 * For the groups META and CONNECT the wall has no right, so nothing but the supervisor's own act
 * may let them happen: their calls have no mark by which the filter would let them pass, and no
 * notification of theirs is ever answered with CONTINUE (another thread could have changed a path,
 * an address or a descriptor since it was looked at). The caller of this room performs the call
 * itself and hands the result in.
 *
 * The thread sleeps in the kernel meanwhile. Until we know of it a signal breaks the sleep; the
 * call is then begun anew, also after a handler without SA_RESTART: chmod and its like never give
 * EINTR.
 */
#pragma once

#include "tracer/act.h"

/* Is the guest's call one of these? Then it is taken (an event, or refused on the spot). */
bool waits_begin(struct tracer *tr, const struct door_guest *guest);
/* The waiting thread's call returns result: >= 0, -errno, or -ERESTARTSYS while a signal waits. */
void waits_answer(struct tracee *t, int64_t result);
/* It waits no longer, and nobody answered it. */
void waits_end(struct tracee *t);
/* A signal is about to be delivered to t: see to it that a call it broke off is begun anew. */
void waits_signalled(struct tracee *t);
