/* reach: which rules could speak of a path or of what is below it. */
#include "supervisor/reach.h"

#include "supervisor/glob.h"

#include <criterion/criterion.h>

Test(reach, a_rule_concerns_a_path)
{
	static const struct {
		enum rule_kind kind;
		const char *rule, *path;
		bool concerns, below;
	} rows[] = {
		{RULE_TREE, "/a/b", "/a/b", true, false},
		{RULE_TREE, "/a/b", "/a/b/c", true, false},
		{RULE_TREE, "/a/b", "/a", true, true},
		{RULE_TREE, "/a/b", "/a/bc", false, false},
		{RULE_EXACT, "/a/b", "/a/b", true, false},
		{RULE_EXACT, "/a/b", "/a/b/c", false, false},
		{RULE_EXACT, "/a/b", "/", true, true},
		{RULE_GLOB, "/a/x??", "/a", true, true},
		{RULE_GLOB, "/a/x??", "/a/xyz", true, false},
		{RULE_GLOB, "/a/x??", "/a/xyz/deep", true, false},
		{RULE_GLOB, "/a/x??", "/a/y", false, false},
		{RULE_GLOB, "/a/x?/c", "/a/y", false, false},
		{RULE_GLOB, "/a/x?/c", "/a/xy", true, true},
		{RULE_GLOB, "/a/*/c", "/a/y", true, true},
		{RULE_GLOB, "/a/\\*x", "/a/y", true, false},
		{RULE_GLOB, "/a/**/c", "/a/y/z", true, true},
		{RULE_GLOB_EXACT, "/a/x??", "/a/xyz/deep", false, false},
		{RULE_GLOB_EXACT, "/a/x??", "/a/xyz", true, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rule r = {.kind = rows[i].kind, .path = (char *)rows[i].rule};
		cr_expect_eq(reach_rule_concerns(&r, rows[i].path), rows[i].concerns, "%s of %s",
			     rows[i].rule, rows[i].path);
		cr_expect_eq(reach_rule_below(&r, rows[i].path), rows[i].below, "%s below %s",
			     rows[i].rule, rows[i].path);
	}
}

Test(reach, two_patterns_meet)
{
	static const struct {
		const char *a, *b;
		bool a_tree, b_tree, meet;
	} rows[] = {
		{"/h/.ss?", "/h/.ssh", true, true, true},
		{"/h/.ss?", "/h/.ssl/x", true, true, true},
		{"/h/.ss?", "/h/.ssl/x", false, true, false},
		{"/h/.ss?", "/h/.sshd", true, true, false},
		{"/h/**", "/h/.ssh/id", true, true, true},
		{"/**/id", "/h/.ssh", true, true, true},
		{"/**/id", "/h/.ssh", true, false, false},
		{"/**/a/**/b", "/x/**/a/b", false, false, true},
		{"/h/.b*_hist*", "/h/.*_history", true, true, true},
		{"/h/.b*", "/h/c*", true, true, false},
		{"/h/*a", "/h/*b", true, true, false},
		{"/h/*a", "/h/b*", true, true, true},
		{"/h/a*b*c", "/h/*x*", true, true, true},
		{"/h/a?c", "/h/a*d", true, true, false},
		{"/h/\\*", "/h/a*", true, true, false},
		{"/h/\\**", "/h/?x", true, true, true},
		{"/h/*/x", "/h/y", false, true, true},
		{"/h/*/x", "/i/**", false, true, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct glob *a, *b;
		cr_assert_eq(glob_new(rows[i].a, rows[i].a_tree, &a), 0);
		cr_assert_eq(glob_new(rows[i].b, rows[i].b_tree, &b), 0);
		cr_expect_eq(glob_meets(a, rows[i].a_tree, b, rows[i].b_tree), rows[i].meet,
			     "%s and %s", rows[i].a, rows[i].b);
		cr_expect_eq(glob_meets(b, rows[i].b_tree, a, rows[i].a_tree), rows[i].meet,
			     "%s and %s", rows[i].b, rows[i].a);
		glob_free(a);
		glob_free(b);
	}
}
