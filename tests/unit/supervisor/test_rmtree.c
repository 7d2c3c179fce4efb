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
