/*
 * What the parts of a policy share: policy.c (its rules and how they are found), policydecide.c
 * (what they say).
 */
#pragma once

#include "supervisor/glob.h"
#include "supervisor/policy.h"

#include <string.h>

#define POLICY_HASH_START UINT64_C(14695981039346656037)
#define POLICY_HASH_PRIME UINT64_C(1099511628211)

/* A rule and what is worked out of it; never changed, so that copies of a policy share it. */
struct entry {
	struct rule rule;
	struct glob *glob; /* owned; NULL for literal rules */
	int fixed_depth;   /* of a glob: the components before its first wild one */
	uint64_t hash;	   /* of the path, or of a glob's text */
	uint64_t below;	   /* of a glob: of the directory that all it matches is in */
	size_t holders;	   /* policies that have it; atomic, since copies go to other threads */
	char text[];	   /* the rule's strings */
};

struct slot {
	struct entry *entry; /* held */
	uint32_t next;	     /* in the same bucket: a slot's number + 1; 0: the last */
};

/* Everything by a hash; each bucket is a number + 1, 0: empty. */
struct table {
	uint32_t *bucket;
	size_t n; /* a power of two, or 0 */
};

struct policy {
	struct slot *slot; /* in order of addition */
	size_t len, cap;
	struct table by_path; /* all rules, by the hash of their path */
	struct slot *glob;    /* the globs of them, in that order: loans */
	size_t globs, globs_cap;
	struct table by_place; /* these, by the directory that they are about */
};

static inline uint64_t policy_hash_add(uint64_t h, char c)
{
	return (h ^ (unsigned char)c) * POLICY_HASH_PRIME;
}

static inline uint64_t policy_hash(uint64_t h, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = policy_hash_add(h, s[i]);
	return h;
}

static inline uint32_t *policy_bucket(const struct table *t, uint64_t hash)
{
	return &t->bucket[(size_t)(hash ^ hash >> 32) & (t->n - 1)];
}

static inline uint32_t policy_first(const struct table *t, uint64_t hash)
{
	return t->n ? *policy_bucket(t, hash) : 0;
}

static inline bool policy_is_dots(const char *s, size_t n)
{
	return n <= 2 && memcmp("..", s, n) == 0;
}
