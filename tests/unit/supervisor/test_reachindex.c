/* reachindex: of every directory the same answers as without it. */
#include "supervisor/reachindex.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static unsigned roll(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 33) % n;
}

static void random_path(char *out, unsigned max, bool glob)
{
	static const char *const words[] = {"a", "b", "ab", "a-b", ".a", "*"};
	static const char *const wild[] = {"*", "?", "**", "a*", "*b", ".?", "\\*", "a\\b*"};
	char *at = out;

	for (unsigned n = 1 + roll(max); n > 0; n--)
		at += sprintf(at, "/%s",
			      glob && (n == 1 || !roll(2)) ? wild[roll(ARRAY_LEN(wild))]
							   : words[roll(ARRAY_LEN(words))]);
}

static void random_rule(struct policy *p)
{
	static const uint32_t masks[] = {ACCESS_R, ACCESS_W, ACCESS_ALL, ACCESS_READ, ACCESS_MOVE};
	char path[128] = "/";
	struct rule r = {.path = path, .origin = "test", .source = RULE_USER};
	bool glob = roll(3) == 0;

	r.effect = roll(12) ? (enum effect)roll(3) : EFFECT_FORBID;
	r.kind =
		glob ? (roll(3) ? RULE_GLOB : RULE_GLOB_EXACT) : (roll(3) ? RULE_TREE : RULE_EXACT);
	r.access = masks[roll(ARRAY_LEN(masks))];
	r.sensitive = roll(10) == 0;
	if (glob || roll(20))
		random_path(path, 4, glob);
	cr_assert_eq(policy_add(p, &r), 0, "%s", path);
}

static uint32_t uniform(const struct policy *p, const char *dir, uint32_t mask)
{
	uint32_t out = 0;

	for (uint32_t bit = 1; bit < ACCESS_ALL; bit <<= 1)
		out |= (mask & bit) && policy_uniform(p, dir, bit) ? bit : 0;
	return out;
}

static bool allows_inside(const struct policy *p, const char *path, uint32_t mask)
{
	for (size_t i = 0; i < policy_len(p); i++) {
		const struct rule *r = policy_at(p, i);
		bool literal = r->kind == RULE_TREE || r->kind == RULE_EXACT;
		if (literal && !r->sensitive && r->effect == EFFECT_ALLOW && (r->access & mask) &&
		    reach_covers(path, r->path))
			return true;
	}
	return false;
}

static uint32_t one_by_one(const struct policy *p, const char *path, enum effect effect)
{
	uint32_t out = 0;

	for (uint32_t bit = 1; bit < ACCESS_ALL; bit <<= 1)
		out |= policy_decide(p, path, bit).effect == effect ? bit : 0;
	return out;
}

static size_t allowing_globs(const struct policy *p, const char *dir, uint32_t mask)
{
	size_t n = 0;

	for (size_t i = 0; i < policy_len(p); i++) {
		const struct rule *r = policy_at(p, i);
		n += (r->kind == RULE_GLOB || r->kind == RULE_GLOB_EXACT) && !r->sensitive &&
		     r->effect == EFFECT_ALLOW && (r->access & mask) && reach_rule_concerns(r, dir);
	}
	return n;
}

static void compare_exceptions(const struct policy *p)
{
	bool *exception;

	cr_assert_eq(reach_exceptions(p, &exception), 0);
	for (size_t i = 0; i < policy_len(p); i++)
		cr_assert_eq(exception[i], reach_is_exception(p, policy_at(p, i)), "%s",
			     policy_at(p, i)->path);
	free(exception);
}

static void compare(const struct policy *p, const struct reachindex *x, const char *dir)
{
	uint32_t mask = 1 + roll(ACCESS_ALL);
	struct reach one, other;

	reach_of(p, dir, &one);
	reachindex_of(x, dir, &other);
	cr_assert(!memcmp(&one, &other, sizeof(one)), "reach of %s: %x %x %x %x", dir,
		  one.varies ^ other.varies, one.allow ^ other.allow, one.deny ^ other.deny,
		  one.forbid ^ other.forbid);
	cr_assert_eq(reach_allowed_below(p, dir, mask), reachindex_allowed_below(x, dir, mask),
		     "allowed below %s", dir);
	cr_assert_eq(uniform(p, dir, mask), reachindex_uniform(x, dir, mask), "uniform %s", dir);
	struct reachindex_range all = reachindex_below(x, "/"), in = reachindex_below(x, dir);
	if (strcmp(dir, "/") != 0)
		cr_assert_eq(allows_inside(p, dir, mask),
			     reachindex_allows_inside(x, all, dir, mask), "inside %s", dir);
	char child[160];
	snprintf(child, sizeof(child), "%s/a", dir[1] ? dir : "");
	cr_assert_eq(allows_inside(p, child, mask), reachindex_allows_inside(x, in, child, mask),
		     "inside %s", child);
	const struct rule **glob;
	size_t globs;
	cr_assert_eq(reachindex_allowing_globs(x, dir, mask, &glob, &globs), 0);
	cr_assert_eq(globs, allowing_globs(p, dir, mask), "globs of %s", dir);
	free(glob);
	struct standing s = policy_standing(p, dir, ACCESS_ALL);
	for (int e = EFFECT_ALLOW; e <= EFFECT_FORBID; e++)
		cr_assert_eq(s.by[e], one_by_one(p, dir, (enum effect)e), "%s stands", dir);
}

Test(reachindex, answers_as_the_rules_one_by_one)
{
	for (int round = 0; round < 1500; round++) {
		struct policy *p, *copy;
		struct reachindex *x;

		cr_assert_eq(policy_new(&p), 0);
		for (unsigned n = roll(25); n > 0; n--)
			random_rule(p);
		cr_assert_eq(policy_copy(p, &copy), 0);
		cr_assert_eq(reachindex_new(copy, &x), 0);
		compare(p, x, "/");
		compare_exceptions(p);
		for (int k = 0; k < 30; k++) {
			char path[128];
			random_path(path, 5, false);
			compare(p, x, path);
		}
		reachindex_free(x);
		policy_free(p);
		policy_free(copy);
	}
}
