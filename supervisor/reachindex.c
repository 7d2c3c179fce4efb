#include "supervisor/reachindex.h"

#include "tracer/util.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct reachindex {
	const struct policy *p;
	const struct rule **literal; /* by path */
	size_t literals;
	const struct rule **glob;
	size_t globs;
};

static int by_path(const void *a, const void *b)
{
	return strcmp((*(const struct rule *const *)a)->path,
		      (*(const struct rule *const *)b)->path);
}

int reachindex_new(const struct policy *p, struct reachindex **ret)
{
	size_t n = policy_len(p);
	struct reachindex *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	x->p = p;
	x->literal = calloc(n + 1, sizeof(*x->literal));
	x->glob = calloc(n + 1, sizeof(*x->glob));
	if (!x->literal || !x->glob) {
		reachindex_free(x);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		const struct rule *r = policy_at(p, i);
		if (r->sensitive || !r->access)
			continue;
		if (r->kind == RULE_GLOB || r->kind == RULE_GLOB_EXACT)
			x->glob[x->globs++] = r;
		else
			x->literal[x->literals++] = r;
	}
	qsort(x->literal, x->literals, sizeof(*x->literal), by_path);
	*ret = x;
	return 0;
}

void reachindex_free(struct reachindex *x)
{
	if (!x)
		return;
	free(x->literal);
	free(x->glob);
	free(x);
}

const struct rule *reachindex_glob(const struct reachindex *x, size_t i)
{
	return i < x->globs ? x->glob[i] : NULL;
}

/* The first whose path is not before text. */
static size_t lower_bound(const struct reachindex *x, const char *text)
{
	size_t lo = 0, hi = x->literals;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (strcmp(x->literal[mid]->path, text) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static const struct rule *literal_at(const struct reachindex *x, size_t i)
{
	return i < x->literals ? x->literal[i] : NULL;
}

/* The rules strictly below a directory: those whose path begins with this. */
struct below {
	char prefix[PATH_MAX + 1];
	size_t n, next;
};

static void below_begin(const struct reachindex *x, const char *dir, struct below *b)
{
	b->n = strnlen(dir, PATH_MAX - 1);
	memcpy(b->prefix, dir, b->n);
	if (b->n > 1)
		b->prefix[b->n++] = '/';
	b->prefix[b->n] = '\0';
	b->next = lower_bound(x, b->prefix);
	/* The root's own. */
	for (; b->n == 1 && b->next < x->literals && !x->literal[b->next]->path[1]; b->next++)
		;
}

static const struct rule *below_next(const struct reachindex *x, struct below *b)
{
	const struct rule *r = literal_at(x, b->next);

	if (!r || strncmp(r->path, b->prefix, b->n) != 0)
		return NULL;
	b->next++;
	return r;
}

static uint32_t literals_vary(const struct reachindex *x, const char *dir,
			      const struct standing *here)
{
	const struct rule *r;
	uint32_t varies = 0;
	struct below b;

	for (size_t i = lower_bound(x, dir); (r = literal_at(x, i)) && !strcmp(r->path, dir); i++)
		varies |= r->kind == RULE_EXACT ? r->access : 0;
	for (below_begin(x, dir, &b); (r = below_next(x, &b));)
		varies |= r->access & ~here->by[r->effect];
	return varies;
}

void reachindex_of(const struct reachindex *x, const char *dir, struct reach *ret)
{
	struct standing here = policy_standing(x->p, dir, ACCESS_ALL);
	uint32_t varies = literals_vary(x, dir, &here);

	for (size_t i = 0; i < x->globs; i++) {
		const struct rule *r = x->glob[i];
		if (r->kind == RULE_GLOB_EXACT && reach_rule_at(r, dir))
			varies |= r->access;
		else if ((r->access & ~here.by[r->effect] & ~varies) && reach_rule_below(r, dir))
			varies |= r->access & ~here.by[r->effect];
	}
	*ret = (struct reach){.varies = varies,
			      .allow = here.by[EFFECT_ALLOW] & ~varies,
			      .deny = here.by[EFFECT_DENY] & ~varies,
			      .forbid = here.by[EFFECT_FORBID] & ~varies};
}

uint32_t reachindex_allowed_below(const struct reachindex *x, const char *dir, uint32_t mask)
{
	uint32_t allowed = reach_allowed_to_strangers(x->p, dir, mask);

	for (size_t i = 0; i < x->globs && (mask & ~allowed); i++) {
		const struct rule *r = x->glob[i];
		if (r->effect == EFFECT_ALLOW && (r->access & mask & ~allowed) &&
		    reach_rule_below(r, dir))
			allowed |= r->access & mask;
	}
	return allowed;
}

uint32_t reachindex_uniform(const struct reachindex *x, const char *dir, uint32_t mask)
{
	uint32_t open = mask ? policy_open_tree(x->p, dir, mask) : 0;
	const struct rule *r;
	struct below b;

	if (!open)
		return 0;
	for (below_begin(x, dir, &b); open && (r = below_next(x, &b));)
		open &= r->effect == EFFECT_ALLOW ? open : ~r->access;
	return open ? open & ~policy_globs_below(x->p, dir, open) : 0;
}

bool reachindex_allows_inside(const struct reachindex *x, const char *path, uint32_t mask)
{
	const struct rule *r;
	struct below b;

	for (size_t i = lower_bound(x, path); (r = literal_at(x, i)) && !strcmp(r->path, path); i++)
		if (r->effect == EFFECT_ALLOW && (r->access & mask))
			return true;
	for (below_begin(x, path, &b); (r = below_next(x, &b));)
		if (r->effect == EFFECT_ALLOW && (r->access & mask))
			return true;
	return false;
}
