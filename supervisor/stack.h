/*
 * stack: how the frames of tracer/unwind.h are told, to a person and as JSON. Pure.
 */
#pragma once

#include "tracer/json.h"
#include "tracer/unwind.h"

/* Frames that are looked up for the record; the screen shows fewer. */
#define STACK_FRAMES	   UNWIND_FRAMES_MAX
#define STACK_FRAMES_SHOWN 12

/* "read_config+0x4c (/usr/bin/x+0x1234)"; foreign words raw: escape before showing. */
void stack_add_frame(struct buf *raw, const struct unwind_frame *f);
/* Why the list ends where it does, as a sentence's part; NULL: it is whole. */
const char *stack_end_words(enum unwind_end end);
/* "stack": [...], "stack_end": "..." into an open object. NULL: an empty list, "none". */
void stack_write(struct jsonw *w, const struct unwind_stack *s);
/*
 * What stack_write() wrote: *ret is the caller's (unwind_unref()). -ENOENT: nothing was known,
 * -EINVAL: it is none, -ENOMEM.
 */
int stack_read(const struct json *object, struct unwind_stack **ret);
