/* pathwalk: a walker that knows something already finds what a new one finds. */
#include "supervisor/pathwalk.h"

#include "tests/tempdir.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static const char *const names[] = {"a", "b", "link", "up", "gone", "loop", "..", ".", "", "file"};

static void make(void)
{
	cr_assert_eq(mkdir("a", 0700), 0);
	cr_assert_eq(mkdir("a/b", 0700), 0);
	cr_assert_eq(mkdir("b", 0700), 0);
	cr_assert_eq(close(creat("a/file", 0600)), 0);
	cr_assert_eq(symlink("../b", "a/link"), 0);
	cr_assert_eq(symlink("a/b/", "link"), 0);
	cr_assert_eq(symlink("..", "a/b/up"), 0);
	cr_assert_eq(symlink("a/gone/x", "b/gone"), 0);
	cr_assert_eq(symlink("loop", "a/loop"), 0);
}

static void compare(struct pathwalk *w, const char *path)
{
	struct pathwalk fresh = {.once = true};
	int want = pathwalk_resolve(&fresh, path, false);

	cr_assert_eq(pathwalk_resolve(w, path, false), want, "%s", path);
	if (want == 0) {
		cr_assert_str_eq(buf_str(&w->out), buf_str(&fresh.out), "%s", path);
		cr_assert_eq(w->links.len, fresh.links.len, "%s", path);
		cr_assert(!w->links.len || !memcmp(w->links.data, fresh.links.data, w->links.len));
	}
	pathwalk_release(&fresh);
}

/* All paths of three names below top. */
static void compare_all(struct pathwalk *w, const char *top)
{
	char path[PATH_MAX + 64];

	for (size_t i = 0; i < ARRAY_LEN(names) * ARRAY_LEN(names) * ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s/%s/%s", top, names[i % ARRAY_LEN(names)],
			 names[i / ARRAY_LEN(names) % ARRAY_LEN(names)],
			 names[i / ARRAY_LEN(names) / ARRAY_LEN(names)]);
		compare(w, path);
	}
}

Test(pathwalk, knows_what_it_saw)
{
	char top[PATH_MAX], path[PATH_MAX + 64];
	struct pathwalk w = {0};

	tempdir_enter(top);
	make();
	compare_all(&w, top);
	/* More than it remembers. */
	for (int i = 0; i < 3 * PATHWALK_KNOWN; i++) {
		snprintf(path, sizeof(path), "%s/a/many%d/x", top, i % (2 * PATHWALK_KNOWN));
		compare(&w, path);
	}
	snprintf(path, sizeof(path), "%s/link", top);
	cr_assert_eq(pathwalk_resolve(&w, path, true), 0);
	cr_assert_str_eq(buf_str(&w.out), path); /* as written */
	cr_assert_eq(pathwalk_resolve(&w, "a", false), -EINVAL);
	cr_assert_eq(pathwalk_resolve(&w, "/proc/self/x", false), -EOPNOTSUPP);
	pathwalk_release(&w);
	tempdir_leave(top);
}

/* Where `name` is a symlink to "b" that came later than the list: is it followed? */
static bool follows_late(struct pathwalk *w, const char *top, const char *name)
{
	char path[PATH_MAX + 64], there[PATH_MAX + 64];

	cr_assert_eq(symlink("b", name), 0);
	snprintf(path, sizeof(path), "%s/%s/x", top, name);
	snprintf(there, sizeof(there), "%s/b/x", top);
	cr_assert_eq(pathwalk_resolve(w, path, false), 0);
	bool follows = strcmp(buf_str(&w->out), there) == 0;
	cr_assert(follows || strcmp(buf_str(&w->out), path) == 0);
	return follows;
}

static bool can_be_listed(const char *dir)
{
	struct statfs fs;

	cr_assert_eq(statfs(dir, &fs), 0);
	return fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == TMPFS_MAGIC ||
	       fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

Test(pathwalk, knows_what_is_in_a_listed_directory)
{
	char top[PATH_MAX], path[PATH_MAX + 64];
	struct pathwalk w = {0};

	tempdir_enter(top);
	make();
	pathwalk_list(&w, top);
	snprintf(path, sizeof(path), "%s/link", top);
	pathwalk_list(&w, path); /* a/b */
	snprintf(path, sizeof(path), "%s/b/none", top);
	pathwalk_list(&w, path);
	compare_all(&w, top);
	cr_expect_eq(follows_late(&w, top, "late"), !can_be_listed(top));
	pathwalk_release(&w);
	cr_expect(follows_late(&w, top, "later"));
	pathwalk_release(&w);
	tempdir_leave(top);
}

/* Then each name is looked at. */
Test(pathwalk, does_not_list_what_is_too_much)
{
	char top[PATH_MAX], path[PATH_MAX + 64];
	struct pathwalk w = {0};

	tempdir_enter(top);
	make();
	for (int i = 0; i < 300; i++) {
		snprintf(path, sizeof(path), "%0100d", i);
		cr_assert_eq(close(creat(path, 0600)), 0);
	}
	pathwalk_list(&w, top);
	compare_all(&w, top);
	cr_expect(follows_late(&w, top, "late"));
	pathwalk_release(&w);
	tempdir_leave(top);
}
