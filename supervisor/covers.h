/*
 * covers: is a path, or a directory above it, one of a policy's exceptions? For thousands of rules,
 * each looked up without going through the others.
 */
#pragma once

#include "supervisor/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The paths of the literal exceptions, sorted, each once with all their accesses. */
struct covers {
	struct cover {
		const char *path; /* a loan of the policy's */
		uint32_t access;
	} * item; /* owned */
	size_t n;
};

/* exception: reach_exceptions()'s, of this policy. 0 or -ENOMEM; covers_release() in any case. */
int covers_find(const struct policy *p, const bool *exception, struct covers *ret);
void covers_release(struct covers *c);
/* Is there one to any of these accesses, at the path (shorter than PATH_MAX) or above it? */
bool covers_any(const struct covers *c, const char *path, uint32_t access);
