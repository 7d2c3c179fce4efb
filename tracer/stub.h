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

#define STUB_SIZE     160
#define STUB_INSN_MAX 15 /* x86's longest instruction */
#define STUB_JUMP     5	 /* bytes of the jump that replaces the instruction */
/*
 * From a jump in the place of a `mov $imm,%eax` to its stub, at least: what a jump that was spoiled
 * makes of that distance (patch_mend()) is no call's number.
 */
#define STUB_NEAREST 1024
#define STUB_MOV_EAX 0xb8 /* the first byte of it */

/* How a stub makes the call: one byte of it decides. */
enum stub_way {
	STUB_WAY_PASS,	/* marked to pass */
	STUB_WAY_LOOK,	/* marked to pass unless it changes something */
	STUB_WAY_PLAIN, /* it leaves it to the plain `syscall`, without a mark */
};

struct stub_site {
	uint64_t syscall;	       /* address of the syscall instruction */
	uint8_t before[STUB_INSN_MAX]; /* what is before it, which is replaced: an instruction, */
	uint8_t before_len;	       /* at least STUB_JUMP */
	int32_t nr;		       /* the watched number */
	uint8_t mark_arg;	       /* 0, 1 or 2: which argument carries the mark */
	bool several;		       /* or some, each of which can be run twice */
	bool two_paths;		       /* EXDEV can be Landlock's */
	enum stub_way way;
};

struct stub_marks {
	uint32_t pass;	 /* the filter lets the call through */
	uint32_t look;	 /* the same, but a call that changes something stops */
	uint32_t report; /* the filter stops the thread */
};

/*
 * The stub for this site at address `at`, and the jump to it. 0; -ERANGE: too far apart for a
 * jump, or too near.
 */
int stub_build(const struct stub_site *site, const struct stub_marks *marks, uint64_t at,
	       uint8_t stub[STUB_SIZE], uint8_t jump[STUB_JUMP]);
/*
 * Where in its stub a thread is, by the offset of its instruction pointer: what has become of the
 * plain call.
 */
enum stub_place {
	STUB_BEGIN,   /* nothing was done: it is at the instruction that the jump replaced */
	STUB_UNMADE,  /* that was done, the call was not made */
	STUB_MARKED,  /* the same, and the argument has its mark */
	STUB_CALLED,  /* behind the call, the argument has its mark */
	STUB_MADE,    /* behind the call */
	STUB_REPORTS, /* it reports; or no place of this stub */
};
enum stub_place stub_place(const struct stub_site *site, uint64_t offset);
/* The mark that the argument has there, where it is MARKED or CALLED. */
uint32_t stub_mark(const struct stub_site *site, const struct stub_marks *marks, uint64_t offset);
/* Would a stub report this result? */
bool stub_reports(const struct stub_site *site, int64_t result);
/*
 * The offset of the byte that decides, and what it is for the site's way. A byte is written at
 * once, whoever runs there meanwhile: who has come past it goes on as it was.
 */
size_t stub_switch(const struct stub_site *site);
uint8_t stub_switch_byte(const struct stub_site *site);
/*
 * The error that a report brings: orig_rax at its stop holds the number below and the error above.
 * 0: that was no report of a stub.
 */
int stub_reported_error(uint64_t orig_rax);
