/*
 * stracenames: what a trace has told of names so far: what lies there, and where symlinks lead.
 *
 * Owns copies of its strings. Of bounded size: where there are too many names the ones that were
 * not asked for longest are forgotten, which makes answers less certain and never wrong. Symlinks
 * have a table of their own, so that a flood of files drives none out.
 */
#pragma once

#include "tracer/trace.h"

#include <stdbool.h>

struct stracename {
	char *path; /* absolute */
	char *to;   /* of a symlink: its text; NULL: not told */
	/* `to` is an absolute path that strace itself resolved (-y), the object's own. */
	bool resolved;
	enum trace_thing thing;
	uint32_t used;
	uint32_t hash;
};

struct stracenames;

int stracenames_new(struct stracenames **ret);
void stracenames_free(struct stracenames *n);
/* Something (no symlink) lies there, or (ABSENT) nothing does. No memory: it is not remembered. */
void stracenames_set(struct stracenames *n, const char *path, enum trace_thing thing);
/* A symlink with that text; NULL: its text is not told. One that is known is not made unknown. */
void stracenames_link(struct stracenames *n, const char *path, const char *to);
/* The path leads to another one, through whatever symlinks. */
void stracenames_resolve(struct stracenames *n, const char *path, const char *real);
void stracenames_forget(struct stracenames *n, const char *path);
/* The path and everything below. */
void stracenames_forget_tree(struct stracenames *n, const char *path);
void stracenames_forget_all(struct stracenames *n);
/* The symlink there, or NULL: none that is known. A loan until the next change. */
const struct stracename *stracenames_link_at(struct stracenames *n, const char *path);
enum trace_thing stracenames_thing(struct stracenames *n, const char *path);
