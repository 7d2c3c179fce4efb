/* rmtree: all of it goes, nothing beside it, and few descriptors are needed. */
#include "supervisor/rmtree.h"
#include "tests/tempdir.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>

static char top[PATH_MAX];

static void make(void)
{
	tempdir_enter(top);
	cr_assert_eq(mkdir("victim", 0700), 0);
	cr_assert_eq(mkdir("beside", 0700), 0);
	tempdir_file("beside/f", "kept\n");
}

static void clear(void)
{
	tempdir_leave(top);
}

static int remove_victim(void)
{
	char path[PATH_MAX + 16];
	snprintf(path, sizeof(path), "%s/victim", top);
	return rmtree_remove(path);
}

static void expect_gone(int err)
{
	cr_expect_eq(err, 0, "%s", strerror(-err));
	cr_expect_eq(access("victim", F_OK), -1);
	cr_expect_eq(access("beside/f", F_OK), 0);
}

/* A chain of directories with a file in each. The descriptor of where it begins stays open. */
static void make_chain(const char *name, int depth)
{
	int start AUTOCLOSE = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < depth; i++) {
		cr_assert_eq(mkdir(name, 0700), 0);
		cr_assert_eq(chdir(name), 0);
		cr_assert_eq(mknod("f", S_IFREG | 0600, 0), 0);
	}
	cr_assert_eq(fchdir(start), 0);
}

Test(rmtree, at_any_depth, .init = make, .fini = clear, .timeout = 60)
{
	char name[200];
	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	cr_assert_eq(chdir("victim"), 0);
	make_chain(name, 4000);
	make_chain("short", 500);
	cr_assert_eq(chdir(".."), 0);
	struct rlimit few = {.rlim_cur = 16, .rlim_max = 16}, before;
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	few.rlim_max = before.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	int err = remove_victim();
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	expect_gone(err);
}

Test(rmtree, many_and_wide, .init = make, .fini = clear, .timeout = 60)
{
	char name[64];
	for (int i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "victim/%d", i);
		cr_assert_eq(mkdir(name, i % 3 ? 0700 : 0500), 0);
		snprintf(name, sizeof(name), "victim/%d/in", i);
		(void)mkdir(name, 0700);
	}
	expect_gone(remove_victim());
}

Test(rmtree, links_are_not_followed, .init = make, .fini = clear, .timeout = 10)
{
	cr_assert_eq(symlink("../beside", "victim/link"), 0);
	cr_assert_eq(mkdir("victim/d", 0700), 0);
	cr_assert_eq(symlink("../../beside", "victim/d/link"), 0);
	cr_assert_eq(link("beside/f", "victim/d/f"), 0);
	expect_gone(remove_victim());
}

Test(rmtree, a_link_is_no_directory, .init = make, .fini = clear, .timeout = 10)
{
	cr_assert_eq(rmdir("victim"), 0);
	cr_assert_eq(symlink("beside", "victim"), 0);
	cr_expect_neq(remove_victim(), 0);
	cr_expect_eq(access("beside/f", F_OK), 0);
	cr_assert_eq(unlink("victim"), 0);
	cr_expect_eq(remove_victim(), -ENOENT);
}

/* ---- one that is meant, in parts ---- */

#define BOUND 40

static struct rmtree_only meant(void)
{
	struct stat st;
	cr_assert_eq(stat("victim", &st), 0);
	return (struct rmtree_only){.dev = st.st_dev, .ino = st.st_ino, .entries = BOUND};
}

/* However often it takes: each time something goes, and no time takes more than it may. */
static void expect_gone_in_parts(size_t times_max)
{
	char path[PATH_MAX + 16];
	struct rmtree_only only = meant();
	size_t times = 0;
	int err;
	snprintf(path, sizeof(path), "%s/victim", top);
	do {
		only.entries = BOUND;
		err = rmtree_remove_only(path, &only);
		cr_assert_leq(only.entries, BOUND);
		cr_assert_lt(times, times_max);
		times++;
	} while (err == -EAGAIN);
	expect_gone(err);
	cr_expect_gt(times, 2);
}

Test(rmtree, many_in_parts, .init = make, .fini = clear, .timeout = 60)
{
	char name[64];
	for (int i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "victim/%d", i);
		tempdir_file(name, "x");
	}
	expect_gone_in_parts(30);
}

Test(rmtree, deep_in_parts, .init = make, .fini = clear, .timeout = 60)
{
	cr_assert_eq(chdir("victim"), 0);
	make_chain("d", 100);
	cr_assert_eq(chdir(".."), 0);
	expect_gone_in_parts(400);
}

/* More directories, and in each of them, than may be moved at once. */
Test(rmtree, wide_and_deep_in_parts, .init = make, .fini = clear, .timeout = 60)
{
	char name[64];
	for (int i = 0; i < 15 * 15; i++) {
		snprintf(name, sizeof(name), "victim/%d", i / 15);
		(void)mkdir(name, 0700);
		snprintf(name, sizeof(name), "victim/%d/%d", i / 15, i % 15);
		cr_assert_eq(mkdir(name, 0700), 0);
		snprintf(name, sizeof(name), "victim/%d/%d/d", i / 15, i % 15);
		cr_assert_eq(mkdir(name, 0700), 0);
		snprintf(name, sizeof(name), "victim/%d/%d/d/f", i / 15, i % 15);
		tempdir_file(name, "x");
	}
	expect_gone_in_parts(2000);
}

Test(rmtree, another_one_is_left_alone, .init = make, .fini = clear, .timeout = 10)
{
	char path[PATH_MAX + 16];
	struct rmtree_only only = meant();
	struct stat st;
	snprintf(path, sizeof(path), "%s/victim", top);
	cr_assert_eq(rename("victim", "was"), 0);
	cr_assert_eq(mkdir("victim", 0500), 0);
	cr_expect_eq(rmtree_remove_only(path, &only), -ESTALE);
	cr_assert_eq(stat("victim", &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0500, "nothing was touched");
	cr_assert_eq(rmdir("victim"), 0);
	cr_assert_eq(symlink("was", "victim"), 0);
	cr_expect_lt(rmtree_remove_only(path, &only), 0);
	cr_expect_eq(access("was", F_OK), 0);
}
