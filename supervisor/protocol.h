/*
 * protocol: questions and answers as JSON lines (--events FD|SOCKET, --answers FD). A front of
 * the ask queue; protocol 1, as the contract and docs/protocol.md describe it.
 *
 * Events are queued and written without blocking: a full pipe never blocks the tree (beyond
 * PROTOCOL_QUEUE_MAX bytes the oldest non-question events are dropped and counted in an error
 * event). A closed events or answers pipe is no to everything that is asked.
 */
#pragma once

#include "supervisor/ask.h"
#include "tracer/json.h"

#define PROTOCOL_QUEUE_MAX (4u << 20)

struct protocol;

struct protocol_options {
	int events;  /* owned from here on; -1: none */
	int answers; /* owned; -1: none: questions are shown, never answered here */
	const char *run;
	const char *label;
	char *const *command; /* redacted */
	/*
	 * Who came by itself, and may go: then what is asked stays open for the others. Called
	 * once, from inside of a call or a callback: the protocol is to be freed later. NULL: a
	 * closed pipe is no to everything.
	 */
	void (*gone)(void *arg, struct protocol *p);
	void *arg;
};

/* Writes the start event. */
int protocol_new(struct loop *l, struct ask *a, const struct protocol_options *o,
		 struct protocol **ret);
/* Writes what is queued (bounded: 1 s), closes. */
void protocol_free(struct protocol *p);
/* denied, granted, rerun, exit, error: `fill` writes the members after "event" and "time". */
typedef void protocol_fill_fn(struct jsonw *w, const void *arg);
void protocol_event(struct protocol *p, const char *name, protocol_fill_fn *fill, const void *arg);
