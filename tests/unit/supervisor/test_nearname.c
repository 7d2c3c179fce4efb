#include "supervisor/nearname.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <string.h>

Test(nearname, distance)
{
	static const struct {
		const char *a, *b;
		unsigned want; /* 3: more than two */
	} rows[] = {
		{"node", "node", 0},	 {"nodee", "node", 1}, {"noed", "node", 1},
		{"nde", "node", 1},	 {"node", "", 3},      {"rsut", "rust", 1},
		{"pyhton", "python", 1}, {"", "", 0},	       {"go", "gh", 1},
		{"abc", "xyz", 3},	 {"src", "Src", 1},    {"kitten", "sitting", 3},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cr_expect_eq(nearname_distance(rows[i].a, rows[i].b, 2), rows[i].want, "%s %s: %u",
			     rows[i].a, rows[i].b, nearname_distance(rows[i].a, rows[i].b, 2));
		cr_expect_eq(nearname_distance(rows[i].b, rows[i].a, 2), rows[i].want);
	}
	char longer[400];
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	cr_expect_eq(nearname_distance(longer, longer + 1, 2), 3);
	cr_expect_eq(nearname_distance(longer + 144, longer + 145, 2), 1);
}

Test(nearname, the_nearest_is_meant)
{
	static const char *const there[] = {"git",  "go",     "gh",	 "java",
					    "node", "python", "project", NULL};
	static const struct {
		const char *word, *want;
	} rows[] = {
		{"nodee", "; did you mean '--node'?"},
		{"gi", ""},
		{"gti", "; did you mean '--git'?"},
		{"projects", "; did you mean '--project'?"},
		{"xy", ""},
		{"perl", ""},
		{"", ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct nearname n = nearname_begin(rows[i].word);
		struct buf out = {0};
		for (const char *const *c = there; *c; c++)
			nearname_try(&n, *c);
		nearname_add(&out, &n, "--");
		cr_expect_str_eq(buf_str(&out), rows[i].want, "%s: %s", rows[i].word,
				 buf_str(&out));
		buf_free(&out);
	}
}
