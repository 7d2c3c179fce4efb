#include "supervisor/tracepolicy.h"
#include "supervisor/tracewords.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static const struct rule rules[] = {
	{.effect = EFFECT_FORBID,
	 .kind = RULE_TREE,
	 .source = RULE_BUILTIN,
	 .access = ACCESS_ALL,
	 .path = (char *)"/home/u/.config/warder",
	 .origin = (char *)"warder's own files"},
	{.effect = EFFECT_ALLOW,
	 .kind = RULE_EXACT,
	 .source = RULE_PRESET,
	 .access = ACCESS_READ | ACCESS_IOCTL,
	 .path = (char *)"/dev/a b\"#'\\*?\n\xff\x1b",
	 .origin = (char *)"preset system",
	 .line = 12},
	{.effect = EFFECT_DENY,
	 .kind = RULE_GLOB,
	 .source = RULE_PROJECT,
	 .access = ACCESS_R,
	 .path = (char *)"/w/**/x?\\*.env",
	 .origin = (char *)"/home/u/p\xff.policy",
	 .line = 1},
	{.effect = EFFECT_ASK,
	 .kind = RULE_GLOB_EXACT,
	 .source = RULE_LINE,
	 .access = ACCESS_W,
	 .path = (char *)"/w/*/hooks",
	 .origin = (char *)"command line"},
	{.effect = EFFECT_ASK,
	 .kind = RULE_TREE,
	 .source = RULE_PRESET,
	 .access = ACCESS_W,
	 .path = (char *)"/w/.git/config",
	 .origin = (char *)"preset project",
	 .sensitive = true},
	{.effect = EFFECT_ALLOW,
	 .kind = RULE_TREE,
	 .source = RULE_ANSWER,
	 .access = ACCESS_R | ACCESS_X,
	 .path = (char *)"/",
	 .origin = (char *)"answer"},
};

static void expect_same(const struct rule *a, const struct rule *b)
{
	cr_expect(a->sensitive || a->effect == b->effect, "%s", a->path);
	cr_expect_eq(a->kind, b->kind, "%s", a->path);
	cr_expect_eq(a->source, b->source, "%s", a->path);
	cr_expect_eq(a->access, b->access, "%s", a->path);
	cr_expect_str_eq(a->path, b->path);
	cr_expect_str_eq(a->origin, b->origin);
	cr_expect_eq(a->line, b->line, "%s", a->path);
	cr_expect_eq(a->sensitive, b->sensitive, "%s", a->path);
}

Test(tracepolicy, every_rule_comes_back)
{
	struct policy *p, *q;
	struct policy_error why;
	struct buf text = {0}, again = {0};
	cr_assert_eq(policy_new(&p), 0);
	cr_assert_eq(policy_new(&q), 0);
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		cr_assert_eq(policy_add(p, &rules[i]), 0, "%zu", i);
	cr_assert_eq(tracepolicy_write(p, &text), 0);
	int err = tracepolicy_read(buf_str(&text), q, &why);
	cr_assert_eq(err, 0, "%s", err ? why.text : "");
	cr_assert_eq(policy_len(q), ARRAY_LEN(rules));
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		expect_same(policy_at(p, i), policy_at(q, i));
	cr_assert_eq(tracepolicy_write(q, &again), 0);
	cr_expect_str_eq(buf_str(&text), buf_str(&again));
	buf_free(&text);
	buf_free(&again);
	policy_free(p);
	policy_free(q);
}

Test(tracepolicy, what_is_none_is_told)
{
	static const char *const texts[] = {"{\"rules\":[{}]}",
					    "{\"rules\":[{\"rule\":\"alow /x\"}]}",
					    "{\"rules\":[{\"rule\":\"allow r x\"}]}"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct policy *p;
		struct policy_error why = {""};
		cr_assert_eq(policy_new(&p), 0);
		int err = tracepolicy_read(texts[i], p, &why);
		/* A preset's relative path is left out where there is no project. */
		cr_expect_eq(err, i == 2 ? 0 : -EINVAL, "%s", texts[i]);
		cr_expect_eq(policy_len(p), 0u);
		cr_expect(i == 2 || why.text[0], "%s", texts[i]);
		policy_free(p);
	}
}

Test(tracewords, every_access_has_its_word)
{
	char words[TRACEWORDS_MAX];
	for (uint32_t access = 0; access <= ACCESS_ALL; access++) {
		tracewords_format(access, words);
		cr_assert_lt(strlen(words), sizeof words);
		cr_assert_eq(tracewords_access(words), access, "%s", words);
	}
	cr_expect_eq(tracewords_access(NULL), 0u);
	cr_expect_eq(tracewords_access("read,of a later version,write"),
		     ACCESS_READ | ACCESS_WRITE);
	enum answered_by by = BY_NONE;
	cr_expect(tracewords_parse_by("yes", &by) && by == BY_YES);
	cr_expect(tracewords_parse_by("policy", &by) && by == BY_POLICY);
	cr_expect(!tracewords_parse_by("nobody", &by) && !tracewords_parse_by(NULL, &by));
}
