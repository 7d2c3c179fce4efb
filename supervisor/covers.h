/*
 * covers: paths with accesses, of which one asks: is there one at this path, or above it? For the
 * rules of a policy of thousands, each of which is looked up without going through the others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct covers { /* {0} is an empty one */
	struct cover {
		char *path; /* owned */
		uint32_t access;
	} * item; /* owned */
	size_t n, cap;
};

/* The path is copied. 0 or -ENOMEM. */
int covers_add(struct covers *c, const char *path, uint32_t access);
/* After the last one, before the first question. */
void covers_settle(struct covers *c);
/* Is there one with any of these accesses, at the path (shorter than PATH_MAX) or above it? */
bool covers_any(const struct covers *c, const char *path, uint32_t access);
/* The one at this path, whose access may be changed, or NULL. */
struct cover *covers_at(const struct covers *c, const char *path);
/* The first whose path is not before the text of n bytes (c->n: none): those that begin with it are
 * from there on. */
size_t covers_from(const struct covers *c, const char *text, size_t n);
void covers_release(struct covers *c);
