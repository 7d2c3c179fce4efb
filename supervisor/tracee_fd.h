/*
 * tracee_fd: a tracee's descriptor as one of ours.
 *
 * The copy is the same open file description (offset, flags, locks). It is taken by the thread: its
 * descriptor table need not be its leader's (CLONE_FILES). Whatever stands behind the number a
 * moment later is none of the copy's business.
 */
#pragma once

#include "tracer/call.h"

/*
 * 0 and *ret (owned, close-on-exec); -EBADF: it has no such descriptor; -EPERM: we may not (a
 * tracee that is not dumpable); -ESRCH: it is gone; -EMFILE.
 */
int tracee_fd_take(struct call_view view, int number, int *ret);
