/*
 * insn: machine instructions, decoded. The only includer of Zydis. x86-64.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The length of the instruction that ends at code + len, decoding from code, where a function
 * begins. 0: there is none of `min` bytes or more that may be moved elsewhere (it is a plain data
 * move, not relative to its place), or the bytes do not decode up to there.
 */
unsigned insn_movable_before(const uint8_t *code, size_t len, unsigned min);
