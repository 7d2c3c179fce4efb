#include "tracer/straighten.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LEN_MAX 600

static bool holds(const struct sock_filter *f, uint32_t a)
{
	switch (BPF_OP(f->code)) {
	case BPF_JEQ:
		return a == f->k;
	case BPF_JGE:
		return a >= f->k;
	case BPF_JSET:
		return a & f->k;
	default:
		cr_assert_fail("another test");
		return false;
	}
}

/* What the program answers about four words; they are all that it loads. */
static uint32_t answer(const struct sock_filter *p, size_t n, const uint32_t word[4])
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < n; pc++) {
		const struct sock_filter *f = &p[pc];
		if (f->code == (BPF_RET | BPF_K))
			return f->k;
		if (f->code == (BPF_LD | BPF_W | BPF_ABS))
			a = word[f->k / 4];
		else if (f->code == (BPF_JMP | BPF_JA))
			pc += f->k;
		else if (BPF_CLASS(f->code) == BPF_ALU)
			a &= f->k;
		else
			pc += holds(f, a) ? f->jt : f->jf;
	}
	cr_assert_fail("ran off the end");
	return 0;
}

static size_t make(struct sock_filter *p)
{
	static const uint16_t tests[] = {BPF_JEQ, BPF_JGE, BPF_JSET};
	size_t n = 3 + (size_t)rand() % (LEN_MAX - 3);

	for (size_t i = 0; i < n; i++) {
		size_t left = n - i - 1, near = left < 255 ? left : 255;
		switch (left ? rand() % 6 : 0) {
		case 0:
			p[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							    0x7ff00000u + (uint32_t)(rand() % 4));
			break;
		case 1:
			p[i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							    4u * (uint32_t)(rand() % 4));
			break;
		case 2:
			p[i] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA,
							    (uint32_t)((size_t)rand() % left));
			break;
		case 3:
			p[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K,
							    (uint32_t)(rand() % 4));
			break;
		default:
			p[i] = (struct sock_filter)BPF_JUMP(
				BPF_JMP | tests[rand() % 3] | BPF_K, (uint32_t)(rand() % 3),
				(uint8_t)((size_t)rand() % near), (uint8_t)((size_t)rand() % near));
		}
	}
	return n;
}

Test(straighten, the_same_answers_from_fewer_instructions)
{
	static struct sock_filter before[LEN_MAX], after[LEN_MAX];

	srand(7);
	for (int round = 0; round < 2000; round++) {
		size_t n = make(before);
		memcpy(after, before, sizeof(after));
		size_t left = straighten(after, n);
		cr_assert_leq(left, n);
		for (unsigned i = 0; i < 81; i++) {
			const uint32_t word[4] = {i % 3, i / 3 % 3, i / 9 % 3, i / 27};
			cr_assert_eq(answer(after, left, word), answer(before, n, word), "round %d",
				     round);
		}
	}
}

Test(straighten, a_return_is_made_once_where_it_can_be_reached)
{
	struct sock_filter p[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 5),	       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 2, 1, 0),
		BPF_STMT(BPF_JMP | BPF_JA, 1),	       BPF_STMT(BPF_RET | BPF_K, 5),
		BPF_STMT(BPF_RET | BPF_K, 6),
	};

	cr_expect_eq(straighten(p, sizeof(p) / sizeof(*p)), 5);
}
