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

/* The first of them whose path is not before text. */
static size_t lower_bound(const struct reachindex *x, struct reachindex_range among,
			  const char *text)
{
	while (among.from < among.to) {
		size_t mid = among.from + (among.to - among.from) / 2;
		if (strcmp(x->literal[mid]->path, text) < 0)
			among.from = mid + 1;
		else
			among.to = mid;
	}
	return among.from;
}

static struct reachindex_range all(const struct reachindex *x)
{
	return (struct reachindex_range){0, x->literals};
}

/* Those on path itself; they are the first of what begins with it. */
static struct reachindex_range at(const struct reachindex *x, struct reachindex_range among,
				  const char *path)
{
	struct reachindex_range out;

	out.from = out.to = lower_bound(x, among, path);
	while (out.to < among.to && strcmp(x->literal[out.to]->path, path) == 0)
		out.to++;
	return out;
}

static struct reachindex_range below(const struct reachindex *x, struct reachindex_range among,
				     const char *dir)
{
	char prefix[PATH_MAX + 1];
	size_t n = strnlen(dir, PATH_MAX - 1);

	if (n == 1) /* all but the root's own, which come first */
		return (struct reachindex_range){at(x, among, "/").to, among.to};
	memcpy(prefix, dir, n);
	strcpy(prefix + n, "/");
	among.from = lower_bound(x, among, prefix);
	prefix[n] = '/' + 1;
	among.to = lower_bound(x, among, prefix);
	return among;
}

struct reachindex_range reachindex_below(const struct reachindex *x, const char *dir)
{
	return below(x, all(x), dir);
}

static uint32_t literals_vary(const struct reachindex *x, const char *dir,
			      const struct standing *here)
{
	struct reachindex_range own = at(x, all(x), dir), in = reachindex_below(x, dir);
	uint32_t varies = 0;

	for (size_t i = own.from; i < own.to; i++)
		varies |= x->literal[i]->kind == RULE_EXACT ? x->literal[i]->access : 0;
	for (size_t i = in.from; i < in.to; i++)
		varies |= x->literal[i]->access & ~here->by[x->literal[i]->effect];
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
	struct reachindex_range in = open ? reachindex_below(x, dir) : (struct reachindex_range){0};

	for (size_t i = in.from; i < in.to; i++)
		open &= x->literal[i]->effect == EFFECT_ALLOW ? open : ~x->literal[i]->access;
	return open ? open & ~policy_globs_below(x->p, dir, open) : 0;
}

static bool allows(const struct reachindex *x, struct reachindex_range range, uint32_t mask)
{
	for (size_t i = range.from; i < range.to; i++)
		if (x->literal[i]->effect == EFFECT_ALLOW && (x->literal[i]->access & mask))
			return true;
	return false;
}

bool reachindex_allows_inside(const struct reachindex *x, struct reachindex_range among,
			      const char *path, uint32_t mask)
{
	return allows(x, at(x, among, path), mask) || allows(x, below(x, among, path), mask);
}
