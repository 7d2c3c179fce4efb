/* foldname: rather once too often than once too seldom. */
#include "supervisor/foldname.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <string.h>

Test(foldname, alike, .timeout = 10)
{
	static const struct {
		const char *a, *b;
		bool is;
	} rows[] = {
		{".git", ".git", true},
		{".git", ".GIT", true},
		{".git", ".gi", false},
		{".git", "xgit", false},
		{"", "", true},
		{"", "a", false},
		{"\xe2\x80\x8c.git", ".git", true},
		{".git\xe2\x80\x8c", ".git", true},
		{"\xe2\x84\xaa"
		 "ey",
		 "key", true}, /* U+212A, the kelvin sign */
		{"key",
		 "\xe2\x84\xaa"
		 "ey",
		 true},
		{"\xc3\xa4", "\xc3\x84", true},
		{"\xc3\xa4", "ab", false},
		{"\xe6\x97\xa5\xe6\x9c\xac", "README", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(
			foldname_alike(rows[i].a, strlen(rows[i].a), rows[i].b, strlen(rows[i].b)),
			rows[i].is, "%s %s", rows[i].a, rows[i].b);
}

/* The longest names, all foreign: no more than a moment. */
Test(foldname, bounded, .timeout = 5)
{
	char a[NAME_MAX + 2], b[NAME_MAX + 2];

	memset(a, 0xc3, sizeof(a));
	memset(b, 'a', sizeof(b));
	for (int i = 0; i < 100; i++)
		foldname_alike(a, NAME_MAX, b, NAME_MAX);
	cr_expect_not(foldname_alike(a, NAME_MAX + 1, a, NAME_MAX + 1));
}

Test(foldname, relations, .timeout = 10)
{
	static const struct {
		const char *path, *of;
		enum foldname_relation is;
	} rows[] = {
		{"/p/.git", "/p/.git/hooks", FOLDNAME_ABOVE},
		{"/p/.GIT", "/p/.git/hooks", FOLDNAME_ABOVE},
		{"/p/.git/hooks", "/p/.git/hooks", FOLDNAME_AT},
		{"/p/.git/Hooks", "/p/.git/hooks", FOLDNAME_ALIKE},
		{"/p/.Git/hooks", "/p/.git/hooks", FOLDNAME_ALIKE},
		{"/p/.git/hooks/x", "/p/.git/hooks", FOLDNAME_FREE},
		{"/p/.gi", "/p/.git/hooks", FOLDNAME_FREE},
		{"/\xc3\xa4/.git", "/p/.git/hooks", FOLDNAME_FREE},
		{"/", "/p", FOLDNAME_ABOVE},
		{"/", "/", FOLDNAME_AT},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(foldname_relation(rows[i].path, rows[i].of), rows[i].is, "%s %s",
			     rows[i].path, rows[i].of);
}
