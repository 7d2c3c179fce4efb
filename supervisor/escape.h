/*
 * escape: foreign words on their way to a terminal, a policy comment or the audit.
 *
 * Every function appends to a buf of the caller's (its errors are the buf's) and never blocks. Text
 * is read as UTF-8 whatever the locale is.
 */
#pragma once

#include "tracer/buf.h"

#include <stddef.h>

/*
 * Append bytes so that no terminal is moved by them and no reader misled: control characters (C0,
 * DEL, C1), ESC, bidi controls (U+061C, U+200E-200F, U+202A-202E, U+2066-2069), everything else
 * that has no shape of its own (zero-width characters, line separators, fillers, tags) and bytes
 * that are not UTF-8 come out as \n \r \t \e \xNN \u{202E}. A backslash stays as it is.
 */
void escape_add(struct buf *out, const char *bytes, size_t n);
/* NULL appends nothing. */
void escape_add_str(struct buf *out, const char *s);
/*
 * Escaped and cut to at most `width` columns ("…" in the middle), wide characters counted as 2. An
 * escape is never cut in two, a combining mark stays with its letter.
 */
void escape_add_fit(struct buf *out, const char *s, size_t width);
/* Columns that a string takes on a terminal after escaping (as wcwidth counts, in any locale). */
size_t escape_width(const char *s);
/*
 * Bytes of the character at p (n > 0 of them are there), and in *ret_columns what it takes on a
 * terminal after escaping; 0 columns: it stays with the one before.
 */
size_t escape_character(const char *p, size_t n, size_t *ret_columns);
/*
 * Append JSON text, its characters that hide or turn text (see escape_add) written as \uXXXX: the
 * same JSON, harmless where somebody looks at the line. Only for valid JSON.
 */
void escape_add_json(struct buf *out, const char *json, size_t n);
