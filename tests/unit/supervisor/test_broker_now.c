/* broker_now: what is done at once is as the plain open has it, and nothing of it waits. */
#include "supervisor/broker_now.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* In memory whatever /tmp is on. */
static char dir[] = "/dev/shm/warder-test-XXXXXX";
static struct identity self;

static void setup(void)
{
	if (!mkdtemp(dir) || chdir(dir))
		cr_skip_test("no /dev/shm");
	int fd = open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_eq(write(fd, "x", 1), 1);
	close(fd);
	cr_assert_eq(mkfifo("fifo", 0600), 0);
	cr_assert_eq(mkdir("dir", 0700), 0);
	cr_assert_eq(identity_self(&self), 0);
}

static void teardown(void)
{
	unlink("file");
	unlink("fifo");
	rmdir("dir");
	rmdir(dir);
}

static int open_as(const struct identity *as, const char *name, uint64_t flags, int *ret_fd)
{
	struct call c = {.ent = sysent_by_name("openat"), .open_flags = flags};

	c.path[0].need = CALL_NEED_OPEN;
	cr_assert_eq(path_resolve(getpid(), AT_FDCWD, name, PATH_FOLLOW, &c.path[0].at), 0);
	int r = broker_now_open(&c, as, &self, ret_fd);
	path_release(&c.path[0].at);
	return r;
}

Test(broker_now, is_as_the_plain_open, .init = setup, .fini = teardown)
{
	static const struct {
		const char *name;
		int flags;
	} rows[] = {{"file", O_RDONLY},
		    {"file", O_RDWR},
		    {"file", O_WRONLY | O_APPEND},
		    {"file", O_RDONLY | O_NONBLOCK},
		    {"file", O_RDONLY | O_NOATIME},
		    {"file", O_RDONLY | O_NOFOLLOW},
		    {"dir", O_RDONLY | O_DIRECTORY},
		    {"dir", O_RDONLY}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int fd = -1, plain = open(rows[i].name, rows[i].flags | O_CLOEXEC);
		cr_assert_geq(plain, 0);
		cr_assert_eq(open_as(&self, rows[i].name, (uint64_t)rows[i].flags, &fd), 0);
		cr_expect_eq(fcntl(fd, F_GETFL), fcntl(plain, F_GETFL) & ~O_NOFOLLOW, "row %zu", i);
		cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		close(fd);
		close(plain);
	}
	int none;
	cr_expect_eq(open_as(&self, "file", O_RDONLY | O_DIRECTORY, &none), -ENOTDIR);
	cr_expect_eq(open_as(&self, "dir", O_RDWR, &none), -EISDIR);
}

Test(broker_now, leaves_the_rest_to_a_worker, .init = setup, .fini = teardown)
{
	struct identity other = self;
	int fd;

	cr_expect_eq(open_as(&self, "fifo", O_RDONLY, &fd), -EAGAIN);
	cr_expect_eq(open_as(&self, "/dev/null", O_RDONLY, &fd), -EAGAIN);
	cr_expect_eq(open_as(&self, "/proc/self/status", O_RDONLY, &fd), -EAGAIN);
	cr_expect_eq(open_as(&self, "file", O_RDONLY | O_CREAT, &fd), -EAGAIN);
	cr_expect_eq(open_as(&self, "file", O_WRONLY | O_TRUNC, &fd), -EAGAIN);
	cr_expect_eq(open_as(&self, "dir", O_WRONLY | O_TMPFILE, &fd), -EAGAIN);
	other.fsuid++;
	cr_expect_eq(open_as(&other, "file", O_RDONLY, &fd), -EAGAIN);
}

/* Who holds a lease is told, and waited for on a worker. */
Test(broker_now, a_lease_is_not_waited_for, .init = setup, .fini = teardown, .timeout = 20)
{
	int fd, holder = open("file", O_RDONLY | O_CLOEXEC);

	signal(SIGIO, SIG_IGN);
	cr_assert_eq(fcntl(holder, F_SETLEASE, F_RDLCK), 0);
	cr_expect_eq(open_as(&self, "file", O_WRONLY, &fd), -EAGAIN);
	cr_expect_eq(open_as(&self, "file", O_WRONLY | O_NONBLOCK, &fd), -EAGAIN);
	cr_assert_eq(fcntl(holder, F_SETLEASE, F_UNLCK), 0);
	cr_expect_eq(open_as(&self, "file", O_WRONLY, &fd), 0);
	close(fd);
	close(holder);
}
