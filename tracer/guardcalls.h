/*
 * guardcalls: calls that would lead out of our sight, or that only the report wants to know of
 * (group GUARD of syscalls.def): answered, changed or let go, and told. Inside the room.
 */
#pragma once

#include "tracer/act.h"

/* The tracee is in the seccomp stop of such a call, t->at; it goes on. 0 or -ENOMEM. */
int guardcalls_enter(struct tracer *tr, struct tracee *t, const struct sysent *ent);
/* A namespace was asked for, without one of users that it would belong to, and refused: t->at. */
bool guardcalls_refused(const struct tracee *t, const struct sysent *ent, int64_t result);
/*
 * landlock_restrict_self succeeded, t->at: from now on the thread has a domain of its own. True: it
 * may be about TCP, and the caller wants to know.
 */
bool guardcalls_restricted(struct tracer *tr, struct tracee *t);
/* The caller's number for that domain. */
void guardcalls_confined(struct tracer *tr, struct tracee *t, uint32_t number);
