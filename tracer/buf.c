#include "tracer/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_SIZE 16384u

void buf_free(struct buf *b)
{
	free(b->data);
	*b = (struct buf){.max = b->max};
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

static size_t limit(const struct buf *b)
{
	return b->max ? b->max : BUF_MAX_DEFAULT;
}

/* Room for n more bytes and the NUL. */
static bool reserve(struct buf *b, size_t n)
{
	if (b->failed)
		return false;
	if (n > limit(b) - b->len) {
		b->failed = true;
		return false;
	}
	if (b->len + n < b->cap)
		return true;
	size_t cap = b->cap ? b->cap : 64;
	while (cap <= b->len + n)
		cap *= 2;
	char *data = realloc(b->data, cap);
	if (!data) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->cap = cap;
	return true;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
	if (!reserve(b, n))
		return;
	if (n)
		memcpy(b->data + b->len, bytes, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void buf_add_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_add_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	if (n < 0)
		b->failed = true;
	else if (reserve(b, (size_t)n)) {
		vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	buf_vaddf(b, fmt, ap);
	va_end(ap);
}

void buf_drop(struct buf *b, size_t n)
{
	if (!n)
		return;
	memmove(b->data, b->data + n, b->len - n + 1);
	b->len -= n;
}

char *buf_take(struct buf *b)
{
	buf_add(b, "", 0);
	if (b->failed)
		return NULL;
	char *data = b->data;
	*b = (struct buf){.max = b->max};
	return data;
}

int buf_error(const struct buf *b)
{
	if (!b->failed)
		return 0;
	return b->len >= limit(b) / 2 ? -EFBIG : -ENOMEM;
}

const char *buf_str(const struct buf *b)
{
	return b->data ? b->data : "";
}

/* One read(2); the byte that is one too many, too. What it returns. */
static ssize_t read_some(int fd, struct buf *b)
{
	size_t room = limit(b) - b->len;
	char over;

	if (!room) {
		ssize_t n = read(fd, &over, 1);
		b->failed = n > 0;
		return n;
	}
	if (!reserve(b, room < READ_SIZE ? room : READ_SIZE))
		return 0;
	ssize_t n =
		read(fd, b->data + b->len, b->cap - b->len - 1 < room ? b->cap - b->len - 1 : room);
	if (n > 0)
		b->len += (size_t)n;
	b->data[b->len] = '\0';
	return n;
}

int buf_read_from(int fd, struct buf *b)
{
	for (;;) {
		ssize_t n = read_some(fd, b);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0 || b->failed)
			return buf_error(b);
	}
}

int buf_write_to(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t written = write(fd, bytes, n);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		bytes += written;
		n -= (size_t)written;
	}
	return 0;
}
