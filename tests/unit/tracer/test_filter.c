#include "tracer/filter.h"

#include "tracer/stub.h"
#include "tracer/sysent.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/audit.h>
#include <linux/btrfs.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define GRANT  0xc0ffee42u
#define TRACED (SECCOMP_RET_TRACE | FILTER_TRACE_DATA)

static struct sock_filter program[FILTER_MAX];
static size_t program_len;

static struct filter_options options = {.grant = GRANT, .readable = true};

static void build(void)
{
	cr_assert_eq(filter_build(&options, program, FILTER_MAX, &program_len), 0);
}

/* The part of classic BPF that seccomp programs use. An illegal step is a failed test. */
static uint32_t simulate(const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < program_len; pc++) {
		const struct sock_filter *f = &program[pc];
		bool taken = false;
		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			cr_assert(f->k % 4 == 0 && f->k + 4 <= sizeof(*data));
			memcpy(&a, (const char *)data + f->k, 4);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= f->k;
			continue;
		case BPF_RET | BPF_K:
			return f->k;
		case BPF_JMP | BPF_JA:
			pc += f->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			taken = a == f->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			taken = a >= f->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			taken = (a & f->k) != 0;
			break;
		default:
			cr_assert_fail("instruction %zu has code %x", pc, f->code);
		}
		pc += taken ? f->jt : f->jf;
	}
	cr_assert_fail("ran off the end");
	return 0;
}

static uint32_t ask(uint32_t arch, int nr, const uint64_t args[6])
{
	struct seccomp_data data = {.nr = nr, .arch = arch};

	memcpy(data.args, args, sizeof(data.args));
	return simulate(&data);
}

static const uint64_t nothing[6];

/* What programs of this machine call by. */
static const struct {
	enum sys_arch arch;
	uint32_t audit;
} arches[] = {
#ifdef __x86_64__
	{SYS_ARCH_X86_64, AUDIT_ARCH_X86_64},
	{SYS_ARCH_I386, AUDIT_ARCH_I386},
#else
	{SYS_ARCH_AARCH64, AUDIT_ARCH_AARCH64},
#endif
};
#define ARCHES	   (sizeof(arches) / sizeof(arches[0]))
#define OWN_NR(id) (sysents[id].nr[arches[0].arch])

static uint32_t plain_answer(const struct sysent *ent)
{
	switch ((enum sys_group)ent->group) {
	case SYS_GROUP_WALL:
	case SYS_GROUP_MOUNT:
	case SYS_GROUP_QUEUE:
		return TRACED;
	case SYS_GROUP_GUARD:
		if (filter_changes_identity(ent) && sysent_id(ent) != SYS_ID_setns)
			return SECCOMP_RET_ALLOW;
		switch ((int)sysent_id(ent)) {
		case SYS_ID_clone:
		case SYS_ID_prctl:
		case SYS_ID_prlimit64: /* of pid 0 */
		case SYS_ID_socket:    /* of family 0 */
		case SYS_ID_socketpair:
		case SYS_ID_socketcall:
			return SECCOMP_RET_ALLOW;
		case SYS_ID_clone3:
			return SECCOMP_RET_ERRNO | ENOSYS;
		case SYS_ID_pidfd_getfd:
		case SYS_ID_userfaultfd:
			return SECCOMP_RET_ERRNO | EPERM;
		default:
			return TRACED;
		}
	case SYS_GROUP_META:
		return SECCOMP_RET_USER_NOTIF;
	case SYS_GROUP_CONNECT: /* sendto without an address passes, and messages */
		return sysent_id(ent) == SYS_ID_connect ? SECCOMP_RET_USER_NOTIF
							: SECCOMP_RET_ALLOW;
	case SYS_GROUP_LOOK:
	case SYS_GROUP_COUNT:
		break;
	}
	return SECCOMP_RET_ALLOW;
}

/* Every number there is, on both architectures. */
Test(filter, every_number)
{
	build();
	for (size_t i = 0; i < ARCHES; i++) {
		for (int nr = 0; nr < 1024; nr++) {
			const struct sysent *ent = sysent_by_nr(arches[i].arch, nr);
			uint32_t want = ent ? plain_answer(ent) : SECCOMP_RET_ALLOW;
			uint32_t got = ask(arches[i].audit, nr, nothing);
			cr_expect_eq(got, want, "arch %zu nr %d (%s): %x, not %x", i, nr,
				     ent ? ent->name : "no row", got, want);
		}
	}
}

/* Without a wall everything runs; what has a path or could hide a process stops on the way. */
Test(filter, native)
{
	static const struct filter_options native = {.grant = GRANT, .native = true};

	cr_assert_eq(filter_build(&native, program, FILTER_MAX, &program_len), 0);
	for (size_t i = 0; i < ARCHES; i++) {
		for (size_t id = 0; id < SYS_ID_COUNT; id++) {
			const struct sysent *ent = &sysents[id];
			int nr = ent->nr[arches[i].arch];
			uint32_t want = plain_answer(ent);
			if (want == SECCOMP_RET_USER_NOTIF || id == SYS_ID_clone3)
				want = TRACED;
			if (id == SYS_ID_pidfd_getfd || id == SYS_ID_userfaultfd ||
			    id == SYS_ID_setns)
				want = SECCOMP_RET_ALLOW;
			if (nr >= 0)
				cr_expect_eq(ask(arches[i].audit, nr, nothing), want, "%s",
					     ent->name);
		}
		const uint64_t stuff[6] = {0, TIOCSTI};
		int nr = sysents[SYS_ID_ioctl].nr[arches[i].arch];
		cr_expect_eq(ask(arches[i].audit, nr, stuff), SECCOMP_RET_ALLOW);
	}
}

/* Where a command can become somebody else, every call by which it does is seen. */
Test(filter, identities_where_they_can_change)
{
	static const struct filter_options wanted = {.grant = GRANT, .identities = true};
	static const char *const names[] = {"set*id", "set*id32", "setgroups"};
	const uint64_t user[6] = {CLONE_NEWUSER}, net[6] = {CLONE_NEWNET};
	unsigned n = 0;

	cr_assert_eq(filter_build(&wanted, program, FILTER_MAX, &program_len), 0);
	for (size_t id = 0; id < SYS_ID_COUNT; id++) {
		const struct sysent *ent = &sysents[id];
		bool set = false;
		for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
			set = set || fnmatch(names[k], ent->name, 0) == 0;
		cr_expect(!set || filter_changes_identity(ent), "%s", ent->name);
		for (size_t a = 0; filter_changes_identity(ent) && a < ARCHES; a++) {
			if (ent->nr[arches[a].arch] < 0)
				continue;
			cr_expect_eq(ask(arches[a].audit, ent->nr[arches[a].arch], user), TRACED,
				     "%s", ent->name);
			n++;
		}
	}
	cr_expect_eq(n, arches[0].arch == SYS_ARCH_X86_64 ? 33 : 12);
	cr_expect_eq(ask(arches[0].audit, OWN_NR(SYS_ID_unshare), net), TRACED);
}

/* Who asks for one without a user namespace needs what root has lost behind the wall. */
Test(filter, namespaces_are_seen)
{
	static const struct filter_options unwalled = {.grant = GRANT, .native = true};
	static const struct {
		int id;
		uint64_t flags;
		uint32_t want;
	} rows[] = {
		{SYS_ID_clone, CLONE_NEWNS | SIGCHLD, TRACED},
		{SYS_ID_clone, CLONE_NEWPID | CLONE_NEWNET | SIGCHLD, TRACED},
		{SYS_ID_clone, CLONE_NEWUSER | CLONE_NEWNS | SIGCHLD, SECCOMP_RET_ALLOW},
		{SYS_ID_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, SECCOMP_RET_ALLOW},
		{SYS_ID_unshare, CLONE_NEWUTS, TRACED},
		{SYS_ID_unshare, CLONE_NEWUSER | CLONE_NEWUTS, SECCOMP_RET_ALLOW},
		{SYS_ID_unshare, CLONE_FS | CLONE_FILES, SECCOMP_RET_ALLOW},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const uint64_t args[6] = {rows[i].flags};
		cr_assert_eq(filter_build(&options, program, FILTER_MAX, &program_len), 0);
		cr_expect_eq(ask(arches[0].audit, OWN_NR(rows[i].id), args), rows[i].want, "%zu",
			     i);
		cr_assert_eq(filter_build(&unwalled, program, FILTER_MAX, &program_len), 0);
		cr_expect_eq(ask(arches[0].audit, OWN_NR(rows[i].id), args), SECCOMP_RET_ALLOW,
			     "%zu", i);
	}
}

/* The child of a spawn enters its sandbox behind the filter; nobody else knows the mark. */
Test(filter, only_the_child_enters_unseen)
{
	static const struct filter_options begun = {.grant = GRANT, .enter = 0x1234567};
	const uint64_t marked[6] = {5, 0, 0, 0, 0x1234567}, other[6] = {5, 0, 0, 0, GRANT};
	int nr = OWN_NR(SYS_ID_landlock_restrict_self);

	cr_assert_eq(filter_build(&begun, program, FILTER_MAX, &program_len), 0);
	cr_expect_eq(ask(arches[0].audit, nr, marked), SECCOMP_RET_ALLOW);
	cr_expect_eq(ask(arches[0].audit, nr, other), TRACED);
	cr_expect_eq(ask(arches[0].audit, nr, nothing), TRACED);
	cr_expect_eq(ask(arches[0].audit, OWN_NR(SYS_ID_landlock_create_ruleset), marked), TRACED);
	build();
	cr_expect_eq(ask(arches[0].audit, nr, nothing), TRACED);
}

Test(filter, limits_of_others_stop)
{
	static const struct {
		uint64_t pid, limit;
		uint32_t want;
	} rows[] = {
		{0, 0x1000, SECCOMP_RET_ALLOW},
		{7, 0, SECCOMP_RET_ALLOW},
		{7, 0x1000, TRACED},
		{0xf00000000, 0x1000, SECCOMP_RET_ALLOW}, /* the kernel cuts the pid */
	};
	build();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t args[6] = {rows[i].pid, 0, rows[i].limit};
		for (size_t a = 0; a < ARCHES; a++) {
			int nr = sysents[SYS_ID_prlimit64].nr[arches[a].arch];
			cr_expect_eq(ask(arches[a].audit, nr, args), rows[i].want, "row %zu", i);
		}
	}
	/* An address whose lower half is 0 is one all the same. */
	uint64_t high[6] = {7, 0, 0x700000000};
	cr_expect_eq(ask(arches[0].audit, OWN_NR(SYS_ID_prlimit64), high), TRACED);
}

Test(filter, the_mark_opens_the_door_for_opens_only)
{
	build();
	for (size_t i = 0; i < ARCHES; i++) {
		for (int id = 0; id < SYS_ID_COUNT; id++) {
			const struct sysent *ent = &sysents[id];
			bool open = ent->need[0] == CALL_NEED_OPEN;
			if (ent->group != SYS_GROUP_WALL || ent->nr[arches[i].arch] < 0)
				continue;
			for (int arg = 0; arg < 6; arg++) {
				uint64_t args[6] = {0};
				args[arg] = GRANT;
				bool here = arg == FILTER_MARK_ARG;
				uint32_t got = ask(arches[i].audit, ent->nr[arches[i].arch], args);
				/* In flags the mark's bits may happen to hold O_PATH. */
				if (open && here)
					cr_expect_eq(got, SECCOMP_RET_USER_NOTIF, "%s", ent->name);
				else
					cr_expect_neq(got, SECCOMP_RET_USER_NOTIF, "%s", ent->name);
				args[arg] ^= 1;
				got = ask(arches[i].audit, ent->nr[arches[i].arch], args);
				cr_expect_neq(got, SECCOMP_RET_USER_NOTIF, "%s", ent->name);
			}
		}
	}
}

/* What passes by a mark of the fast path: all, all but changes, nothing. */
Test(filter, marked_calls)
{
	static const uint64_t flags[] = {O_RDONLY, O_RDONLY | O_CLOEXEC, O_WRONLY,
					 O_RDWR,   O_RDONLY | O_CREAT,	 O_RDONLY | O_TRUNC};
	static const uint32_t marks[] = {0, 0x1111, 0x2222, 0x3333, 0x4444};
	struct filter_options before = options;

	for (unsigned see = 0; see < 2; see++) {
		options.pass = 0x1111;
		options.look = 0x2222;
		options.report = 0x3333;
		options.see_changes = see;
		build();
		for (unsigned n = 0; n < SYS_ID_COUNT * 5 * 6; n++) {
			const struct sysent *ent = &sysents[n / 30];
			uint32_t mark = marks[n / 6 % 5];
			uint64_t args[6] = {0}, plain[6];
			if (OWN_NR(n / 30) < 0 || !filter_passes(ent))
				continue;
			args[sysent_id(ent) == SYS_ID_openat ? 2 : 1] = flags[n % 6];
			memcpy(plain, args, sizeof(plain));
			args[ent->mark] |= (uint64_t)mark << 32;
			/* What the tracer believes of a mark that new stubs have. */
			bool passes = filter_passes_call(&options, ent, plain);
			uint32_t want = TRACED;
			if (mark == 0x3333)
				want = SECCOMP_RET_TRACE | FILTER_REPORT_DATA;
			else if (mark == 0x1111 || (mark == 0x2222 && see && passes))
				want = SECCOMP_RET_ALLOW;
			cr_expect_eq(ask(arches[0].audit, OWN_NR(n / 30), args), want,
				     "%s %lx, mark %x", ent->name, flags[n % 6], mark);
			if (mark)
				cr_expect_not(filter_passes_call(&options, ent, args));
			cr_expect(see || passes);
		}
	}
	options = before;
}

#ifdef __x86_64__
/* What a spoiled jump makes of its distance is a number beyond all calls'. */
Test(filter, numbers_that_no_call_has)
{
	static const struct {
		int nr;
		uint32_t plain, fast;
	} rows[] = {{STUB_NEAREST - 1, SECCOMP_RET_ALLOW, SECCOMP_RET_ALLOW},
		    {STUB_NEAREST, SECCOMP_RET_ALLOW, TRACED},
		    {0x3fffffff, SECCOMP_RET_ALLOW, TRACED},
		    {0x40000000, SECCOMP_RET_ERRNO | ENOSYS, SECCOMP_RET_ERRNO | ENOSYS}};
	const uint64_t args[6] = {0};
	struct filter_options before = options;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		options.pass = 0;
		build();
		cr_expect_eq(ask(AUDIT_ARCH_X86_64, rows[i].nr, args), rows[i].plain, "%u", i);

		options.pass = 0x1111;
		build();
		cr_expect_eq(ask(AUDIT_ARCH_X86_64, rows[i].nr, args), rows[i].fast, "%u", i);
	}
	for (const struct sysent *ent = sysents; ent < sysents + SYS_ID_COUNT; ent++)
		cr_expect_lt(ent->nr[SYS_ARCH_X86_64], STUB_NEAREST);
	options = before;
}
#endif

Test(filter, arguments)
{
	static const struct {
		uint32_t arch;
		int nr;
		uint64_t args[6];
		uint32_t want;
	} rows[] = {
#ifdef __x86_64__
		{AUDIT_ARCH_X86_64, 257, {0, 0, O_PATH}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_X86_64, 257, {0, 0, O_PATH | O_CLOEXEC}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_X86_64, 257, {0, 0, (uint64_t)O_PATH << 32}, TRACED},
		{AUDIT_ARCH_X86_64, 257, {O_PATH, O_PATH, O_RDWR}, TRACED},
		{AUDIT_ARCH_X86_64, 2, {0, O_PATH}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_I386, 5, {0, O_PATH}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_X86_64, 85, {0, O_PATH}, TRACED},
		{AUDIT_ARCH_X86_64, 56, {CLONE_UNTRACED | 17}, TRACED},
		{AUDIT_ARCH_X86_64, 56, {CLONE_UNTRACED | 17 | 1ull << 40}, TRACED},
		{AUDIT_ARCH_X86_64, 56, {CLONE_VM | CLONE_THREAD}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_I386, 120, {CLONE_UNTRACED}, TRACED},
		{AUDIT_ARCH_X86_64, 16, {0, TIOCSTI}, SECCOMP_RET_ERRNO | EPERM},
		{AUDIT_ARCH_X86_64, 16, {0, TIOCSTI | 1ull << 32}, SECCOMP_RET_ERRNO | EPERM},
		{AUDIT_ARCH_X86_64, 16, {0, 0x541c}, SECCOMP_RET_ERRNO | EPERM},
		{AUDIT_ARCH_X86_64, 16, {TIOCSTI, TIOCGWINSZ}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_I386, 54, {0, TIOCSTI}, SECCOMP_RET_ERRNO | EPERM},
		{AUDIT_ARCH_X86_64, 16, {0, TCGETS}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_X86_64, 16, {0, FIONBIO | 1ull << 32}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_X86_64, 16, {0, 0x8912}, SECCOMP_RET_ALLOW},     /* SIOCGIFCONF */
		{AUDIT_ARCH_X86_64, 16, {0, 0x40049409}, SECCOMP_RET_ALLOW}, /* FICLONE */
		{AUDIT_ARCH_X86_64, 16, {0, 0xae00}, TRACED},	  /* KVM_GET_API_VERSION */
		{AUDIT_ARCH_X86_64, 16, {0, 0x400454ca}, TRACED}, /* TUNSETIFF */
		{AUDIT_ARCH_X86_64, 16, {3, 0x40086602}, SECCOMP_RET_USER_NOTIF}, /* SETFLAGS */
		{AUDIT_ARCH_I386, 54, {3, 0x40046602}, SECCOMP_RET_USER_NOTIF},
		{AUDIT_ARCH_X86_64, 16, {3, 0x401c5820}, SECCOMP_RET_USER_NOTIF}, /* FSSETXATTR */
		{AUDIT_ARCH_X86_64, 16, {3, 0x40806685}, SECCOMP_RET_ERRNO | EOPNOTSUPP},
		{AUDIT_ARCH_X86_64, 16, {3, BTRFS_IOC_SNAP_CREATE}, SECCOMP_RET_ERRNO | ENOTTY},
		{AUDIT_ARCH_X86_64, 16, {3, BTRFS_IOC_SNAP_CREATE_V2}, SECCOMP_RET_ERRNO | ENOTTY},
		{AUDIT_ARCH_X86_64, 16, {3, BTRFS_IOC_SUBVOL_CREATE}, SECCOMP_RET_ERRNO | ENOTTY},
		{AUDIT_ARCH_I386, 54, {3, BTRFS_IOC_SNAP_DESTROY}, SECCOMP_RET_ERRNO | ENOTTY},
		{AUDIT_ARCH_X86_64,
		 16,
		 {3, BTRFS_IOC_SNAP_DESTROY_V2 | 1ull << 32},
		 SECCOMP_RET_ERRNO | ENOTTY},
		{AUDIT_ARCH_X86_64, 16, {3, BTRFS_IOC_CLONE_RANGE}, TRACED},
		{AUDIT_ARCH_X86_64, 44, {3, 1, 1, 0, 0x1000, 16}, SECCOMP_RET_USER_NOTIF},
		{AUDIT_ARCH_X86_64, 44, {3, 1, 1, 0, 1ull << 32, 16}, SECCOMP_RET_USER_NOTIF},
		{AUDIT_ARCH_X86_64, 44, {3, 1, 1, 0, 0, 16}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_I386, 369, {3, 1, 1, 0, 0x1000, 16}, SECCOMP_RET_USER_NOTIF},
		{AUDIT_ARCH_X86_64, 157, {PR_SET_SECCOMP}, TRACED},
		{AUDIT_ARCH_X86_64, 157, {PR_SET_NAME}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_X86_64, 157, {PR_SET_DUMPABLE, 0}, SECCOMP_RET_ERRNO | 0},
		{AUDIT_ARCH_X86_64, 157, {PR_SET_DUMPABLE, 1}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_X86_64, 157, {PR_SET_MM | 1ull << 32}, SECCOMP_RET_ERRNO | EPERM},
		{AUDIT_ARCH_I386, 172, {PR_SET_MM}, SECCOMP_RET_ERRNO | EPERM},
		{AUDIT_ARCH_I386, 102, {1 /* socket */, 4096}, TRACED},
		{AUDIT_ARCH_I386, 102, {16 /* sendmsg */, 4096}, TRACED},
		{AUDIT_ARCH_I386, 102, {17 /* recvmsg */, 4096}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_X86_64, 41, {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC}, TRACED},
		{AUDIT_ARCH_X86_64, 41, {AF_UNIX | 1ull << 32, SOCK_RAW}, TRACED},
		{AUDIT_ARCH_X86_64, 41, {AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_X86_64, 41, {AF_INET, SOCK_DGRAM}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_I386, 360, {AF_UNIX, SOCK_DGRAM}, TRACED},
		{AUDIT_ARCH_X86_64, 323, {O_CLOEXEC | 1}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_X86_64, 323, {O_CLOEXEC}, SECCOMP_RET_ERRNO | EPERM},
		{AUDIT_ARCH_X86_64, 46, {3, 4096}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_X86_64, 46, {3, 4096, 0, 0, GRANT}, SECCOMP_RET_USER_NOTIF},
		{AUDIT_ARCH_X86_64, 56, {CLONE_FILES | 17}, TRACED},
		{AUDIT_ARCH_X86_64, 56, {CLONE_FILES | CLONE_THREAD}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_I386, 102, {2 /* bind */, 4096}, TRACED},
		{AUDIT_ARCH_I386, 102, {2 | 1ull << 32, 4096}, TRACED},
		{AUDIT_ARCH_I386, 102, {4 /* listen */, 4096}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_X86_64, 0x40000000, {0}, SECCOMP_RET_ERRNO | ENOSYS},
		{AUDIT_ARCH_X86_64, 0x40000000 | 257, {0}, SECCOMP_RET_ERRNO | ENOSYS},
		{AUDIT_ARCH_X86_64, -1, {0}, SECCOMP_RET_ERRNO | ENOSYS},
		{AUDIT_ARCH_AARCH64, 56, {0}, SECCOMP_RET_ERRNO | ENOSYS},
		{AUDIT_ARCH_ARM, 5, {0}, SECCOMP_RET_ERRNO | ENOSYS},
#else
		{AUDIT_ARCH_AARCH64, 56, {0, 0, O_PATH}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_AARCH64, 56, {0, 0, (uint64_t)O_PATH << 32}, TRACED},
		{AUDIT_ARCH_AARCH64, 56, {O_PATH, O_PATH, O_RDWR}, TRACED},
		{AUDIT_ARCH_AARCH64, 220, {CLONE_UNTRACED | 17}, TRACED},
		{AUDIT_ARCH_AARCH64, 220, {CLONE_VM | CLONE_THREAD}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_AARCH64, 29, {0, TIOCSTI | 1ull << 32}, SECCOMP_RET_ERRNO | EPERM},
		{AUDIT_ARCH_AARCH64, 29, {3, 0x40086602}, SECCOMP_RET_USER_NOTIF}, /* SETFLAGS */
		{AUDIT_ARCH_AARCH64, 206, {3, 1, 1, 0, 1ull << 32, 16}, SECCOMP_RET_USER_NOTIF},
		{AUDIT_ARCH_AARCH64, 206, {3, 1, 1, 0, 0, 16}, SECCOMP_RET_ALLOW},
		{AUDIT_ARCH_AARCH64, 211, {3, 4096, 0, 0, GRANT}, SECCOMP_RET_USER_NOTIF},
		{AUDIT_ARCH_AARCH64, 198, {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC}, TRACED},
		{AUDIT_ARCH_AARCH64, 167, {PR_SET_MM | 1ull << 32}, SECCOMP_RET_ERRNO | EPERM},
		{AUDIT_ARCH_AARCH64, -1, {0}, SECCOMP_RET_ALLOW},
		/* 32-bit programs have no call at all. */
		{AUDIT_ARCH_ARM, 5, {0}, SECCOMP_RET_ERRNO | ENOSYS},
		{AUDIT_ARCH_ARM, 1, {0}, SECCOMP_RET_ERRNO | ENOSYS},
		{AUDIT_ARCH_X86_64, 257, {0}, SECCOMP_RET_ERRNO | ENOSYS},
#endif
	};

	build();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t got = ask(rows[i].arch, rows[i].nr, rows[i].args);
		cr_expect_eq(got, rows[i].want, "row %zu: %x", i, got);
	}
}

/* The further filter stops what has to do with datagram sockets, and nothing else. */
Test(filter, messages)
{
	static const struct {
		uint32_t arch;
		int nr;
		uint64_t args[6];
		bool stops;
	} rows[] = {
#ifdef __x86_64__
		{AUDIT_ARCH_X86_64, 46, {3, 4096}, true},
		{AUDIT_ARCH_X86_64, 307, {3, 4096}, true},
		{AUDIT_ARCH_I386, 370, {3, 4096}, true},
		{AUDIT_ARCH_I386, 102, {16}, true},
		{AUDIT_ARCH_I386, 102, {17}, false},
		{AUDIT_ARCH_X86_64, 41, {AF_UNIX, SOCK_DGRAM}, true},
		{AUDIT_ARCH_X86_64, 41, {AF_UNIX, SOCK_STREAM}, false},
		{AUDIT_ARCH_X86_64, 56, {CLONE_FILES}, true},
		{AUDIT_ARCH_X86_64, 56, {CLONE_FILES | CLONE_THREAD}, false},
		{AUDIT_ARCH_X86_64, 257, {0}, false},
#else
		{AUDIT_ARCH_AARCH64, 211, {3, 4096}, true},
		{AUDIT_ARCH_AARCH64, 269, {3, 4096}, true},
		{AUDIT_ARCH_AARCH64, 198, {AF_UNIX, SOCK_DGRAM}, true},
		{AUDIT_ARCH_AARCH64, 198, {AF_UNIX, SOCK_STREAM}, false},
		{AUDIT_ARCH_AARCH64, 220, {CLONE_FILES}, true},
		{AUDIT_ARCH_AARCH64, 220, {CLONE_FILES | CLONE_THREAD}, false},
		{AUDIT_ARCH_AARCH64, 56, {0}, false},
#endif
		{AUDIT_ARCH_ARM, 5, {0}, false},
	};
	const uint32_t stop = SECCOMP_RET_TRACE | FILTER_MESSAGE_DATA;

	cr_assert_eq(filter_build_messages(program, FILTER_MAX, &program_len), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(ask(rows[i].arch, rows[i].nr, rows[i].args),
			     rows[i].stops ? stop : SECCOMP_RET_ALLOW, "row %zu", i);
	size_t len;
	cr_expect_eq(filter_build_messages(program, program_len - 1, &len), -E2BIG);
}

/* Jumps land inside; a filter too small is said so. */
Test(filter, is_well_formed)
{
	size_t len;

	build();
	cr_expect(program_len <= FILTER_MAX);
	for (size_t pc = 0; pc < program_len; pc++) {
		const struct sock_filter *f = &program[pc];
		if (BPF_CLASS(f->code) != BPF_JMP)
			continue;
		size_t far = f->code == (BPF_JMP | BPF_JA) ? f->k : f->jt > f->jf ? f->jt : f->jf;
		cr_expect(pc + 1 + far < program_len, "instruction %zu", pc);
		/* No test jumps over a jump that it could make itself. */
		cr_expect(!(f->code != (BPF_JMP | BPF_JA) && f->jt == 1 && f->jf == 0 &&
			    f[1].code == (BPF_JMP | BPF_JA) && f[1].k <= UINT8_MAX),
			  "instruction %zu", pc);
	}
	cr_expect_eq(filter_build(&options, program, program_len - 1, &len), -E2BIG);
}

/* With what every one of them can be refused: but for what Landlock never refuses. */
Test(filter, terminals_where_they_are_wanted)
{
	static const struct {
		uint64_t cmd;
		uint32_t want;
	} rows[] = {
		{TCGETS, TRACED},
		{TIOCGWINSZ, TRACED},
		{FIONREAD, TRACED},
		{FIONBIO, SECCOMP_RET_ALLOW},
		{FIOCLEX, SECCOMP_RET_ALLOW},
		{TIOCSTI, SECCOMP_RET_ERRNO | EPERM},
	};

	options.terminals = true;
	build();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(
			ask(arches[0].audit, OWN_NR(SYS_ID_ioctl), (uint64_t[6]){0, rows[i].cmd}),
			rows[i].want, "row %zu", i);
}
