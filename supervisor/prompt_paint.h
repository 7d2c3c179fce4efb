/*
 * prompt_paint: what a question looks like. Pure: a question in, bytes for a terminal out.
 *
 * Every foreign word is escaped. No line is wider than the terminal, each ends with "\n".
 */
#pragma once

#include "supervisor/ask.h"
#include "tracer/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum prompt_action {
	PROMPT_NOTHING,
	PROMPT_ONCE,
	PROMPT_SESSION,
	PROMPT_ALWAYS,
	PROMPT_NO,
	PROMPT_NEVER,
	PROMPT_GROUP,
	PROMPT_SCOPE,
	PROMPT_UP,
	PROMPT_DOWN,
	PROMPT_PAGE_DOWN,
	PROMPT_PAGE_UP,
	PROMPT_DETAILS,
	PROMPT_HELP,
	PROMPT_INTERRUPT,
};

#define PROMPT_OTHERS_SHOWN 4

/* How the question stands on the screen. */
struct prompt_view {
	const char *home; /* shown as ~; NULL: none */
	bool color;
	size_t width;			  /* columns; 0: 80 */
	size_t rows;			  /* of the screen; 0: any number fits */
	size_t page;			  /* from 0, where it does not fit; beyond the last: that */
	unsigned scope;			  /* the one chosen */
	bool details;			  /* nothing is cut */
	const struct unwind_stack *stack; /* with details: who made the call; or NULL */
	bool help;			  /* in place of all but the path */
	bool group;			  /* the answer goes to all that wait */
	bool early;			  /* no key counts yet */
	size_t waiting;			  /* questions, this one included; 0 counts as 1 */
	const struct question
		*others[PROMPT_OTHERS_SHOWN]; /* the next ones; loans, NULL where fewer */
};

/* How many pages it has: 1 where all of it fits. */
size_t prompt_paint(struct buf *out, const struct question *q, const struct prompt_view *v);
/* The one line that stays: "warder: allowed once: read /x (cat)". */
void prompt_paint_record(struct buf *out, const struct question *q, const struct answer *a,
			 const struct prompt_view *v);
/* ... of one that got no answer in time. */
void prompt_paint_late(struct buf *out, const struct question *q, const struct prompt_view *v);
