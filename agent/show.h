/*
 * show: a stream of foreign bytes (a model's text, a command's output) on its way to a terminal or
 * into JSON lines, piece by piece. A character cut in two by a piece's end waits for its rest.
 */
#pragma once

#include "tracer/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct show { /* {0} is a fresh one; nothing to free */
	char held[4];
	unsigned char held_len;
	bool mid_line; /* the last thing shown was no newline */
};

/* Append the whole characters of held + bytes to out, raw; the rest is held. */
void show_whole(struct show *s, const char *bytes, size_t n, struct buf *out);
/* The same, escaped (supervisor/escape.h), newlines and tabs kept. */
void show_escaped(struct show *s, const char *bytes, size_t n, struct buf *out);
/* The end of the stream: what is held, though it is half a character. */
void show_end(struct show *s, bool escaped, struct buf *out);
/* One complete text, escaped, newlines and tabs kept. */
void show_text(struct buf *out, const char *bytes, size_t n);
