/* dirwalk: no symlink is followed, no bound passed. */
#include "supervisor/dirwalk.h"
#include "supervisor/rmtree.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static char top[64];

static const char *in_top(const char *name)
{
	static char path[2][256];
	static unsigned next;
	char *p = path[next++ % 2];

	snprintf(p, sizeof(path[0]), "%s/%s", top, name);
	return p;
}

static void make(void)
{
	strcpy(top, "/tmp/warder-dirwalk-XXXXXX");
	cr_assert_not_null(mkdtemp(top));
	cr_assert_eq(mkdir(in_top("a"), 0755), 0);
	cr_assert_eq(mkdir(in_top("a/b"), 0755), 0);
	cr_assert_eq(mknod(in_top("a/f"), S_IFREG | 0600, 0), 0);
	cr_assert_eq(mknod(in_top("a/b/g"), S_IFREG | 0600, 0), 0);
	cr_assert_eq(symlink("a", in_top("link")), 0);
}

static void clear(void)
{
	cr_expect_eq(rmtree_remove(top), 0);
}

Test(dirwalk, opens_no_symlinks, .init = make, .fini = clear, .timeout = 10)
{
	static const struct {
		const char *name;
		int error;
	} rows[] = {
		{"a/b/g", 0},	    {"a/b/", 0},	 {"link", -ELOOP},
		{"link/f", -ELOOP}, {"a/f/x", -ENOTDIR}, {"a/none", -ENOENT},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct stat st, same;
		int fd AUTOCLOSE = dirwalk_open(in_top(rows[i].name), &st);
		cr_expect_eq(fd < 0 ? fd : 0, rows[i].error, "%s: %d", rows[i].name, fd);
		cr_expect(fd < 0 || (!fstat(fd, &same) && same.st_ino == st.st_ino));
	}
}

struct seen {
	unsigned n;
	bool link, deep;
	int answer;
};

static int note(void *arg, struct dirwalk *w, int fd, const struct stat *st)
{
	struct seen *s = arg;

	s->n++;
	s->link = s->link || strstr(w->path, "link");
	s->deep = s->deep || strcmp(w->path, in_top("a/b/g")) == 0;
	if (s->answer)
		return s->answer;
	return S_ISDIR(st->st_mode) ? dirwalk_children(w, fd, st, note, s) : 0;
}

static int walk(const char *path, uint64_t left, struct dirwalk *w, struct seen *s)
{
	struct stat st;
	int fd AUTOCLOSE = dirwalk_open(path, &st);

	cr_assert(fd >= 0);
	cr_assert_eq(dirwalk_init(w, path, left), 0);
	return dirwalk_children(w, fd, &st, note, s);
}

Test(dirwalk, walks, .init = make, .fini = clear, .timeout = 10)
{
	static struct dirwalk w;
	struct seen s = {0};

	cr_expect_eq(walk(top, 100, &w, &s), 0);
	cr_expect_eq(s.n, 4); /* a, f, b, g */
	cr_expect(s.deep);
	cr_expect_not(s.link);
	cr_expect_not(w.cut);
	cr_expect_eq(w.walked + w.left, 100);
	cr_expect_str_eq(w.path, top);
}

Test(dirwalk, stops, .init = make, .fini = clear, .timeout = 10)
{
	static struct dirwalk w;
	struct seen s = {0}, enough = {.answer = 1};

	cr_expect_eq(walk(top, 2, &w, &s), 0);
	cr_expect(w.cut);
	cr_expect_leq(s.n, 2);
	cr_expect_eq(walk(top, 100, &w, &enough), 1);
	cr_expect_eq(enough.n, 1);
}

/* Processes come and go; a rule on one means nothing. */
Test(dirwalk, passes_over_processes, .timeout = 10)
{
	static struct dirwalk w;
	struct seen s = {0};

	cr_expect_eq(walk("/proc", 100000, &w, &s), 0);
	cr_expect_gt(s.n, 5);
	cr_expect_lt(s.n, 1000);
}

static bool skips_b(void *arg, const struct dirwalk *w)
{
	(void)arg;
	return strcmp(w->path, in_top("a/b")) == 0;
}

static int note_opened(void *arg, struct dirwalk *w, int fd, const struct stat *st)
{
	struct seen *s = arg;

	s->n++;
	cr_expect_eq(fd >= 0, S_ISDIR(st->st_mode), "%s", w->path);
	cr_expect(S_ISDIR(st->st_mode) || st->st_nlink == 1);
	return fd < 0 ? 0 : dirwalk_children(w, fd, st, note_opened, s);
}

Test(dirwalk, opens_no_more_than_it_needs, .init = make, .fini = clear, .timeout = 10)
{
	static struct dirwalk w;
	struct seen s = {0};
	struct stat st;
	int fd AUTOCLOSE = dirwalk_open(top, &st);

	cr_assert_eq(dirwalk_init(&w, top, 100), 0);
	w.by_name = true;
	cr_expect_eq(dirwalk_children(&w, fd, &st, note_opened, &s), 0);
	cr_expect_eq(s.n, 4);
	w.skips = skips_b;
	s.n = 0;
	cr_expect_eq(dirwalk_children(&w, fd, &st, note_opened, &s), 0);
	cr_expect_eq(s.n, 2); /* a, f */
	w.skips = NULL;
	w.only_directories = true;
	s.n = 0;
	cr_expect_eq(dirwalk_children(&w, fd, &st, note_opened, &s), 0);
	cr_expect_eq(s.n, 2); /* a, b */
}

Test(dirwalk, sees_all_of_a_large_directory, .init = make, .fini = clear, .timeout = 10)
{
	static struct dirwalk w;
	struct seen s = {0};
	char path[PATH_MAX];

	for (int i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "%s/%0100d", in_top("a/b"), i);
		cr_assert_eq(mknod(path, S_IFREG | 0600, 0), 0);
	}
	cr_expect_eq(walk(top, 2000, &w, &s), 0);
	cr_expect_eq(s.n, 1004);
	cr_expect_not(w.cut);
	s.n = 0;
	cr_expect_eq(walk(top, 900, &w, &s), 0);
	cr_expect_eq(s.n, 900);
	cr_expect(w.cut);
}
