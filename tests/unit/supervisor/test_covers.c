/* covers, and what else asks a policy of many thousand rules about each of them. */
#include "supervisor/covers.h"
#include "supervisor/guard.h"
#include "supervisor/policy.h"
#include "supervisor/reachindex.h"
#include "supervisor/rulehistory.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Allows beside patterns that refuse, each with a beginning and a number. */
static struct policy *policy_of_patterns(const char *allow, const char *deny)
{
	char path[64];
	struct policy *p;
	cr_assert_eq(policy_new(&p), 0);
	for (int i = 0; i < MANY / 2; i++) {
		snprintf(path, sizeof(path), "/nonexistent%s%d", allow, i);
		add(p, EFFECT_ALLOW, RULE_TREE, ACCESS_READ, path);
		snprintf(path, sizeof(path), "/nonexistent%s%d/*.key", deny, i);
		add(p, EFFECT_DENY, RULE_GLOB, ACCESS_READ, path);
	}
	return p;
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

/* What is asked of each rule, and of each directory that one begins at, before a command runs. */
static void ask_of_each(const struct policy *p)
{
	struct reachindex *x;
	struct reach reach;
	const struct rule **glob;
	size_t globs;
	cr_assert_eq(reachindex_new(p, &x), 0);
	for (size_t i = 0; i < policy_len(p); i += 2) {
		const char *dir = policy_at(p, i)->path;
		cr_assert_eq(policy_decide(p, dir, ACCESS_READ).effect, EFFECT_ALLOW);
		reachindex_of(x, dir, &reach);
		reachindex_uniform(x, dir, ACCESS_READ);
		reachindex_allowed_below(x, dir, ACCESS_WRITE);
		cr_assert_eq(reachindex_allowing_globs(x, dir, ACCESS_READ, &glob, &globs), 0);
		free(glob);
	}
	reachindex_free(x);
}

Test(covers, many_patterns_are_not_compared_with_all, .timeout = 60)
{
	static const char *const rows[][2] = {
		{"/a", "/a"},	  /* each is in the allow of its number */
		{"/a", "/b"},	  /* none is in any */
		{"/a/b", "/a/c"}, /* nor here, where they are about directories of one */
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct policy *p = policy_of_patterns(rows[i][0], rows[i][1]);
		struct guard *g;
		ask_of_each(p);
		cr_assert_eq(guard_new(p, &g), 0);
		guard_free(g);
		policy_free(p);
	}
}

/* The first wild part tells nothing: all that begins alike is gone through by what comes behind. */
Test(covers, patterns_with_several_wild_parts, .timeout = 60)
{
	char path[64];
	struct policy *p;
	bool *exception;
	cr_assert_eq(policy_new(&p), 0);
	for (int i = 0; i < MANY / 2; i++) {
		snprintf(path, sizeof(path), "/nonexistent/m/b%d", i);
		add(p, EFFECT_ALLOW, RULE_TREE, ACCESS_READ, path);
		snprintf(path, sizeof(path), "/nonexistent/*/a%d*/x", i);
		add(p, EFFECT_DENY, RULE_GLOB, ACCESS_READ, path);
	}
	add(p, EFFECT_DENY, RULE_GLOB, ACCESS_READ, "/nonexistent/*/b77*/x");
	cr_assert_eq(reach_exceptions(p, &exception), 0);
	for (size_t i = 0; i < MANY; i++)
		cr_assert_not(exception[i]);
	cr_expect(exception[MANY]);
	free(exception);
	policy_free(p);
}

/* The file is read once, not for each of its rules. */
Test(covers, the_day_of_each_of_many_rules, .timeout = 60)
{
	enum { LINES = 30000, ROUNDS = 20 };
	char path[] = "/tmp/warder-covers-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	struct rulehistory_days days = {0};
	struct rule rule = {.origin = path, .source = RULE_USER};
	cr_assert_not_null(f);
	for (int i = 1; i <= LINES; i++)
		fprintf(f, i % 2 ? "allow r /a%d  # 20%02d-01-31\n" : "allow r /a%d\n", i, i % 100);
	cr_assert_eq(fclose(f), 0);
	for (int round = 0; round < ROUNDS; round++)
		for (unsigned i = 1; i <= LINES; i++) {
			char want[32];
			rule.line = i;
			const char *since = rulehistory_since(&days, &rule);
			snprintf(want, sizeof(want), "20%02u-01-31", i % 100);
			cr_assert(i % 2 ? !strcmp(since, want)
					: strstr(since, " or before") != NULL,
				  "%u: %s", i, since);
		}
	rule.line = LINES + 7;
	cr_expect(strstr(rulehistory_since(&days, &rule), " or before"));
	cr_expect_eq(unlink(path), 0);
	rule.origin = "/nonexistent/policy";
	cr_expect_str_eq(rulehistory_since(&days, &rule), "");
	rulehistory_days_release(&days);
}
