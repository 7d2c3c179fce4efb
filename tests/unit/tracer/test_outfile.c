#include "tracer/outfile.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As on a kernel, in a container or under a checker that has none. */
static void take_openat2_away(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void expect_all(void)
{
	char top[] = "/tmp/warder-outfile-XXXXXX", path[PATH_MAX];
	static const struct {
		const char *name;
		int flags, result; /* 0: a descriptor */
	} rows[] = {
		{"new", O_WRONLY | O_CREAT | O_EXCL, 0},
		{"new", O_WRONLY | O_CREAT | O_EXCL, -EEXIST},
		{"new", O_RDONLY, 0},
		{"d/new", O_WRONLY | O_CREAT | O_EXCL, 0},
		{"d/./new", O_RDONLY, 0},
		{"d/.", O_PATH | O_DIRECTORY, 0},
		{"", O_RDONLY | O_DIRECTORY, 0},
		{"to_d/new", O_RDONLY, -ELOOP},
		{"to_d/.", O_PATH | O_DIRECTORY, -ELOOP},
		{"to_new", O_RDONLY, -ELOOP},
		{"to_new", O_WRONLY | O_CREAT, -ELOOP},
		{"new/below", O_RDONLY, -ENOTDIR},
		{"absent/new", O_RDONLY, -ENOENT},
		{"absent", O_RDONLY, -ENOENT},
	};

	cr_assert_not_null(mkdtemp(top));
	cr_assert_eq(chdir(top), 0);
	cr_assert(mkdir("d", 0700) == 0 && symlink("d", "to_d") == 0 &&
		  symlink("new", "to_new") == 0);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		snprintf(path, sizeof(path), "%s/%s", top, rows[i].name);
		int fd = outfile_open(path, rows[i].flags, 0600);
		cr_expect_eq(fd < 0 ? fd : 0, rows[i].result, "%s: %d", rows[i].name, fd);
		if (fd < 0)
			continue;
		cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC, "%s", rows[i].name);
		close(fd);
	}
	int fd = outfile_open("d/new", O_RDONLY, 0);
	cr_expect_geq(fd, 0, "a relative one: %d", fd);
	close(fd);
	static const char *const made[] = {"d/new", "new", "to_new", "to_d"};
	for (unsigned i = 0; i < sizeof(made) / sizeof(*made); i++)
		cr_expect_eq(unlink(made[i]), 0);
	cr_expect(rmdir("d") == 0 && rmdir(top) == 0);
}

Test(outfile, no_symlink_on_the_way)
{
	expect_all();
}

Test(outfile, the_same_without_openat2)
{
	take_openat2_away();
	expect_all();
}
