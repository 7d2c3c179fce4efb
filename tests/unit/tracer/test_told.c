#include "tracer/told.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char dir[] = "/tmp/warder-told-XXXXXX";

static void set_up(void)
{
	cr_assert(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
}

static void tear_down(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(chdir("/"), 0);
	cr_assert_eq(system(command), 0);
}

TestSuite(told, .init = set_up, .fini = tear_down);

/* 40 directories of that name, each in the other: the innermost. A neighbour beside each. */
static int go_deep(const char *name)
{
	int fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < 40; i++) {
		cr_assert_eq(mkdirat(fd, "beside", 0755), 0);
		cr_assert_eq(mkdirat(fd, name, 0755), 0);
		int next = openat(fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	return fd;
}

Test(told, longer_than_a_path_can_be)
{
	char name[] = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
		      "nnnnnnnn"
		      "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn";
	char *text AUTOFREE = NULL, *file AUTOFREE = NULL;
	char *want AUTOFREE = NULL;
	size_t len;
	FILE *f = open_memstream(&want, &len);
	int deep AUTOCLOSE = go_deep(name);

	fputs(dir, f);
	for (int i = 0; i < 40; i++)
		fprintf(f, "/%s", name);
	fclose(f);
	cr_assert_gt(len, (size_t)PATH_MAX);
	cr_assert_eq(told_of(deep, -1, "", &text), 0);
	cr_expect_str_eq(text, want);
	cr_assert_eq(told_of(-1, deep, "x", &file), 0);
	cr_expect(strncmp(file, want, len) == 0 && strcmp(file + len, "/x") == 0);
}

Test(told, nothing_is_known)
{
	char *text = NULL;

	cr_expect_eq(told_of(-1, -1, "x", &text), 0);
	cr_expect_null(text);
	cr_expect_eq(told_of(987, -1, "", &text), 0);
	cr_expect_null(text);
}

Test(told, as_the_kernel_says)
{
	char *text AUTOFREE = NULL;
	int fd AUTOCLOSE = open("gone", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	cr_assert_eq(unlink("gone"), 0);
	cr_assert_eq(told_of(fd, -1, "", &text), 0);
	cr_expect(strncmp(text, dir, strlen(dir)) == 0 &&
			  strcmp(text + strlen(dir), "/gone (deleted)") == 0,
		  "%s", text);
}
