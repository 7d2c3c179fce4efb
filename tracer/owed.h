/*
 * owed: answers to a call that a stub has reported. Inside the room.
 *
 * Such a call is held at the seccomp stop of its report, and not made there again: a refusal that
 * stands costs no other stop. A result that has the kernel begin it anew needs the exit stop: it is
 * owed until then. Each function expects t held so, lets it go on, and gives 0 or -ESRCH.
 */
#pragma once

#include "tracer/act.h"

int owed_result(struct tracee *t, int64_t result);
/* It is made after all, and its exit is watched. */
int owed_again(struct tracee *t);
/* At the exit stop. */
void owed_pay(struct tracee *t);
