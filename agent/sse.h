/*
 * sse: server-sent events, cut out of a byte stream that arrives in any pieces.
 *
 * Lines end in LF, CR or CRLF; a leading byte order mark and comment lines are skipped; several
 * data lines of one event are joined by LF; an event that the end of the stream cuts off is
 * dropped (HTML standard, 9.2.6). Fields other than "event" and "data" are ignored. Never blocks.
 */
#pragma once

#include "tracer/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* One line, and the data of one event: bytes. */
#define SSE_LINE_MAX (8u << 20)

struct sse {
	/*
	 * One event: its type ("message" where the stream names none) and data, n bytes and a NUL,
	 * on loan for the call. Nonzero stops the feed, which returns it.
	 */
	int (*on_event)(void *arg, const char *type, const char *data, size_t n);
	void *arg;

	/* the parser's own */
	struct buf line, type, data;
	bool has_data;	 /* a data line was seen, maybe an empty one */
	bool after_cr;	 /* an LF that comes next belongs to the CR before */
	bool past_first; /* the first line is over: no byte order mark any more */
};

/* max 0: SSE_LINE_MAX. */
void sse_init(struct sse *s, int (*on_event)(void *, const char *, const char *, size_t), void *arg,
	      size_t max);
void sse_free(struct sse *s);
/* 0, what on_event stopped it with, or -EFBIG (a line or an event over the limit), -ENOMEM. */
int sse_feed(struct sse *s, const char *bytes, size_t n);
