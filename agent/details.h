/*
 * details: the tool calls of a session, kept so that one line on the screen can be opened.
 */
#pragma once

#include "agent/convo.h"
#include "agent/toolrun.h"

/* Calls that are kept; older ones are forgotten. */
#define DETAILS_MAX 100

struct details { /* {0} is an empty one; details_release() */
	struct detail *item[DETAILS_MAX];
	size_t n; /* calls so far, forgotten ones too */
};

/* Copies. The call's number, from 1; 0 without memory. */
size_t details_add(struct details *d, const struct convo_call *call,
		   const struct tool_result *result);
/*
 * Append everything about a call, escaped; number 0: the last. False: there is no such call (any
 * more).
 */
bool details_write(const struct details *d, size_t number, struct buf *out);
void details_release(struct details *d);
