#include "tracer/regs.h"

#include "tracer/mem.h"
#include "tracer/stub.h"

#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

enum sys_arch regs_arch(uint32_t audit)
{
	switch (audit) {
	case AUDIT_ARCH_X86_64:
		return SYS_ARCH_X86_64;
	case AUDIT_ARCH_I386:
		return SYS_ARCH_I386;
	case AUDIT_ARCH_AARCH64:
		return SYS_ARCH_AARCH64;
	default:
		return SYS_ARCH_COUNT;
	}
}

int regs_call(pid_t tid, struct regs_call *ret)
{
	struct __ptrace_syscall_info info;

	memset(&info, 0, sizeof(info));
	if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) < 0)
		return -errno;
	*ret = (struct regs_call){.arch = regs_arch(info.arch), .ip = info.instruction_pointer};
	switch (info.op) {
	case PTRACE_SYSCALL_INFO_ENTRY:
		ret->at = REGS_AT_ENTRY;
		ret->nr = (int64_t)info.entry.nr;
		memcpy(ret->args, info.entry.args, sizeof(ret->args));
		break;
	case PTRACE_SYSCALL_INFO_SECCOMP:
		ret->at = REGS_AT_SECCOMP;
		ret->nr = (int64_t)info.seccomp.nr;
		ret->data = info.seccomp.ret_data;
		memcpy(ret->args, info.seccomp.args, sizeof(ret->args));
		break;
	case PTRACE_SYSCALL_INFO_EXIT:
		ret->at = REGS_AT_EXIT;
		ret->result = info.exit.rval;
		break;
	default:
		break;
	}
	return 0;
}

bool regs_restarts(int64_t result)
{
	return result <= -512 && result >= -516;
}

int regs_get_sigmask(pid_t tid, uint64_t *ret)
{
	return ptrace(PTRACE_GETSIGMASK, tid, sizeof(*ret), ret) < 0 ? -errno : 0;
}

int regs_set_sigmask(pid_t tid, uint64_t mask)
{
	return ptrace(PTRACE_SETSIGMASK, tid, sizeof(mask), &mask) < 0 ? -errno : 0;
}

#ifdef __x86_64__

/* The kernel's restart codes (its include/linux/errno.h). */
#define KERNEL_ERESTARTSYS    512
#define KERNEL_ERESTARTNOINTR 513

#define CS_I386 0x23 /* __USER32_CS */

#define INSN_SIZE 2 /* syscall, sysenter's way back in the vdso, int $0x80 */

/* PTRACE_GETREGS, unlike GETREGSET, has one layout for 64-bit and 32-bit tracees alike. */
static int get(pid_t tid, struct user_regs_struct *r)
{
	return ptrace(PTRACE_GETREGS, tid, NULL, r) < 0 ? -errno : 0;
}

static int set(pid_t tid, struct user_regs_struct *r)
{
	return ptrace(PTRACE_SETREGS, tid, NULL, r) < 0 ? -errno : 0;
}

static unsigned long long *arg_of(struct user_regs_struct *r, enum sys_arch arch, unsigned i)
{
	unsigned long long *wide[] = {&r->rdi, &r->rsi, &r->rdx, &r->r10, &r->r8, &r->r9};
	unsigned long long *i386[] = {&r->rbx, &r->rcx, &r->rdx, &r->rsi, &r->rdi, &r->rbp};

	return arch == SYS_ARCH_I386 ? i386[i] : wide[i];
}

int regs_set_result(pid_t tid, int64_t result)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0)
		return err;
	r.rax = (uint64_t)result;
	return set(tid, &r);
}

int regs_begin_anew(pid_t tid)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0 || (int32_t)r.rax != -KERNEL_ERESTARTSYS)
		return err;
	enum sys_arch arch = r.cs == CS_I386 ? SYS_ARCH_I386 : SYS_ARCH_X86_64;
	const struct sysent *ent = sysent_by_nr(arch, (int32_t)r.orig_rax);
	if (!ent)
		return 0;
	bool part = sysent_id(ent) == SYS_ID_socketcall;
	if (ent->group != SYS_GROUP_META && ent->group != SYS_GROUP_CONNECT && !part)
		return 0;
	r.rax = (uint64_t)-KERNEL_ERESTARTNOINTR;
	return set(tid, &r);
}

int regs_skip(pid_t tid, int64_t result)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0)
		return err;
	r.orig_rax = (uint64_t)-1;
	r.rax = (uint64_t)result;
	return set(tid, &r);
}

int regs_again(pid_t tid, int64_t nr)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0)
		return err;
	r.rip -= 2;
	r.rax = (uint64_t)nr;
	r.orig_rax = (uint64_t)-1;
	return set(tid, &r);
}

int regs_move(pid_t tid, const struct regs_call *call, unsigned i)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0)
		return err;
	r.rip = call->ip;
	*arg_of(&r, call->arch, i) = call->args[i];
	return set(tid, &r);
}

int regs_set_number(pid_t tid, int64_t nr)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0)
		return err;
	r.orig_rax = (uint64_t)nr;
	return set(tid, &r);
}

int regs_ip(pid_t tid, uint64_t *ret)
{
	errno = 0;
	long ip = ptrace(PTRACE_PEEKUSER, tid, offsetof(struct user_regs_struct, rip), NULL);
	if (errno)
		return -errno;
	*ret = (uint64_t)ip;
	return 0;
}

int regs_leave_stub(pid_t tid, const struct stub_site *site, uint64_t stub, uint32_t pass)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0)
		return err;
	enum stub_place place = stub_place(site, r.rip - stub);
	bool made = place == STUB_CALLED || place == STUB_MADE;
	if (place == STUB_REPORTS || (made && stub_reports(site, (int64_t)r.rax)))
		return 1;
	if (place == STUB_MARKED || place == STUB_CALLED)
		*arg_of(&r, SYS_ARCH_X86_64, site->mark_arg) -= (uint64_t)pass << 32;
	r.rip = site->syscall;
	if (place == STUB_BEGIN)
		r.rip -= site->before_len;
	if (made) /* one that is to be begun anew is so by the kernel, from here */
		r.rip += INSN_SIZE;
	return set(tid, &r);
}

int regs_enter_stub(pid_t tid, const struct stub_site *site, uint64_t stub)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0)
		return err;
	r.rip = stub + site->before_len; /* what was before the call has been done */
	r.rax = (uint64_t)site->nr;
	r.orig_rax = (uint64_t)-1;
	return set(tid, &r);
}

int regs_take_report(pid_t tid, const struct regs_call *call, int mark_arg, int *ret_error)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0)
		return err;
	int error = stub_reported_error(r.orig_rax);
	if (mark_arg >= 0) {
		r.rip = call->ip;
		*arg_of(&r, call->arch, (unsigned)mark_arg) = call->args[mark_arg];
	}
	if (error) {
		r.orig_rax = (uint64_t)-1;
		r.rax = (uint64_t)-error;
	}
	err = set(tid, &r);
	if (err == 0)
		*ret_error = error;
	return err;
}

int regs_make(pid_t tid, const struct regs_call *call, int mark_arg, uint64_t marked)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0)
		return err;
	r.orig_rax = (uint64_t)call->nr;
	if (mark_arg >= 0)
		*arg_of(&r, call->arch, (unsigned)mark_arg) = marked;
	return set(tid, &r);
}

int regs_set_arg(pid_t tid, enum sys_arch arch, unsigned i, uint64_t value)
{
	struct user_regs_struct r;
	size_t at = (size_t)((char *)arg_of(&r, arch, i) - (char *)&r);

	return ptrace(PTRACE_POKEUSER, tid, at, value) < 0 ? -errno : 0;
}

int regs_set_call(pid_t tid, const struct regs_call *call)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0)
		return err;
	r.orig_rax = (uint64_t)call->nr;
	for (unsigned i = 0; i < 6; i++)
		*arg_of(&r, call->arch, i) = call->args[i];
	return set(tid, &r);
}

int regs_repeat(pid_t tid, const struct regs_call *call, int mark_arg, uint64_t marked)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0)
		return err;
	r.rip -= INSN_SIZE;
	r.rax = (uint64_t)call->nr;
	/* No call is going on: a signal on the way must not take this for one to restart. */
	r.orig_rax = (uint64_t)-1;
	if (mark_arg >= 0)
		*arg_of(&r, call->arch, (unsigned)mark_arg) = marked;
	return set(tid, &r);
}

int regs_save(pid_t tid, struct regs_saved *ret)
{
	return get(tid, &ret->regs);
}

int regs_restore(pid_t tid, const struct regs_saved *saved, int64_t result)
{
	struct user_regs_struct r = saved->regs;

	r.orig_rax = (uint64_t)-1;
	r.rax = (uint64_t)result;
	return set(tid, &r);
}

int regs_redirect(pid_t tid, const struct regs_saved *saved, const struct regs_call *call)
{
	struct user_regs_struct r = saved->regs;

	r.rip -= INSN_SIZE;
	r.rax = (uint64_t)call->nr;
	r.orig_rax = (uint64_t)-1;
	for (unsigned i = 0; i < 6; i++)
		*arg_of(&r, call->arch, i) = call->args[i];
	return set(tid, &r);
}

bool regs_clobbers(enum sys_arch arch, unsigned i)
{
	(void)arch;
	(void)i;
	return false;
}

#define CODE_32_BIT 0x23 /* __USER32_CS, arch/x86/include/asm/segment.h */

/* System V ABI, AMD64 supplement, figure 3.36. */
int regs_get_dwarf(pid_t tid, struct regs_dwarf *ret)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0)
		return err;
	*ret = (struct regs_dwarf){.ip = r.rip, .sp = r.rsp, .narrow = r.cs == CODE_32_BIT};
	const uint64_t word[] = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
				 r.r9,	r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
	ret->len = sizeof(word) / sizeof(word[0]);
	memcpy(ret->word, word, sizeof(word));
	return 0;
}

#elif defined(__aarch64__)

#define INSN_SIZE 4

static int get(pid_t tid, struct user_regs_struct *r)
{
	struct iovec iov = {r, sizeof(*r)};
	return ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) < 0 ? -errno : 0;
}

static int set(pid_t tid, struct user_regs_struct *r)
{
	struct iovec iov = {r, sizeof(*r)};
	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &iov) < 0 ? -errno : 0;
}

/*
 * The number of the call that is going on is no register. Without one (-1) the kernel makes none,
 * and a signal on the way does not take what is in x0 for a call's result.
 */
static int set_number(pid_t tid, int nr)
{
	struct iovec iov = {&nr, sizeof(nr)};
	return ptrace(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &iov) < 0 ? -errno : 0;
}

int regs_set_result(pid_t tid, int64_t result)
{
	return regs_set_arg(tid, SYS_ARCH_AARCH64, 0, (uint64_t)result);
}

#define INSN_SVC 0xd4000001u /* svc #0 */
#define INSN_NOP 0xd503201fu

static uint64_t value_of(const struct user_regs_struct *r, unsigned i)
{
	return i == 31 ? 0 : r->regs[i];
}

/* A move to a register that holds the value already (Arm ARM, C6.2: MOV, MOVZ, MOVN, NOP). */
static bool changes_nothing(const struct user_regs_struct *r, uint32_t insn)
{
	uint64_t to = value_of(r, insn & 31), from = value_of(r, insn >> 16 & 31);
	uint64_t constant = insn >> 5 & 0xffff;

	if ((insn & 0xffe0ffe0u) == 0xaa0003e0u) /* mov x1, x2 */
		return to == from;
	if ((insn & 0xffe0ffe0u) == 0x2a0003e0u) /* mov w1, w2 */
		return to == (uint32_t)from;
	if ((insn & 0xffe00000u) == 0x92800000u) /* mov x1, #-2 */
		return to == ~constant;
	if ((insn & 0xffe00000u) == 0x12800000u) /* mov w1, #-2 */
		return to == (uint32_t)~constant;
	if ((insn & 0x7fe00000u) == 0x52800000u) /* mov x1, #2; mov w1, #2 */
		return to == constant;
	return insn == INSN_NOP;
}

/*
 * The kernel has put the thread back before its call already, and will make that EINTR if it finds
 * it there (arch/arm64/kernel/signal.c, do_signal()). So it is put one instruction further back, if
 * that one changes nothing: before the call of a C library there is such a one.
 */
int regs_begin_anew(pid_t tid)
{
	struct user_regs_struct r;
	uint32_t insn[2];
	int err = get(tid, &r);

	if (err < 0)
		return err;
	const struct sysent *ent = sysent_by_nr(SYS_ARCH_AARCH64, (int32_t)r.regs[8]);
	if (!ent || (ent->group != SYS_GROUP_META && ent->group != SYS_GROUP_CONNECT))
		return 0;
	if (mem_read(tid, r.pc - INSN_SIZE, insn, sizeof(insn)) < 0 || insn[1] != INSN_SVC ||
	    !changes_nothing(&r, insn[0]))
		return 0;
	r.pc -= INSN_SIZE;
	return set(tid, &r);
}

int regs_skip(pid_t tid, int64_t result)
{
	int err = set_number(tid, -1);

	return err < 0 ? err : regs_set_result(tid, result);
}

int regs_set_number(pid_t tid, int64_t nr)
{
	return set_number(tid, (int)nr);
}

int regs_make(pid_t tid, const struct regs_call *call, int mark_arg, uint64_t marked)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0)
		return err;
	r.regs[0] = call->args[0];
	if (mark_arg >= 0)
		r.regs[mark_arg] = marked;
	err = set_number(tid, (int)call->nr);
	return err < 0 ? err : set(tid, &r);
}

int regs_set_arg(pid_t tid, enum sys_arch arch, unsigned i, uint64_t value)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	(void)arch;
	if (err < 0)
		return err;
	r.regs[i] = value;
	return set(tid, &r);
}

int regs_set_call(pid_t tid, const struct regs_call *call)
{
	(void)tid;
	(void)call;
	return -ENOSYS; /* socketcall is i386's */
}

int regs_repeat(pid_t tid, const struct regs_call *call, int mark_arg, uint64_t marked)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0)
		return err;
	r.pc -= INSN_SIZE;
	r.regs[8] = (uint64_t)call->nr;
	r.regs[0] = call->args[0]; /* the result took its place */
	if (mark_arg >= 0)
		r.regs[mark_arg] = marked;
	err = set_number(tid, -1);
	return err < 0 ? err : set(tid, &r);
}

int regs_save(pid_t tid, struct regs_saved *ret)
{
	return get(tid, &ret->regs);
}

/*
 * At the stops before and behind a call x7 tells which of them it is, and gets its own value back
 * afterwards; at the others it is the program's (arch/arm64/kernel/ptrace.c, report_syscall()). So
 * what was saved of it at one may not be put back at another; no call changes it meanwhile.
 */
static int put_back(pid_t tid, struct user_regs_struct *r)
{
	struct user_regs_struct now;
	int err = get(tid, &now);

	if (err < 0)
		return err;
	r->regs[7] = now.regs[7];
	err = set_number(tid, -1);
	return err < 0 ? err : set(tid, r);
}

int regs_restore(pid_t tid, const struct regs_saved *saved, int64_t result)
{
	struct user_regs_struct r = saved->regs;

	r.regs[0] = (uint64_t)result;
	return put_back(tid, &r);
}

int regs_redirect(pid_t tid, const struct regs_saved *saved, const struct regs_call *call)
{
	struct user_regs_struct r = saved->regs;

	r.pc -= INSN_SIZE;
	r.regs[8] = (uint64_t)call->nr;
	for (unsigned i = 0; i < 6; i++)
		r.regs[i] = call->args[i];
	return put_back(tid, &r);
}

bool regs_clobbers(enum sys_arch arch, unsigned i)
{
	(void)arch;
	return i == 0;
}

/* DWARF for the Arm 64-bit Architecture: x0-x30, sp, pc. */
int regs_get_dwarf(pid_t tid, struct regs_dwarf *ret)
{
	struct user_regs_struct r;
	int err = get(tid, &r);

	if (err < 0)
		return err;
	*ret = (struct regs_dwarf){.ip = r.pc, .sp = r.sp, .len = 33};
	memcpy(ret->word, r.regs, sizeof(r.regs));
	ret->word[31] = r.sp;
	ret->word[32] = r.pc;
	return 0;
}

#else
#error "regs: this architecture has no code yet"
#endif
