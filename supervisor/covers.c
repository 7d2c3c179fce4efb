#include "supervisor/covers.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int by_cover(const void *a, const void *b)
{
	return strcmp(((const struct cover *)a)->path, ((const struct cover *)b)->path);
}

int covers_find(const struct policy *p, const bool *exception, struct covers *ret)
{
	size_t kept = 0;

	*ret = (struct covers){.item = calloc(policy_len(p) + 1, sizeof(*ret->item))};
	if (!ret->item)
		return -ENOMEM;
	for (size_t i = 0; i < policy_len(p); i++) {
		const struct rule *r = policy_at(p, i);
		if (exception[i] && (r->kind == RULE_TREE || r->kind == RULE_EXACT))
			ret->item[ret->n++] = (struct cover){r->path, r->access};
	}
	qsort(ret->item, ret->n, sizeof(*ret->item), by_cover);
	for (size_t i = 0; i < ret->n; i++) {
		if (kept && strcmp(ret->item[kept - 1].path, ret->item[i].path) == 0)
			ret->item[kept - 1].access |= ret->item[i].access;
		else
			ret->item[kept++] = ret->item[i];
	}
	ret->n = kept;
	return 0;
}

bool covers_any(const struct covers *c, const char *path, uint32_t access)
{
	char above[PATH_MAX];
	size_t n = strlen(path);

	memcpy(above, path, n + 1); /* the caller has measured it */
	for (;;) {
		const struct cover key = {.path = above};
		const struct cover *found = bsearch(&key, c->item, c->n, sizeof(key), by_cover);
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

void covers_release(struct covers *c)
{
	free(c->item);
	*c = (struct covers){0};
}
