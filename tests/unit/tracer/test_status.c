/* What a process writes into its own name is no line. */
#include "tracer/status.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

Test(status, lines)
{
	struct status s = {
		.text = "Name:\tx\nUmask:\t0022\nTgid:\t7\nTgids:\t8\nSigPnd:\tff\nCut:"};
	int n = 0;

	cr_expect(status_number(&s, "Tgid", &n));
	cr_expect_eq(n, 7);
	cr_expect_eq(status_mask(&s, "SigPnd"), 0xff);
	cr_expect_eq(status_mask(&s, "Sig"), 0);
	cr_expect_not(status_number(&s, "id", &n), "not the end of another key");
	cr_expect_not(status_number(&s, "Cut", &n));
	cr_expect_eq(strncmp(status_line(&s, "Umask"), "0022\n", 5), 0);
	cr_expect_str_eq(status_line(&s, "Cut"), "");
	cr_expect_null(status_line(&s, "Groups"));
}

Test(status, a_name_is_no_line)
{
	static const char *const names[] = {"SigPnd:ffff", "x\nSigPnd:ffff", "x\\nSigPnd:fff"};
	struct status s;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		cr_assert_eq(prctl(PR_SET_NAME, names[i]), 0);
		cr_assert_eq(status_of(getpid(), &s), 0);
		cr_expect_not_null(strstr(s.text, "SigPnd:ff"), "%zu", i);
		cr_expect_eq(status_mask(&s, "SigPnd"), 0, "%zu", i);
		cr_expect_not(s.cut);
	}
}

Test(status, of_a_process)
{
	struct status s;
	int parent = 0, self = 0, proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	cr_assert_eq(status_read(proc, "thread-self/status", &s), 0);
	cr_expect(status_number(&s, "Pid", &self) && status_number(&s, "PPid", &parent));
	cr_expect_eq(self, gettid());
	cr_expect_eq(parent, getppid());
	cr_expect_eq(status_of(0, &s), -ESRCH);
	cr_expect_eq(status_read(proc, "sys/status", &s), -ESRCH);
	close(proc);
}
