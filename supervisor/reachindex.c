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
	struct placed *glob; /* by the directory at or below which all is that they match */
	size_t globs;
};

struct placed {
	const struct rule *rule;
	size_t len; /* of its path, the directory */
};

static int by_path(const void *a, const void *b)
{
	return strcmp((*(const struct rule *const *)a)->path,
		      (*(const struct rule *const *)b)->path);
}

/* As strcmp() of two texts of these lengths. */
static int compare(const char *a, size_t an, const char *b, size_t bn)
{
	int r = memcmp(a, b, an < bn ? an : bn);

	return r ? r : an < bn ? -1 : an > bn;
}

static int by_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return compare(x->rule->path, x->len, y->rule->path, y->len);
}

/* A pattern too long for a path is about the root: it is always looked at. */
static struct placed place_of(const struct rule *r)
{
	char root[PATH_MAX];

	return (struct placed){r, reach_root(r, root, sizeof(root)) < 0 ? 1 : strlen(root)};
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
			x->glob[x->globs++] = place_of(r);
		else
			x->literal[x->literals++] = r;
	}
	qsort(x->literal, x->literals, sizeof(*x->literal), by_path);
	qsort(x->glob, x->globs, sizeof(*x->glob), by_place);
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

/* ---- patterns that can concern a directory ---- */

typedef void near_fn(void *arg, const struct rule *glob);

static size_t first_placed(const struct reachindex *x, const char *text, size_t n)
{
	size_t lo = 0, hi = x->globs;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct placed *g = &x->glob[mid];
		if (compare(g->rule->path, g->len, text, n) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void each_about(const struct reachindex *x, const char *dir, size_t n, near_fn *fn,
		       void *arg)
{
	for (size_t i = first_placed(x, dir, n); i < x->globs; i++) {
		const struct placed *g = &x->glob[i];
		if (g->len != n || memcmp(g->rule->path, dir, n) != 0)
			return;
		fn(arg, g->rule);
	}
}

static void each_below(const struct reachindex *x, const char *dir, near_fn *fn, void *arg)
{
	char prefix[PATH_MAX + 1];
	size_t n = strnlen(dir, PATH_MAX - 1);

	memcpy(prefix, dir, n);
	if (n > 1)
		prefix[n++] = '/';
	for (size_t i = first_placed(x, prefix, n); i < x->globs; i++) {
		const struct placed *g = &x->glob[i];
		if (g->len < n || memcmp(g->rule->path, prefix, n) != 0)
			return;
		if (g->len > n) /* those of the root itself are not below it */
			fn(arg, g->rule);
	}
}

/* The patterns about dir, what is above it and what is below: no other can match there. */
static void each_near(const struct reachindex *x, const char *dir, near_fn *fn, void *arg)
{
	each_about(x, dir, 1, fn, arg);
	for (const char *at = dir; at[0] == '/' && at[1];) {
		at += 1 + strcspn(at + 1, "/");
		each_about(x, dir, (size_t)(at - dir), fn, arg);
	}
	each_below(x, dir, fn, arg);
}

struct collected {
	const char *dir;
	uint32_t mask;
	const struct rule **ret; /* NULL: only counted */
	size_t n;
};

static void collect(void *arg, const struct rule *glob)
{
	struct collected *c = arg;

	if (glob->effect != EFFECT_ALLOW || !(glob->access & c->mask) ||
	    !reach_rule_concerns(glob, c->dir))
		return;
	if (c->ret)
		c->ret[c->n] = glob;
	c->n++;
}

int reachindex_allowing_globs(const struct reachindex *x, const char *dir, uint32_t mask,
			      const struct rule ***ret, size_t *ret_n)
{
	struct collected count = {.dir = dir, .mask = mask}, all = count;

	each_near(x, dir, collect, &count);
	all.ret = calloc(count.n + 1, sizeof(struct rule *));
	if (!all.ret)
		return -ENOMEM;
	each_near(x, dir, collect, &all);
	*ret = all.ret;
	*ret_n = all.n;
	return 0;
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

/* What is asked of each pattern about a directory. */
struct asked {
	const char *dir;
	const struct standing *here;
	uint32_t mask;
	uint32_t found;
};

static void glob_varies(void *arg, const struct rule *r)
{
	struct asked *a = arg;
	uint32_t other = r->access & ~a->here->by[r->effect];

	if (r->kind == RULE_GLOB_EXACT && reach_rule_at(r, a->dir))
		a->found |= r->access;
	else if ((other & ~a->found) && reach_rule_below(r, a->dir))
		a->found |= other;
}

static void glob_allows(void *arg, const struct rule *r)
{
	struct asked *a = arg;
	uint32_t bits = r->access & a->mask & ~a->found;

	if (r->effect == EFFECT_ALLOW && bits && reach_rule_below(r, a->dir))
		a->found |= bits;
}

static void glob_excepts(void *arg, const struct rule *r)
{
	struct asked *a = arg;
	uint32_t bits = r->access & a->mask & ~a->found;

	if (r->effect != EFFECT_ALLOW && bits && policy_glob_reaches(r, a->dir))
		a->found |= bits;
}

void reachindex_of(const struct reachindex *x, const char *dir, struct reach *ret)
{
	struct standing here = policy_standing(x->p, dir, ACCESS_ALL);
	uint32_t varies = literals_vary(x, dir, &here);

	struct asked a = {.dir = dir, .here = &here, .found = varies};
	each_near(x, dir, glob_varies, &a);
	varies = a.found;
	*ret = (struct reach){.varies = varies,
			      .allow = here.by[EFFECT_ALLOW] & ~varies,
			      .deny = here.by[EFFECT_DENY] & ~varies,
			      .forbid = here.by[EFFECT_FORBID] & ~varies};
}

uint32_t reachindex_allowed_below(const struct reachindex *x, const char *dir, uint32_t mask)
{
	struct asked a = {.dir = dir, .mask = mask};

	a.found = reach_allowed_to_strangers(x->p, dir, mask);
	if (mask & ~a.found)
		each_near(x, dir, glob_allows, &a);
	return a.found;
}

uint32_t reachindex_uniform(const struct reachindex *x, const char *dir, uint32_t mask)
{
	uint32_t open = mask ? policy_open_tree(x->p, dir, mask) : 0;
	struct reachindex_range in = open ? reachindex_below(x, dir) : (struct reachindex_range){0};

	for (size_t i = in.from; i < in.to; i++)
		open &= x->literal[i]->effect == EFFECT_ALLOW ? open : ~x->literal[i]->access;
	struct asked a = {.dir = dir, .mask = open};
	if (open)
		each_near(x, dir, glob_excepts, &a);
	return open & ~a.found;
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
