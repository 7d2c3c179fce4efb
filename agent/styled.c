#include "agent/styled.h"

#include "supervisor/escape.h"

#include <string.h>

/* Narrower than this nothing can be read: it is left to the terminal. */
#define WIDTH_MIN 10

void styled_free(struct styled *s)
{
	buf_free(&s->text);
	buf_free(&s->style);
}

void styled_reset(struct styled *s)
{
	buf_reset(&s->text);
	buf_reset(&s->style);
}

/* Styles for the text that has none yet. */
static void level(struct styled *s, unsigned style)
{
	while (!s->style.failed && s->style.len < s->text.len)
		buf_add_char(&s->style, (char)style);
}

void styled_add(struct styled *s, const char *bytes, size_t n, unsigned style)
{
	for (size_t at = 0; at < n;) {
		size_t len = 0;
		while (at + len < n && !strchr("\n\t\r", bytes[at + len]))
			len++;
		escape_add(&s->text, bytes + at, len);
		at += len;
		if (at < n && bytes[at] != '\0')
			buf_add_char(&s->text, ' ');
		else if (at < n)
			escape_add(&s->text, bytes + at, 1);
		at++;
	}
	level(s, style);
}

void styled_add_ours(struct styled *s, const char *text, unsigned style)
{
	buf_add_str(&s->text, text);
	level(s, style);
}

static size_t usable(const struct styled *s)
{
	return s->text.failed || s->style.failed ? 0 : s->text.len;
}

size_t styled_width(const struct styled *s)
{
	size_t widest = 0, columns, len = usable(s);
	for (size_t at = 0, width = 0; at < len;) {
		if (s->text.data[at] == '\n') {
			width = 0;
			at++;
			continue;
		}
		at += escape_character(s->text.data + at, len - at, &columns);
		width += columns;
		if (width > widest)
			widest = width;
	}
	return widest;
}

/* ---- lines ---- */

struct scan {
	size_t at, columns;			    /* so far */
	size_t break_to, break_next, break_columns; /* the last place to break; next 0: none */
	bool wide, space;			    /* the last character was */
};

static void may_break(struct scan *c, size_t next)
{
	c->break_to = c->at;
	c->break_next = next;
	c->break_columns = c->columns;
}

/* False: the character does not fit any more. */
static bool take(struct scan *c, size_t used, size_t columns, size_t width, bool space)
{
	bool wide = columns == 2;
	if (space)
		may_break(c, c->at + used);
	else if ((wide || c->wide) && !c->space && columns && c->columns)
		may_break(c, c->at);
	if (c->columns + columns > width && c->columns)
		return false;
	c->wide = wide;
	c->space = space;
	c->at += used;
	c->columns += columns;
	return true;
}

bool styled_next(const struct styled *s, size_t width, size_t *at, struct styled_line *ret)
{
	const char *text = s->text.data;
	size_t len = usable(s), columns;
	struct scan c = {.at = *at};
	if (*at >= len)
		return false;
	while (c.at < len && text[c.at] != '\n') {
		size_t used = escape_character(text + c.at, len - c.at, &columns);
		if (take(&c, used, columns, width, text[c.at] == ' '))
			continue;
		bool soft = c.break_next;
		*ret = (struct styled_line){*at, soft ? c.break_to : c.at,
					    soft ? c.break_columns : c.columns};
		*at = soft ? c.break_next : c.at;
		return true;
	}
	*ret = (struct styled_line){*at, c.at, c.columns};
	*at = c.at < len ? c.at + 1 : c.at;
	return true;
}

static void put_style(struct buf *out, unsigned style)
{
	static const struct {
		enum style bit;
		const char *code;
	} codes[] = {{STYLE_BOLD, ";1"},      {STYLE_DIM, ";2"},    {STYLE_ITALIC, ";3"},
		     {STYLE_UNDERLINE, ";4"}, {STYLE_STRIKE, ";9"}, {STYLE_CODE, ";36"}};
	buf_add_str(out, "\033[0");
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (style & codes[i].bit)
			buf_add_str(out, codes[i].code);
	buf_add_char(out, 'm');
}

void styled_put(struct buf *out, const struct styled *s, const struct styled_line *l, bool color)
{
	unsigned now = 0;
	for (size_t i = l->from; i < l->to; i++) {
		unsigned style = (unsigned char)s->style.data[i];
		if (color && style != now)
			put_style(out, style);
		now = style;
		buf_add_char(out, s->text.data[i]);
	}
	if (color && now)
		put_style(out, 0);
}

void styled_wrap(struct buf *out, const struct styled *s, size_t width,
		 const struct styled_margin *m, bool color)
{
	const char *margin = m->first;
	struct styled_line line;
	for (size_t at = 0;;) {
		size_t taken = escape_width(margin);
		size_t room = width > taken + WIDTH_MIN ? width - taken : WIDTH_MIN;
		if (!styled_next(s, room, &at, &line))
			break;
		buf_add_str(out, margin);
		styled_put(out, s, &line, color);
		buf_add_char(out, '\n');
		margin = m->next;
	}
	if (s->text.failed || s->style.failed)
		out->failed = true;
}
