#include "tracer/insn.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MIN 5

static const struct {
	const char *what;
	uint8_t code[24];
	uint8_t len;
	unsigned want;
} rows[] = {
	{"mov $257,%eax", {0xb8, 1, 1, 0, 0}, 5, 5},
	{"endbr64; mov $257,%eax", {0xf3, 0x0f, 0x1e, 0xfa, 0xb8, 1, 1, 0, 0}, 9, 5},
	{"mov $-100,%edi", {0xbf, 0x9c, 0xff, 0xff, 0xff}, 5, 5},
	{"mov 16(%rsp),%rax", {0x48, 0x8b, 0x44, 0x24, 0x10}, 5, 5},
	{"mov %r11,8(%rsp)", {0x4c, 0x89, 0x5c, 0x24, 8}, 5, 5},
	{"movabs $1,%rax", {0x48, 0xb8, 1, 0, 0, 0, 0, 0, 0, 0}, 10, 10},
	{"lea 256(%rax),%rdi", {0x48, 0x8d, 0xb8, 0, 1, 0, 0}, 7, 7},
	{"movl $1,%fs:0x18", {0x64, 0xc7, 4, 0x25, 0x18, 0, 0, 0, 1, 0, 0, 0}, 12, 12},
	{"mov %eax,%edx", {0x89, 0xc2}, 2, 0},
	{"mov 0(%rip),%eax", {0x8b, 5, 0, 0, 0, 0}, 6, 0},
	{"lea 0(%rip),%rdi", {0x48, 0x8d, 0x3d, 0, 0, 0, 0}, 7, 0},
	{"call", {0xe8, 0, 0, 0, 0}, 5, 0},
	{"jmp", {0xe9, 0, 0, 0, 0}, 5, 0},
	{"jne", {0x0f, 0x85, 0, 0, 0, 0}, 6, 0},
	{"cmp $1,%rax (flags)", {0x48, 0x3d, 1, 0, 0, 0}, 6, 0},
	{"cut in two", {0xb8, 1, 1, 0}, 4, 0},
	{"none", {0}, 0, 0},
	{"no instruction", {0x06, 0xb8, 1, 1, 0, 0}, 6, 0},
};

Test(insn, what_may_be_moved)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		cr_expect_eq(insn_movable_before(rows[i].code, rows[i].len, MIN), rows[i].want,
			     "%s", rows[i].what);
}

/* Any bytes: never beyond them, and never more than the longest instruction there is. */
Test(insn, any_bytes)
{
	srand(1);
	for (int i = 0; i < 100000; i++) {
		size_t len = (size_t)rand() % 64;
		uint8_t *code = malloc(len + 1); /* a sanitizer sees the end */
		for (size_t n = 0; n < len; n++)
			code[n] = (uint8_t)rand();
		unsigned r = insn_movable_before(code, len, MIN);
		cr_assert(r == 0 || (r >= MIN && r <= 15 && r <= len), "%u of %zu", r, len);
		free(code);
	}
}
