/*
 * insn: machine instructions, decoded. Where Zydis is missing nothing decodes, and a call that
 * needs it takes its two stops. x86-64.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the first of these does by itself: load what decodes. It may be missing. */
void insn_prepare(void);

/*
 * The length of the instruction that ends at code + len, decoding from code, where a function
 * begins. 0: there is none of `min` bytes or more that may be moved elsewhere (it is a plain data
 * move, not relative to its place), or the bytes do not decode up to there.
 */
unsigned insn_movable_before(const uint8_t *code, size_t len, unsigned min);

#define INSN_LOOK_BACK 24 /* instructions */

/* What is decoded, from a function's beginning on: code, len and at (0) are given. */
struct insn_calls {
	const uint8_t *code; /* a loan */
	size_t len;
	size_t at;   /* what comes next */
	size_t call; /* the `syscall` instruction found last, */
	int32_t nr;  /* and the number that was put into eax right before; -1: none can be told */
	size_t before[INSN_LOOK_BACK]; /* where the instructions before it begin */
	size_t len_before;
};
/* The next `syscall` instruction; false: there is none. What does not decode is left out. */
bool insn_next_call(struct insn_calls *c);
