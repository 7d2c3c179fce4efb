/*
 * buf: the one growable byte buffer.
 *
 * A buf owns its memory; buf_free() releases it and is fine on a zeroed one. Appending never
 * reports an error by itself: the first failure (no memory, or more than `max` bytes) sets
 * `failed`, later appends do nothing, and the owner asks buf_error() once at the end.
 * `data` is NUL-terminated after every append, so text can be used as a string; it may hold NULs.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define BUF_MAX_DEFAULT (64u << 20)

struct buf {
	char *data; /* NULL while nothing was appended */
	size_t len; /* bytes, without the terminating NUL */
	size_t cap;
	size_t max; /* 0: BUF_MAX_DEFAULT */
	bool failed;
};

void buf_free(struct buf *b);
/* Forget the content, keep the memory; clears `failed`. */
void buf_reset(struct buf *b);
void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_add_str(struct buf *b, const char *s);
void buf_add_char(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vaddf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* Drop the first n bytes (n <= len). */
void buf_drop(struct buf *b, size_t n);
/* Give the string away (never NULL: "" when empty); the buf is empty after. NULL if failed. */
char *buf_take(struct buf *b);
/* 0, or -ENOMEM / -EFBIG (more than max). */
int buf_error(const struct buf *b);
/* All n bytes, whatever write(2) takes at a time; blocks. 0 or -errno (EINTR is passed over). */
int buf_write_to(int fd, const char *bytes, size_t n);
/*
 * What read(2) gives up to the end, behind what is there; blocks as the descriptor does. 0, -errno
 * of read(2) (EINTR is passed over), or buf_error(): -EFBIG for more than `max`, which are kept.
 */
int buf_read_from(int fd, struct buf *b);
/* The content as a string, "" when nothing was appended. */
const char *buf_str(const struct buf *b);
