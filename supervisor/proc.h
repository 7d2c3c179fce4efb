/*
 * proc: what /proc tells of the process that asks. A process that is gone has empty answers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where /proc/PID/WHAT (exe, cwd) points, owned; "" where it can't be read; NULL without memory. */
char *proc_link(pid_t pid, const char *what);
/*
 * A path as given, made absolute by the descriptor's name or the working directory's (AT_FDCWD):
 * for what could not be resolved. Owned; NULL without memory.
 */
char *proc_absolute(pid_t tid, int dirfd, const char *given);
/* The name that the kernel keeps of it (at most 15 bytes, its own choice); "" where it is gone. */
char *proc_comm(pid_t pid);
/* Its arguments, redacted, owned (redact_free); NULL without memory. */
char **proc_argv(pid_t pid);
/* How many seccomp filters it is under (5.9); 0 where the kernel does not say, or it is gone. */
unsigned proc_filters(pid_t tid);
/*
 * Is a signal pending that the thread would act on if it were not held? *ret_ends: one whose
 * default action ends the process.
 */
bool proc_signal_waits(pid_t tid, bool *ret_ends);
/*
 * Does the process hold a descriptor on this very file that gives at least this open's access?
 * (O_ACCMODE, O_APPEND and O_TRUNC of `flags` count: one for reading gives no emptying, and one
 * that may only append no other writing.)
 */
bool proc_holds_open(pid_t pid, dev_t dev, ino_t ino, uint64_t flags);
