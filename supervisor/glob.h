/*
 * glob: patterns over absolute paths, matched component by component. Pure; bytes, not text.
 *
 *   *    any bytes within one component, a leading dot too
 *   ?    one byte of a component
 *   **   as a whole component: any number of components, none too; as the last one: at least one
 *   \c   the byte c itself
 *
 * A tree glob covers what its pattern names and everything below that. So a last "**" of a tree
 * glob says no more than "*", and counts as that: below /p it then covers one component,
 * and a rule on /p/a/b stays the deeper one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GLOB_PARTS_MAX 62

struct glob;

/* 0 and an owned glob; -EINVAL: relative, "." or ".." components, or too many of them; -ENOMEM. */
int glob_new(const char *pattern, bool tree, struct glob **ret);
void glob_free(struct glob *g);

/*
 * A set of the components a path has; lets most globs be passed over without a match. A component
 * is taken in byte by byte, from GLOB_COMPONENT on.
 */
#define GLOB_COMPONENT 2166136261u

static inline uint32_t glob_component_add(uint32_t h, char c)
{
	return (h ^ (unsigned char)c) * 16777619u;
}

static inline uint64_t glob_component_bit(uint32_t h)
{
	return UINT64_C(1) << ((h ^ h >> 16) & 63);
}

/*
 * How many components of path does the longest match cover? -1: none. `components` is the set of
 * all of the path's components. Path: absolute, no double or trailing slash.
 */
int glob_match(const struct glob *g, const char *path, uint64_t components);
/* Could the pattern match a name strictly below dir? */
bool glob_reaches_below(const struct glob *g, const char *dir);

/*
 * Is there a path that both match, counting what lies below a tree's match as its own? 1, 0 or
 * -ENOMEM.
 */
int glob_meets(const struct glob *a, bool a_tree, const struct glob *b, bool b_tree);

/* Does the text hold an unescaped * or ?; its first component that does (offset), or n. */
size_t glob_first_wild(const char *text, size_t n);
/* The directory that all lies in which the pattern matches, without escapes. Owned; NULL: no
 * memory. */
char *glob_place(const char *pattern);
