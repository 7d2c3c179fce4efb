#include "supervisor/judge.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/stat.h>

static struct policy *policy_with(const struct rule *rules, size_t n)
{
	struct policy *p;
	cr_assert_eq(policy_new(&p), 0);
	for (size_t i = 0; i < n; i++) {
		struct rule rule = rules[i];
		rule.origin = (char *)"test";
		cr_assert_eq(policy_add(p, &rule), 0);
	}
	return p;
}

static const struct rule rules[] = {
	{.effect = EFFECT_ALLOW, .access = ACCESS_ALL, .path = (char *)"/open"},
	{.effect = EFFECT_ALLOW, .access = ACCESS_READ, .path = (char *)"/read"},
	{.effect = EFFECT_DENY, .access = ACCESS_WRITE, .path = (char *)"/read"},
	{.effect = EFFECT_FORBID, .access = ACCESS_ALL, .path = (char *)"/never"},
};

Test(judge, the_hardest_word_on_a_path)
{
	static const struct {
		const char *path;
		uint32_t access, once;
		enum effect effect;
		uint32_t asked;
	} rows[] = {
		{"/open/x", ACCESS_READ | ACCESS_WRITE, 0, EFFECT_ALLOW, 0},
		{"/read/x", ACCESS_READ, 0, EFFECT_ALLOW, 0},
		{"/read/x", ACCESS_READ | ACCESS_CREATE, 0, EFFECT_ASK, ACCESS_CREATE},
		{"/read/x", ACCESS_WRITE | ACCESS_CREATE, 0, EFFECT_DENY,
		 ACCESS_WRITE | ACCESS_CREATE},
		{"/read/x", ACCESS_WRITE | ACCESS_CREATE, ACCESS_WRITE, EFFECT_ASK, ACCESS_CREATE},
		{"/else", ACCESS_READ, ACCESS_READ, EFFECT_ALLOW, 0},
		{"/never/x", ACCESS_READ, ACCESS_READ, EFFECT_FORBID, ACCESS_READ},
		{"/else", 0, 0, EFFECT_ALLOW, 0},
	};
	struct policy *p = policy_with(rules, ARRAY_LEN(rules));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t asked;
		struct decision d =
			judge_path(p, rows[i].path, rows[i].access, rows[i].once, &asked);
		cr_expect_eq(d.effect, rows[i].effect, "%zu", i);
		cr_expect_eq(asked, rows[i].asked, "%zu", i);
	}
	policy_free(p);
}

Test(judge, what_a_move_would_gain)
{
	struct policy *p = policy_with(rules, ARRAY_LEN(rules));
	/* Asked about where it is, allowed where it goes; of the kinds that such a thing has. */
	uint32_t file = judge_gained(p, "/else", "/open/x", S_IFREG, 0);
	cr_expect_eq(file, ACCESS_READ | ACCESS_WRITE | ACCESS_EXEC | ACCESS_META);
	cr_expect(judge_gained(p, "/else", "/open/x", S_IFCHR, 0) & ACCESS_IOCTL);
	cr_expect_eq(judge_gained(p, "/else", "/open/x", S_IFREG, ACCESS_READ),
		     file & ~ACCESS_READ);
	cr_expect_eq(judge_gained(p, "/open/x", "/open/y", S_IFREG, 0), 0u);
	cr_expect_eq(judge_gained(p, "/open/x", "/else", S_IFREG, 0), 0u);
	cr_expect_eq(judge_gained(p, "/else", "/read/x", S_IFREG, 0), ACCESS_READ);
	policy_free(p);
}

Test(judge, what_comes_after_the_wall)
{
	cr_expect(judge_meets_the_wall(0) && judge_meets_the_wall(3));
	cr_expect(judge_meets_the_wall(-ENOTEMPTY) && judge_meets_the_wall(-ENOEXEC));
	cr_expect(!judge_meets_the_wall(-ENOENT) && !judge_meets_the_wall(-EEXIST));
}

Test(judge, a_habit_is_moot)
{
	struct rule rule = {.effect = EFFECT_DENY, .source = RULE_PRESET, .access = ACCESS_W};
	cr_expect(judge_is_moot(&rule));
	rule.access |= ACCESS_READ;
	cr_expect(!judge_is_moot(&rule) && !judge_is_moot(NULL));
}
