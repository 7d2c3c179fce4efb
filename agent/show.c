#include "agent/show.h"

#include "supervisor/escape.h"

#include <string.h>

/* Bytes a character takes that starts like this; 1 for what starts none. */
static size_t promised(unsigned char c)
{
	if (c < 0xc2 || c > 0xf4)
		return 1;
	return c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
}

/* How many bytes at the end are the beginning of a character whose rest has not come. */
static size_t unfinished(const char *p, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++) {
		unsigned char c = (unsigned char)p[n - back];
		if ((c & 0xc0) == 0x80)
			continue;
		return promised(c) > back ? back : 0;
	}
	return 0;
}

void show_whole(struct show *s, const char *bytes, size_t n, struct buf *out)
{
	struct buf all = {0};
	buf_add(&all, s->held, s->held_len);
	buf_add(&all, bytes, n);
	if (buf_error(&all)) {
		out->failed = true;
		buf_free(&all);
		return;
	}
	size_t rest = all.len ? unfinished(all.data, all.len) : 0;
	buf_add(out, all.data, all.len - rest);
	if (all.len > rest)
		s->mid_line = all.data[all.len - rest - 1] != '\n';
	memcpy(s->held, all.data + all.len - rest, rest);
	s->held_len = (unsigned char)rest;
	buf_free(&all);
}

void show_text(struct buf *out, const char *bytes, size_t n)
{
	for (size_t at = 0; at < n;) {
		size_t len = 0;
		while (at + len < n && bytes[at + len] != '\n' && bytes[at + len] != '\t')
			len++;
		/* A DOS line's end is no news to anybody. */
		bool dos = len && at + len < n && bytes[at + len] == '\n' &&
			   bytes[at + len - 1] == '\r';
		escape_add(out, bytes + at, len - dos);
		at += len;
		if (at < n)
			buf_add_char(out, bytes[at++]);
	}
}

void show_escaped(struct show *s, const char *bytes, size_t n, struct buf *out)
{
	struct buf whole = {0};
	show_whole(s, bytes, n, &whole);
	if (buf_error(&whole))
		out->failed = true;
	show_text(out, buf_str(&whole), whole.len);
	buf_free(&whole);
}

void show_end(struct show *s, bool escaped, struct buf *out)
{
	if (escaped)
		show_text(out, s->held, s->held_len);
	else
		buf_add(out, s->held, s->held_len);
	s->held_len = 0;
}
