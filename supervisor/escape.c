#include "supervisor/escape.h"

#include "tracer/json.h"
#include "tracer/util.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct range {
	uint32_t first;
	uint32_t last;
};

/* What would be read as nothing, or turn the text around it: never shown as it is. Ascending. */
static const struct range hidden[] = {
	{0x00, 0x1f},	    {0x7f, 0x9f},	{0xad, 0xad},	    {0x34f, 0x34f},
	{0x600, 0x605},	    {0x61c, 0x61c},	{0x6dd, 0x6dd},	    {0x70f, 0x70f},
	{0x890, 0x891},	    {0x8e2, 0x8e2},	{0x115f, 0x1160},   {0x17b4, 0x17b5},
	{0x180b, 0x180f},   {0x200b, 0x200f},	{0x2028, 0x202e},   {0x2060, 0x206f},
	{0x3164, 0x3164},   {0xfeff, 0xfeff},	{0xffa0, 0xffa0},   {0xfff0, 0xfffb},
	{0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},
	{0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

static const struct range wide[] = {
#define WIDE(first, last) {first, last},
#define ZERO(first, last)
#include "supervisor/width.def"
#undef WIDE
#undef ZERO
};

static const struct range zero[] = {
#define WIDE(first, last)
#define ZERO(first, last) {first, last},
#include "supervisor/width.def"
#undef WIDE
#undef ZERO
};

static bool in_ranges(uint32_t c, const struct range *r, size_t n)
{
	size_t low = 0;
	for (size_t high = n; low < high;) {
		size_t mid = low + (high - low) / 2;
		if (r[mid].last < c)
			low = mid + 1;
		else
			high = mid;
	}
	return low < n && r[low].first <= c;
}

/* One character as it will be shown. */
struct glyph {
	char text[16];
	size_t len;	/* bytes of text */
	size_t columns; /* 0 to 10 */
	size_t used;	/* bytes of the source */
};

static uint32_t decode(const unsigned char *p, size_t len)
{
	if (len == 1)
		return p[0];
	uint32_t c = p[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

static size_t print_hidden(uint32_t c, char text[16])
{
	static const char letter[32] = {['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't', [0x1b] = 'e'};
	if (c < 0x20 && letter[c])
		return (size_t)snprintf(text, 16, "\\%c", letter[c]);
	if (c < 0x80)
		return (size_t)snprintf(text, 16, "\\x%02X", c);
	return (size_t)snprintf(text, 16, "\\u{%X}", c);
}

static struct glyph next_glyph(const char *p, size_t n)
{
	struct glyph g = {.used = json_utf8_len(p, n)};
	const unsigned char *byte = (const unsigned char *)p;
	if (!g.used) {
		g.used = 1;
		g.columns = g.len = (size_t)snprintf(g.text, sizeof(g.text), "\\x%02X", *byte);
		return g;
	}
	uint32_t c = decode(byte, g.used);
	if (in_ranges(c, hidden, ARRAY_LEN(hidden))) {
		g.columns = g.len = print_hidden(c, g.text);
		return g;
	}
	memcpy(g.text, p, g.used);
	g.len = g.used;
	g.columns = in_ranges(c, zero, ARRAY_LEN(zero))	  ? 0
		    : in_ranges(c, wide, ARRAY_LEN(wide)) ? 2
							  : 1;
	return g;
}

void escape_add(struct buf *out, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n;) {
		struct glyph g = next_glyph(bytes + i, n - i);
		buf_add(out, g.text, g.len);
		i += g.used;
	}
}

void escape_add_str(struct buf *out, const char *s)
{
	if (s)
		escape_add(out, s, strlen(s));
}

static size_t columns_of(const char *s, size_t n)
{
	size_t columns = 0;
	for (size_t i = 0; i < n;) {
		struct glyph g = next_glyph(s + i, n - i);
		columns += g.columns;
		i += g.used;
	}
	return columns;
}

size_t escape_character(const char *p, size_t n, size_t *ret_columns)
{
	struct glyph g = next_glyph(p, n);
	*ret_columns = g.columns;
	return g.used;
}

size_t escape_width(const char *s)
{
	return s ? columns_of(s, strlen(s)) : 0;
}

/* Bytes of s that fill at most `columns`, the marks that follow the last letter included. */
static size_t head_bytes(const char *s, size_t n, size_t columns)
{
	size_t at = 0;
	while (at < n) {
		struct glyph g = next_glyph(s + at, n - at);
		if (g.columns > columns)
			break;
		columns -= g.columns;
		at += g.used;
	}
	return at;
}

/* Where the tail of s begins that fills at most `columns`; `total` is the width of all of s. */
static size_t tail_start(const char *s, size_t n, size_t total, size_t columns)
{
	size_t at = 0;
	while (at < n) {
		struct glyph g = next_glyph(s + at, n - at);
		if (total <= columns && g.columns)
			break;
		total -= g.columns;
		at += g.used;
	}
	return at;
}

void escape_add_fit(struct buf *out, const char *s, size_t width)
{
	size_t n = s ? strlen(s) : 0;
	size_t total = columns_of(s, n);
	if (total <= width) {
		escape_add(out, s, n);
		return;
	}
	if (!width)
		return;
	size_t tail = (width - 1) / 2;
	size_t start = tail_start(s, n, total, tail);
	escape_add(out, s, head_bytes(s, n, width - 1 - tail));
	buf_add_str(out, "…");
	escape_add(out, s + start, n - start);
}

/* Such characters can stand only inside a string, where \u means the same. */
static void add_json_hidden(struct buf *out, uint32_t c)
{
	if (c < 0x10000) {
		buf_addf(out, "\\u%04x", c);
		return;
	}
	c -= 0x10000;
	buf_addf(out, "\\u%04x\\u%04x", 0xd800 | c >> 10, 0xdc00 | (c & 0x3ff));
}

void escape_add_json(struct buf *out, const char *json, size_t n)
{
	size_t plain = 0; /* where what was not copied yet begins */
	for (size_t i = 0, len; i < n; i += len) {
		len = json_utf8_len(json + i, n - i);
		if (len <= 1) {
			len = 1;
			continue;
		}
		uint32_t c = decode((const unsigned char *)json + i, len);
		if (!in_ranges(c, hidden, ARRAY_LEN(hidden)))
			continue;
		buf_add(out, json + plain, i - plain);
		add_json_hidden(out, c);
		plain = i + len;
	}
	buf_add(out, json + plain, n - plain);
}
