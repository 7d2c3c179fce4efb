#include "supervisor/covers.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int by_cover(const void *a, const void *b)
{
	return strcmp(((const struct cover *)a)->path, ((const struct cover *)b)->path);
}

int covers_add(struct covers *c, const char *path, uint32_t access)
{
	if (c->n == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 64;
		struct cover *more = reallocarray(c->item, cap, sizeof(*more));
		if (!more)
			return -ENOMEM;
		c->item = more;
		c->cap = cap;
	}
	char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	c->item[c->n++] = (struct cover){copy, access};
	return 0;
}

void covers_settle(struct covers *c)
{
	size_t kept = 0;

	if (c->n)
		qsort(c->item, c->n, sizeof(*c->item), by_cover);
	for (size_t i = 0; i < c->n; i++) {
		if (kept && strcmp(c->item[kept - 1].path, c->item[i].path) == 0) {
			c->item[kept - 1].access |= c->item[i].access;
			free(c->item[i].path);
		} else {
			c->item[kept++] = c->item[i];
		}
	}
	c->n = kept;
}

struct cover *covers_at(const struct covers *c, const char *path)
{
	const struct cover key = {.path = (char *)path};

	return c->n ? bsearch(&key, c->item, c->n, sizeof(key), by_cover) : NULL;
}

bool covers_any(const struct covers *c, const char *path, uint32_t access)
{
	char above[PATH_MAX];
	size_t n = strlen(path);

	if (!c->n)
		return false;
	memcpy(above, path, n + 1); /* the caller has measured it */
	for (;;) {
		const struct cover *found = covers_at(c, above);
		if (found && (found->access & access))
			return true;
		if (n <= 1)
			return false;
		while (above[n - 1] != '/')
			n--;
		n -= n > 1; /* the root keeps its slash */
		above[n] = '\0';
	}
}

size_t covers_from(const struct covers *c, const char *text, size_t n)
{
	size_t lo = 0, hi = c->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (strncmp(c->item[mid].path, text, n) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void covers_release(struct covers *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->item[i].path);
	free(c->item);
	*c = (struct covers){0};
}
