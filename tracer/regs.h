/*
 * regs: the registers of a tracee in a ptrace stop; the one file with per-architecture code.
 *
 * An x86-64 tracer sees i386 tracees (and int $0x80 from 64-bit code) in the 64-bit layout.
 * Every function gives 0, -ESRCH where the tracee is gone or no longer stopped, or -errno.
 */
#pragma once

#include "tracer/sysent.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

enum regs_at { REGS_AT_NONE, REGS_AT_ENTRY, REGS_AT_SECCOMP, REGS_AT_EXIT };

/* What PTRACE_GET_SYSCALL_INFO (5.3) tells. */
struct stub_site;

struct regs_call {
	enum regs_at at;
	enum sys_arch arch; /* SYS_ARCH_COUNT: none that we know */
	uint64_t ip;	    /* behind the system call instruction */
	int64_t nr;	    /* entry and seccomp stops */
	uint64_t args[6];   /* entry and seccomp stops */
	int64_t result;	    /* exit stops: >= 0, or -errno */
	uint32_t data;	    /* seccomp stops: SECCOMP_RET_DATA */
};

int regs_call(pid_t tid, struct regs_call *ret);
/* The architecture of an AUDIT_ARCH_*; SYS_ARCH_COUNT: none that we know. */
enum sys_arch regs_arch(uint32_t audit_arch);

/*
 * Is this result one of the kernel's own restart codes (512 to 516, errno.h of the kernel)? Then
 * the call has not ended: it begins anew, or becomes EINTR after a handler.
 */
bool regs_restarts(int64_t result);
/*
 * At a signal's stop: a call of row-group META or CONNECT that the signal broke off before it began
 * is begun anew after the handler, whatever the handler's SA_RESTART. (On aarch64 where the
 * instruction before the call allows it; else it is EINTR for a handler without SA_RESTART.)
 */
int regs_begin_anew(pid_t tid);
/* At an exit stop: what the call returns. */
int regs_set_result(pid_t tid, int64_t result);
/* At a seccomp stop: the call does not run and returns `result`. */
int regs_skip(pid_t tid, int64_t result);
/* At a seccomp stop of a 64-bit call: not this one, the same instruction once more with `nr`. */
int regs_again(pid_t tid, int64_t nr);
/* At a seccomp stop: instruction pointer and argument i become those of `call`. */
int regs_move(pid_t tid, const struct regs_call *call, unsigned i);
/* At any stop. */
int regs_ip(pid_t tid, uint64_t *ret);
/*
 * At a signal's or job-control stop somewhere in the stub at this address: the thread is to go on,
 * and is to be seen, at the plain call instead, made or still to be made. 1, and nothing is done,
 * where the stub has something to report first.
 */
int regs_leave_stub(pid_t tid, const struct stub_site *site, uint64_t stub, uint32_t pass);
/* At a seccomp stop: this call is not made here but by its stub, whose address that is. */
int regs_enter_stub(pid_t tid, const struct stub_site *site, uint64_t stub);
/*
 * At a seccomp stop: the error that a stub's report brings (tracer/stub.h), 0: none. The call does
 * not run and returns that. With mark_arg >= 0 instruction pointer and that argument become those
 * of `call`.
 */
int regs_take_report(pid_t tid, const struct regs_call *call, int mark_arg, int *ret_error);
/*
 * At a seccomp stop whose call was not to run: it runs all the same, and is this one; with mark_arg
 * >= 0, with `marked` in that argument. The filter is asked about it, but for RET_TRACE: that has
 * been heard (kernel/seccomp.c, recheck_after_trace, 4.8).
 */
int regs_make(pid_t tid, const struct regs_call *call, int mark_arg, uint64_t marked);
/*
 * At the exit stop of a call that regs_skip() kept from running: it counts as the call `nr` all the
 * same, so that the kernel makes it again where its result says so (ERESTARTSYS).
 */
int regs_set_number(pid_t tid, int64_t nr);
/* Argument i as the kernel (at an entry or seccomp stop) or the program (at an exit stop) sees it.
 */
int regs_set_arg(pid_t tid, enum sys_arch arch, unsigned i, uint64_t value);
/* At a seccomp stop: it becomes this call. At an exit stop: as if it had been. i386 only. */
int regs_set_call(pid_t tid, const struct regs_call *call);
/*
 * At an exit stop: go back over the instruction, so that the call of `call` (as it was at its
 * entry) runs again; with mark_arg >= 0, with `marked` in that argument.
 */
int regs_repeat(pid_t tid, const struct regs_call *call, int mark_arg, uint64_t marked);
/*
 * All registers of a tracee at the exit stop of a call, to be put back later: restore() leaves it
 * behind that call with `result`, at an exit or a seccomp stop (whose call is then not made);
 * redirect() lets it make another call from the same instruction.
 */
struct regs_saved {
	struct user_regs_struct regs;
};
int regs_save(pid_t tid, struct regs_saved *ret);
int regs_restore(pid_t tid, const struct regs_saved *saved, int64_t result);
int regs_redirect(pid_t tid, const struct regs_saved *saved, const struct regs_call *call);
/* Does argument i lose its value to the result? (aarch64's x0 does.) */
bool regs_clobbers(enum sys_arch arch, unsigned i);

/*
 * A thread's registers under the numbers that DWARF gives them, as unwinding wants them. `narrow`:
 * it runs 32-bit code, and only ip and sp are filled.
 */
#define REGS_DWARF_MAX 33

struct regs_dwarf {
	uint64_t word[REGS_DWARF_MAX];
	unsigned len;
	uint64_t ip, sp;
	bool narrow;
};

int regs_get_dwarf(pid_t tid, struct regs_dwarf *ret);

/* The mask of blocked signals, as a plain 64-bit set. */
int regs_get_sigmask(pid_t tid, uint64_t *ret);
int regs_set_sigmask(pid_t tid, uint64_t mask);
