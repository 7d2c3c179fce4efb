/*
 * procfs: what a procfs says to the tracee, and which of its links the tracee may follow.
 *
 * A procfs numbers processes as one pid namespace does, which need not be ours: the tracee's number
 * there is looked for among those that it has in each namespace (NSpid and NStgid of
 * /proc/PID/status, Linux 4.1). Reads procfs; blocks no longer than that does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

bool procfs_is(int dir);
/* A magic link is what RESOLVE_NO_MAGICLINKS refuses (openat2(2)). */
bool procfs_is_magic(int dir, const char *name);
/*
 * What `self` and `thread-self` at the root of a procfs say to the tracee; dir is in a procfs
 * (procfs_is()). 1 and the link's text; 0: it is not one of them; -ENOENT: the tracee has no number
 * there.
 */
int procfs_self(int dir, const char *name, pid_t tid, char *text, size_t n);
/*
 * Whose magic links are in dir? The kernel lets the tracee follow those of a process it may look
 * into. We may look into ourselves and much else; it only into itself and the others that we trace
 * (Landlock's ptrace rule: not out of its domain). 0 or -EACCES. Called by the tracing thread.
 */
int procfs_check_owner(int dir, pid_t tid);
