/* pathwalk: a walker that knows something already finds what a new one finds. */
#include "supervisor/pathwalk.h"

#include "tests/tempdir.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

Test(pathwalk, knows_what_it_saw)
{
	char top[PATH_MAX], path[PATH_MAX + 64];
	struct pathwalk w = {0};

	tempdir_enter(top);
	make();
	for (size_t i = 0; i < ARRAY_LEN(names) * ARRAY_LEN(names) * ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s/%s/%s", top, names[i % ARRAY_LEN(names)],
			 names[i / ARRAY_LEN(names) % ARRAY_LEN(names)],
			 names[i / ARRAY_LEN(names) / ARRAY_LEN(names)]);
		compare(&w, path);
	}
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
