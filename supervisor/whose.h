/*
 * whose: as whom held threads act (supervisor/identity.h), read once for as long as it can't
 * change. What /proc says of a thread costs as much as all the rest of a chmod.
 */
#pragma once

#include "supervisor/identity.h"
#include "tracer/tracer.h"

struct whose;

/* NULL: no memory. */
struct whose *whose_new(void);
void whose_free(struct whose *w);
/*
 * The identity of the thread of an event; with `anew`, its umask too, which else may be an older
 * one, and whether it is there at all. As identity_of().
 */
int whose_is(struct whose *w, struct tracee_name who, uint32_t turn, bool anew,
	     struct identity *ret);
