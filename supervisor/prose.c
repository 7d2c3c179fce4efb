#include "supervisor/prose.h"

#include "supervisor/escape.h"
#include "tracer/json.h"

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
