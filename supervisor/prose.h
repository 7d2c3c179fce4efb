/*
 * prose: text on a terminal of so many columns, in lines below each other. Text is escaped already
 * (escape.h), UTF-8. Errors are the buf's; nothing blocks.
 */
#pragma once

#include "tracer/buf.h"

#include <stddef.h>

/* The bytes of text that fit into `room` columns; at least one character. */
size_t prose_fitting(const char *text, size_t room);
/*
 * Text from column `col` on, col < width, and a newline: what does not fit goes on below it, from
 * the same column on, between words where the line has two.
 */
void prose_add(struct buf *out, const char *text, size_t col, size_t width);
/*
 * Lines, each ending in a newline: what of one does not fit goes on below it, under the words that
 * follow its label (behind "warder: ", or behind two spaces in its left half), else under its
 * start.
 */
void prose_hang(struct buf *out, const char *text, size_t width);
