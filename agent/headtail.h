/*
 * headtail: the beginning and the end of a long output, which is what a model needs of it.
 */
#pragma once

#include "tracer/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEADTAIL_HEAD_MAX (16u << 10)
#define HEADTAIL_TAIL_MAX (16u << 10)

struct headtail { /* {0} is an empty one; headtail_free() */
	struct buf head;
	struct buf tail; /* up to twice HEADTAIL_TAIL_MAX, the newest last */
	uint64_t total;	 /* bytes that came */
};

void headtail_add(struct headtail *h, const char *bytes, size_t n);
/* Would n more bytes be more than is kept? Until then head and tail are all that came. */
bool headtail_overflows(const struct headtail *h, size_t n);
/* Members of an open object: output; and output_bytes where the middle was left out, which it says.
 */
void headtail_write(struct jsonw *w, struct headtail *h);
void headtail_free(struct headtail *h);
