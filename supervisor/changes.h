/*
 * changes: what a run has already changed, to be shown before the command is run again.
 */
#pragma once

#include "supervisor/access.h"
#include "tracer/buf.h"

/* A question shows a dozen. Each that is seen stops its thread twice: the rest pass unseen. */
#define CHANGES_MAX 200

enum change_kind {
	CHANGE_NONE,
	CHANGE_MADE,
	CHANGE_WROTE,
	CHANGE_REMOVED,
	CHANGE_MOVED,	 /* away from there */
	CHANGE_CAME,	 /* moved to there */
	CHANGE_REPLACED, /* another thing is there now */
	CHANGE_KINDS,
};

struct change {
	enum change_kind kind;
	char *path; /* owned */
};

struct changes {
	struct change *item;
	size_t len;
	size_t cap;
	bool full; /* there may be more, which nobody saw */
};

/* A call that was resolved before it is made: is it a rename over something that is there? Of one
 * that was not: no. */
bool changes_replaces(const struct call *call);
/*
 * A resolved call that succeeded; replaced: as changes_replaces() said before it. Of a path one
 * line tells what became of it: what was made and removed again is none. Paths below skip_dir (may
 * be NULL) don't count.
 */
void changes_add(struct changes *c, const struct call *call, bool replaced, const char *skip_dir);
/* Lines for the question: at most `lines`, then how many more. Escaping is the painter's. */
void changes_write(const struct changes *c, size_t lines, struct buf *out);
/* Are enough known? */
bool changes_are_enough(const struct changes *c);
void changes_release(struct changes *c);
