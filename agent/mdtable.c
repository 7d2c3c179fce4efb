#include "agent/mdtable.h"

#include "supervisor/escape.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdlib.h>

/* md4c itself takes no more. */
#define COLUMNS_MAX 128
/* A column is not made narrower than this. */
#define COLUMN_MIN 4

struct cell {
	struct styled text;
	bool right, head;
};

struct mdtable {
	size_t columns;
	struct cell *cell; /* row by row */
	size_t n;
};

struct mdtable *mdtable_new(size_t columns)
{
	struct mdtable *t = columns && columns <= COLUMNS_MAX ? calloc(1, sizeof(*t)) : NULL;
	if (t)
		t->columns = columns;
	return t;
}

void mdtable_free(struct mdtable *t)
{
	for (size_t i = 0; t && i < t->n; i++)
		styled_free(&t->cell[i].text);
	if (t)
		free(t->cell);
	free(t);
}

int mdtable_add(struct mdtable *t, struct styled *text, bool right, bool head)
{
	struct cell *more = reallocarray(t->cell, t->n + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	t->cell = more;
	t->cell[t->n++] = (struct cell){.text = *text, .right = right, .head = head};
	*text = (struct styled){0};
	return 0;
}

/* ---- widths ---- */

static void find_widths(const struct mdtable *t, size_t room, size_t width[COLUMNS_MAX])
{
	size_t sum = 0;
	for (size_t c = 0; c < t->columns; c++)
		width[c] = 1;
	for (size_t i = 0; i < t->n; i++) {
		size_t w = styled_width(&t->cell[i].text);
		if (w > width[i % t->columns])
			width[i % t->columns] = w;
	}
	for (size_t c = 0; c < t->columns; c++)
		sum += width[c];
	/* The widest gives. */
	while (sum > room) {
		size_t widest = 0;
		for (size_t c = 1; c < t->columns; c++)
			if (width[c] > width[widest])
				widest = c;
		if (width[widest] <= COLUMN_MIN)
			return;
		width[widest]--;
		sum--;
	}
}

/* ---- rows ---- */

static void add_times(struct buf *out, const char *s, size_t n)
{
	while (n--)
		buf_add_str(out, s);
}

/* The next line of a cell, padded; false: it has none. */
static bool put_cell(struct buf *out, const struct cell *c, size_t width, size_t *at, bool color)
{
	struct styled_line l = {0};
	bool any = styled_next(&c->text, width, at, &l);
	size_t pad = any && l.columns < width ? width - l.columns : any ? 0 : width;
	if (c->right)
		add_times(out, " ", pad);
	if (any && c->head && color)
		buf_add_str(out, "\033[1m");
	if (any)
		styled_put(out, &c->text, &l, color);
	if (any && c->head && color)
		buf_add_str(out, "\033[0m");
	if (!c->right)
		add_times(out, " ", pad);
	return any;
}

static void trim(struct buf *out)
{
	while (out->len && out->data[out->len - 1] == ' ')
		out->data[--out->len] = 0;
}

static void write_row(const struct mdtable *t, size_t row, const size_t *width, const char *margin,
		      bool color, struct buf *out)
{
	size_t at[COLUMNS_MAX] = {0};
	for (bool more = true; more;) {
		struct buf line = {0};
		more = false;
		for (size_t c = 0; c < t->columns && row + c < t->n; c++) {
			const struct cell *cell = &t->cell[row + c];
			buf_add_str(&line, c ? "  " : "");
			put_cell(&line, cell, width[c], &at[c], color);
			more = more || at[c] < cell->text.text.len;
		}
		trim(&line);
		buf_add_str(out, margin);
		buf_add(out, buf_str(&line), line.len);
		buf_add_char(out, '\n');
		out->failed = out->failed || line.failed;
		buf_free(&line);
	}
}

void mdtable_write(const struct mdtable *t, size_t width, const char *margin, bool color,
		   struct buf *out)
{
	size_t widths[COLUMNS_MAX], taken = escape_width(margin) + 2 * (t->columns - 1);
	find_widths(t, width > taken ? width - taken : 1, widths);
	for (size_t row = 0; row < t->n; row += t->columns) {
		write_row(t, row, widths, margin, color, out);
		if (!t->cell[row].head)
			continue;
		buf_add_str(out, margin);
		for (size_t c = 0; c < t->columns; c++) {
			buf_add_str(out, c ? "  " : "");
			add_times(out, color ? "─" : "-", widths[c]);
		}
		buf_add_char(out, '\n');
	}
}
