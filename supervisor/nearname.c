#include "supervisor/nearname.h"

#include "supervisor/escape.h"

#include <string.h>

#define LENGTH_MAX 255 /* of a file's name */

struct nearname nearname_begin(const char *word)
{
	return (struct nearname){.word = word, .distance = nearname_most(word) + 1};
}

unsigned nearname_most(const char *word)
{
	const size_t n = strlen(word);
	return n < 3 ? 0 : n < 6 ? 1 : 2;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Optimal string alignment: three rows of the table are enough. */
unsigned nearname_distance(const char *a, const char *b, unsigned most)
{
	unsigned rows[3][LENGTH_MAX + 1];
	const size_t an = strlen(a), bn = strlen(b);
	if (an > LENGTH_MAX || bn > LENGTH_MAX || (an > bn ? an - bn : bn - an) > most)
		return most + 1;
	for (size_t j = 0; j <= bn; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= an; i++) {
		unsigned *now = rows[i % 3], *before = rows[(i + 2) % 3];
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= bn; j++) {
			now[j] = least(before[j], now[j - 1]) + 1;
			now[j] = least(now[j], before[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], rows[(i + 1) % 3][j - 2] + 1);
		}
	}
	return least(rows[an % 3][bn], most + 1);
}

void nearname_try(struct nearname *n, const char *candidate)
{
	if (!n->distance)
		return;
	unsigned d = nearname_distance(n->word, candidate, n->distance - 1);
	if (d < n->distance) {
		n->best = candidate;
		n->distance = d;
	}
}

void nearname_add(struct buf *out, const struct nearname *n, const char *before)
{
	if (!n->best)
		return;
	buf_addf(out, "; did you mean '%s", before);
	escape_add_str(out, n->best);
	buf_add_str(out, "'?");
}
