/*
 * complete: what Tab makes of the word before the cursor: one of our words at the beginning of an
 * entry, else a path. It is the user's own word: the directory is read here, by us.
 */
#pragma once

#include "tracer/buf.h"

#include <stddef.h>

/* Names in a list. */
#define COMPLETE_LISTED 100

/*
 * line: up to the cursor, n bytes. words: ours, NULL-terminated (may be NULL). *insert: what can be
 * added without a choice; where that is nothing and there is a choice, *list: lines to show,
 * escaped. Names that would not show as they are (control characters) are left out. 0 or -ENOMEM.
 */
int complete_word(const char *line, size_t n, const char *const *words, struct buf *insert,
		  struct buf *list);
