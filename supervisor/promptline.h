/*
 * promptline: the words and lines that a question is made of (prompt_paint.h). Pure.
 *
 * "raw" text is foreign: it is escaped here, or by who gathers it. No line gets wider than the
 * terminal.
 */
#pragma once

#include "supervisor/prompt_paint.h"

#define PROMPTLINE_LABEL 9 /* columns: "program" and its space */

/* Columns that may be written. */
size_t promptline_width(const struct prompt_view *v);
void promptline_bold(struct buf *out, const struct prompt_view *v, const char *s);
void promptline_warn(struct buf *out, const struct prompt_view *v, const char *s);
void promptline_soft(struct buf *out, const struct prompt_view *v, const char *s);

/* The path with ~ for home; raw. */
void promptline_add_path(struct buf *raw, const char *path, const struct prompt_view *v);
void promptline_add_access(struct buf *out, uint32_t mask);
/* As a shell would read it; raw. */
void promptline_add_argument(struct buf *raw, const char *arg);
/* Raw; a loan. */
const char *promptline_program(const struct question *q);

/* Text (escaped already) from column `col` on; what does not fit goes on below it. */
void promptline_add_wrapped(struct buf *out, const char *text, size_t col, size_t width);
/* A raw value, wrapped from column `col` on; cut in its middle, visibly, unless details are asked
 * for. */
void promptline_add_value(struct buf *out, const char *raw, size_t col,
			  const struct prompt_view *v);
void promptline_add_label(struct buf *out, const char *label);
/* A label and its raw value. */
void promptline_add_field(struct buf *out, const char *label, const char *raw,
			  const struct prompt_view *v);
void promptline_add_path_field(struct buf *out, const char *label, const char *path,
			       const struct prompt_view *v);
