#include "agent/diff.h"

#include "tracer/util.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CONTEXT 3
/* Cells of the table of common lines; two bytes each. */
#define CELLS_MAX (4u << 20)

struct line {
	const char *text; /* loan, with its newline if it has one */
	size_t len;
};

struct lines {
	struct line *item;
	size_t n;
};

struct diff {
	struct lines a, b;
	size_t head, tail; /* lines in common at the beginning and at the end */
	char *op;	   /* ' ', '-' or '+' for each line of the answer, head and tail included */
	size_t ops;
};

static int split(const char *p, size_t n, struct lines *ret)
{
	size_t lines = 0;
	for (size_t i = 0; i < n; i++)
		lines += p[i] == '\n';
	lines += n && p[n - 1] != '\n';
	ret->item = calloc(lines + 1, sizeof(*ret->item));
	if (!ret->item)
		return -ENOMEM;
	for (size_t at = 0; at < n;) {
		const char *newline = memchr(p + at, '\n', n - at);
		size_t len = newline ? (size_t)(newline - p) - at + 1 : n - at;
		ret->item[ret->n++] = (struct line){p + at, len};
		at += len;
	}
	return 0;
}

static bool same(const struct line *x, const struct line *y)
{
	return x->len == y->len && !memcmp(x->text, y->text, x->len);
}

static void find_common_ends(struct diff *d)
{
	size_t least = d->a.n < d->b.n ? d->a.n : d->b.n;
	while (d->head < least && same(&d->a.item[d->head], &d->b.item[d->head]))
		d->head++;
	while (d->tail < least - d->head &&
	       same(&d->a.item[d->a.n - 1 - d->tail], &d->b.item[d->b.n - 1 - d->tail]))
		d->tail++;
}

static void add_ops(struct diff *d, char op, size_t n)
{
	memset(d->op + d->ops, op, n);
	d->ops += n;
}

/* common[i][j]: length of the longest common list of lines of a from i on and b from j on. */
static void fill_table(const struct line *a, size_t n, const struct line *b, size_t m,
		       uint16_t *common)
{
	for (size_t i = n; i-- > 0;)
		for (size_t j = m; j-- > 0;) {
			uint16_t down = common[(i + 1) * (m + 1) + j];
			uint16_t right = common[i * (m + 1) + j + 1];
			common[i * (m + 1) + j] =
				same(&a[i], &b[j])
					? (uint16_t)(common[(i + 1) * (m + 1) + j + 1] + 1)
				: down > right ? down
					       : right;
		}
}

static int compare_middle(struct diff *d)
{
	size_t n = d->a.n - d->head - d->tail, m = d->b.n - d->head - d->tail;
	const struct line *a = d->a.item + d->head, *b = d->b.item + d->head;
	if (!n || !m || (n + 1) > CELLS_MAX / (m + 1)) {
		add_ops(d, '-', n);
		add_ops(d, '+', m);
		return 0;
	}
	AUTOFREE
	uint16_t *common = calloc((n + 1) * (m + 1), sizeof(*common));
	if (!common)
		return -ENOMEM;
	fill_table(a, n, b, m, common);
	for (size_t i = 0, j = 0; i < n || j < m;) {
		bool both = i < n && j < m && same(&a[i], &b[j]);
		bool from_a = i < n && (j == m || common[(i + 1) * (m + 1) + j] >=
							  common[i * (m + 1) + j + 1]);
		add_ops(d, both ? ' ' : from_a ? '-' : '+', 1);
		i += both || from_a;
		j += both || !from_a;
	}
	return 0;
}

static int compare(struct diff *d)
{
	find_common_ends(d);
	d->op = malloc(d->a.n + d->b.n + 1);
	if (!d->op)
		return -ENOMEM;
	add_ops(d, ' ', d->head);
	int err = compare_middle(d);
	add_ops(d, ' ', d->tail);
	return err;
}

/* ---- the hunks ---- */

/* Where the run of changes that begins at `at` ends: at most 2 * CONTEXT equal lines are within. */
static size_t hunk_end(const struct diff *d, size_t at)
{
	size_t end = at + 1;
	for (size_t i = at, equal = 0; i < d->ops; i++) {
		equal = d->op[i] == ' ' ? equal + 1 : 0;
		if (equal > 2 * CONTEXT)
			break;
		if (!equal)
			end = i + 1;
	}
	return end + CONTEXT < d->ops ? end + CONTEXT : d->ops;
}

static void add_line(struct buf *out, char op, const struct line *l)
{
	buf_add_char(out, op);
	buf_add(out, l->text, l->len);
	if (l->text[l->len - 1] != '\n')
		buf_add_str(out, "\n\\ No newline at end of file\n");
}

/* "12,3", as diff -u has it: a range of no lines names the line before it. */
static void add_range(struct buf *out, char sign, size_t first, size_t n)
{
	buf_addf(out, n == 1 ? "%c%zu" : "%c%zu,%zu", sign, n ? first + 1 : first, n);
}

/* The lines before `from` are a_at and b_at many. */
static void add_hunk(struct buf *out, const struct diff *d, size_t from, size_t to, size_t a_at,
		     size_t b_at)
{
	size_t a_lines = 0, b_lines = 0;
	for (size_t i = from; i < to; i++) {
		a_lines += d->op[i] != '+';
		b_lines += d->op[i] != '-';
	}
	buf_add_str(out, "@@ ");
	add_range(out, '-', a_at, a_lines);
	buf_add_char(out, ' ');
	add_range(out, '+', b_at, b_lines);
	buf_add_str(out, " @@\n");
	for (size_t i = from; i < to; i++) {
		bool added = d->op[i] == '+';
		add_line(out, d->op[i], added ? &d->b.item[b_at] : &d->a.item[a_at]);
		a_at += !added;
		b_at += d->op[i] != '-';
	}
}

/* The last whole line within max. */
static void cut(struct buf *out, size_t from, size_t max)
{
	if (out->failed || out->len - from <= max)
		return;
	const char *newline = memrchr(out->data + from, '\n', max);
	size_t keep = newline ? (size_t)(newline - out->data) + 1 : from;
	size_t lines = 0;
	for (size_t i = keep; i < out->len; i++)
		lines += out->data[i] == '\n';
	out->len = keep;
	buf_addf(out, "[... %zu more lines ...]\n", lines);
}

static void write_hunks(struct buf *out, const struct diff *d, struct diff_count *ret)
{
	size_t a_at = 0, b_at = 0; /* lines before `at` */
	for (size_t at = 0; at < d->ops;) {
		if (d->op[at] == ' ') {
			at++, a_at++, b_at++;
			continue;
		}
		size_t before = at < CONTEXT ? at : CONTEXT, end = hunk_end(d, at);
		add_hunk(out, d, at - before, end, a_at - before, b_at - before);
		for (; at < end; at++) {
			ret->added += d->op[at] == '+';
			ret->removed += d->op[at] == '-';
			a_at += d->op[at] != '+';
			b_at += d->op[at] != '-';
		}
	}
}

int diff_write(struct buf *out, const char *a, size_t a_len, const char *b, size_t b_len,
	       size_t max, struct diff_count *ret)
{
	struct diff d = {0};
	size_t from = out->len;
	*ret = (struct diff_count){0};
	int err = split(a, a_len, &d.a);
	if (!err)
		err = split(b, b_len, &d.b);
	if (!err)
		err = compare(&d);
	if (!err) {
		write_hunks(out, &d, ret);
		cut(out, from, max);
	}
	free(d.a.item);
	free(d.b.item);
	free(d.op);
	return err;
}
