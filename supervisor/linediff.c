#include "supervisor/linediff.h"

#include "supervisor/escape.h"
#include "tracer/util.h"

#include <stdint.h>
#include <string.h>

struct line {
	const char *at;
	size_t n;
};

struct text {
	struct line *line; /* owned */
	size_t len;
};

static bool split(const char *s, struct text *ret)
{
	size_t n = 0;
	for (const char *at = s; *at; n++)
		at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n');
	ret->line = calloc(n + 1, sizeof(*ret->line));
	ret->len = 0;
	for (const char *at = s; ret->line && *at;) {
		size_t len = strcspn(at, "\n");
		ret->line[ret->len++] = (struct line){at, len};
		at += len + (at[len] == '\n');
	}
	return ret->line != NULL;
}

static bool is_same(const struct line *a, const struct line *b)
{
	return a->n == b->n && memcmp(a->at, b->at, a->n) == 0;
}

static void say(struct buf *out, char sign, const struct line *l)
{
	buf_add_char(out, sign);
	buf_add_char(out, ' ');
	escape_add(out, l->at, l->n);
	buf_add_char(out, '\n');
}

/* The longest common subsequence of what differs: cell (i, j) is its length from there on. */
static uint32_t *measure(const struct text *a, const struct text *b)
{
	size_t width = b->len + 1;
	if (a->len && width > LINEDIFF_CELLS_MAX / (a->len + 1))
		return NULL;
	uint32_t *cell = calloc((a->len + 1) * width, sizeof(*cell));
	for (size_t i = a->len; cell && i-- > 0;)
		for (size_t j = b->len; j-- > 0;) {
			uint32_t down = cell[(i + 1) * width + j], right = cell[i * width + j + 1];
			cell[i * width + j] = is_same(&a->line[i], &b->line[j])
						      ? cell[(i + 1) * width + j + 1] + 1
					      : down >= right ? down
							      : right;
		}
	return cell;
}

static void say_all(const struct text *a, const struct text *b, struct buf *out)
{
	uint32_t *cell AUTOFREE = measure(a, b);
	size_t width = b->len + 1, i = 0, j = 0;
	while (i < a->len || j < b->len) {
		bool both = i < a->len && j < b->len;
		if (both && cell && is_same(&a->line[i], &b->line[j])) {
			i++;
			j++;
		} else if (i < a->len && (!both || !cell ||
					  cell[(i + 1) * width + j] >= cell[i * width + j + 1])) {
			say(out, '-', &a->line[i++]);
		} else {
			say(out, '+', &b->line[j++]);
		}
	}
}

bool linediff(const char *old, const char *new, struct buf *out)
{
	struct text a, b = {0};
	size_t before = out->len;
	if (!split(old, &a) || !split(new, &b)) {
		out->failed = true;
	} else {
		struct text x = a, y = b;
		for (; x.len && y.len && is_same(x.line, y.line); x.len--, y.len--) {
			x.line++;
			y.line++;
		}
		while (x.len && y.len && is_same(&x.line[x.len - 1], &y.line[y.len - 1])) {
			x.len--;
			y.len--;
		}
		say_all(&x, &y, out);
	}
	free(a.line);
	free(b.line);
	return out->len != before || out->failed;
}
