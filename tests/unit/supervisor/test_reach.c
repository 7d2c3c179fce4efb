/* reach: which rules could speak of a path or of what is below it. */
#include "supervisor/reach.h"

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
