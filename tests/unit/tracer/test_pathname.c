#include "tracer/pathname.h"

#include "tests/tempdir.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static char top[PATH_MAX];
static struct pathname_memory *m;

static void set_up(void)
{
	tempdir_enter(top);
	cr_assert_eq(mkdir("dir", 0755), 0);
	cr_assert_eq(mkdir("other", 0755), 0);
	tempdir_file("dir/file", "x");
	tempdir_file("dir/more", "x");
	tempdir_file("other/file", "x");
	m = pathname_memory_new();
	cr_assert_not_null(m);
	pathname_memory_allow(m, ".");
}

static void tear_down(void)
{
	pathname_memory_free(m);
	tempdir_leave(top);
}

TestSuite(pathname, .init = set_up, .fini = tear_down);

/* Below the test's directory, or NULL: it has no name; both ways to ask say the same. */
static void check(int fd, const char *name, bool again)
{
	char wanted[PATH_MAX + 64];
	char *real AUTOFREE = NULL;
	struct stat st, parent;
	uint64_t mount;
	struct path_at at;

	path_init(&at);
	at.object = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	int r = pathname_fill(m, &at);
	cr_expect(at.exists);
	cr_assert_eq(pathname_stat(fd, &st, &mount), 0);
	cr_expect_eq(pathname_of(m, fd, &st, mount, &real), name ? 0 : -ENOENT);
	cr_expect_eq(r, name ? 0 : -ENOENT);
	if (name) {
		snprintf(wanted, sizeof(wanted), "%s/%s", top, name);
		cr_expect_str_eq(at.real, wanted);
		cr_expect_str_eq(real, wanted);
		cr_expect_str_eq(at.name, strrchr(wanted, '/') + 1);
		cr_assert_eq(fstat(at.parent, &parent), 0);
		cr_expect_eq(parent.st_ino, at.dir->ino);
		cr_expect_eq(parent.st_dev, at.dir->dev);
	}
	/* It is the memory's, or this thing's own. */
	cr_expect(!name || at.dir->users == (again ? 2u : at.dir->users));
	path_release(&at);
	cr_expect_eq(at.parent, -1);
}

static int open_it(const char *name)
{
	int fd = open(name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	return fd;
}

Test(pathname, a_known_directory_is_the_same_one)
{
	int a AUTOCLOSE = open_it("dir/file"), b AUTOCLOSE = open_it("dir/more");
	int c AUTOCLOSE = open_it("other/file"), d AUTOCLOSE = open_it("dir");

	for (int i = 0; i < 3; i++) {
		check(a, "dir/file", true);
		check(b, "dir/more", true);
		check(c, "other/file", true);
		check(d, "dir", true);
	}
	pathname_memory_forget(m);
	check(a, "dir/file", true);
}

Test(pathname, what_was_moved_has_its_new_name)
{
	int fd AUTOCLOSE = open_it("dir/file");

	check(fd, "dir/file", true);
	cr_assert_eq(rename("dir/file", "dir/moved"), 0);
	check(fd, "dir/moved", true);
	cr_assert_eq(rename("dir", "there"), 0);
	check(fd, "there/moved", true);
	/* Another directory by the old name. */
	cr_assert_eq(rename("other", "dir"), 0);
	check(fd, "there/moved", true);
	int other AUTOCLOSE = open_it("dir/file");
	check(other, "dir/file", true);
	check(other, "dir/file", true);
}

Test(pathname, what_was_deleted_has_none)
{
	int fd AUTOCLOSE = open_it("dir/file");

	check(fd, "dir/file", true);
	cr_assert_eq(unlink("dir/file"), 0);
	check(fd, NULL, true);
	tempdir_file("dir/file (deleted)", "x");
	check(fd, NULL, true);
	int called_so AUTOCLOSE = open_it("dir/file (deleted)");
	check(called_so, "dir/file (deleted)", false);
	/* Another file by its name. */
	tempdir_file("dir/file", "x");
	check(fd, NULL, true);
}

/* What a number of ours was is held on to (LINKS): not what it stood for. */
Test(pathname, one_number_means_one_file_after_the_other)
{
	static const char *const name[] = {"dir/file", "dir/more", "other/file", "dir"};
	int p[2];

	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < ARRAY_LEN(name); i++) {
			int fd AUTOCLOSE = open_it(name[i]);
			int moved = dup3(fd, 100, O_CLOEXEC), far = dup3(fd, 116, O_CLOEXEC);
			check(fd, name[i], true);
			check(moved, name[i], true);
			check(far, name[i], true);
			close(far);
			cr_assert_eq(dup3(p[0], moved, O_CLOEXEC), moved);
			check(moved, NULL, true);
			close(moved);
		}
	}
	close(p[0]);
	close(p[1]);
}

/* A child in this directory, by this number where that is not 0; -errno. */
static pid_t child_in(const char *where, pid_t number)
{
	struct clone_args args = {.exit_signal = SIGCHLD,
				  .set_tid = number ? (uint64_t)(uintptr_t)&number : 0,
				  .set_tid_size = number ? 1 : 0};
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chdir(where) == 0)
			raise(SIGSTOP);
		_exit(1);
	}
	if (pid < 0)
		return -errno;
	cr_assert_eq(waitpid(pid, NULL, WUNTRACED), pid);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

static void check_cwd(pid_t pid, const char *name)
{
	struct stat is, wanted;
	int fd AUTOCLOSE = pathname_open_proc(m, pid, "cwd");

	cr_assert_geq(fd, 0);
	cr_assert_eq(fstat(fd, &is), 0);
	cr_assert_eq(stat(name, &wanted), 0);
	cr_expect_eq(is.st_ino, wanted.st_ino);
}

Test(pathname, a_number_may_be_another_threads_by_then)
{
	pid_t pid[6];

	for (size_t i = 0; i < ARRAY_LEN(pid); i++)
		cr_assert_gt(pid[i] = child_in(i % 2 ? "dir" : "other", 0), 0);
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < ARRAY_LEN(pid); i++)
			check_cwd(pid[i], i % 2 ? "dir" : "other");
	cr_expect_eq(pathname_open_proc(m, pid[0], "fd/999"), -ENOENT);
	check_cwd(pid[1], "dir");
	for (size_t i = 0; i < ARRAY_LEN(pid); i++)
		end(pid[i]);
	cr_expect_lt(pathname_open_proc(m, pid[1], "cwd"), 0);
	pid_t again = child_in("dir", 0);
	check_cwd(again, "dir");
	end(again);
	/* To choose a number takes a capability. */
	pid_t same = child_in("other", again);
	if (same < 0)
		return;
	cr_assert_eq(same, again);
	check_cwd(same, "other");
	end(same);
}

Test(pathname, directories_of_other_mounts_are_not_held)
{
	struct pathname_memory *none = pathname_memory_new();
	struct path_at at;

	for (int i = 0; i < 2; i++) {
		path_init(&at);
		at.object = open_it("dir/file");
		cr_assert_eq(pathname_fill(none, &at), 0);
		cr_expect_eq(at.dir->users, 1);
		path_release(&at);
	}
	pathname_memory_free(none);
}

Test(pathname, what_is_no_file_has_none)
{
	int p[2];
	char *real = NULL;
	struct stat st;
	uint64_t mount;

	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	cr_assert_eq(pathname_stat(p[0], &st, &mount), 0);
	cr_expect_eq(pathname_of(m, p[0], &st, mount, &real), -ENOENT);
	int root AUTOCLOSE = open_it("/");
	cr_assert_eq(pathname_stat(root, &st, &mount), 0);
	cr_expect_eq(pathname_of(m, root, &st, mount, &real), 0);
	cr_expect_str_eq(real, "/");
	free(real);
	close(p[0]);
	close(p[1]);
}
