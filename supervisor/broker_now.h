/*
 * broker_now: what a broker can do at once, without a worker: an open of what exists, as somebody
 * who has our own rights to files, that can wait for nobody: a directory or a regular file on a
 * file system of this machine's own disks or memory. (Who breaks a lease by it would wait: it is
 * tried without. Permission events are in nobody's hand that is watched: confine.h.)
 */
#pragma once

#include "supervisor/identity.h"
#include "tracer/call.h"

/*
 * The resolved call, for the thread that is `as`; `self` is the calling thread's. 0 and *ret_fd
 * (the caller's), -errno as the call's result, or -EAGAIN: a worker must do it.
 */
int broker_now_open(const struct call *c, const struct identity *as, const struct identity *self,
		    int *ret_fd);
