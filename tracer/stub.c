#include "tracer/stub.h"

#include "tracer/util.h"

#include <errno.h>
#include <string.h>

#define SYSCALL_SIZE 2
#define SHORT_JUMP   2

/* Offsets behind the instruction that was replaced. */
#define AT_SWITCH   8u	/* the second byte of the jump over the way to the plain call */
#define AT_MARK	    14u /* where the mark is put on */
#define AT_CALL	    28u /* the marked call, */
#define AT_CALLED   30u /* and behind it */
#define AT_UNMARKED 44u /* the mark is off again */

#define MARKED_SIZE (AT_UNMARKED - AT_MARK)
#define REPORT_SIZE (10 + MARKED_SIZE + STUB_JUMP)

/* What is being written, and where it will stand. */
struct code {
	uint8_t *out;
	size_t len;
	uint64_t at;
	bool far; /* a jump does not reach */
};

static void put(struct code *c, const void *bytes, size_t n)
{
	BUG(n > STUB_SIZE - c->len);
	memcpy(c->out + c->len, bytes, n);
	c->len += n;
}

#define PUT(c, ...) put(c, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void put32(struct code *c, int32_t v)
{
	put(c, &v, sizeof(v));
}

static bool fits(int64_t distance)
{
	return distance == (int32_t)distance;
}

/* jmp rel32 */
static void jump_to(struct code *c, uint64_t target)
{
	PUT(c, 0xe9);
	int64_t distance = (int64_t)(target - (c->at + c->len + 4));
	c->far |= !fits(distance);
	put32(c, (int32_t)distance);
}

/* jrcxz, to the place land() is called for */
static size_t skip_if_rcx_is_zero(struct code *c)
{
	PUT(c, 0xe3, 0);
	return c->len;
}

static void land(struct code *c, size_t jump)
{
	c->out[jump - 1] = (uint8_t)(c->len - jump);
}

/* rdi, rsi, rdx: the numbers by which instructions name them. */
static const uint8_t reg_of_arg[] = {7, 6, 2};

/* movabs $v,%rcx; lea (%reg,%rcx),%reg */
static void add_to_arg(struct code *c, unsigned arg, uint64_t v)
{
	uint8_t reg = reg_of_arg[arg];

	PUT(c, 0x48, 0xb9);
	put(c, &v, sizeof(v));
	PUT(c, 0x48, 0x8d, (uint8_t)(reg << 3 | 4), (uint8_t)(1 << 3 | reg));
}

static void marked_call(struct code *c, const struct stub_site *s, uint32_t mark)
{
	uint64_t upper = (uint64_t)mark << 32;

	add_to_arg(c, s->mark_arg, upper);
	PUT(c, 0x0f, 0x05); /* syscall */
	add_to_arg(c, s->mark_arg, -upper);
}

/* lea error(%rax),%rcx; jrcxz */
static size_t skip_if_error(struct code *c, uint8_t error)
{
	PUT(c, 0x48, 0x8d, 0x48, error);
	return skip_if_rcx_is_zero(c);
}

/* From the tests of the result to the jump back. */
static size_t tests_len(const struct stub_site *s)
{
	return (s->two_paths ? 3 : 2) * 6 + STUB_JUMP;
}

/* The other marked call: behind all else. */
static size_t at_look(const struct stub_site *s)
{
	return s->before_len + AT_UNMARKED + tests_len(s) + REPORT_SIZE;
}

size_t stub_switch(const struct stub_site *s)
{
	return s->before_len + AT_SWITCH;
}

uint8_t stub_switch_byte(const struct stub_site *s)
{
	size_t from = stub_switch(s) + 1;

	if (s->way == STUB_WAY_PLAIN)
		return 0;
	return (uint8_t)((s->way == STUB_WAY_LOOK ? at_look(s) : s->before_len + AT_MARK) - from);
}

static void body(struct code *c, const struct stub_site *s, const struct stub_marks *marks)
{
	uint64_t back = s->syscall + SYSCALL_SIZE;

	put(c, s->before, s->before_len);
	PUT(c, 0x48, 0x8d, 0x88); /* lea -nr(%rax),%rcx */
	put32(c, -s->nr);
	size_t ours = skip_if_rcx_is_zero(c);
	jump_to(c, s->syscall);

	c->out[ours - 1] = stub_switch_byte(s);
	BUG(c->len != s->before_len + AT_MARK);
	marked_call(c, s, marks->pass);
	BUG(c->len != s->before_len + AT_UNMARKED);
	size_t tests = c->len;
	size_t eacces = skip_if_error(c, EACCES);
	size_t eperm = skip_if_error(c, EPERM);
	size_t exdev = s->two_paths ? skip_if_error(c, EXDEV) : 0;
	jump_to(c, back);

	land(c, eacces);
	land(c, eperm);
	if (exdev)
		land(c, exdev);
	/*
	 * -error is 0xffffffffffffffXX. Swapped, XX is on top and the lower half all ones; 1 + nr
	 * added makes that the number, and the carry adds one to the upper half.
	 */
	PUT(c, 0x48, 0x0f, 0xc8); /* bswap %rax */
	PUT(c, 0x48, 0x8d, 0x80); /* lea nr+1(%rax),%rax */
	put32(c, s->nr + 1);
	marked_call(c, s, marks->report);
	jump_to(c, back);

	BUG(c->len != at_look(s));
	marked_call(c, s, marks->look);
	PUT(c, 0xeb, (uint8_t)(tests - (c->len + SHORT_JUMP)));
}

static bool is_look(const struct stub_site *s, uint64_t offset)
{
	return offset >= at_look(s) && offset < at_look(s) + MARKED_SIZE + SHORT_JUMP;
}

uint32_t stub_mark(const struct stub_site *s, const struct stub_marks *marks, uint64_t offset)
{
	return is_look(s, offset) ? marks->look : marks->pass;
}

enum stub_place stub_place(const struct stub_site *s, uint64_t offset)
{
	if (offset < s->before_len)
		return STUB_BEGIN;
	offset -= is_look(s, offset) ? at_look(s) - AT_MARK : s->before_len;
	if (offset < AT_CALL)
		return STUB_UNMADE;
	if (offset < AT_CALLED)
		return STUB_MARKED;
	if (offset < AT_UNMARKED)
		return STUB_CALLED;
	return offset < AT_UNMARKED + tests_len(s) ? STUB_MADE : STUB_REPORTS;
}

bool stub_reports(const struct stub_site *s, int64_t result)
{
	return result == -EACCES || result == -EPERM || (s->two_paths && result == -EXDEV);
}

int stub_reported_error(uint64_t orig_rax)
{
	uint32_t upper = (uint32_t)(orig_rax >> 32);

	/* XXffffff + 1, for XX = 256 - error: of EPERM the carry leaves nothing */
	if (upper & 0xffffff)
		return 0;
	return (uint8_t)(257 - (upper >> 24));
}

int stub_build(const struct stub_site *site, const struct stub_marks *marks, uint64_t at,
	       uint8_t stub[STUB_SIZE], uint8_t jump[STUB_JUMP])
{
	struct code in = {.out = stub, .at = at};
	struct code to = {.out = jump, .at = site->syscall - site->before_len};

	BUG(site->mark_arg >= ARRAY_LEN(reg_of_arg) || site->before_len < STUB_JUMP ||
	    site->before_len > STUB_INSN_MAX);
	memset(stub, 0xcc, STUB_SIZE); /* int3 */
	body(&in, site, marks);
	jump_to(&to, at);
	bool near = at - (to.at + STUB_JUMP) < STUB_NEAREST;
	return in.far || to.far || (near && site->before[0] == STUB_MOV_EAX) ? -ERANGE : 0;
}
