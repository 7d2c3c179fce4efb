#include "supervisor/confine.h"

#include "tracer/util.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * With these a root tree could load code into the kernel, read raw memory, look into the
 * supervisor, open files by handle, or make itself a node of the disk in the project and open that:
 * Landlock knows paths, not devices. CAP_SYS_ADMIN stands in for CAP_BPF and CAP_PERFMON wherever
 * those are asked for, mounts devices without naming them (fsopen) and takes terminals from other
 * sessions. CAP_BPF and CAP_PERFMON (5.8) may be missing from old headers.
 */
static const int dropped[] = {
	CAP_DAC_READ_SEARCH, CAP_SYS_MODULE, CAP_SYS_RAWIO,	   CAP_SYS_PTRACE,   CAP_SYS_BOOT,
	CAP_SYS_ADMIN,	     CAP_MKNOD,	     38 /* CAP_PERFMON */, 39 /* CAP_BPF */,
};

static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	if (syscall(SYS_capget, &head, data))
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(dropped); i++) {
		int cap = dropped[i];
		uint32_t bit = 1u << (cap % 32);
		struct __user_cap_data_struct *half = &data[cap / 32];
		/* Root's exec takes its capabilities from the bounding set. EINVAL: the kernel has
		 * no such one; EPERM: an ordinary user, whose exec gets none anyway (no_new_privs).
		 */
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) && errno != EINVAL && errno != EPERM)
			return -errno;
		half->effective &= ~bit;
		half->permitted &= ~bit;
		half->inheritable &= ~bit;
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		return -errno;
	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

int confine_prepare(void *arg)
{
	const struct confine *c = arg;
	int err = setrlimit(RLIMIT_NOFILE, &c->files) ? -errno : 0;
	if (err || c->open)
		return err;
	return drop_capabilities();
}

int confine_enter(void *arg, uint32_t mark)
{
	const struct confine *c = arg;

	return c->open ? 0 : llruleset_restrict_marked(c->ruleset, mark);
}
