/*
 * floor: what the kernel alone takes for a stop and for a notification, with a supervisor that does
 * nothing and sits on the tracee's own processor: the least that anybody pays who stops a call, or
 * does it in the caller's place.
 */
#pragma once

/* ns of one of n calls, beside the call itself. 0 or -errno. Blocks until they are made. */
int floor_stop(int n, double *ret_ns);
int floor_notification(int n, double *ret_ns);
