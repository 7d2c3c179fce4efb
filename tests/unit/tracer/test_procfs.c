/* The tracee is this process, or a child of it. */
#include "tracer/procfs.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int open_dir(const char *name)
{
	int fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	cr_assert(fd >= 0, "%s", name);
	return fd;
}

Test(procfs, what_is_one)
{
	int proc AUTOCLOSE = open_dir("/proc"), self AUTOCLOSE = open_dir("/proc/self");
	int tmp AUTOCLOSE = open_dir("/tmp");

	cr_expect(procfs_is(proc) && procfs_is(self) && !procfs_is(tmp));
	cr_expect(procfs_is_magic(self, "cwd") && procfs_is_magic(self, "exe"));
	cr_expect(!procfs_is_magic(self, "status") && !procfs_is_magic(proc, "self") &&
		  !procfs_is_magic(proc, "mounts"));
}

static void *say_self(void *arg)
{
	char text[64], want[64];
	int proc AUTOCLOSE = open_dir("/proc");
	pid_t tid = (pid_t)syscall(SYS_gettid);

	cr_assert_eq(procfs_self(proc, "self", tid, text, sizeof(text)), 1);
	snprintf(want, sizeof(want), "%d", getpid());
	cr_expect_str_eq(text, want);
	cr_assert_eq(procfs_self(proc, "thread-self", tid, text, sizeof(text)), 1);
	snprintf(want, sizeof(want), "%d/task/%d", getpid(), tid);
	cr_expect_str_eq(text, want);
	return arg;
}

Test(procfs, self_of_a_thread)
{
	pthread_t t;

	say_self(NULL);
	cr_assert_eq(pthread_create(&t, NULL, say_self, NULL), 0);
	cr_assert_eq(pthread_join(t, NULL), 0);
}

Test(procfs, only_at_the_root)
{
	char text[64] = "as it was";
	int self AUTOCLOSE = open_dir("/proc/self"), proc AUTOCLOSE = open_dir("/proc");

	cr_expect_eq(procfs_self(self, "self", getpid(), text, sizeof(text)), 0);
	cr_expect_eq(procfs_self(proc, "mounts", getpid(), text, sizeof(text)), 0);
	cr_expect_str_eq(text, "as it was");
}

/* A process with a child, in a pid namespace of its own where that is allowed; stopped. */
static pid_t start_parent(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		unshare(CLONE_NEWUSER | CLONE_NEWPID); /* else a plain child will do */
		pid_t child = fork();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (child == 0)
			for (;;)
				pause();
		raise(SIGSTOP); /* the test looks at the child */
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		_exit(0);
	}
	int status;
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status));
	return pid;
}

static pid_t child_of(pid_t pid)
{
	char file[64];
	int child = 0;

	snprintf(file, sizeof(file), "/proc/%d/task/%d/children", pid, pid);
	FILE *f = fopen(file, "re");
	cr_assert_not_null(f);
	cr_assert_eq(fscanf(f, "%d", &child), 1);
	fclose(f);
	return child;
}

Test(procfs, self_in_a_namespace_below)
{
	char text[64], want[64];
	int proc AUTOCLOSE = open_dir("/proc");
	pid_t pid = start_parent();

	pid_t child = child_of(pid);
	snprintf(want, sizeof(want), "%d", child);
	cr_expect_eq(procfs_self(proc, "self", child, text, sizeof(text)), 1);
	cr_expect_str_eq(text, want);
	snprintf(want, sizeof(want), "/proc/%d", child);
	int theirs AUTOCLOSE = open_dir(want), ours AUTOCLOSE = open_dir("/proc/self");
	cr_expect_eq(procfs_check_owner(theirs, child), 0);
	cr_expect_eq(procfs_check_owner(ours, child), -EACCES);
	cr_expect_eq(procfs_check_owner(theirs, getpid()), -EACCES);
	kill(pid, SIGCONT);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(procfs, owners)
{
	int self AUTOCLOSE = open_dir("/proc/self"), fds AUTOCLOSE = open_dir("/proc/self/fd");
	int first AUTOCLOSE = open_dir("/proc/1"), proc AUTOCLOSE = open_dir("/proc");

	cr_expect_eq(procfs_check_owner(self, getpid()), 0);
	cr_expect_eq(procfs_check_owner(fds, getpid()), 0);
	cr_expect_eq(procfs_check_owner(first, getpid()), -EACCES);
	cr_expect_eq(procfs_check_owner(proc, getpid()), -EACCES);
}
