/* covers, and what else asks a policy of many thousand rules about each of them. */
#include "supervisor/covers.h"
#include "supervisor/guard.h"
#include "supervisor/policy.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define MANY 60000

static void add(struct policy *p, enum effect effect, enum rule_kind kind, uint32_t access,
		const char *path)
{
	const struct rule rule = {.effect = effect,
				  .kind = kind,
				  .access = access,
				  .source = RULE_USER,
				  .path = (char *)path,
				  .origin = (char *)"test"};
	cr_assert_eq(policy_add(p, &rule), 0, "%s", path);
}

static struct policy *policy_of_many(const char *end, enum rule_kind kind)
{
	char path[64];
	struct policy *p;
	cr_assert_eq(policy_new(&p), 0);
	for (int i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "/nonexistent/a%d%s%s", i / 2, end, i % 2 ? "/x" : "");
		add(p, i % 2 ? EFFECT_ALLOW : EFFECT_DENY, kind, ACCESS_READ, path);
	}
	return p;
}

Test(covers, at_a_path_and_above_it, .timeout = 10)
{
	static const struct {
		const char *path;
		uint32_t access;
		bool want;
	} rows[] = {
		{"/a", ACCESS_READ, true},	{"/a/b/c", ACCESS_READ, true},
		{"/a", ACCESS_WRITE, true},	{"/a/b", ACCESS_EXEC, false},
		{"/ab", ACCESS_READ, false},	{"/", ACCESS_READ, false},
		{"/c/d/e", ACCESS_EXEC, false}, {"/c", ACCESS_EXEC, false},
		{"/c/*", ACCESS_EXEC, false},
	};
	struct covers c = {0};
	cr_expect_not(covers_any(&c, "/a", ACCESS_READ));
	cr_assert_eq(covers_add(&c, "/a", ACCESS_READ), 0);
	cr_assert_eq(covers_add(&c, "/d/e", ACCESS_READ), 0);
	cr_assert_eq(covers_add(&c, "/a", ACCESS_WRITE), 0);
	covers_settle(&c);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(covers_any(&c, rows[i].path, rows[i].access), rows[i].want, "%s",
			     rows[i].path);
	cr_assert_eq(covers_add(&c, "/", ACCESS_LIST), 0);
	covers_settle(&c);
	cr_expect(covers_any(&c, "/", ACCESS_LIST));
	cr_expect(covers_any(&c, "/x/y", ACCESS_LIST));
	cr_expect(covers_any(&c, "/a/y", ACCESS_READ));
	covers_release(&c);
}

/* Each against all would be minutes. */
Test(covers, many_rules_are_known_one_by_one, .timeout = 30)
{
	static const enum rule_kind kinds[] = {RULE_TREE, RULE_GLOB};
	static const char *const ends[] = {"", "*"};
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		struct policy *p = policy_of_many(ends[k], kinds[k]);
		for (size_t i = 0; i < policy_len(p); i++) {
			struct rule other = *policy_at(p, i);
			cr_assert(policy_has(p, &other));
			other.access = ACCESS_WRITE;
			cr_assert_not(policy_has(p, &other));
		}
		policy_free(p);
	}
}

Test(covers, a_guard_of_many_rules, .timeout = 30)
{
	struct policy *p = policy_of_many("", RULE_TREE);
	struct guard *g;
	cr_assert_eq(guard_new(p, &g), 0);
	guard_free(g);
	policy_free(p);
}
