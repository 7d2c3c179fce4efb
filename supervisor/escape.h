/*
 * escape: foreign words on their way to a terminal, a policy comment or the audit.
 */
#pragma once

#include "tracer/buf.h"

#include <stddef.h>

/*
 * Append bytes so that no terminal is moved by them: control characters (C0, DEL, C1), ESC, bidi
 * controls (U+061C, U+200E-200F, U+202A-202E, U+2066-2069), zero-width and line separators, and bytes that are not UTF-8
 * come out as \n \t \e \xNN \u{202E}. A backslash stays as it is.
 */
void escape_add(struct buf *out, const char *bytes, size_t n);
void escape_add_str(struct buf *out, const char *s);
/* Escaped and cut to at most `width` columns ("…" in the middle), wide characters counted as 2. */
void escape_add_fit(struct buf *out, const char *s, size_t width);
/* Columns a valid UTF-8 string takes on a terminal (wcwidth's idea, own table not needed). */
size_t escape_width(const char *s);
