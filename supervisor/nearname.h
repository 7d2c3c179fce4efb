/*
 * nearname: what somebody meant who slipped with the pen. Pure.
 */
#pragma once

#include "tracer/buf.h"

#include <stddef.h>

struct nearname { /* nearname_begin(); nothing is owned */
	const char *word;
	const char *best; /* the nearest candidate so far, a loan of the caller's; NULL: none */
	unsigned distance;
};

struct nearname nearname_begin(const char *word);
/* One that it can have been; must live on. The first of several that are equally near counts. */
void nearname_try(struct nearname *n, const char *candidate);
/* Bytes that have to be put in, left out, changed or swapped, as far as `most`; else most + 1. */
unsigned nearname_distance(const char *a, const char *b, unsigned most);
/* As many as may be wrong in this word: one in a short one, two in a longer one. */
unsigned nearname_most(const char *word);
/* Append "; did you mean 'BEST'?", the best between `before` and the quote; nothing where there is
 * none. Escaped. */
void nearname_add(struct buf *out, const struct nearname *n, const char *before);
