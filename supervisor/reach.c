#include "supervisor/reach.h"

#include "supervisor/covers.h"
#include "supervisor/glob.h"
#include "tracer/buf.h"
#include "tracer/util.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names that no rule spells out: what is decided for them is decided for any new child. */
static const char *const strangers[] = {"\001", ".\001"};

static bool is_glob(const struct rule *r)
{
	return r->kind == RULE_GLOB || r->kind == RULE_GLOB_EXACT;
}

static bool is_exact(const struct rule *r)
{
	return r->kind == RULE_EXACT || r->kind == RULE_GLOB_EXACT;
}

static bool speaks(const struct rule *r)
{
	return !r->sensitive && r->access;
}

bool reach_covers(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	if (n == 1)
		return true;
	return strncmp(dir, path, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool is_below(const char *dir, const char *path)
{
	return reach_covers(dir, path) && strcmp(dir, path) != 0;
}

enum match { MATCH_NEVER, MATCH_ABOVE, MATCH_AT, MATCH_BELOW };

static bool is_any_depth(const char *part, size_t n)
{
	return n == 2 && part[0] == '*' && part[1] == '*';
}

/* Could these two components be the same? From its first wild character on it could be anything. */
static bool parts_meet(const char *pattern, size_t pn, const char *s, size_t n)
{
	for (size_t i = 0; i < pn; i++) {
		if (strchr("*?\\", pattern[i]))
			return true;
		if (i >= n || pattern[i] != s[i])
			return false;
	}
	return pn == n;
}

/* Where a pattern without "**" would match, seen from path. With one: below, and perhaps here. */
static enum match meet(const struct rule *r, const char *path, bool *ret_deep)
{
	const char *pat = r->path;

	*ret_deep = false;
	for (;;) {
		pat += strspn(pat, "/");
		path += strspn(path, "/");
		size_t pn = strcspn(pat, "/"), n = strcspn(path, "/");
		if (is_any_depth(pat, pn) && (pat[pn] || is_exact(r))) {
			*ret_deep = true;
			return MATCH_BELOW;
		}
		if (n == 0)
			return pn == 0 ? MATCH_AT : MATCH_BELOW;
		if (pn == 0)
			return MATCH_ABOVE;
		if (!parts_meet(pat, pn, path, n))
			return MATCH_NEVER;
		pat += pn;
		path += n;
	}
}

bool reach_rule_below(const struct rule *r, const char *dir)
{
	bool deep;

	if (!is_glob(r))
		return is_below(dir, r->path);
	return meet(r, dir, &deep) == MATCH_BELOW;
}

bool reach_rule_at(const struct rule *r, const char *path)
{
	bool deep;

	if (!is_glob(r))
		return strcmp(r->path, path) == 0;
	return meet(r, path, &deep) == MATCH_AT || deep;
}

bool reach_rule_concerns(const struct rule *r, const char *path)
{
	bool deep;

	if (!is_glob(r))
		return reach_covers(path, r->path) || (!is_exact(r) && reach_covers(r->path, path));
	enum match match = meet(r, path, &deep);
	return match != MATCH_NEVER && !(match == MATCH_ABOVE && is_exact(r));
}

void reach_of(const struct policy *p, const char *dir, struct reach *ret)
{
	struct standing here = policy_standing(p, dir, ACCESS_ALL);
	struct reach out = {0};

	for (size_t i = 0; i < policy_len(p); i++) {
		const struct rule *r = policy_at(p, i);
		if (!speaks(r))
			continue;
		if (is_exact(r) && reach_rule_at(r, dir))
			out.varies |= r->access;
		else if ((r->access & ~here.by[r->effect]) && reach_rule_below(r, dir))
			out.varies |= r->access & ~here.by[r->effect];
	}
	out.allow = here.by[EFFECT_ALLOW] & ~out.varies;
	out.deny = here.by[EFFECT_DENY] & ~out.varies;
	out.forbid = here.by[EFFECT_FORBID] & ~out.varies;
	*ret = out;
}

enum effect reach_of_stranger(const struct policy *p, const char *dir, uint32_t bit)
{
	enum effect hardest = EFFECT_ALLOW;
	char child[PATH_MAX];

	for (size_t s = 0; s < sizeof(strangers) / sizeof(strangers[0]); s++) {
		int n = snprintf(child, sizeof(child), "%s/%s", dir[1] ? dir : "", strangers[s]);
		if (n < 0 || (size_t)n >= sizeof(child))
			return EFFECT_FORBID;
		enum effect e = policy_decide(p, child, bit).effect;
		if (e > hardest)
			hardest = e;
	}
	return hardest;
}

uint32_t reach_names_vary(const struct policy *p, const char *dir)
{
	uint32_t by[EFFECT_FORBID + 1] = {0}, varies = 0;

	for (uint32_t bit = 1; bit < ACCESS_ALL; bit <<= 1)
		by[reach_of_stranger(p, dir, bit)] |= bit;
	for (size_t i = 0; i < policy_len(p); i++) {
		const struct rule *r = policy_at(p, i);
		if (speaks(r) && reach_rule_below(r, dir))
			varies |= r->access & ~by[r->effect];
	}
	return varies;
}

uint32_t reach_allowed_to_strangers(const struct policy *p, const char *dir, uint32_t mask)
{
	uint32_t allowed = 0;
	char child[PATH_MAX];

	for (size_t s = 0; s < sizeof(strangers) / sizeof(strangers[0]) && (mask & ~allowed); s++) {
		int n = snprintf(child, sizeof(child), "%s/%s", dir[1] ? dir : "", strangers[s]);
		if (n < 0 || (size_t)n >= sizeof(child))
			return 0;
		allowed |= policy_standing(p, child, mask & ~allowed).by[EFFECT_ALLOW];
	}
	return allowed;
}

uint32_t reach_allowed_below(const struct policy *p, const char *dir, uint32_t mask)
{
	uint32_t allowed = reach_allowed_to_strangers(p, dir, mask);

	for (size_t i = 0; i < policy_len(p) && (mask & ~allowed); i++) {
		const struct rule *r = policy_at(p, i);
		if (speaks(r) && r->effect == EFFECT_ALLOW && is_glob(r) &&
		    (r->access & mask & ~allowed) && reach_rule_below(r, dir))
			allowed |= r->access & mask;
	}
	return allowed;
}

int reach_root(const struct rule *r, char *ret, size_t size)
{
	size_t n = strlen(r->path);

	if (is_glob(r)) {
		n = strcspn(r->path, "*?\\");
		while (n > 1 && r->path[n - 1] != '/')
			n--;
		if (n > 1)
			n--;
	}
	if (n == 0 || n >= size)
		return -ENAMETOOLONG;
	memcpy(ret, r->path, n);
	ret[n] = '\0';
	return 0;
}

static bool is_wide_allow(const struct rule *a)
{
	return speaks(a) && a->effect == EFFECT_ALLOW && a->kind != RULE_EXACT;
}

/* Does r, which refuses or asks, do so inside what the wide allow gives? */
static bool is_inside(const struct rule *r, const struct rule *a)
{
	char root[PATH_MAX];

	if (!(a->access & r->access))
		return false;
	return reach_root(a, root, sizeof(root)) < 0 || reach_covers(root, r->path) ||
	       (is_glob(r) && reach_rule_below(r, root));
}

bool reach_is_exception(const struct policy *p, const struct rule *r)
{
	if (!speaks(r) || r->effect == EFFECT_ALLOW)
		return false;
	if (r->effect == EFFECT_FORBID)
		return true;
	for (size_t i = 0; i < policy_len(p); i++)
		if (is_wide_allow(policy_at(p, i)) && is_inside(r, policy_at(p, i)))
			return true;
	return false;
}

/* What they give begins at these; true in *ret_unknown: somewhere else, too. */
static int find_roots(const struct policy *p, struct covers *ret, bool *ret_unknown)
{
	char root[PATH_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < policy_len(p); i++) {
		const struct rule *a = policy_at(p, i);
		if (!is_wide_allow(a))
			continue;
		if (reach_root(a, root, sizeof(root)) < 0)
			*ret_unknown = true;
		else
			r = covers_add(ret, root, a->access);
	}
	covers_settle(ret);
	return r;
}

/*
 * The first root behind number i that the pattern could match below. Where a component of this one
 * does not begin as the pattern's, none does up to where one could, or the directory ends.
 */
static size_t next_root(const struct covers *roots, size_t i, const char *pat)
{
	const char *root = roots->item[i].path, *at = root;
	char text[PATH_MAX];

	for (;;) {
		pat += strspn(pat, "/");
		at += strspn(at, "/");
		size_t pn = strcspn(pat, "/"), n = strcspn(at, "/");
		size_t fixed = strcspn(pat, "*?\\/"), up = (size_t)(at - root);
		int order = strncmp(at, pat, fixed);
		if (!pn || !n || (order && up + fixed >= sizeof(text)))
			return i + 1;
		if (order) {
			memcpy(text, root, up);
			memcpy(text + up, pat, fixed);
			if (order > 0)
				text[up - 1] = '/' + 1;
			return covers_from(roots, text, order > 0 ? up : up + fixed);
		}
		if (is_any_depth(pat, pn) || !parts_meet(pat, pn, at, n))
			return i + 1;
		pat += pn;
		at += n;
	}
}

/*
 * Is one of the roots where the pattern could match below it? One that is above the pattern's first
 * wild character is where the text begins; any other begins as the pattern does.
 */
static bool meets_root(const struct covers *roots, const struct rule *r)
{
	size_t n = strcspn(r->path, "*?\\");

	if (covers_any(roots, r->path, r->access))
		return true;
	for (size_t i = covers_from(roots, r->path, n); i < roots->n;) {
		const struct cover *root = &roots->item[i];
		if (strncmp(root->path, r->path, n) != 0)
			return false;
		bool about = root->access & r->access;
		if (about && reach_rule_below(r, root->path))
			return true;
		i = about ? next_root(roots, i, r->path) : i + 1;
	}
	return false;
}

int reach_exceptions(const struct policy *p, bool **ret)
{
	struct covers roots = {0};
	bool unknown = false;
	bool *out = calloc(policy_len(p) + 1, sizeof(*out));
	int err = out ? find_roots(p, &roots, &unknown) : -ENOMEM;

	for (size_t i = 0; err == 0 && i < policy_len(p); i++) {
		const struct rule *r = policy_at(p, i);
		if (!speaks(r) || r->effect == EFFECT_ALLOW)
			continue;
		if (unknown || strlen(r->path) >= PATH_MAX)
			out[i] = reach_is_exception(p, r);
		else if (r->effect == EFFECT_FORBID)
			out[i] = true;
		else
			out[i] = is_glob(r) ? meets_root(&roots, r)
					    : covers_any(&roots, r->path, r->access);
	}
	covers_release(&roots);
	if (err < 0) {
		free(out);
		return err;
	}
	*ret = out;
	return 0;
}

/* The rule's path as a pattern; NULL: there is no room, or it has too many components. */
static struct glob *pattern_of(const struct rule *r)
{
	struct buf text = {0};
	struct glob *g = NULL;

	for (const char *s = r->path; *s; s++) {
		if (!is_glob(r) && strchr("*?\\", *s))
			buf_add_char(&text, '\\');
		buf_add_char(&text, *s);
	}
	if (buf_error(&text) || glob_new(buf_str(&text), !is_exact(r), &g) < 0)
		g = NULL;
	buf_free(&text);
	return g;
}

/* A kind of name in any directory ("*.key"): nearly every pattern could match one. */
static bool is_kind_of_name(const struct rule *mark)
{
	return is_glob(mark) && !strncmp(mark->path, "/**/", 4) &&
	       strpbrk(strrchr(mark->path, '/'), "*?");
}

/*
 * Of a mark that is a pattern only what the rule's own matches are on: that such a mark could match
 * below them is true of every one with a "**". What can't be weighed is told.
 */
static bool patterns_meet(const struct glob *pattern, const struct rule *r, const struct rule *mark)
{
	struct glob *other = pattern_of(mark);
	bool tree = !is_exact(r) && !is_glob(mark);
	bool meet = !pattern || !other || glob_meets(pattern, tree, other, !is_exact(mark)) != 0;

	glob_free(other);
	return meet;
}

const struct rule *reach_sensitive(const struct policy *marks, const struct rule *r,
				   size_t *ret_count)
{
	struct glob *pattern = is_glob(r) ? pattern_of(r) : NULL;
	const struct rule *found = NULL;

	*ret_count = 0;
	for (size_t i = 0; i < policy_len(marks); i++) {
		const struct rule *m = policy_at(marks, i);
		if (!m->sensitive || !(m->access & r->access) || is_kind_of_name(m))
			continue;
		bool opens = is_glob(r) ? patterns_meet(pattern, r, m)
					: r->kind == RULE_TREE && !is_glob(m) &&
						  reach_rule_below(m, r->path);
		found = found || !opens ? found : m;
		*ret_count += opens;
	}
	glob_free(pattern);
	return found;
}
