/* Which Landlock is there, and what kernels without it answer (played by a seccomp filter). */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "landlock/llabi.h"
#include "landlock/llright.h"

#define CREATE_RULESET 444
#define ANY_FLAG       UINT32_MAX

enum { SAME = 0, DIFFERS = 1, NO_FILTER = 2 };

/* From here on landlock_create_ruleset with this flag (or any) fails with `error`. */
static int answer(uint32_t flag, int error)
{
	uint32_t flags_at = offsetof(struct seccomp_data, args[2]);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	flags_at += 4;
#endif
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CREATE_RULESET, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, flags_at),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, flag, 0, flag == ANY_FLAG ? 0 : 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int exit_of(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "status %x", (unsigned int)status);
	return WEXITSTATUS(status);
}

static int child_without_landlock(int error)
{
	struct llabi abi = {.abi = 77};
	uint32_t errata = 77;

	if (answer(ANY_FLAG, error) < 0)
		return NO_FILTER;
	if (llabi_probe() != -error || llabi_errata(&errata) != -error)
		return DIFFERS;
	if (llabi_detect(&abi) != -error)
		return DIFFERS;
	return abi.abi == 77 && errata == 77 ? SAME : DIFFERS;
}

Test(llabi, a_kernel_without_landlock_says_why, .timeout = 20)
{
	static const int errors[] = {ENOSYS, EOPNOTSUPP};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(child_without_landlock(errors[i]));
		cr_expect_eq(exit_of(pid), SAME, "errno %d", errors[i]);
	}
}

/* EINVAL for the errata flag is a kernel from before it; any other error is trouble. */
static int child_with_errata_error(int error)
{
	struct llabi abi = {.abi = 77};
	int r;

	if (answer(2, error) < 0)
		return NO_FILTER;
	r = llabi_detect(&abi);
	if (error == EINVAL)
		return r == 0 && abi.errata == 0 && abi.fs ? SAME : DIFFERS;
	return r == -error && abi.abi == 77 ? SAME : DIFFERS;
}

Test(llabi, errata_unknown_is_none_fixed, .timeout = 20)
{
	static const int errors[] = {EINVAL, EPERM};

	if (llabi_probe() < 1)
		cr_skip_test("no Landlock here");
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(child_with_errata_error(errors[i]));
		cr_expect_eq(exit_of(pid), SAME, "errno %d", errors[i]);
	}
}

Test(llabi, abi_of_a_number)
{
	struct llabi none = llabi_of(0), one = llabi_of(1), far = llabi_of(1000);

	cr_expect_eq(none.fs, 0);
	cr_expect_eq(one.abi, 1);
	cr_expect_eq(one.fs, llright_supported(1));
	cr_expect_eq(far.abi, LLRIGHT_ABI_MAX);
	cr_expect_eq(far.fs, (uint64_t)LLR_ALL);
	cr_expect_eq(far.errata, 0);
}

Test(llabi, detect_agrees_with_probe)
{
	int probed = llabi_probe();
	struct llabi abi;

	if (probed < 1)
		cr_skip_test("no Landlock here");
	cr_assert_eq(llabi_detect(&abi), 0);
	cr_expect_eq(abi.abi, probed > LLRIGHT_ABI_MAX ? LLRIGHT_ABI_MAX : probed);
	cr_expect_eq(abi.fs, llright_supported(probed));
	cr_expect_eq(abi.net, llright_net_supported(probed));
	cr_expect_eq(abi.scoped, llright_scope_supported(probed));
}
