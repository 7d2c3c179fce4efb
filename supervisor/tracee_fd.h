/*
 * tracee_fd: a tracee's descriptor as one of ours.
 *
 * The copy is the same open file description (offset, flags, locks). It is taken by the thread: its
 * descriptor table need not be its leader's (CLONE_FILES). Whatever stands behind the number a
 * moment later is none of the copy's business. While it is open the file is: it is to be closed
 * before the tracee goes on, which may close its own at once, and run what it has written.
 *
 * A pidfd means one thread, and never another that has its number later (then it is -ESRCH): so the
 * last few are kept.
 */
#pragma once

#include "tracer/call.h"

struct tracee_fds;

/* NULL: no memory. */
struct tracee_fds *tracee_fds_new(void);
void tracee_fds_free(struct tracee_fds *f);
/*
 * 0 and *ret (owned, close-on-exec); -EBADF: it has no such descriptor; -EPERM: we may not (a
 * tracee that is not dumpable); -ESRCH: it is gone; -EMFILE. `f`: of the calling thread, or NULL.
 */
int tracee_fd_take(struct tracee_fds *f, struct call_view view, int number, int *ret);
