/*
 * mdrender: a block of Markdown as lines for a terminal.
 *
 * The text is a model's: what is in it is escaped, links are shown and never made clickable.
 */
#pragma once

#include "tracer/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct mdrender {
	size_t width; /* columns */
	bool color;   /* with escape sequences; without, marks stand for what they would say */
};

/* Columns before code. */
#define MDRENDER_CODE_INDENT 4

/* Append the lines; where libmd4c is missing, as they were written. 0 or -ENOMEM. */
int mdrender_block(const struct mdrender *r, const char *text, size_t n, struct buf *out);
/* One line of a code block (without its newline). */
void mdrender_code_line(const struct mdrender *r, const char *line, size_t n, struct buf *out);
