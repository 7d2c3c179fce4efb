#include "agent/mdstream.h"

#include <string.h>

/* A block longer than this is shown though it is not complete. */
#define BLOCK_MAX (64u << 10)

/* ---- what a line is ---- */

static size_t indent_of(const char *line, size_t n)
{
	size_t i = 0;
	while (i < n && line[i] == ' ')
		i++;
	return i;
}

static bool is_blank(const char *line, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
			return false;
	return true;
}

/* Backticks or tildes at the line's start, at least three: how many. */
static size_t fence_of(const char *line, size_t n)
{
	size_t at = indent_of(line, n), len = 0;
	while (at + len < n && line[at + len] == line[at])
		len++;
	if (at >= n || (line[at] != '`' && line[at] != '~') || len < 3)
		return 0;
	/* `` ```code``` `` on one line is a span. */
	return line[at] == '`' && memchr(line + at + len, '`', n - at - len) ? 0 : len;
}

static bool closes(const struct mdstream *s, const char *line, size_t n)
{
	size_t at = indent_of(line, n), len = fence_of(line, n);
	return len >= s->fence_len && line[at] == s->fence &&
	       is_blank(line + at + len, n - at - len);
}

static bool is_item(const char *line, size_t n)
{
	size_t at = indent_of(line, n), digits = 0;
	if (at > 3 || at >= n)
		return false;
	while (at + digits < n && line[at + digits] >= '0' && line[at + digits] <= '9')
		digits++;
	size_t mark = at + digits;
	if (mark >= n || digits > 9)
		return false;
	bool marked = digits ? line[mark] == '.' || line[mark] == ')'
			     : line[mark] == '-' || line[mark] == '*' || line[mark] == '+';
	return marked && (mark + 1 == n || line[mark + 1] == ' ' || line[mark + 1] == '\t');
}

static bool is_heading(const char *line, size_t n)
{
	size_t at = indent_of(line, n), len = 0;
	while (at + len < n && line[at + len] == '#')
		len++;
	return at < 4 && len && len <= 6 && (at + len == n || line[at + len] == ' ');
}

/* ---- showing ---- */

static void separate(struct mdstream *s, struct buf *out)
{
	if (s->blank && s->shown)
		buf_add_char(out, '\n');
	s->blank = false;
	s->shown = true;
}

/* An empty line that came after the block stays to be shown before the next. */
static void show_block(struct mdstream *s, const struct mdrender *r, struct buf *out)
{
	if (!s->block.len)
		return;
	if (mdrender_block(r, s->block.data, s->block.len, out))
		out->failed = true;
	s->shown = true;
	buf_reset(&s->block);
	s->list = false;
	s->inner_fence = false;
}

static void add_to_block(struct mdstream *s, const char *line, size_t n)
{
	buf_add(&s->block, line, n);
	buf_add_char(&s->block, '\n');
}

static void begin_block(struct mdstream *s, const char *line, size_t n, struct buf *out)
{
	separate(s, out);
	s->list = is_item(line, n);
	add_to_block(s, line, n);
}

/* ---- line by line ---- */

static void open_fence(struct mdstream *s, const char *line, size_t n)
{
	s->fence_indent = indent_of(line, n);
	s->fence = line[s->fence_indent];
	s->fence_len = fence_of(line, n);
}

/* In code that stands by itself. */
static void take_code(struct mdstream *s, const struct mdrender *r, const char *line, size_t n,
		      struct buf *out)
{
	if (closes(s, line, n)) {
		s->fence = 0;
		return;
	}
	size_t indent = indent_of(line, n);
	size_t drop = indent < s->fence_indent ? indent : s->fence_indent;
	mdrender_code_line(r, line + drop, n - drop, out);
}

static void take_inner_code(struct mdstream *s, const char *line, size_t n)
{
	add_to_block(s, line, n);
	if (closes(s, line, n)) {
		s->fence = 0;
		s->inner_fence = false;
	}
}

/* Belongs to the item that is being collected. */
static bool goes_on_in_item(const struct mdstream *s, const char *line, size_t n)
{
	if (!s->list || !s->block.len)
		return false;
	return indent_of(line, n) >= 2 || line[0] == '\t';
}

static void take_fence(struct mdstream *s, const struct mdrender *r, const char *line, size_t n,
		       struct buf *out)
{
	s->inner_fence = goes_on_in_item(s, line, n);
	open_fence(s, line, n);
	if (s->inner_fence) {
		if (s->blank)
			add_to_block(s, "", 0);
		s->blank = false;
		add_to_block(s, line, n);
		return;
	}
	show_block(s, r, out);
	separate(s, out);
}

/* A list may begin right below a paragraph, where its first number is 1. */
static bool begins_list(const struct mdstream *s, const char *line, size_t n)
{
	size_t at = indent_of(line, n);
	if (s->list || !s->block.len || !is_item(line, n))
		return false;
	return line[at] < '0' || line[at] > '9' ||
	       (line[at] == '1' && !(line[at + 1] >= '0' && line[at + 1] <= '9'));
}

static void take_text(struct mdstream *s, const struct mdrender *r, const char *line, size_t n,
		      struct buf *out)
{
	bool inside = goes_on_in_item(s, line, n);
	bool fresh = (s->blank && !inside) || (is_heading(line, n) && !inside) ||
		     begins_list(s, line, n) || (s->list && is_item(line, n) && !inside);
	if (fresh || !s->block.len) {
		show_block(s, r, out);
		begin_block(s, line, n, out);
	} else {
		if (s->blank)
			add_to_block(s, "", 0);
		s->blank = false;
		add_to_block(s, line, n);
	}
	if ((is_heading(line, n) && !s->list) || s->block.len > BLOCK_MAX)
		show_block(s, r, out);
}

static void take_line(struct mdstream *s, const struct mdrender *r, const char *line, size_t n,
		      struct buf *out)
{
	if (s->fence && s->inner_fence)
		take_inner_code(s, line, n);
	else if (s->fence)
		take_code(s, r, line, n, out);
	else if (is_blank(line, n)) {
		s->blank = true;
		if (!s->list)
			show_block(s, r, out);
	} else if (fence_of(line, n) && indent_of(line, n) <= (s->list ? n : 3))
		take_fence(s, r, line, n, out);
	else
		take_text(s, r, line, n, out);
}

void mdstream_feed(struct mdstream *s, const struct mdrender *r, const char *bytes, size_t n,
		   struct buf *out)
{
	for (size_t at = 0; at < n;) {
		const char *newline = memchr(bytes + at, '\n', n - at);
		size_t len = newline ? (size_t)(newline - bytes) - at : n - at;
		buf_add(&s->line, bytes + at, len);
		at += len + 1;
		if (!newline)
			break;
		take_line(s, r, buf_str(&s->line), s->line.len, out);
		buf_reset(&s->line);
	}
	if (s->line.failed || s->block.failed)
		out->failed = true;
}

void mdstream_end(struct mdstream *s, const struct mdrender *r, struct buf *out)
{
	if (s->line.len)
		take_line(s, r, s->line.data, s->line.len, out);
	show_block(s, r, out);
	mdstream_release(s);
}

void mdstream_release(struct mdstream *s)
{
	buf_free(&s->line);
	buf_free(&s->block);
	*s = (struct mdstream){0};
}
