#include "supervisor/broker_meta.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A row of the table that nobody can perform would end the run. */
Test(broker_meta, every_attribute_call_is_known)
{
	for (int id = 0; id < SYS_ID_COUNT; id++)
		if (sysents[id].group == SYS_GROUP_META)
			cr_expect(broker_meta_knows((enum sys_id)id), "%s", sysents[id].name);
	cr_expect(broker_meta_knows(SYS_ID_ioctl));
	cr_expect_not(broker_meta_knows(SYS_ID_open));
}

/* From here on the kernel has no call of this number. */
static int forget_call(int nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* What broker_meta_read() gives for a call of broken arguments, in a child that lacks this one. */
static int read_without(int missing, enum sys_id id)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct call c = {.ent = &sysents[id], .args = {0, 0, 1u << 30, 1, 1u << 30}};
		struct broker_meta m;
		if (forget_call(missing))
			_exit(0);
		_exit(-broker_meta_read(&c, (struct call_view){.tid = getpid()}, &m));
	}
	cr_assert(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* We could do them by other calls; but a program that asks whether they are there must not see any.
 */
Test(broker_meta, calls_that_this_kernel_lacks)
{
	static const enum sys_id young[] = {SYS_ID_fchmodat2, SYS_ID_setxattrat,
					    SYS_ID_removexattrat, SYS_ID_file_setattr};

	for (size_t i = 0; i < sizeof(young) / sizeof(*young); i++)
		cr_expect_eq(read_without(sysents[young[i]].nr[0], young[i]), -ENOSYS, "%s",
			     sysents[young[i]].name);
	/* Of every kernel; its flags are broken. */
	cr_expect_eq(read_without(sysents[SYS_ID_setxattrat].nr[0], SYS_ID_fchownat), -EINVAL);
}
