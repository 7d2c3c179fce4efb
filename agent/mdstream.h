/*
 * mdstream: Markdown that comes in pieces, shown block by block: a paragraph, a table or an item of
 * a list when it is complete, code line by line. What was shown is never touched again.
 */
#pragma once

#include "agent/mdrender.h"

struct mdstream {	  /* {0} is an empty one; mdstream_release() */
	struct buf line;  /* not ended yet */
	struct buf block; /* whole lines, not shown yet */
	bool list;	  /* the block is an item of a list */
	bool blank;	  /* an empty line came, and it is not known yet what it means */
	bool shown;	  /* something of this message was shown */
	char fence;	  /* in code: '`' or '~' ... */
	size_t fence_len, fence_indent;
	bool inner_fence; /* ... which is part of the block */
};

/* Append what can be shown of it now: whole lines. */
void mdstream_feed(struct mdstream *s, const struct mdrender *r, const char *bytes, size_t n,
		   struct buf *out);
/* The message is complete. */
void mdstream_end(struct mdstream *s, const struct mdrender *r, struct buf *out);
void mdstream_release(struct mdstream *s);
