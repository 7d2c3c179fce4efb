/* The walk where no random tree of the oracle goes: very deep, and where it can't see. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "landlock/llright.h"
#include "landlock/llwalk.h"

#define DEPTH 200 /* more than the steps taken from one descriptor, thrice */

static char root[] = "/tmp/warder-llwalk-XXXXXX";
static struct llruleset *rs;

static void setup(void)
{
	struct llabi here;

	if (llabi_detect(&here) < 0)
		cr_skip_test("no Landlock here");
	cr_assert_not_null(mkdtemp(root));
	cr_assert_eq(llruleset_new(&here, 0, &rs), 0);
}

static void teardown(void)
{
	llruleset_free(rs);
	rmdir(root);
}

TestSuite(llwalk, .init = setup, .fini = teardown, .timeout = 30);

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* A rule on every tenth directory, each with a right of its own: all are met, from any depth. */
Test(llwalk, every_directory_of_a_deep_tree_is_met)
{
	static const uint64_t rights[] = {LLR_EXECUTE,	LLR_READ_FILE, LLR_READ_DIR, LLR_WRITE_FILE,
					  LLR_MAKE_DIR, LLR_MAKE_REG,  LLR_MAKE_SYM, LLR_MAKE_FIFO};
	int fds[DEPTH + 1], before;
	uint64_t want = 0;

	fds[0] = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 1; i <= DEPTH; i++) {
		cr_assert_eq(mkdirat(fds[i - 1], "d", 0755), 0);
		fds[i] = openat(fds[i - 1], "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
		cr_assert_geq(fds[i], 0);
	}
	for (int i = 0; i <= DEPTH; i++) {
		struct lldomain d;
		struct llwalk walk;

		if (i % 25 == 0 && i / 25 < 8) {
			cr_assert_eq(llruleset_allow_fd(rs, fds[i], rights[i / 25]), 0);
			want |= rights[i / 25];
		}
		d = lldomain_of(rs);
		before = open_fds();
		cr_assert_eq(llwalk_up(&d, fds[i], &walk), 0);
		cr_expect_eq(walk.all.layer[0], want, "depth %d", i);
		cr_expect_eq(walk.access.layer[0], want);
		cr_expect_eq(open_fds(), before, "a descriptor was left open at depth %d", i);
	}
	for (int i = DEPTH; i > 0; i--) {
		close(fds[i]);
		unlinkat(fds[i - 1], "d", AT_REMOVEDIR);
	}
	close(fds[0]);
}

static int mounted_over(void)
{
	struct lldomain d = lldomain_of(rs);
	struct llwalk walk;
	char inner[64];
	int fd;

	snprintf(inner, sizeof(inner), "%s/in", root);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return 2;
	if (mount("warder-test", root, "tmpfs", 0, "size=1m") || mkdir(inner, 0755))
		return 3;
	fd = open(inner, O_PATH | O_CLOEXEC);
	if (llwalk_up(&d, fd, &walk) != 0)
		return 4;
	/* On a directory between: the kernel's walk goes below it, ".." leads into it. */
	if (mount("warder-test", root, "tmpfs", 0, "size=1m"))
		return 5;
	return llwalk_up(&d, fd, &walk) == -ESTALE ? 0 : 6;
}

Test(llwalk, what_a_later_mount_hides_is_not_guessed)
{
	int status;
	pid_t pid;

	if (geteuid() != 0) {
		teardown();
		cr_skip_test("only root can mount");
	}
	pid = fork();
	if (pid == 0)
		_exit(mounted_over());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", (unsigned int)status);
}

Test(llwalk, errors)
{
	struct lldomain d = lldomain_of(rs);
	int file = open("/etc/passwd", O_PATH | O_CLOEXEC);
	struct llwalk walk;
	struct llwalk_node node;

	cr_expect_eq(llwalk_up(&d, -1, &walk), -EBADF);
	cr_expect_eq(llwalk_up(&d, file, &walk), -ENOTDIR);
	cr_expect_eq(llwalk_look(-1, &node), -EBADF);
	close(file);
}
