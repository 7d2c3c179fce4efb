/*
 * tracekeys: the rows of tracekeys.def as data.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum tracekeys_kind {
	TRACEKEYS_EV,	     /* the event's kind */
	TRACEKEYS_UINT,	     /* uint64_t, always there */
	TRACEKEYS_RUN,	     /* an unsigned; 0 and 1 are left out */
	TRACEKEYS_PID,	     /* pid_t; 0 is left out */
	TRACEKEYS_TEXT,	     /* bytes, with ..._b64 where they are no text; NULL is left out */
	TRACEKEYS_PATH_TEXT, /* the same */
	TRACEKEYS_PATH_THING,
	TRACEKEYS_PATH_WORDS, /* a list of words; in memory one string with commas */
	TRACEKEYS_FLAGS,
	TRACEKEYS_MODE,
	TRACEKEYS_REQUEST,
	TRACEKEYS_RET,
	TRACEKEYS_ERRNO,     /* for people: not read */
	TRACEKEYS_ERROR,     /* an int; 0 is left out */
	TRACEKEYS_BOOL,	     /* false is left out */
	TRACEKEYS_EXEC_LIST, /* texts */
	TRACEKEYS_EXIT,
	TRACEKEYS_SIGNAL,
	TRACEKEYS_LIST, /* texts */
};

enum tracekeys_index {
#define KEY(NAME, ...) TRACEKEYS_##NAME##_KEY,
#include "tracer/tracekeys.def"
#undef KEY
	TRACEKEYS_COUNT,
};

struct tracekeys_row {
	const char *name;
	size_t len;
	enum tracekeys_kind kind;
	bool of_path;
	size_t offset;	 /* in the event, or in the path */
	unsigned events; /* bits: 1 << TRACE_CALL ... */
	const char *help;
};

extern const struct tracekeys_row tracekeys_rows[TRACEKEYS_COUNT];
