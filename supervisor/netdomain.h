/*
 * netdomain: Landlock domains like those that programs of the tree gave themselves, to connect in.
 *
 * A connection that the supervisor makes in a program's place is judged by the kernel for the
 * supervisor. Where the program has confined itself to some ports, it has to be made by somebody
 * who is confined the same: a thread of ours that entered the very ruleset, read out of the program
 * at the moment it entered it, on top of what the program was confined to before. Each such thread
 * only waits, and bears others, who are as it is: those make the connections.
 *
 * They are named by numbers, 0 is none. What a ruleset says of files holds for them too: nothing is
 * done there but connects by TCP. They last until nobody is in them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct netdomains;

#define NETDOMAINS_MAX 64

/* NULL: no memory. */
struct netdomains *netdomains_new(void);
/* Whoever was born there must have ended. NULL is fine. */
void netdomains_free(struct netdomains *n);
/* Is anybody in it? */
typedef bool netdomains_used_fn(void *arg, uint32_t number);
/*
 * `ruleset` (taken over, and closed) on top of `below`; where there are too many, those that nobody
 * is in are let go first. 0 and *ret, -ENOENT: no such `below`, -ENOSPC, or -errno as
 * landlock_restrict_self(2). Waits for the thread (microseconds).
 */
int netdomains_add(struct netdomains *n, uint32_t below, int ruleset, netdomains_used_fn *used,
		   void *arg, uint32_t *ret);
/* A detached thread in this one runs start(arg). 0, -ENOENT, or -errno as pthread_create(3). */
int netdomains_start(struct netdomains *n, uint32_t in, void *(*start)(void *), void *arg);
