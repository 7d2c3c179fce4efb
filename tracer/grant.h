/*
 * grant: a held open gets its descriptor. Inside the room.
 *
 * The thread repeats its call with the mark (filter.h), so that the call waits at the door and is
 * answered with ADDFD|SEND. Until that is over every signal is blocked (PTRACE_SETSIGMASK): a
 * signal would turn the open into EINTR. Blocked, it stays pending where the kernel put it, with
 * its siginfo, and is delivered when the mask is put back. SIGSTOP can't be blocked: then the
 * kernel itself restarts the call, which comes to the door once more.
 *
 * On the way: HELD -> (repeat) -> entry stop -> door -> exit stop, where argument and mask are put
 * back: the program may look at its registers. A call that a stub has reported is held before it
 * would be made: it goes to the door from there, with no entry stop.
 */
#pragma once

#include "tracer/act.h"

/* Takes fd over. 0; -EINVAL: not an open, still held; -ESRCH. */
int grant_begin(const struct tracer *tr, struct tracee *t, int fd, bool cloexec);
/* The same through a call that is not the thread's own: it makes `door`, an openat, from the same
 * instruction. 0 or -ESRCH. */
int grant_begin_as(const struct tracer *tr, struct tracee *t, const struct regs_call *door, int fd);
/* The stop that is the repeated call's entry, or its exit. */
void grant_entered(struct tracee *t);
void grant_exited(struct tracee *t);
/* Somebody waits at the door. */
void grant_guest(struct tracer *tr, const struct door_guest *guest);
/* Whatever became of it: no descriptor, and the thread's own signal mask. */
void grant_end(struct tracee *t);
/* Put back the argument that was changed (also by others than grants), at an exit stop. */
void grant_restore_arg(struct tracee *t);
