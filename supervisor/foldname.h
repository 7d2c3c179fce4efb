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
