/*
 * reachindex: what supervisor/reach.h answers, for who asks it of many directories. The literal
 * rules are sorted by path, so that those below a directory are one range, and the patterns by the
 * directory that they are about: of these only those of dir, above it and below are looked at.
 * Every answer is the same.
 */
#pragma once

#include "supervisor/reach.h"

struct reachindex;

/* Of the policy as it is, a loan that must not change meanwhile. 0 and *ret (owned), or -ENOMEM. */
int reachindex_new(const struct policy *p, struct reachindex **ret);
void reachindex_free(struct reachindex *x);
/* reach_of() */
void reachindex_of(const struct reachindex *x, const char *dir, struct reach *ret);
/* reach_allowed_below() */
uint32_t reachindex_allowed_below(const struct reachindex *x, const char *dir, uint32_t mask);
/* For which of these accesses policy_uniform() holds. */
uint32_t reachindex_uniform(const struct reachindex *x, const char *dir, uint32_t mask);
/* Literal rules that lie together. */
struct reachindex_range {
	size_t from, to;
};

/* Those on what is strictly below a directory. */
struct reachindex_range reachindex_below(const struct reachindex *x, const char *dir);
/* Does one of these literal rules allow some of these accesses to path by its name, or to something
 * below it? */
bool reachindex_allows_inside(const struct reachindex *x, struct reachindex_range among,
			      const char *path, uint32_t mask);
/*
 * The patterns that allow some of these accesses and could speak of dir or of what is below it:
 * *ret, the caller's to free. 0 or -ENOMEM.
 */
int reachindex_allowing_globs(const struct reachindex *x, const char *dir, uint32_t mask,
			      const struct rule ***ret, size_t *ret_n);
