/*
 * execfd: a held execve runs the file behind a descriptor of ours in place of the one it named.
 * Inside the room.
 *
 * Landlock asks for EXECUTE along the path, and a sealed memfd has none. The thread's registers are
 * put aside; it makes a marked openat, to which the door gives the descriptor (tracer/grant.h);
 * then execveat with that descriptor, its own argv and envp, and its own path's end as the empty
 * string. Nothing is written into its memory, which a vfork child shares with its parent. Where the
 * exec fails after all, the descriptor is closed again and the registers are put back: but for the
 * result, the program sees nothing.
 *
 * On the way: HELD -> (openat) ENTER -> DOOR -> (execveat) EXEC -> EVENT_EXEC, or -> (close) CLOSE
 * -> exit stop.
 */
#pragma once

#include "tracer/act.h"

struct execfd;

/* Takes fd over. 0; -EINVAL: not an exec, still held; -ENOMEM, still held; -ESRCH. */
int execfd_begin(const struct tracer *tr, struct tracee *t, int fd);
/* The openat is over: number is the descriptor in the tracee, or -errno. */
void execfd_given(struct tracee *t, int64_t number);
/* A seccomp or system call stop on the way, in EXEC or CLOSE. */
void execfd_seccomp(struct tracee *t);
void execfd_syscall(struct tracee *t);
/* It became another program, or is gone. */
void execfd_free(struct tracee *t);
/* It can't be done: everything as it was, and the call returns what the kernel first said. */
void execfd_abandon(struct tracee *t);
