#include "agent/mdrender.h"

#include "agent/libmd4c.h"
#include "agent/mdtable.h"
#include "agent/styled.h"
#include "supervisor/escape.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Quotes and lists inside each other; what is deeper is shown as if it were at this depth. */
#define LEVELS_MAX 12
#define RULE_WIDTH 40
#define TAB_WIDTH  8

struct level {
	enum { LEVEL_QUOTE, LEVEL_LIST, LEVEL_ITEM } kind;
	bool ordered;
	unsigned number; /* of the next item */
	char delimiter;	 /* '.' or ')' */
	char mark[24];	 /* LEVEL_ITEM: "• ", "3. " */
	bool marked;	 /* it was written */
};

struct md {
	const struct mdrender *r;
	struct buf *out;
	struct styled text;				/* of the block that is open */
	unsigned bold, italic, strike, code_span, link; /* open spans of each kind */
	size_t link_from[LEVELS_MAX];			/* where a link's text begins */
	struct level level[LEVELS_MAX];
	size_t depth, deeper; /* deeper: levels beyond the table */
	unsigned heading;     /* the open one's level, or 0 */
	bool in_code;
	struct buf code;
	struct mdtable *table; /* while one is open */
	bool gap;	       /* something stands above: a paragraph keeps off it */
};

/* ---- margins ---- */

static void add_spaces(struct buf *out, size_t n)
{
	while (n--)
		buf_add_char(out, ' ');
}

/* first: with the marks that were not written yet, which then are. */
static void add_margin(struct md *m, struct buf *out, bool first)
{
	for (size_t i = 0; i < m->depth; i++) {
		struct level *l = &m->level[i];
		if (l->kind == LEVEL_QUOTE)
			buf_add_str(out, "│ ");
		if (l->kind != LEVEL_ITEM)
			continue;
		if (first && !l->marked)
			buf_add_str(out, l->mark);
		else
			add_spaces(out, escape_width(l->mark));
		l->marked = l->marked || first;
	}
}

static void put_wrapped(struct md *m, const struct styled *text)
{
	struct buf first = {0}, next = {0};
	add_margin(m, &first, true);
	add_margin(m, &next, false);
	const struct styled_margin margin = {buf_str(&first), buf_str(&next)};
	styled_wrap(m->out, text, m->r->width, &margin, m->r->color);
	buf_free(&first);
	buf_free(&next);
}

/* Items of a list follow each other; anything else has an empty line above it. */
static void keep_off(struct md *m)
{
	bool fresh = m->depth && m->level[m->depth - 1].kind == LEVEL_ITEM &&
		     !m->level[m->depth - 1].marked;
	if (m->gap && !fresh) {
		struct buf margin = {0};
		add_margin(m, &margin, false);
		while (margin.len && margin.data[margin.len - 1] == ' ')
			margin.len--;
		buf_add(m->out, margin.data, margin.len);
		buf_add_char(m->out, '\n');
		buf_free(&margin);
	}
	m->gap = true;
}

/* The text that stands in a block so far. */
static void flush_text(struct md *m)
{
	if (m->text.text.len)
		put_wrapped(m, &m->text);
	styled_reset(&m->text);
}

/* ---- code ---- */

static void add_code_line(const struct mdrender *r, const char *line, size_t n, struct buf *out)
{
	struct styled s = {0};
	size_t column = 0, columns;
	for (size_t i = 0, used; i < n; i += used) {
		used = escape_character(line + i, n - i, &columns);
		if (line[i] == '\r' && i + 1 == n)
			break;
		if (line[i] == '\t') {
			columns = TAB_WIDTH - column % TAB_WIDTH;
			for (size_t k = 0; k < columns; k++)
				styled_add_ours(&s, " ", STYLE_CODE);
		} else {
			styled_add(&s, line + i, used, STYLE_CODE);
		}
		column += columns;
	}
	const struct styled_line all = {0, s.text.len, 0};
	if (s.text.len)
		styled_put(out, &s, &all, r->color);
	buf_add_char(out, '\n');
	styled_free(&s);
}

void mdrender_code_line(const struct mdrender *r, const char *line, size_t n, struct buf *out)
{
	add_spaces(out, n ? MDRENDER_CODE_INDENT : 0);
	add_code_line(r, line, n, out);
}

static void put_code(struct md *m)
{
	for (size_t at = 0; at < m->code.len;) {
		const char *newline = memchr(m->code.data + at, '\n', m->code.len - at);
		size_t len = newline ? (size_t)(newline - m->code.data) - at : m->code.len - at;
		add_margin(m, m->out, at == 0);
		add_spaces(m->out, MDRENDER_CODE_INDENT);
		add_code_line(m->r, m->code.data + at, len, m->out);
		at += len + 1;
	}
	buf_reset(&m->code);
}

/* ---- blocks ---- */

static struct level *push(struct md *m)
{
	if (m->depth == LEVELS_MAX) {
		m->deeper++;
		return NULL;
	}
	m->level[m->depth] = (struct level){0};
	return &m->level[m->depth++];
}

static void pop(struct md *m)
{
	if (m->deeper)
		m->deeper--;
	else
		m->depth--;
}

static void enter_list(struct md *m, bool ordered, unsigned start, char delimiter)
{
	bool inner = m->depth;
	flush_text(m);
	if (!inner)
		keep_off(m);
	struct level *l = push(m);
	if (l)
		*l = (struct level){.kind = LEVEL_LIST,
				    .ordered = ordered,
				    .number = start,
				    .delimiter = delimiter};
}

static void enter_item(struct md *m, const MD_BLOCK_LI_DETAIL *d)
{
	struct level *list = m->depth ? &m->level[m->depth - 1] : NULL;
	struct level *l = push(m);
	if (!l || !list)
		return;
	l->kind = LEVEL_ITEM;
	if (list->ordered)
		snprintf(l->mark, sizeof(l->mark), "%u%c ", list->number++, list->delimiter);
	else
		snprintf(l->mark, sizeof(l->mark), "%s", m->r->color ? "• " : "- ");
	if (d->is_task)
		strncat(l->mark, d->task_mark == ' ' ? "[ ] " : "[x] ",
			sizeof(l->mark) - strlen(l->mark) - 1);
}

static void enter_heading(struct md *m, unsigned heading)
{
	keep_off(m);
	m->heading = heading;
	for (unsigned i = 0; !m->r->color && i < heading; i++)
		styled_add_ours(&m->text, i + 1 < heading ? "#" : "# ", 0);
}

static int enter_block(MD_BLOCKTYPE type, void *detail, void *arg)
{
	struct md *m = arg;
	const MD_BLOCK_OL_DETAIL *ol = detail;
	struct level *l;
	switch (type) {
	case MD_BLOCK_QUOTE:
		flush_text(m);
		keep_off(m);
		m->gap = false;
		l = push(m);
		if (l)
			l->kind = LEVEL_QUOTE;
		break;
	case MD_BLOCK_UL:
		enter_list(m, false, 0, 0);
		break;
	case MD_BLOCK_OL:
		enter_list(m, true, ol->start, ol->mark_delimiter);
		break;
	case MD_BLOCK_LI:
		enter_item(m, detail);
		break;
	case MD_BLOCK_H:
		enter_heading(m, ((const MD_BLOCK_H_DETAIL *)detail)->level);
		break;
	case MD_BLOCK_CODE:
		flush_text(m);
		keep_off(m);
		m->in_code = true;
		break;
	case MD_BLOCK_TABLE:
		keep_off(m);
		m->table = mdtable_new(((const MD_BLOCK_TABLE_DETAIL *)detail)->col_count);
		return m->table ? 0 : -ENOMEM;
	case MD_BLOCK_HTML:
	case MD_BLOCK_P:
		keep_off(m);
		break;
	case MD_BLOCK_HR:
	case MD_BLOCK_DOC:
	case MD_BLOCK_THEAD:
	case MD_BLOCK_TBODY:
	case MD_BLOCK_TR:
	case MD_BLOCK_TH:
	case MD_BLOCK_TD:
		break;
	}
	return 0;
}

static void put_rule(struct md *m)
{
	struct styled s = {0};
	size_t n = m->r->width < RULE_WIDTH ? m->r->width : RULE_WIDTH;
	keep_off(m);
	while (n--)
		styled_add_ours(&s, m->r->color ? "─" : "-", STYLE_DIM);
	put_wrapped(m, &s);
	styled_free(&s);
}

static void put_table(struct md *m)
{
	struct buf margin = {0};
	add_margin(m, &margin, true);
	mdtable_write(m->table, m->r->width, buf_str(&margin), m->r->color, m->out);
	buf_free(&margin);
	mdtable_free(m->table);
	m->table = NULL;
}

static int leave_block(MD_BLOCKTYPE type, void *detail, void *arg)
{
	struct md *m = arg;
	switch (type) {
	case MD_BLOCK_QUOTE:
	case MD_BLOCK_UL:
	case MD_BLOCK_OL:
		flush_text(m);
		pop(m);
		break;
	case MD_BLOCK_LI:
		flush_text(m);
		/* An item without text. */
		if (!m->deeper && !m->level[m->depth - 1].marked) {
			add_margin(m, m->out, true);
			buf_add_char(m->out, '\n');
		}
		pop(m);
		break;
	case MD_BLOCK_H:
		flush_text(m);
		m->heading = 0;
		break;
	case MD_BLOCK_CODE:
		m->in_code = false;
		put_code(m);
		break;
	case MD_BLOCK_HR:
		put_rule(m);
		break;
	case MD_BLOCK_TABLE:
		put_table(m);
		break;
	case MD_BLOCK_TH:
	case MD_BLOCK_TD:
		return mdtable_add(m->table, &m->text,
				   ((const MD_BLOCK_TD_DETAIL *)detail)->align == MD_ALIGN_RIGHT,
				   type == MD_BLOCK_TH);
	case MD_BLOCK_HTML:
	case MD_BLOCK_P:
		flush_text(m);
		break;
	case MD_BLOCK_DOC:
	case MD_BLOCK_THEAD:
	case MD_BLOCK_TBODY:
	case MD_BLOCK_TR:
		break;
	}
	return 0;
}

/* ---- spans and text ---- */

static unsigned style_of(const struct md *m)
{
	return (m->bold || m->heading ? STYLE_BOLD : 0) | (m->italic ? STYLE_ITALIC : 0) |
	       (m->strike ? STYLE_STRIKE : 0) | (m->code_span ? STYLE_CODE : 0) |
	       (m->link || m->heading == 1 ? STYLE_UNDERLINE : 0);
}

/* Code is seen by its colour; without one by the marks it was written with. */
static void mark_code(struct md *m)
{
	if (!m->r->color)
		styled_add_ours(&m->text, "`", 0);
}

static int enter_span(MD_SPANTYPE type, void *detail, void *arg)
{
	struct md *m = arg;
	(void)detail;
	if (type == MD_SPAN_EM)
		m->italic++;
	else if (type == MD_SPAN_STRONG)
		m->bold++;
	else if (type == MD_SPAN_DEL)
		m->strike++;
	else if (type == MD_SPAN_CODE) {
		mark_code(m);
		m->code_span++;
	} else if (type == MD_SPAN_A || type == MD_SPAN_IMG) {
		if (type == MD_SPAN_IMG)
			styled_add_ours(&m->text, "[image: ", STYLE_DIM);
		if (m->link < LEVELS_MAX)
			m->link_from[m->link] = m->text.text.len;
		m->link++;
	}
	return 0;
}

/* Where it leads, unless its text says that already. */
static void leave_link(struct md *m, const MD_ATTRIBUTE *to, bool image)
{
	struct buf shown = {0};
	m->link--;
	size_t from = m->link < LEVELS_MAX ? m->link_from[m->link] : m->text.text.len;
	if (image)
		styled_add_ours(&m->text, "]", STYLE_DIM);
	escape_add(&shown, to->text, to->size);
	size_t len = m->text.text.len - from;
	const char *words = buf_str(&m->text.text) + from;
	size_t mailto = !strncmp(buf_str(&shown), "mailto:", 7) ? 7 : 0;
	bool said = len >= shown.len - mailto && shown.len &&
		    !strncmp(words, buf_str(&shown) + mailto, shown.len - mailto);
	if (shown.len && !said) {
		styled_add_ours(&m->text, " (", STYLE_DIM);
		styled_add(&m->text, to->text, to->size, STYLE_DIM);
		styled_add_ours(&m->text, ")", STYLE_DIM);
	}
	buf_free(&shown);
}

static int leave_span(MD_SPANTYPE type, void *detail, void *arg)
{
	struct md *m = arg;
	if (type == MD_SPAN_EM)
		m->italic--;
	else if (type == MD_SPAN_STRONG)
		m->bold--;
	else if (type == MD_SPAN_DEL)
		m->strike--;
	else if (type == MD_SPAN_CODE) {
		m->code_span--;
		mark_code(m);
	} else if (type == MD_SPAN_A)
		leave_link(m, &((const MD_SPAN_A_DETAIL *)detail)->href, false);
	else if (type == MD_SPAN_IMG)
		leave_link(m, &((const MD_SPAN_IMG_DETAIL *)detail)->src, true);
	return 0;
}

/* The few that models write; any other is shown as it was written. */
static const char *entity(const char *text, size_t n)
{
	static const char *const known[][2] = {
		{"&amp;", "&"},	  {"&lt;", "<"},    {"&gt;", ">"},     {"&quot;", "\""},
		{"&#39;", "'"},	  {"&apos;", "'"},  {"&nbsp;", " "},   {"&copy;", "©"},
		{"&mdash;", "—"}, {"&ndash;", "–"}, {"&hellip;", "…"}, {"&rarr;", "→"},
		{"&larr;", "←"},  {"&times;", "×"}, {"&bull;", "•"},
	};
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strlen(known[i][0]) == n && !strncmp(known[i][0], text, n))
			return known[i][1];
	return NULL;
}

static int add_text(MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE n, void *arg)
{
	struct md *m = arg;
	const char *known = type == MD_TEXT_ENTITY ? entity(text, n) : NULL;
	if (m->in_code)
		buf_add(&m->code, text, n);
	else if (type == MD_TEXT_NULLCHAR)
		styled_add_ours(&m->text, "\xef\xbf\xbd", style_of(m));
	else if (type == MD_TEXT_BR)
		styled_add_ours(&m->text, m->table ? " " : "\n", 0);
	else if (type == MD_TEXT_SOFTBR)
		styled_add_ours(&m->text, " ", 0);
	else if (known)
		styled_add_ours(&m->text, known, style_of(m));
	else
		styled_add(&m->text, text, n, style_of(m));
	return 0;
}

/* As it was written. */
static int show_plainly(const struct mdrender *r, const char *text, size_t n, struct buf *out)
{
	while (n) {
		const char *end = memchr(text, '\n', n);
		size_t line = end ? (size_t)(end - text) : n;
		mdrender_code_line(r, text, line, out);
		text += line + (end != NULL);
		n -= line + (end != NULL);
	}
	return buf_error(out);
}

int mdrender_block(const struct mdrender *r, const char *text, size_t n, struct buf *out)
{
	const struct libmd4c *lib = libmd4c_get();
	static const MD_PARSER parser = {
		.flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS |
			 MD_FLAG_PERMISSIVEURLAUTOLINKS | MD_FLAG_NOHTML,
		.enter_block = enter_block,
		.leave_block = leave_block,
		.enter_span = enter_span,
		.leave_span = leave_span,
		.text = add_text,
	};
	if (!lib)
		return show_plainly(r, text, n, out);
	struct md m = {.r = r, .out = out};
	bool failed = n > UINT32_MAX || lib->parse(text, (MD_SIZE)n, &parser, &m);
	failed = failed || m.text.text.failed || m.code.failed;
	styled_free(&m.text);
	buf_free(&m.code);
	mdtable_free(m.table);
	return failed ? -ENOMEM : buf_error(out);
}
