/*
 * owed: answers to a call that a stub has reported. Inside the room.
 *
 * Such a call is held at the seccomp stop of its report, and not made there again: a refusal that
 * stands costs no other stop. An answer that changes where the thread goes on needs the exit stop:
 * it is owed until then. Each function expects t held so, lets it go on, and gives 0 or -ESRCH.
 */
#pragma once

#include "tracer/act.h"

int owed_result(struct tracee *t, int64_t result);
int owed_again(struct tracee *t);
/* Takes fd over. -EINVAL: the call is no open; t is still held. */
int owed_fd(struct tracee *t, int fd, bool cloexec);
/* At the exit stop. */
void owed_pay(const struct tracer *tr, struct tracee *t);
