/*
 * foldname: could a file system that ignores case take these for the same name? Pure.
 *
 * ext4, f2fs and tmpfs can fold case in directories that ask for it, by Unicode's rules: letters of
 * other scripts become ASCII ones (U+212A is k), some characters count for nothing (U+200C). This
 * says yes too often rather than too seldom: a character that is not ASCII may stand for any one or
 * none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* One component each, at most NAME_MAX bytes (longer ones are never alike). */
bool foldname_alike(const char *a, size_t an, const char *b, size_t bn);

/* How a path stands to another one, the strongest last. */
enum foldname_relation {
	FOLDNAME_FREE,
	FOLDNAME_ALIKE, /* not it, but perhaps taken for it */
	FOLDNAME_AT,	/* the same */
	FOLDNAME_ABOVE, /* it begins the other, perhaps but for case */
};

/*
 * Absolute, resolved paths. Only the last name of `path` may be a new one: the others exist, and
 * their inodes tell what they are, so of these only case is ignored.
 */
enum foldname_relation foldname_relation(const char *path, const char *of);
