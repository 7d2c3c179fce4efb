#include "agent/sse.h"

#include <string.h>

void sse_init(struct sse *s, int (*on_event)(void *, const char *, const char *, size_t), void *arg,
	      size_t max)
{
	*s = (struct sse){.on_event = on_event, .arg = arg};
	s->line.max = s->type.max = s->data.max = max ? max : SSE_LINE_MAX;
}

void sse_free(struct sse *s)
{
	buf_free(&s->line);
	buf_free(&s->type);
	buf_free(&s->data);
}

static int dispatch(struct sse *s)
{
	int stop = 0;
	if (s->has_data)
		stop = s->on_event(s->arg, s->type.len ? buf_str(&s->type) : "message",
				   buf_str(&s->data), s->data.len);
	buf_reset(&s->type);
	buf_reset(&s->data);
	s->has_data = false;
	return stop;
}

static bool is_field(const char *line, size_t n, const char *name)
{
	return n == strlen(name) && !memcmp(line, name, n);
}

static int field(struct sse *s, const char *line, size_t n)
{
	const char *colon = memchr(line, ':', n);
	size_t name = colon ? (size_t)(colon - line) : n;
	size_t skip = colon ? name + 1 : n;
	if (skip < n && line[skip] == ' ')
		skip++;
	if (is_field(line, name, "data")) {
		if (s->has_data)
			buf_add_char(&s->data, '\n');
		buf_add(&s->data, line + skip, n - skip);
		s->has_data = true;
		return buf_error(&s->data);
	}
	if (is_field(line, name, "event")) {
		buf_reset(&s->type);
		buf_add(&s->type, line + skip, n - skip);
		return buf_error(&s->type);
	}
	return 0; /* a comment (its name is empty), id, retry, or something newer */
}

static int end_line(struct sse *s)
{
	const char *line = buf_str(&s->line);
	size_t n = s->line.len;
	if (!s->past_first && n >= 3 && !memcmp(line, "\xef\xbb\xbf", 3)) {
		line += 3;
		n -= 3;
	}
	s->past_first = true;
	int err = n ? field(s, line, n) : dispatch(s);
	buf_reset(&s->line);
	return err;
}

int sse_feed(struct sse *s, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n;) {
		if (s->after_cr && bytes[i] == '\n')
			i++;
		s->after_cr = false;
		size_t end = i;
		while (end < n && bytes[end] != '\n' && bytes[end] != '\r')
			end++;
		buf_add(&s->line, bytes + i, end - i);
		int err = buf_error(&s->line);
		if (!err && end < n) {
			s->after_cr = bytes[end] == '\r';
			err = end_line(s);
		}
		if (err)
			return err;
		i = end + 1;
	}
	return 0;
}
