/*
 * stub: the few instructions that make a watched call without a stop. x86-64 only.
 *
 * A stub stands in for one instruction right before a `syscall` instruction, which becomes a jump
 * to it. It runs that instruction, and if the number in eax is the watched one makes the call
 * itself, marked: a 32-bit cookie is added to the upper half of an argument that the kernel cuts to
 * 32 bits, by which the seccomp filter lets it pass. If the result is one that Landlock could have
 * given, it reports: the same number again, with another mark, for which the filter stops the
 * thread. It never makes the call again: a refused O_CREAT|O_EXCL may have left the file behind.
 * Then it goes back behind the `syscall`.
 *
 * It uses rcx alone, which the system call destroys anyway; flags, stack and every other register
 * are as after the plain call: the mark is added and taken away by lea. What is not the watched
 * number goes back to the plain `syscall`. An argument with something in its upper half already
 * gives a mark that the filter does not know: that call takes the slow way.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STUB_SIZE     128
#define STUB_INSN_MAX 15 /* x86's longest instruction */
#define STUB_JUMP     5	 /* bytes of the jump that replaces the instruction */

struct stub_site {
	uint64_t syscall;	       /* address of the syscall instruction */
	uint8_t before[STUB_INSN_MAX]; /* the instruction before it, which is replaced */
	uint8_t before_len;	       /* at least STUB_JUMP */
	int32_t nr;		       /* the watched number */
	uint8_t mark_arg;	       /* 0, 1 or 2: which argument carries the mark */
	bool two_paths;		       /* EXDEV can be Landlock's */
};

struct stub_marks {
	uint32_t pass;	 /* the filter lets the call through */
	uint32_t report; /* the filter stops the thread */
};

/*
 * The stub for this site at address `at`, and the jump to it. 0; -ERANGE: too far apart for a
 * jump.
 */
int stub_build(const struct stub_site *site, const struct stub_marks *marks, uint64_t at,
	       uint8_t stub[STUB_SIZE], uint8_t jump[STUB_JUMP]);
/*
 * The error that a report brings: orig_rax at its stop holds the number below and the error above.
 * 0: that was no report of a stub.
 */
int stub_reported_error(uint64_t orig_rax);
