#include "supervisor/promptline.h"

#include "supervisor/escape.h"
#include "supervisor/progname.h"
#include "supervisor/prose.h"

#include <string.h>

#define LINES_MAX     3 /* of one value, unless details are asked for */
#define WIDTH_MIN     24
#define WIDTH_DEFAULT 80

/* ---- words ---- */

size_t promptline_width(const struct prompt_view *v)
{
	size_t width = v->width ? v->width : WIDTH_DEFAULT;
	/* The last column stays empty: writing there makes some terminals wrap and some not. */
	return width > WIDTH_MIN ? width - 1 : WIDTH_MIN;
}

void promptline_bold(struct buf *out, const struct prompt_view *v, const char *s)
{
	buf_addf(out, v->color ? "\x1b[1m%s\x1b[0m" : "%s", s);
}

void promptline_warn(struct buf *out, const struct prompt_view *v, const char *s)
{
	/* Red: yellow is not to be read on a light ground. */
	buf_addf(out, v->color ? "\x1b[1;31m%s\x1b[0m" : "%s", s);
}

void promptline_soft(struct buf *out, const struct prompt_view *v, const char *s)
{
	buf_addf(out, v->color ? "\x1b[2m%s\x1b[0m" : "%s", s);
}

/* The raw path with ~ for home. */
void promptline_add_path(struct buf *raw, const char *path, const struct prompt_view *v)
{
	size_t n = v->home ? strlen(v->home) : 0;
	if (n > 1 && !strncmp(path, v->home, n) && (path[n] == '/' || !path[n])) {
		buf_add_char(raw, '~');
		path += n;
	}
	buf_add_str(raw, path);
}

void promptline_add_access(struct buf *out, uint32_t mask)
{
	const char *between = "";
	for (unsigned i = 0; i < ACCESS_COUNT; i++) {
		if (!(mask & 1u << i))
			continue;
		buf_addf(out, "%s%s", between, access_name(1u << i));
		between = ", ";
	}
}

static bool is_plain_word(const char *s)
{
	return *s && !strpbrk(s, " \t\n\"'\\$`*?[]{}()<>|&;!~#");
}

/* As a shell would read it; raw, escaped later. */
void promptline_add_argument(struct buf *raw, const char *arg)
{
	if (is_plain_word(arg)) {
		buf_add_str(raw, arg);
		return;
	}
	buf_add_char(raw, '\'');
	for (; *arg; arg++) {
		if (*arg == '\'')
			buf_add_str(raw, "'\\''");
		else
			buf_add_char(raw, *arg);
	}
	buf_add_char(raw, '\'');
}

const char *promptline_program(const struct question *q)
{
	return q->title ? q->title : progname_of(q->argv ? q->argv[0] : NULL, q->exe);
}

/* ---- lines ---- */

/* Text (escaped already) from column `col` on; what does not fit goes on below it. */
void promptline_add_wrapped(struct buf *out, const char *text, size_t col, size_t width)
{
	for (;;) {
		size_t n = prose_fitting(text, width - col);
		buf_add(out, text, n);
		text += n;
		if (!*text)
			break;
		buf_addf(out, "\n%*s", (int)col, "");
	}
	buf_add_char(out, '\n');
}

/* A raw value, escaped and wrapped; beyond LINES_MAX lines cut in its middle, visibly. */
void promptline_add_value(struct buf *out, const char *raw, size_t col, const struct prompt_view *v)
{
	size_t width = promptline_width(v), room = (width - col) * LINES_MAX;
	struct buf text = {0};
	if (v->details)
		escape_add_str(&text, raw);
	else
		escape_add_fit(&text, raw, room);
	promptline_add_wrapped(out, buf_str(&text), col, width);
	buf_free(&text);
}

void promptline_add_label(struct buf *out, const char *label)
{
	buf_addf(out, "  %-*s", PROMPTLINE_LABEL, label);
}

void promptline_add_field(struct buf *out, const char *label, const char *raw,
			  const struct prompt_view *v)
{
	promptline_add_label(out, label);
	promptline_add_value(out, raw, 2 + PROMPTLINE_LABEL, v);
}

void promptline_add_path_field(struct buf *out, const char *label, const char *path,
			       const struct prompt_view *v)
{
	struct buf raw = {0};
	promptline_add_path(&raw, path, v);
	promptline_add_field(out, label, buf_str(&raw), v);
	buf_free(&raw);
}
