/*
 * door: the seccomp listeners, where a marked open waits for its descriptor, and where the calls
 * that the supervisor does itself (tracer/waits.h) wait for their result.
 *
 * One listener a spawn (each installs its own filter), all behind one epoll descriptor. A listener
 * whose last tracee is gone is put aside when door_next() meets its hang-up. Nothing here blocks
 * but door_give(), which waits for the tracee to wake and take the descriptor (microseconds, unless
 * its cgroup is frozen).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct door; /* opaque; owns the listeners */

/* A call that waits. */
struct door_guest {
	int listener; /* a loan */
	uint64_t id;
	pid_t tid;
	uint32_t audit_arch; /* AUDIT_ARCH_* */
	int nr;
	uint64_t ip; /* behind the system call instruction */
	uint64_t args[6];
};

/*
 * What this kernel can't do for calls at the door, which are done all the same: how many, and a
 * sentence for each (static).
 */
#define DOOR_LACKS_MAX 2
size_t door_lacks(const char *ret[DOOR_LACKS_MAX]);
/* 0, or -errno. */
int door_new(struct door **ret);
void door_free(struct door *d);
/* Readable when a guest waits. */
int door_fd(const struct door *d);
/*
 * What stands behind door_fd(), to be waited for without it: the bell and, once there is one, the
 * newest listener. They live as long as the door. A guest's waking of an epoll within an epoll is
 * not handed down to this CPU: waited for directly, the two take turns on one (half the time).
 */
#define DOOR_FDS 2
size_t door_fds(const struct door *d, int ret[DOOR_FDS]);
/* Takes the listener over, also on failure. 0, -ENOMEM, -errno. */
int door_add(struct door *d, int listener);
/* Make door_fd() readable until the next door_next(): there is work left, come again. */
void door_ring(struct door *d);
/* 1 and a guest, 0 none waits, or -errno. */
int door_next(struct door *d, struct door_guest *ret);
/* Is it one of the listeners, rather than the bell? */
bool door_is_listener(const struct door *d, int fd);
/*
 * The guest at this listener, which was readable just now, with no door_next() since (else it would
 * block). As door_next().
 */
int door_take(const struct door *d, int listener, struct door_guest *ret);
/*
 * The guest's call returns fd (which stays ours) as its lowest free descriptor. 0, -ENOENT when the
 * guest left (killed, or interrupted: it comes again), or -errno (-EMFILE: its table is full) with
 * the guest still waiting.
 */
int door_give(const struct door_guest *guest, int fd, bool cloexec);
/*
 * The guest's call returns result (>= 0, or -errno) without having run. A guest that left is fine.
 */
void door_answer(const struct door_guest *guest, int64_t result);
/* Does the guest still wait? (Killed, or replaced by a sibling's exec, it does not.) */
bool door_waits(const struct door_guest *guest);
