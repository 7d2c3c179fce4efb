/* Hunks that say what changed, held against diff -u where there is room to be different. */
#include "agent/diff.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <string.h>

struct row {
	const char *a, *b, *diff;
	size_t added, removed;
};

static const struct row rows[] = {
	{"", "", "", 0, 0},
	{"same\n", "same\n", "", 0, 0},
	{"", "one\ntwo\n", "@@ -0,0 +1,2 @@\n+one\n+two\n", 2, 0},
	{"one\n", "", "@@ -1 +0,0 @@\n-one\n", 0, 1},
	{"a\nb\nc\n", "a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", 1, 1},
	{"x", "x\n", "@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n", 1, 1},
	/* What moved is one line out and one in, not everything. */
	{"a\nb\nc\nd\n", "b\nc\nd\na\n", "@@ -1,4 +1,4 @@\n-a\n b\n c\n d\n+a\n", 1, 1},
	/* Far apart: two hunks; the context of each is three lines. */
	{"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", "one\n2\n3\n4\n5\n6\n7\n8\n9\nten\n",
	 "@@ -1,4 +1,4 @@\n-1\n+one\n 2\n 3\n 4\n@@ -7,4 +7,4 @@\n 7\n 8\n 9\n-10\n+ten\n", 2, 2},
	/* Near each other: one. */
	{"1\n2\n3\n4\n5\n6\n7\n8\n", "one\n2\n3\n4\n5\n6\n7\neight\n",
	 "@@ -1,8 +1,8 @@\n-1\n+one\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+eight\n", 2, 2},
};

Test(diff, hunks_say_what_changed)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct diff_count n;
		struct buf out = {0};
		cr_assert_eq(diff_write(&out, r->a, strlen(r->a), r->b, strlen(r->b), 1000, &n), 0);
		cr_expect_str_eq(buf_str(&out), r->diff, "row %zu:\n%s", i, buf_str(&out));
		cr_expect_eq(n.added, r->added, "row %zu", i);
		cr_expect_eq(n.removed, r->removed, "row %zu", i);
		buf_free(&out);
	}
}

/* Too many different lines for the table: told as one replacement, and cut, which is said. */
Test(diff, huge_changes_are_bounded)
{
	struct buf a = {0}, b = {0}, out = {0};
	struct diff_count n;
	for (int i = 0; i < 5000; i++) {
		buf_addf(&a, "old %d\n", i);
		buf_addf(&b, "new %d\n", i);
	}
	cr_assert_eq(diff_write(&out, a.data, a.len, b.data, b.len, 1000, &n), 0);
	cr_expect_eq(n.added, 5000);
	cr_expect_eq(n.removed, 5000);
	cr_expect_leq(out.len, 1100);
	cr_expect(strstr(buf_str(&out), " more lines ...]\n"));
	buf_free(&a);
	buf_free(&b);
	buf_free(&out);
}
