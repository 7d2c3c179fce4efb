#include "tracer/patch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* This process is its own tracee: its text is a private mapping of a file that it may not write. */

#define PAGE 4096

static const struct stub_marks marks = {
	.pass = 0xdead0001, .look = 0xdead0003, .report = 0xbeef0002};
static const uint8_t code[] = {0xb8, 1, 1, 0, 0, 0x0f, 0x05, 0xc3};

struct text {
	uint8_t *at;
	int mem, file;
	struct mm_site s;
};

/* A site at this offset of three pages, which has no stub yet. */
static struct text text_new(size_t offset)
{
	struct text t = {.file = memfd_create("text", MFD_CLOEXEC)};

	cr_assert_eq(ftruncate(t.file, 3 * PAGE), 0);
	cr_assert_eq(pwrite(t.file, code, sizeof(code), (off_t)offset), (ssize_t)sizeof(code));
	t.at = mmap(NULL, 3 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, t.file, 0);
	cr_assert_neq(t.at, MAP_FAILED);
	t.mem = patch_open(getpid());
	cr_assert_geq(t.mem, 0);
	t.s.site = (struct stub_site){.syscall = (uintptr_t)t.at + offset + 5,
				      .before_len = 5,
				      .nr = SYS_openat,
				      .mark_arg = 2};
	memcpy(t.s.site.before, code, 5);
	t.s.ip = t.s.site.syscall + 2;
	t.s.stub = (uintptr_t)t.at + 2 * PAGE + 256;
	return t;
}

static void text_free(struct text *t)
{
	munmap(t->at, 3 * PAGE);
	close(t->mem);
	close(t->file);
}

static int patch_by(int mem, const struct text *t)
{
	struct patch_job job = {.site = t->s.site, .stub = t->s.stub, .result = 1};

	patch_sites(mem, &marks, &job, 1);
	return job.result;
}

static int patch(struct text *t)
{
	return patch_by(t->mem, t);
}

static uint8_t *jump_of(const struct text *t)
{
	return (uint8_t *)(t->s.site.syscall - 5);
}

Test(patch, there_and_back)
{
	static const size_t offsets[] = {0x100, PAGE - 3, PAGE - 5}; /* one over a page's end */

	for (unsigned i = 0; i < 3; i++) {
		uint8_t file[3 * PAGE];
		struct text t = text_new(offsets[i]);
		cr_expect_not(patch_stands(t.mem, &t.s, &marks));
		cr_assert_eq(patch(&t), 0);
		cr_expect(patch_stands(t.mem, &t.s, &marks));
		cr_expect_eq(jump_of(&t)[0], 0xe9);
		cr_expect_arr_eq(jump_of(&t) + 5, code + 5, 3);
		cr_expect_eq(patch(&t), -ENOENT, "twice");
		cr_expect_eq(patch_undo(t.mem, &t.s, &marks), 0);
		cr_expect_arr_eq(jump_of(&t), code, sizeof(code));
		cr_expect_not(patch_stands(t.mem, &t.s, &marks));
		/* The file is as it was. */
		cr_assert_eq(pread(t.file, file, sizeof(file), 0), (ssize_t)sizeof(file));
		cr_expect_arr_eq(file + offsets[i], code, sizeof(code));
		memset(file + offsets[i], 0, sizeof(code));
		for (size_t n = 0; n < sizeof(file); n++)
			cr_assert_eq(file[n], 0);
		text_free(&t);
	}
}

Test(patch, another_way_is_one_byte)
{
	struct text t = text_new(0x100);
	uint8_t before[STUB_SIZE];

	cr_assert_eq(patch(&t), 0);
	memcpy(before, (void *)t.s.stub, sizeof(before));
	for (enum stub_way way = STUB_WAY_PLAIN + 1; way-- > 0;) {
		struct mm_site old = t.s;
		cr_assert_eq(patch_switch(t.mem, &t.s, &marks, way), 0);
		cr_expect_eq(t.s.site.way, way);
		before[stub_switch(&t.s.site)] = stub_switch_byte(&t.s.site);
		cr_expect_arr_eq((uint8_t *)t.s.stub, before, sizeof(before));
		cr_expect_not(patch_stands(t.mem, &old, &marks));
		cr_expect(patch_stands(t.mem, &t.s, &marks));
	}
	text_free(&t);
}

static void write_byte(struct text *t, uint64_t at, uint8_t byte)
{
	cr_assert_eq(pwrite(t->mem, &byte, 1, (off_t)at), 1);
}

/* A byte that is not as expected, anywhere, and nothing is written. */
Test(patch, only_what_is_as_expected_is_changed)
{
	for (unsigned n = 0; n < 7 + STUB_SIZE; n++) {
		struct text t = text_new(0x100);
		uint8_t *at = n < 7 ? jump_of(&t) + n : (uint8_t *)t.s.stub + (n - 7);
		uint8_t old = *at, all[3 * PAGE];
		write_byte(&t, (uintptr_t)at, old ^ 0x40);
		memcpy(all, t.at, sizeof(all));
		cr_expect_eq(patch(&t), -ENOENT);
		cr_expect_arr_eq(t.at, all, sizeof(all));
		/* The same of what was changed. */
		write_byte(&t, (uintptr_t)at, old);
		cr_assert_eq(patch(&t), 0);
		write_byte(&t, (uintptr_t)at, *at ^ 0x40);
		memcpy(all, t.at, sizeof(all));
		if (n < 5 || n >= 7)
			cr_expect_eq(patch_undo(t.mem, &t.s, &marks), -ENOENT, "%u", n);
		if (n >= 7)
			cr_expect_eq(patch_switch(t.mem, &t.s, &marks, STUB_WAY_PLAIN), -ENOENT);
		if (n < 5 || n >= 7)
			cr_expect_arr_eq(t.at, all, sizeof(all));
		text_free(&t);
	}
}

/* As kernels do that forbid it: an error, and nothing is changed. */
Test(patch, a_memory_that_can_not_be_written)
{
	struct text t = text_new(0x100);
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	cr_expect_eq(patch_by(mem, &t), -EBADF);
	cr_expect_arr_eq(jump_of(&t), code, sizeof(code));
	cr_assert_eq(patch(&t), 0);
	cr_expect_eq(patch_undo(mem, &t.s, &marks), -EBADF);
	cr_expect_eq(patch_switch(mem, &t.s, &marks, STUB_WAY_PLAIN), -EBADF);
	cr_expect(patch_stands(mem, &t.s, &marks));
	munmap(t.at, 3 * PAGE);
	t.at = mmap(t.at, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	munmap(t.at, 3 * PAGE);
	cr_expect_eq(patch(&t), -ENOENT, "unmapped");
	cr_expect_eq(patch_undo(t.mem, &t.s, &marks), -ENOENT);
	cr_expect_eq(patch_open(-1), -ENOENT);
	close(mem);
	text_free(&t);
}

/* Each by itself, together: one that is not as expected leaves the others as they would be. */
Test(patch, many_at_once)
{
	static const size_t offsets[] = {0x700, 0x10, 0x100, PAGE - 3, PAGE + 0x80, PAGE + 0xf00};
	enum { N = sizeof(offsets) / sizeof(*offsets) };

	for (unsigned spoilt = 0; spoilt <= 2 * N; spoilt++) {
		struct text t = text_new(offsets[0]);
		struct patch_job job[N];
		for (unsigned i = 0; i < N; i++) {
			uint64_t at = (uintptr_t)t.at + offsets[i];
			cr_assert_eq(pwrite(t.mem, code, sizeof(code), (off_t)at), sizeof(code));
			job[i] = (struct patch_job){.site = t.s.site, .result = 1};
			job[i].site.syscall = at + 5;
			/* Stubs follow one another, but for a gap. */
			job[i].stub = t.s.stub + (i + (i > 3)) * STUB_SIZE;
		}
		if (spoilt < N)
			write_byte(&t, job[spoilt].site.syscall - 1, 0x77);
		else if (spoilt < 2 * N)
			write_byte(&t, job[spoilt - N].stub + STUB_SIZE - 1, 0x77);
		patch_sites(t.mem, &marks, job, N);
		for (unsigned i = 0; i < N; i++) {
			bool ok = spoilt == 2 * N || i != spoilt % N;
			struct mm_site s = {.site = job[i].site, .stub = job[i].stub};
			cr_expect_eq(job[i].result, ok ? 0 : -ENOENT, "%u of %u", i, spoilt);
			cr_expect_eq(patch_stands(t.mem, &s, &marks), ok);
			const uint8_t *at = (const uint8_t *)(uintptr_t)job[i].site.syscall;
			cr_expect_eq(at[-5], ok ? 0xe9 : 0xb8);
			cr_expect_arr_eq(at, code + 5, 3);
		}
		text_free(&t);
	}
}

/* What a probe leaves that was put over the jump and taken away: the file's byte, then the jump's.
 */
Test(patch, what_a_probe_spoiled_is_mended)
{
	static const bool alone[] = {true, false};

	for (unsigned i = 0; i < 2; i++) {
		struct text t = text_new(0x100);
		uint64_t at = (uintptr_t)jump_of(&t);
		int64_t distance = (int64_t)(t.s.stub - t.s.site.syscall);
		uint8_t spoiled[sizeof(code)];

		cr_assert_eq(patch(&t), 0);
		cr_expect_eq(patch_mend(t.mem, &t.s, &marks, distance, alone[i]), -ENOENT);
		write_byte(&t, at, code[0]);
		memcpy(spoiled, jump_of(&t), sizeof(spoiled));
		cr_expect_eq(patch_mend(t.mem, &t.s, &marks, distance + 1, alone[i]), -ENOENT);
		cr_expect_eq(patch_mend(t.mem, &t.s, &marks, SYS_openat, alone[i]), -ENOENT);
		cr_expect_arr_eq(jump_of(&t), spoiled, sizeof(spoiled));
		t.s.stub = 0; /* it was doubted meanwhile */
		cr_expect_eq(patch_mend(t.mem, &t.s, &marks, distance, alone[i]), 0);
		cr_expect_arr_eq(jump_of(&t), alone[i] ? code : spoiled, sizeof(code));
		text_free(&t);
	}
}

/* Also under a breakpoint, which is not ours to take away. */
Test(patch, what_a_probe_is_put_over_is_undone)
{
	static const uint8_t first[] = {0xcc, 0xb8, 0x90};

	for (unsigned i = 0; i < 3; i++) {
		struct text t = text_new(0x100);
		uint8_t expected[sizeof(code)];

		cr_assert_eq(patch(&t), 0);
		write_byte(&t, (uintptr_t)jump_of(&t), first[i]);
		memcpy(expected, i < 2 ? code : jump_of(&t), sizeof(code));
		expected[0] = first[i];
		cr_expect_eq(patch_undo(t.mem, &t.s, &marks), i < 2 ? 0 : -ENOENT);
		cr_expect_arr_eq(jump_of(&t), expected, sizeof(code));
		text_free(&t);
	}
}
