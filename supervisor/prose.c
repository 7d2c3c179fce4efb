#include "supervisor/prose.h"

#include "supervisor/escape.h"
#include "tracer/json.h"
#include "tracer/util.h"

#include <string.h>

/* Columns of the one character at p, and its bytes. */
static size_t char_width(const char *p, size_t *ret_bytes)
{
	char one[5] = {0};
	size_t n = json_utf8_len(p, strlen(p));
	*ret_bytes = n ? n : 1;
	memcpy(one, p, *ret_bytes);
	return escape_width(one);
}

size_t prose_fitting(const char *text, size_t room)
{
	size_t at = 0, used = 0, bytes;
	while (text[at]) {
		used += char_width(text + at, &bytes);
		if (used > room && at)
			break;
		at += bytes;
	}
	return at;
}

void prose_add(struct buf *out, const char *text, size_t col, size_t width)
{
	for (;;) {
		size_t n = prose_fitting(text, width - col);
		const char *space = text[n] ? memrchr(text, ' ', n + 1) : NULL;
		size_t part = space && space != text ? (size_t)(space - text) : n;
		buf_add(out, text, part);
		text += part;
		if (!*text)
			break;
		text += part && *text == ' ';
		buf_addf(out, "\n%*s", (int)col, "");
	}
	buf_add_char(out, '\n');
}

/* Bytes before which no line of it goes on. */
static size_t label_len(const char *line, size_t width)
{
	static const char ours[] = "warder: ";
	size_t indent = strspn(line, " ");
	if (!strncmp(line, ours, strlen(ours)))
		return strlen(ours);
	const char *gap = strstr(line + indent, "  ");
	if (!gap)
		return indent;
	size_t label = (size_t)(gap - line) + strspn(gap, " ");
	return label <= width / 2 ? label : indent;
}

void prose_hang(struct buf *out, const char *text, size_t width)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		AUTOFREE
		char *line = strndup(text, n);
		if (!line) {
			out->failed = true;
			return;
		}
		size_t label = label_len(line, width);
		AUTOFREE
		char *before = strndup(line, label);
		size_t col = before ? escape_width(before) : 0;
		buf_add(out, line, label);
		prose_add(out, line + label, col < width ? col : 0, width);
		text += n + (text[n] == '\n');
	}
}
