#include "tracer/stub.h"

#include "tracer/sysent.h"

#include <Zydis/Zydis.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Built stubs are run for real, in this process and without a filter: the kernel does not see a
 * mark in the upper half of an int, so the results are those of the plain call. A report is a
 * second call here, which a filter would have stopped.
 */

#define PAGE	 4096
#define CANARY	 0x5a5a5a5a5a5a5a5aull
#define RED_ZONE 16    /* words */
#define FLAGS	 0x8d5 /* carry, parity, adjust, zero, sign, overflow */
#define RCX	 1
#define R11	 11
#define RAX	 0
#define RSP	 4

static const struct stub_marks marks = {
	.pass = 0xdead0001, .look = 0xdead0003, .report = 0xbeef0002};

/* What goes into the registers (x86's numbers; rsp apart), and what comes out. */
struct state {
	uint64_t reg[16];
	uint64_t flags;
	uint64_t red[RED_ZONE];
	__uint128_t xmm[16];
};

/* A page: code that loads a state, runs the site and stores the state; the site; its stub. */
struct bench {
	uint8_t *page;
	struct state in, out;
	struct stub_site site;
	size_t len, stub_at, jump_at;
	uint64_t saved_sp;
};

static void put(struct bench *b, const void *bytes, size_t n)
{
	memcpy(b->page + b->len, bytes, n);
	b->len += n;
}

#define PUT(b, ...) put(b, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void put64(struct bench *b, const void *address)
{
	uint64_t v = (uintptr_t)address;
	put(b, &v, sizeof(v));
}

/* mov [rax] -> reg or back, for each register but rax, rsp. */
static void move_all(struct bench *b, uint8_t opcode)
{
	for (uint8_t r = 1; r < 16; r++)
		if (r != RSP)
			PUT(b, (uint8_t)(0x48 | (r >= 8 ? 4 : 0)), opcode,
			    (uint8_t)(0x80 | (r & 7) << 3), (uint8_t)(r * 8), 0, 0, 0);
	for (uint8_t x = 0; x < 16; x++) {
		uint32_t at = (uint32_t)(offsetof(struct state, xmm) + 16u * x);
		if (x >= 8)
			PUT(b, 0x44);
		PUT(b, 0x0f, opcode == 0x8b ? 0x10 : 0x11, (uint8_t)(0x80 | (x & 7) << 3));
		put(b, &at, 4);
	}
}

/* A function that keeps what the ABI says, and in between has the registers of `in`. */
static void entry(struct bench *b)
{
	PUT(b, 0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57); /* push */
	PUT(b, 0x48, 0xb8);						    /* movabs $,%rax */
	put64(b, &b->in);
	PUT(b, 0xff, 0xb0); /* push flags(%rax) */
	put(b, &(uint32_t){offsetof(struct state, flags)}, 4);
	move_all(b, 0x8b);
	PUT(b, 0x9d);		  /* popf */
	PUT(b, 0x48, 0x8b, 0x00); /* mov (%rax),%rax */
}

static void finish(struct bench *b)
{
	PUT(b, 0x48, 0xa3); /* movabs %rax,out */
	put64(b, &b->out.reg[RAX]);
	PUT(b, 0x48, 0x8d, 0x64, 0x24, 0x80); /* lea -128(%rsp),%rsp: over the red zone */
	PUT(b, 0x9c, 0x58, 0x48, 0xa3);	      /* pushf; pop %rax; movabs */
	put64(b, &b->out.flags);
	PUT(b, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0);
	PUT(b, 0x48, 0xb8);
	put64(b, &b->out);
	move_all(b, 0x89);
	for (uint8_t i = 0; i < RED_ZONE; i++) { /* mov -8(i+1)(%rsp),%rcx; mov %rcx,red[i](%rax) */
		uint32_t at = (uint32_t)(offsetof(struct state, red) + 8u * i);
		PUT(b, 0x48, 0x8b, 0x4c, 0x24, (uint8_t)(-8 * (i + 1)), 0x48, 0x89, 0x88);
		put(b, &at, 4);
	}
	PUT(b, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3);
}

/* The red zone gets its words from inside: mov $canary,-8i(%rsp), which keeps flags. */
static void fill_red_zone(struct bench *b)
{
	for (uint8_t i = 0; i < RED_ZONE; i++)
		PUT(b, 0x48, 0xc7, 0x44, 0x24, (uint8_t)(-8 * (i + 1)), i, 0x5a, 0x5a, 0x5a);
}

static enum stub_way way; /* of what patch() builds */

static struct bench *bench_new(int32_t nr, uint8_t mark_arg, bool two_paths)
{
	struct bench *b = calloc(1, sizeof(*b));

	cr_assert_not_null(b);
	b->page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(b->page, MAP_FAILED);
	entry(b);
	fill_red_zone(b);
	b->jump_at = b->len;
	PUT(b, 0xb8); /* mov $nr,%eax */
	put(b, &nr, 4);
	b->site = (struct stub_site){.before_len = 5,
				     .nr = nr,
				     .mark_arg = mark_arg,
				     .two_paths = two_paths,
				     .syscall = (uintptr_t)b->page + b->len};
	memcpy(b->site.before, b->page + b->jump_at, 5);
	PUT(b, 0x0f, 0x05);
	finish(b);
	b->stub_at = PAGE + 64;
	for (unsigned r = 0; r < 16; r++)
		b->in.reg[r] = 0x1111111111111111ull * r;
	for (unsigned x = 0; x < 16; x++)
		memset(&b->in.xmm[x], (int)(0x30 + x), 16);
	b->in.flags = 0x202;
	return b;
}

static void bench_free(struct bench *b)
{
	munmap(b->page, 2 * PAGE);
	free(b);
}

static void patch(struct bench *b)
{
	uint8_t jump[STUB_JUMP];

	b->site.way = way;
	cr_assert_eq(stub_build(&b->site, &marks, (uintptr_t)b->page + b->stub_at,
				b->page + b->stub_at, jump),
		     0);
	memcpy(b->page + b->jump_at, jump, sizeof(jump));
}

static int64_t run(struct bench *b)
{
	void (*code)(void);

	memset(&b->out, 0, sizeof(b->out));
	memcpy(&code, &b->page, sizeof(code));
	code();
	return (int64_t)b->out.reg[RAX];
}

static void arguments(struct bench *b, uint64_t a, uint64_t c, uint64_t d)
{
	b->in.reg[7] = a;
	b->in.reg[6] = c;
	b->in.reg[2] = d;
}

static void expect_nothing_lost(const struct bench *b)
{
	for (unsigned r = 1; r < 16; r++)
		if (r != RSP && r != RCX && r != R11)
			cr_expect_eq(b->out.reg[r], b->in.reg[r], "register %u: %lx", r,
				     b->out.reg[r]);
	cr_expect_eq(b->out.flags & FLAGS, b->in.flags & FLAGS);
	cr_expect_arr_eq(b->out.xmm, b->in.xmm, sizeof(b->in.xmm));
	for (unsigned i = 0; i < RED_ZONE; i++)
		cr_expect_eq((uint32_t)b->out.red[i], 0x5a5a5a00u + i);
}

static void gives_what_the_plain_call_gives(void)
{
	static const char *const files[] = {"/dev/null", "/nowhere", "/dev/null/x", ""};
	struct bench *plain = bench_new(SYS_openat, 2, false);
	struct bench *fast = bench_new(SYS_openat, 2, false);

	patch(fast);
	for (unsigned i = 0; i < sizeof(files) / sizeof(*files); i++) {
		for (unsigned flags = 0x202; flags < 0x202 + FLAGS; flags += 0x8d3) {
			plain->in.flags = fast->in.flags = flags & (FLAGS | 0x202);
			arguments(plain, (uint64_t)AT_FDCWD, (uintptr_t)files[i], O_RDONLY);
			arguments(fast, (uint64_t)AT_FDCWD, (uintptr_t)files[i], O_RDONLY);
			int64_t a = run(plain), c;
			if (a >= 0)
				close((int)a);
			c = run(fast);
			if (c >= 0)
				close((int)c);
			cr_expect_eq(a, c, "%s: %ld %ld", files[i], a, c);
			expect_nothing_lost(plain);
			expect_nothing_lost(fast);
		}
	}
	bench_free(plain);
	bench_free(fast);
}

/* The mark is added to what is in the upper half, and taken off again: nothing is lost. */
static void what_is_in_an_upper_half_comes_back(void)
{
	for (uint8_t mark = 0; mark < 3; mark++) {
		struct bench *b = bench_new(SYS_openat, mark, false);
		patch(b);
		arguments(b, 0x12345678ffffff9c, (uintptr_t) "/dev/null", 0x9abcdef000000000);
		if (mark == 1) /* no path can carry it: the kernel answers EFAULT */
			arguments(b, 0x12345678ffffff9c, 0x0000700000000000, 0);
		int64_t r = run(b);
		cr_expect(mark == 1 ? r == -EFAULT : r >= 0, "%u: %ld", mark, r);
		expect_nothing_lost(b);
		if (r >= 0)
			close((int)r);
		bench_free(b);
	}
}

Test(stub, gives_what_the_plain_call_gives)
{
	for (way = STUB_WAY_PASS; way <= STUB_WAY_PLAIN; way++)
		gives_what_the_plain_call_gives();
}

Test(stub, what_is_in_an_upper_half_comes_back)
{
	for (way = STUB_WAY_PASS; way <= STUB_WAY_PLAIN; way++)
		what_is_in_an_upper_half_comes_back();
}

/* A stub for another number leaves the call to the plain `syscall`. */
Test(stub, another_number_is_not_touched)
{
	struct bench *b = bench_new(SYS_getppid, 2, false);

	b->site.nr = SYS_openat;
	patch(b);
	cr_expect_eq(run(b), getppid());
	expect_nothing_lost(b);
	bench_free(b);
}

Test(stub, switched_off_it_goes_the_plain_way)
{
	struct bench *b = bench_new(SYS_openat, 2, false);

	patch(b);
	b->page[b->stub_at + stub_switch(&b->site)] = 0;
	/* Were it still marked, it would run into this. */
	memset(b->page + b->stub_at + b->site.before_len + 14, 0xcc, STUB_SIZE - 20);
	arguments(b, (uint64_t)AT_FDCWD, (uintptr_t) "/dev/null", O_RDONLY);
	int64_t fd = run(b);
	cr_expect_geq(fd, 0);
	close((int)fd);
	expect_nothing_lost(b);
	bench_free(b);
}

/* ---- reading the code ---- */

struct decoded {
	ZydisDecodedInstruction in[64];
	ZydisDecodedOperand operand[64][ZYDIS_MAX_OPERAND_COUNT];
	uint64_t at[64];
	size_t len;
};

static void decode(const uint8_t *code, uint64_t at, struct decoded *d)
{
	ZydisDecoder decoder;
	size_t offset = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (d->len = 0; offset < STUB_SIZE && code[offset] != 0xcc; d->len++) {
		cr_assert_lt(d->len, 64u);
		cr_assert(ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + offset,
							      STUB_SIZE - offset, &d->in[d->len],
							      d->operand[d->len])));
		d->at[d->len] = at + offset;
		offset += d->in[d->len].length;
	}
}

static bool is_start(const struct decoded *d, uint64_t address)
{
	for (size_t i = 0; i < d->len; i++)
		if (d->at[i] == address)
			return true;
	return false;
}

/* For each length of the replaced instruction, each mark and both kinds of results. */
static void each_site(void (*check)(const struct stub_site *site))
{
	for (unsigned n = 0; n < 2 * 3 * (STUB_INSN_MAX - STUB_JUMP + 1); n++) {
		struct stub_site site = {.syscall = 0x7f0000001000,
					 .before_len = (uint8_t)(STUB_JUMP + n / 6),
					 .nr = SYS_openat,
					 .mark_arg = n / 2 % 3,
					 .two_paths = n % 2};
		/* 66 66 ... 0f 1f 00: a nop of that length */
		memset(site.before, 0x66, sizeof(site.before));
		memcpy(site.before + site.before_len - 3, "\x0f\x1f\x00", 3);
		check(&site);
	}
}

static void jumps_land_where_they_should(const struct stub_site *site)
{
	uint8_t stub[STUB_SIZE], jump[STUB_JUMP];
	uint64_t at = site->syscall + 0x20000, back = site->syscall + 2;
	struct decoded d;
	unsigned outside = 0, calls = 0;

	cr_assert_eq(stub_build(site, &marks, at, stub, jump), 0);
	decode(stub, at, &d);
	for (size_t i = 0; i < d.len; i++) {
		ZyanU64 target;
		calls += d.in[i].mnemonic == ZYDIS_MNEMONIC_SYSCALL;
		if (d.in[i].meta.category != ZYDIS_CATEGORY_UNCOND_BR &&
		    d.in[i].meta.category != ZYDIS_CATEGORY_COND_BR)
			continue;
		cr_assert(ZYAN_SUCCESS(
			ZydisCalcAbsoluteAddress(&d.in[i], &d.operand[i][0], d.at[i], &target)));
		bool out = target == site->syscall || target == back;
		cr_expect(out || is_start(&d, target), "%lx", target);
		outside += out;
	}
	cr_expect_eq(calls, 3u);
	cr_expect_eq(outside, 3u);
}

Test(stub, every_jump_lands_where_it_should)
{
	each_site(jumps_land_where_they_should);
}

/* Written registers are rcx, rax (by the calls and the report) and the marked argument alone. */
static void writes_little(const struct stub_site *site)
{
	static const ZydisRegister marked[] = {ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI,
					       ZYDIS_REGISTER_RDX};
	uint8_t stub[STUB_SIZE], jump[STUB_JUMP];
	struct decoded d;

	cr_assert_eq(stub_build(site, &marks, site->syscall + 0x1000, stub, jump), 0);
	decode(stub, site->syscall + 0x1000, &d);
	for (size_t i = 0; i < d.len; i++) {
		if (d.in[i].mnemonic == ZYDIS_MNEMONIC_SYSCALL)
			continue;
		cr_expect(!d.in[i].cpu_flags || !d.in[i].cpu_flags->modified, "flags");
		for (unsigned o = 0; o < d.in[i].operand_count_visible; o++) {
			const ZydisDecodedOperand *op = &d.operand[i][o];
			if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
				continue;
			cr_expect_eq(op->type, ZYDIS_OPERAND_TYPE_REGISTER, "memory");
			cr_expect(op->reg.value == ZYDIS_REGISTER_RCX ||
				  op->reg.value == ZYDIS_REGISTER_RAX ||
				  op->reg.value == marked[site->mark_arg]);
		}
	}
}

Test(stub, writes_no_flags_no_memory_and_three_registers)
{
	each_site(writes_little);
}

/* stub_place() against the instructions themselves. */
static void places_are_true(const struct stub_site *site)
{
	uint8_t stub[STUB_SIZE], jump[STUB_JUMP];
	struct decoded d;
	unsigned calls = 0, marks_seen = 0, backs = 0;

	cr_assert_eq(stub_build(site, &marks, site->syscall + 0x1000, stub, jump), 0);
	decode(stub, site->syscall + 0x1000, &d);
	for (size_t i = 0; i < d.len; i++) {
		enum stub_place place = stub_place(site, d.at[i] - d.at[0]), want = STUB_REPORTS;
		if (i == 0)
			want = STUB_BEGIN;
		else if (!calls)
			want = marks_seen ? STUB_MARKED : STUB_UNMADE;
		else if (calls == 1 && backs < 2)
			want = marks_seen == 1 ? STUB_CALLED : STUB_MADE;
		else if (backs == 3 && calls == 2) /* the other way: there were two calls */
			want = marks_seen == 4 ? STUB_UNMADE : STUB_MARKED;
		else if (backs == 3)
			want = marks_seen == 5 ? STUB_CALLED : STUB_MADE;
		cr_expect_eq(place, want, "%zu: %d, not %d", i, place, want);
		if (place == STUB_MARKED || place == STUB_CALLED)
			cr_expect_eq(stub_mark(site, &marks, d.at[i] - d.at[0]),
				     backs == 3 ? marks.look : marks.pass);
		calls += d.in[i].mnemonic == ZYDIS_MNEMONIC_SYSCALL;
		backs += d.in[i].mnemonic == ZYDIS_MNEMONIC_JMP;
		marks_seen += d.in[i].mnemonic == ZYDIS_MNEMONIC_LEA &&
			      d.operand[i][1].mem.index == ZYDIS_REGISTER_RCX;
	}
	cr_expect_eq(stub_place(site, STUB_SIZE), STUB_REPORTS);
	cr_expect_eq(backs, 4u);
	cr_expect_eq(stub[stub_switch(site) - 1], 0xe3); /* jrcxz */
}

Test(stub, places_are_those_of_the_code)
{
	each_site(places_are_true);
}

Test(stub, too_far_apart_or_too_near)
{
	struct stub_site site = {.syscall = 0x7f0000001000,
				 .before = {STUB_MOV_EAX},
				 .before_len = 5,
				 .nr = SYS_openat};
	static const int64_t wrong[] = {INT64_C(1) << 31, -(INT64_C(1) << 31) - 200,
					INT64_C(1) << 40, STUB_NEAREST - 1};
	static const int64_t right[] = {0x7fffff00, -0x7fffff00, 4096, STUB_NEAREST};
	uint8_t stub[STUB_SIZE], jump[STUB_JUMP];

	for (unsigned i = 0; i < 4; i++) {
		uint64_t at = site.syscall + (uint64_t)wrong[i];
		cr_expect_eq(stub_build(&site, &marks, at, stub, jump), -ERANGE, "%u", i);
		at = site.syscall + (uint64_t)right[i];
		cr_expect_eq(stub_build(&site, &marks, at, stub, jump), 0, "%u", i);
	}
}

/* bswap and the addition, for each row that may carry a mark and each error there is. */
Test(stub, a_report_is_read_as_it_was_written)
{
	for (const struct sysent *ent = sysents; ent < sysents + SYS_ID_COUNT; ent++) {
		uint64_t nr = (uint64_t)ent->nr[SYS_ARCH_X86_64];
		if (ent->nr[SYS_ARCH_X86_64] < 0)
			continue;
		for (int error = 1; error < 134; error++) {
			uint64_t rax = __builtin_bswap64((uint64_t)-error) + nr + 1;
			cr_expect_eq((int32_t)rax, (int32_t)nr);
			cr_expect_eq(stub_reported_error(rax), error, "%d: %lx", error, rax);
		}
	}
	cr_expect_eq(stub_reported_error(257 | UINT64_C(0x01000000) << 32), 0);
	cr_expect_eq(stub_reported_error(257 | UINT64_C(0xf4000100) << 32), 0);
	cr_expect_eq(stub_reported_error(257 | UINT64_C(1) << 32), 0);
}
