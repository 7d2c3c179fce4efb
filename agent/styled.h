/*
 * styled: text with a style for each byte, and its way into lines of a terminal's width.
 *
 * The text is escaped when it is added; only '\n' (a line's end) moves a terminal. Errors are the
 * buffers'.
 */
#pragma once

#include "tracer/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum style {
	STYLE_BOLD = 1,
	STYLE_ITALIC = 2,
	STYLE_UNDERLINE = 4,
	STYLE_STRIKE = 8,
	STYLE_CODE = 16,
	STYLE_DIM = 32,
};

struct styled { /* {0} is an empty one; styled_free() */
	struct buf text;
	struct buf style; /* as long as text */
};

void styled_free(struct styled *s);
void styled_reset(struct styled *s);
/* Foreign bytes; a newline or tab in them becomes a space. */
void styled_add(struct styled *s, const char *bytes, size_t n, unsigned style);
/* One of ours, as it is: "\n" too. */
void styled_add_ours(struct styled *s, const char *text, unsigned style);
/* Columns of the longest line, unbroken. */
size_t styled_width(const struct styled *s);

/* What stands before a text's first line, and before the others. */
struct styled_margin {
	const char *first, *next; /* ours; their width counts */
};

/* A line of the text: bytes from..to, without the spaces it was broken at. */
struct styled_line {
	size_t from, to, columns;
};

/* The next line of at most `width` columns (at least one character) at *at, which moves on; false:
 * there is none. Broken at spaces, between wide characters, else in the middle of a word. */
bool styled_next(const struct styled *s, size_t width, size_t *at, struct styled_line *ret);
/* Append such a line, without a newline. color: with escape sequences, and back to none of them. */
void styled_put(struct buf *out, const struct styled *s, const struct styled_line *l, bool color);
/* Append all of it in lines of at most `width` columns, the margin included. */
void styled_wrap(struct buf *out, const struct styled *s, size_t width,
		 const struct styled_margin *m, bool color);
