#include "tracer/absent.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What is there, or may be for another, is never said to be absent. */
Test(absent, what_is_there_is_not)
{
	static const char *const paths[] = {
		"/",	      "/bin/sh",  "/usr/../bin/sh", "/proc/self/exe", "/proc/self/fd/0",
		"/dev/stdin", "/dev/fd/0"};
	char self[64];

	snprintf(self, sizeof(self), "/proc/%d/exe", getpid());
	for (unsigned i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		for (int n = 0; n < 3; n++)
			cr_expect_not(absent_surely(getpid(), paths[i]), "%s", paths[i]);
	cr_expect_not(absent_surely(getpid(), self));
}

/* From where it is relative to is not looked at; a name behind a program is none at all. */
Test(absent, what_is_not_known)
{
	static const char *const paths[] = {"nowhere", "", "./nowhere", "/bin/sh/nowhere"};

	for (unsigned i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		cr_expect_not(absent_surely(getpid(), paths[i]), "%s", paths[i]);
	cr_expect_not(absent_surely(-1, "/nowhere/at/all"));
}

/* What was looked for is in the cache then, on any file system but a few; it comes, and goes. */
Test(absent, it_comes_and_goes)
{
	char path[] = "/tmp/warder-absent-XXXXXX";
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
	cr_expect_not(absent_surely(getpid(), path));
	unlink(path);
	(void)access(path, X_OK);
	bool gone = absent_surely(getpid(), path);
	cr_expect_eq(gone, absent_surely(getpid(), path));
	FILE *f = fopen(path, "w");
	cr_assert_not_null(f);
	fclose(f);
	cr_expect_not(absent_surely(getpid(), path));
	unlink(path);
}

/* Another root has other names. */
Test(absent, another_root)
{
	int pipes[2], status;
	char c;

	if (geteuid() != 0)
		cr_skip("chroot needs root");
	cr_assert_eq(pipe(pipes), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chroot("/tmp") < 0 || write(pipes[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	cr_assert_eq(read(pipes[0], &c, 1), 1);
	(void)access("/nowhere", X_OK);
	cr_expect_not(absent_surely(pid, "/nowhere"));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}
