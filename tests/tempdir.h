/*
 * A directory of a test's own: made and entered before it, removed with all that is in it after.
 */
#pragma once

#include <criterion/criterion.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ret: its path, without symlinks. */
static inline void tempdir_enter(char ret[PATH_MAX])
{
	char template[] = "/tmp/warder-unit-XXXXXX";
	cr_assert_not_null(mkdtemp(template));
	cr_assert_not_null(realpath(template, ret));
	cr_assert_eq(chdir(ret), 0);
}

static inline int tempdir_remove_one(const char *path, const struct stat *st, int type,
				     struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void tempdir_leave(const char *dir)
{
	cr_assert_eq(chdir("/"), 0);
	nftw(dir, tempdir_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void tempdir_file(const char *name, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static inline void tempdir_file(const char *name, const char *fmt, ...)
{
	FILE *f = fopen(name, "we");
	cr_assert_not_null(f, "%s", name);
	va_list ap;
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	fclose(f);
}
