/*
 * desk: where questions wait for somebody who comes by (--ask socket): a unix socket in the state
 * directory, ask/RUN, to which `warder ask` connects from another terminal. Who comes speaks the
 * protocol of docs/protocol.md, is told of every question that stands, and may go again: what is
 * asked stays open for the next one.
 *
 * Only the effective user and root are let in, and no process of the tree: the state directory is
 * closed to it, and a caller that it traces itself is turned away all the same. Never blocks.
 */
#pragma once

#include "supervisor/ask.h"
#include "supervisor/loop.h"
#include "supervisor/protocol.h"

#include <stdbool.h>

#define DESK_DIRECTORY	  "ask"
#define DESK_VISITORS_MAX 4

struct desk;

struct desk_options { /* loans, as long as the desk stands */
	const char *state_dir;
	const char *run; /* its name is the socket's */
	const char *label;
	char *const *command; /* redacted */
	/* May this process come in? NULL: any that is the user's. */
	bool (*is_stranger)(void *arg, pid_t pid);
	/* A question stands and nobody is here: once until somebody was. May be NULL. */
	void (*waits)(void *arg);
	void *arg;
};

/* l and a must outlive it. 0, or -errno: the socket can't be made. */
int desk_open(struct loop *l, struct ask *a, const struct desk_options *o, struct desk **ret);
/* Everybody is shown out, the socket is removed. NULL is fine. */
void desk_close(struct desk *d);
/* To everybody who is here: as protocol_event(). */
void desk_event(struct desk *d, const char *name, protocol_fill_fn *fill, const void *arg);

/* Make the sockets' directory where it is missing. 0 or -errno. */
int desk_prepare(const char *state_dir);
/*
 * The other side: connect to the socket of this name below the state directory. A descriptor, or
 * -errno (-ECONNREFUSED: its run is gone; such a leftover is removed).
 */
int desk_connect(const char *state_dir, const char *run);
