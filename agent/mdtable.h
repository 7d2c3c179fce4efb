/*
 * mdtable: a table of a Markdown text, its columns made to fit a terminal's width.
 */
#pragma once

#include "agent/styled.h"

struct mdtable;

/* NULL without memory, or where it has more columns than a terminal has room for. */
struct mdtable *mdtable_new(size_t columns);
void mdtable_free(struct mdtable *t);
/* The next cell; takes the text over and leaves an empty one. 0 or -ENOMEM. */
int mdtable_add(struct mdtable *t, struct styled *text, bool right, bool head);
/* margin: ours, before each line. */
void mdtable_write(const struct mdtable *t, size_t width, const char *margin, bool color,
		   struct buf *out);
