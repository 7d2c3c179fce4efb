/* What Tab adds and what it lists, in a directory of the test's own. */
#include "agent/complete.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static void enter(void)
{
	static const char *const names[] = {"alpha", "alpine", "beta one",     ".hidden",
					    "漢字",  "漢語",   "evil\033[2Jx", "bad\xff"};
	strcpy(dir, "/tmp/warder-complete-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	cr_assert_eq(mkdir("sub", 0755), 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		close(open(names[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	close(open("sub/inner", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	cr_assert_eq(setenv("HOME", dir, 1), 0);
}

static void leave(void)
{
	char command[128];
	cr_assert_eq(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(complete, .init = enter, .fini = leave, .timeout = 30);

Test(complete, words_and_paths)
{
	static const char *const words[] = {"/model", "/models", "/usage", NULL};
	static const struct {
		const char *line, *insert, *list;
	} rows[] = {
		{"/us", "age ", ""},
		{"/mod", "el", ""},
		{"/model", "", "/model  /models \n"},
		{"say /us", "r/", ""}, /* not at the beginning: a path */
		{"look at al", "p", ""},
		{"look at alp", "", "alpha  alpine \n"},
		{"alph", "a ", ""},
		{"s", "ub/", ""},
		{"sub/", "inner ", ""},
		{"~/sub/in", "ner ", ""},
		{"first line\nbet", "a one ", ""},
		{".h", "idden ", ""},
		/* Not in the middle of a character. */
		{"漢", "", "漢字  漢語 \n"},
		/* Names that would move the terminal, or are no text, are no candidates. */
		{"ev", "", ""},
		{"bad", "", ""},
		{"nothing", "", ""},
		{"absent/x", "", ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf insert = {0}, list = {0};
		cr_assert_eq(
			complete_word(rows[i].line, strlen(rows[i].line), words, &insert, &list),
			0);
		cr_expect_str_eq(buf_str(&insert), rows[i].insert, "%s", rows[i].line);
		cr_expect_str_eq(buf_str(&list), rows[i].list, "%s", rows[i].line);
		buf_free(&insert);
		buf_free(&list);
	}
}
