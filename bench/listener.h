/*
 * listener: a seccomp listener on its way from the tracee, which has put on the filter, to its
 * supervisor; `talk` is one end each of a SOCK_SEQPACKET pair.
 */
#pragma once

#include <sys/types.h>

/* The tracee's (or -errno, which comes back): closed once the other has it. Blocks. 0 or -errno. */
int listener_hand(int listener, int talk);
/*
 * The supervisor's copy of it, whose guests wake it on their own processor where the kernel can
 * (6.6). Blocks until the tracee hands it over. The caller's, or -errno.
 */
int listener_take(pid_t tracee, int talk);
