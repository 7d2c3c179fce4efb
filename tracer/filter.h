/*
 * filter: the seccomp program, derived from syscalls.def.
 *
 * What it does with a call, by its row's group:
 *   WALL     stops for the tracer; an open with O_PATH passes (Landlock never refuses it); an open
 *            with the GRANT mark waits at the door (USER_NOTIF); ioctls of sockets pass, and of
 *            terminals unless they are wanted; TIOCSTI and TIOCLINUX are EPERM; those that set a
 *            file's attributes wait at the door
 *   MOUNT    stops for the tracer
 *   META     waits at the door
 *   CONNECT  waits at the door, but for sendto without an address, which passes, and sendmsg and
 *            sendmmsg: they pass where the program can't have a unix datagram socket
 *            (tracer/messages.h), and wait with the GRANT mark or where `messages` says so
 *   GUARD    clone with CLONE_UNTRACED or a table of descriptors for another process,
 *            prctl(PR_SET_SECCOMP), ptrace, seccomp, io_uring_setup, open_by_handle_at, and socket
 *            and socketpair of unix datagrams stop, and the watched parts of socketcall; clone3 is
 *            ENOSYS, prctl(PR_SET_MM) and pidfd_getfd EPERM
 *   others, and numbers without a row, pass
 * A foreign architecture and x32 calls (x86-64's audit arch with bit 30 set) are ENOSYS.
 * Arguments are read under watched numbers only, so every other number stays in the kernel's
 * constant-action cache (5.11).
 *
 * The mark is 32 random bits of the caller, in args[FILTER_MARK_ARG], which no open uses: the
 * arguments that it has stay as they are, since a filter of the tracee's own may kill for a bit too
 * much in one. args[5] would not do: i386's SYSENTER keeps the stack in it.
 *
 * A call of the fast path passes by its mark; by the mark `look` only an open for reading does.
 * With these marks a 64-bit number beyond all calls' stops (fastpath_mend()).
 *
 * Every stop of ours has FILTER_TRACE_DATA as its data: of several filters that want a tracer the
 * last one installed has its data seen, and another's TRACE is none of ours.
 */
#pragma once

#include "tracer/sysent.h"

#include <linux/filter.h>
#include <linux/sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILTER_MAX	    2048 /* instructions; the kernel's limit is 4096 */
#define FILTER_MARK_ARG	    4
#define FILTER_TRACE_DATA   0x5753 /* SECCOMP_RET_DATA of our stops */
#define FILTER_REPORT_DATA  0x5752 /* the same, of a stub's report */
#define FILTER_MESSAGE_DATA 0x5751 /* the same, of the further filter (tracer/messages.h) */

/* Flags of clone and unshare: a namespace, which belongs to the caller's user namespace. */
#define FILTER_NAMESPACES                                                                          \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET)

struct filter_options {
	uint32_t grant; /* the mark of a call that waits at the door for its descriptor */
	/*
	 * In args[FILTER_MARK_ARG], too: with it landlock_restrict_self passes, in a child that
	 * enters its sandbox behind the filter. Nothing else ever has it. 0: none.
	 */
	uint32_t enter;
	/*
	 * The fast path's marks (tracer/stub.h), 0: none. They sit in the upper half of
	 * args[row.mark] and are looked at in 64-bit calls only.
	 */
	uint32_t pass, look, report;
	bool see_changes; /* calls that change something stop, but for those marked `pass` */
	bool native;	  /* nothing is refused: what would wait at the door stops for the tracer,
			   * and what is answered above stops (clone3) or passes (ioctls) */
	bool terminals;	  /* the ioctls of terminals stop, too */
	bool identities;  /* calls that change ids, groups or capabilities stop */
	bool messages;	  /* sendmsg and sendmmsg wait at the door */
	/*
	 * PR_SET_DUMPABLE to 0 says that it worked, and does nothing: of a process that is not
	 * dumpable an ordinary user's tracer can read nothing, and could do no call in its place.
	 */
	bool readable;
};

/*
 * Build into out[0..cap). 0 with *ret_len, or -E2BIG.
 * Reads and allocates nothing; any architecture pair this build knows is in the one program.
 */
int filter_build(const struct filter_options *options, struct sock_filter *out, size_t cap,
		 size_t *ret_len);
/*
 * The further filter of a program that may have a unix datagram socket: sendmsg and sendmmsg stop,
 * and what the other one stops because of such sockets, with FILTER_MESSAGE_DATA.
 */
int filter_build_messages(struct sock_filter *out, size_t cap, size_t *ret_len);
/* Is it sendmsg or sendmmsg? */
bool filter_is_message(const struct sysent *ent);
/* Can this row's call carry the fast path's marks? */
bool filter_passes(const struct sysent *ent);
/* Would a call with these arguments pass by the fast path's mark? */
bool filter_passes_call(const struct filter_options *options, const struct sysent *ent,
			const uint64_t args[6]);
/* Does it pass unmarked, for it opens nothing (O_PATH)? */
bool filter_opens_nothing(const struct sysent *ent, const uint64_t args[6]);
/* Does it change whom its thread is to the kernel: ids, groups, capabilities, user namespace? */
bool filter_changes_identity(const struct sysent *ent);
/* Do this row's calls wait at the door before they run? */
int filter_waits(const struct sysent *ent);
/* Does this ioctl set attributes, and wait there too? */
bool filter_waits_ioctl(uint32_t command);
/* Can this row's call carry the GRANT mark? */
int filter_grants(const struct sysent *ent);
