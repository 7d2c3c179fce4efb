#include "supervisor/budget.h"

#include "supervisor/access.h"

#include <criterion/criterion.h>
#include <stdio.h>

static void add(struct budget *b, unsigned n, const char *fmt, uint32_t access)
{
	char path[64];
	for (unsigned i = 0; i < n; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(path, sizeof(path), fmt, i);
#pragma GCC diagnostic pop
		cr_assert_eq(budget_add(b, path, access), 0);
	}
}

static void expect(const struct budget *b, const char *path, uint32_t access, size_t want)
{
	size_t got = budget_spent(b, path, access, "/home/u");
	cr_expect_eq(got, want, "%s: %zu", path, got);
}

Test(budget, the_deepest_directory_that_was_asked_about_often)
{
	struct budget b = {0};
	add(&b, BUDGET_MAX - 1, "/srv/t/a/%u", ACCESS_READ);
	expect(&b, "/srv/t/a/x", ACCESS_READ, 0);
	add(&b, 1, "/srv/t/a/sub/%u", ACCESS_LIST);
	expect(&b, "/srv/t/a/x", ACCESS_READ, strlen("/srv/t/a"));
	expect(&b, "/srv/t/a/sub/y/z", ACCESS_READ, strlen("/srv/t/a"));
	expect(&b, "/srv/t/b/x", ACCESS_READ, strlen("/srv/t"));
	expect(&b, "/srv/tt/x", ACCESS_READ, 0);
	expect(&b, "/srv/t/a/x", ACCESS_WRITE, 0);
	budget_release(&b);
}

Test(budget, never_what_is_too_wide)
{
	struct budget b = {0};
	add(&b, 40, "/home/u/.rc%u", ACCESS_READ);
	add(&b, 40, "/home/u/.config/p%u/f", ACCESS_READ);
	add(&b, 40, "/etc/f%u", ACCESS_READ);
	add(&b, 40, "/proc/7/task/%u", ACCESS_READ);
	expect(&b, "/home/u/.x", ACCESS_READ, 0);
	expect(&b, "/home/u/.config/q/f", ACCESS_READ, 0);
	expect(&b, "/etc/x", ACCESS_READ, 0);
	expect(&b, "/proc/7/task/x", ACCESS_READ, 0);
	budget_release(&b);
}

Test(budget, old_answers_are_forgotten)
{
	struct budget b = {0};
	add(&b, BUDGET_MAX, "/srv/t/%u", ACCESS_READ);
	expect(&b, "/srv/t/x", ACCESS_READ, strlen("/srv/t"));
	add(&b, BUDGET_KEPT, "/home/u/.rc%u", ACCESS_READ);
	expect(&b, "/srv/t/x", ACCESS_READ, 0);
	budget_release(&b);
}
