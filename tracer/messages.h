/*
 * messages: whoever may hold a unix datagram socket has its sendmsg and sendmmsg watched. Inside
 * the room; the face is tracer/tracer.h (TRACER_WAITS).
 *
 * Of all calls these alone carry an address in memory, where no filter reads it, and of all sockets
 * only a unix datagram socket follows one to a path (net/unix/af_unix.c; streams ignore it). Their
 * making is seen in registers: socket and socketpair. So a program that makes none pays nothing;
 * one that does is first put under a further filter (filter_build_messages), which can't be taken
 * off again and is inherited. From then on its messages wait at the door, whatever they are about.
 *
 *   socket(AF_UNIX, SOCK_DGRAM) -> seccomp stop, skipped -> (openat) a sealed file through the door
 *   -> (mmap) -> (close) -> (mseal) -> looked at -> (seccomp, for all threads) -> (poll) until no
 *   thread can be in the middle of a send -> socket, once more
 *
 * The program may be hostile: the filter lies in a file whose contents are sealed, in a mapping
 * that is sealed, and both are looked at before the kernel reads it. That it is there is known by
 * what the next stop brings (FILTER_MESSAGE_DATA), which only a filter of the program's own could
 * forge: who has one gets no such socket (EACCES).
 *
 * The other ways to such a socket: a table shared with another process (clone with CLONE_FILES) is
 * watched before it is shared; pidfd_getfd is EPERM; one that is inherited from outside has every
 * message of the run wait (filter.h, `messages`); one in a message (SCM_RIGHTS) is for whoever does
 * the send in the program's place to refuse. What a server outside hands over is not seen.
 */
#pragma once

#include "tracer/act.h"

/* At the seccomp stop of such a call: does t need the further filter first? */
bool messages_due(const struct tracer *tr, const struct tracee *t, const struct sysent *ent,
		  const uint64_t args[6]);
/* Has this kernel mseal(2), 6.10? Without it only a program of one thread can change nothing. */
bool messages_can_be_sealed(void);
/* Can't it have one (a filter of its own)? */
bool messages_never(const struct tracee *t);
/* Put it on; the call of t->entered is then made again. 0, or -errno: t is still in its stop. */
int messages_watch(struct tracer *tr, struct tracee *t);
/* The descriptor came through the door: its number in the tracee, or -errno. */
void messages_given(struct tracee *t, int64_t number);
/* A seccomp or system call stop on the way. */
void messages_seccomp(struct tracee *t);
void messages_syscall(struct tracer *tr, struct tracee *t);
/* It can't be done: the call is refused. */
void messages_abandon(struct tracee *t);
/* It became another program, or is gone. */
void messages_free(struct tracee *t);
/* At the seccomp stop of a sendmsg or sendmmsg: on to the door. */
void messages_to_door(struct tracer *tr, struct tracee *t);
/* A filter of the program's own is about to be there, for its threads and children too. */
void messages_filtered(struct tracer *tr, const struct tracee *t);
