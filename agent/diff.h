/*
 * diff: what changed between two texts, as unified hunks. Pure; nothing blocks.
 */
#pragma once

#include "tracer/buf.h"

#include <stddef.h>

struct diff_count {
	size_t added, removed; /* lines */
};

/*
 * Append the hunks (three lines of context, no file header) that lead from a to b; nothing where
 * they are the same. At most about `max` bytes; what is left out is said. Two texts that differ in
 * very many lines are told as one replacement, which is true but longer than it could be.
 * 0 or -ENOMEM.
 */
int diff_write(struct buf *out, const char *a, size_t a_len, const char *b, size_t b_len,
	       size_t max, struct diff_count *ret);
