#include "tracer/objects.h"

#include "tests/objectimage.h"
#include "tests/tempdir.h"
#include "tracer/elfmem.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stddef.h>

static const struct object *learn(struct objects *os, struct image *im)
{
	return objects_learn(os, &im->t, openat_row(), &im->where, (uintptr_t)im->at);
}

static const struct object *find(struct objects *os, struct image *im)
{
	return objects_find(os, getpid(), &im->where, (uintptr_t)im->at, im->t.at.ip - 2);
}

Test(objects, a_site_and_the_others_in_the_text)
{
	struct image im = image_new();
	struct objects *os = objects_new(NULL);
	struct stub_site site;
	uint64_t stub;

	put_site(im.at + TEXT + 0x200, SYS_openat);
	put_site(im.at + TEXT + 0x300, SYS_read);
	put_site(im.at + TEXT + 0x400, SYS_creat);
	put_site(im.at + TEXT + TEXT_SIZE - 7, SYS_open);
	put_site(im.at + TEXT + TEXT_SIZE + 0x20, SYS_open); /* behind the segment */
	memset(im.at + TEXT + TEXT_SIZE + 0x20, 0, 7);
	cr_expect_null(find(os, &im));
	const struct object *o = learn(os, &im);
	cr_assert_not_null(o);
	cr_expect_eq(find(os, &im), o);
	cr_expect_eq(o->len, 4u);
	cr_expect_eq(o->site[0].offset, SITE);
	for (size_t i = 0; i < o->len; i++) {
		cr_assert(object_site(o, i, &im.where, &site, &stub));
		const uint8_t *syscall = im.at + o->site[i].offset;
		cr_expect_eq(site.syscall, (uintptr_t)syscall);
		cr_expect_eq(site.before_len, 5u);
		cr_expect_arr_eq(site.before, syscall - 5, 5);
		cr_expect_eq(stub, (uintptr_t)im.at + TEXT + TEXT_SIZE + i * STUB_SIZE);
	}
	/* Mapped elsewhere. */
	struct maps_region moved = im.where;
	moved.start += 0x10000;
	moved.end += 0x10000;
	cr_assert(object_site(o, 0, &moved, &site, &stub));
	cr_expect_eq(site.syscall, (uintptr_t)im.at + SITE + 0x10000);
	/* Without its end, without its begin. */
	moved.end = moved.start + TEXT_SIZE;
	cr_expect_not(object_site(o, 0, &moved, &site, &stub));
	moved = im.where;
	moved.start += PAGE;
	moved.offset += PAGE;
	cr_expect_not(object_site(o, 0, &moved, &site, &stub));
	objects_free(os);
	image_free(&im);
}

/* A text that ends early in its last page, as a small program's does, and one that begins late. */
Test(objects, a_text_smaller_than_its_pages)
{
	static const struct {
		uint64_t begin, end;
	} rows[] = {
		{TEXT, TEXT + 0x111}, {TEXT + 0x30, TEXT + 0x111}, {TEXT + 0xff0, TEXT + 0x1010}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct image im = image_new();
		struct objects *os = objects_new(NULL);
		struct stub_site site;
		uint64_t stub;

		memset(im.at + TEXT, 0, TEXT_SIZE);
		im.ph[0].p_offset = im.ph[0].p_vaddr = rows[i].begin;
		im.ph[0].p_filesz = im.ph[0].p_memsz = rows[i].end - rows[i].begin;
		put_site(im.at + rows[i].end - 7, SYS_openat);
		const struct object *o = objects_survey(os, getpid(), &im.where, (uintptr_t)im.at);
		cr_assert_not_null(o, "%zu", i);
		cr_assert_eq(o->len, 1u);
		cr_assert(object_site(o, 0, &im.where, &site, &stub));
		cr_expect_eq(site.syscall, (uintptr_t)im.at + rows[i].end - 2);
		cr_expect_geq(stub, (uintptr_t)im.at + rows[i].end);
		cr_expect_eq(objects_known(os, getpid(), &im.where, (uintptr_t)im.at), o);
		objects_free(os);
		image_free(&im);
	}
}

/* Two texts whose bytes share a page: what is behind the first is the second. */
Test(objects, texts_that_share_a_page)
{
	struct image im = image_new();
	struct objects *os = objects_new(NULL);
	struct elfmem_text text;
	uint64_t base = (uintptr_t)im.at;

	im.ph[0].p_filesz = 0x111;
	im.ph[1] = im.ph[0];
	im.ph[1].p_offset = im.ph[1].p_vaddr = TEXT + 0x200;
	cr_expect_eq(elfmem_text(getpid(), base, base + TEXT, TEXT, &text), -ENOEXEC);
	cr_expect_null(objects_survey(os, getpid(), &im.where, base));
	objects_free(os);
	image_free(&im);
}

/* Functions for every number: where they are several instructions, nobody may be between them. */
Test(objects, functions_for_every_call)
{
	static const struct {
		const char *code;
		size_t size, moves;
		int32_t nr;
		uint8_t mark_arg;
		bool several;
		const char *behind;
	} rows[] = {
#define CANCEL                                                                                     \
	"\x0f\x85\1\2\3\4\x49\x89\xfb\x48\x89\xf0\x48\x89\xd7\x48\x89\xce\x4c\x89\xc2\x4d\x89\xca" \
	"\x4c\x8b\x44\x24\x08\x4c\x8b\x4c\x24\x10\x4c\x89\x5c\x24\x08"
		{"\x49\x89\xf2\x48\x89\xfa\x48\x89\xce\x48\x89\xdf", 12, 6, SYS_openat, 2, true,
		 ""},
		{"\xf6\x07\x08" CANCEL, 42, 5, SYS_openat, 2, false, ""},
		{"\x48\x8b\x44\x24\x10", 5, 5, SYS_openat, 2, false, "\x5b\xc3"},
		{"\x48\x8b\x44\x24\x10", 5, 0, 0, 0, false, "\x5a\xc3"}, /* some other function */
		{"\x85\xc0" CANCEL, 41, 5, SYS_open, 1, false, ""},
		{"\x48\x89\xf8\x4d\x89\xc2\x48\x89\xf7\x4d\x89\xc8\x48\x89\xd6\x4c\x8b\x4c\x24\x08"
		 "\x48\x89\xca",
		 23, 8, SYS_open, 1, true, ""},
		{"\x84\xc0" CANCEL, 41, 0, 0, 0, false, ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct image im = image_new();
		struct objects *os = objects_new(NULL);
		struct stub_site site;
		uint64_t stub;
		uint8_t *at = im.at + TEXT + 0x500;

		memcpy(at, rows[i].code, rows[i].size);
		memcpy(at + rows[i].size, "\x0f\x05", 2);
		memcpy(at + rows[i].size + 2, rows[i].behind, strlen(rows[i].behind));
		const struct object *o = objects_survey(os, getpid(), &im.where, (uintptr_t)im.at);
		cr_assert_not_null(o);
		cr_assert_eq(o->len, rows[i].moves ? 2u : 1u, "%zu", i);
		for (size_t n = 0; n < o->len; n++) {
			cr_assert(object_site(o, n, &im.where, &site, &stub));
			if (site.syscall != (uintptr_t)at + rows[i].size) {
				cr_expect_not(site.several);
				continue;
			}
			cr_expect_eq(site.before_len, rows[i].moves);
			cr_expect_arr_eq(site.before, at + rows[i].size - rows[i].moves,
					 rows[i].moves);
			cr_expect_eq(site.several, rows[i].several);
			cr_expect_eq(site.nr, rows[i].nr);
			cr_expect_eq(site.mark_arg, rows[i].mark_arg);
		}
		objects_free(os);
		image_free(&im);
	}
}

/* Over the pieces that the text is read in. */
Test(objects, sites_at_every_offset_of_a_large_text)
{
	const size_t size = 300 << 10;
	struct image small = image_new();
	uint8_t *at = mmap(NULL, size + 2 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(at, MAP_FAILED);
	memcpy(at, small.at, 3 * PAGE);
	((Elf64_Phdr *)(at + sizeof(Elf64_Ehdr)))->p_filesz = size - 0x900;
	struct image im = small;
	im.at = at;
	im.where.start = (uintptr_t)at + TEXT;
	im.where.end = im.where.start + size;
	im.t.at.ip = (uintptr_t)at + SITE + 2;
	for (size_t where = (64 << 10) - 10; where < (64 << 10) + 10; where++) {
		struct objects *os = objects_new(NULL);
		put_site(at + TEXT + where, SYS_open);
		const struct object *o = learn(os, &im);
		cr_assert_not_null(o);
		cr_expect_eq(o->len, 2u, "%zu", where);
		cr_expect_eq(o->site[1].offset, TEXT + where + 5);
		memset(at + TEXT + where, 0, 7);
		objects_free(os);
	}
	munmap(at, size + 2 * PAGE);
	image_free(&small);
}

/* The inode is another file's by now: its text ends elsewhere. */
Test(objects, another_file_with_the_same_number)
{
	struct image im = image_new();
	struct objects *os = objects_new(NULL);

	cr_assert_not_null(learn(os, &im));
	im.ph[0].p_filesz += 0x100;
	cr_expect_null(find(os, &im));
	const struct object *o = learn(os, &im);
	cr_assert_not_null(o);
	cr_expect_eq(o->len, 1u);
	cr_expect_eq(o->room, TEXT + TEXT_SIZE + 0x100u);
	cr_expect_eq(find(os, &im), o);
	objects_free(os);
	image_free(&im);
}

Test(objects, no_room_at_the_end)
{
	static const uint64_t sizes[] = {2 * PAGE, 2 * PAGE - 1, 2 * PAGE - STUB_SIZE + 1};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct image im = image_new();
		struct objects *os = objects_new(NULL);
		im.ph[0].p_filesz = sizes[i];
		cr_expect_null(learn(os, &im));
		objects_free(os);
		image_free(&im);
	}
}

/* More files than anybody maps: it does not grow for ever. */
Test(objects, files_without_end)
{
	struct image im = image_new();
	struct objects *os = objects_new(NULL);
	unsigned learned = 0;

	for (im.where.ino = 1; im.where.ino < 3000; im.where.ino++)
		learned += learn(os, &im) != NULL;
	cr_expect(learned > 100 && learned < 2000, "%u", learned);
	objects_free(os);
	image_free(&im);
}

static uint64_t odd_number(void)
{
	switch (rand() % 6) {
	case 0:
		return (uint64_t)rand() % 64;
	case 1:
		return (uint64_t)rand() % (PAGES * PAGE);
	case 2:
		return UINT64_MAX - (uint64_t)rand() % (2 * PAGE);
	case 3:
		return 1ull << rand() % 64;
	default:
		return (uint64_t)rand() << 33 ^ (uint64_t)rand() << 11 ^ (uint64_t)rand();
	}
}

/*
 * Headers of any kind: no crash, and what is said of the object lies within the region it was asked
 * about.
 */
Test(objects, hostile_headers)
{
	srand(7);
	for (int i = 0; i < 60000; i++) {
		struct image im = image_new();
		struct objects *os = objects_new(NULL);
		for (int n = rand() % 3 + 1; n > 0; n--) {
			uint64_t v = odd_number();
			size_t at = (size_t)rand() % (TABLE + 28) & ~(size_t)3;
			if (at >= sizeof(*im.head) + 2 * sizeof(*im.ph) && at < TABLE)
				at = sizeof(*im.head) + (size_t)rand() % 14 * 8;
			memcpy(im.at + at, &v, rand() % 2 ? 8 : 4);
		}
		const struct object *o = learn(os, &im);
		for (size_t s = 0; o && s < o->len; s++) {
			struct stub_site site;
			uint64_t stub;
			if (!object_site(o, s, &im.where, &site, &stub))
				continue;
			cr_assert_geq(site.syscall - site.before_len, im.where.start);
			cr_assert_leq(site.syscall + 2, im.where.end);
			cr_assert_geq(stub, im.where.start);
			cr_assert_leq(stub + STUB_SIZE, im.where.end);
			cr_assert(stub >= site.syscall + 2 ||
				  stub + STUB_SIZE <= site.syscall - 15);
		}
		objects_free(os);
		image_free(&im);
	}
}

Test(objects, functions_by_the_unwind_table)
{
	struct image im = image_new();
	struct elfmem_text text;
	uint64_t function = 0, base = (uintptr_t)im.at;

	cr_assert_eq(elfmem_text(getpid(), base, base + SITE, SITE, &text), 0);
	cr_expect_eq(text.end, base + TEXT + TEXT_SIZE);
	cr_assert_eq(elfmem_function(getpid(), &text, base + SITE, &function), 0);
	cr_expect_eq(function, base + FUNCTION);
	cr_assert_eq(elfmem_function(getpid(), &text, base + FUNCTION - 1, &function), 0);
	cr_expect_eq(function, base + TEXT);
	cr_expect_eq(elfmem_function(getpid(), &text, base + TEXT - 1, &function), -ENOENT);
	for (uint64_t size = 0; size < 28; size++) { /* the table is cut */
		text.unwind_size = size;
		cr_expect_eq(elfmem_function(getpid(), &text, base + SITE, &function), -ENOENT,
			     "%lu", size);
	}
	cr_expect_eq(elfmem_text(getpid(), base, base + 8, 8, &text), -ENOEXEC);
	cr_expect_eq(elfmem_text(getpid(), 4096, base + SITE, SITE, &text), -EFAULT);
	image_free(&im);
}

Test(objects, build_ids)
{
	struct image im = image_new();
	uint64_t base = (uintptr_t)im.at;
	uint8_t id[SITEFILE_ID_MAX];

	cr_expect_eq(elfmem_build_id(getpid(), base, id, sizeof(id)), -ENOENT);
	image_put_id(&im, 7);
	cr_assert_eq(elfmem_build_id(getpid(), base, id, sizeof(id)), 20);
	for (int i = 0; i < 20; i++)
		cr_expect_eq(id[i], 7);
	cr_expect_eq(elfmem_build_id(getpid(), base, id, 19), -ENOENT);
	for (uint64_t cut = 0; cut < 68; cut++) {
		im.ph[2].p_filesz = cut;
		cr_expect_eq(elfmem_build_id(getpid(), base, id, sizeof(id)), -ENOENT, "%lu", cut);
	}
	im.ph[2].p_filesz = UINT64_MAX;
	cr_assert_eq(elfmem_build_id(getpid(), base, id, sizeof(id)), 20);
	for (size_t i = 0; i < 4; i++) { /* lengths that lead out of it */
		memset(im.at + NOTES + 4 * i, 0xff, 4);
		cr_expect_leq(elfmem_build_id(getpid(), base, id, sizeof(id)), 20);
	}
	im.ph[2].p_offset = UINT64_MAX - PAGE;
	cr_expect_eq(elfmem_build_id(getpid(), base, id, sizeof(id)), -ENOENT);
	cr_expect_eq(elfmem_build_id(getpid(), 4096, id, sizeof(id)), -EFAULT);
	image_free(&im);
}

/* ---- from run to run ---- */

static const struct object *known(struct objects *os, struct image *im)
{
	return objects_known(os, getpid(), &im->where, (uintptr_t)im->at);
}

/* A run that learns of it and ends. How many sites it knew. */
static size_t run_and_learn(const char *state, struct image *im)
{
	struct objects *os = objects_new(state);
	const struct object *o = learn(os, im);
	size_t n = o ? o->len : 0;

	objects_free(os);
	return n;
}

/* What a run knows of it before it has looked at the text. */
static size_t known_at_once(const char *state, struct image *im)
{
	struct objects *os = objects_new(state);
	const struct object *o = known(os, im);
	size_t n = o ? o->len : 0;

	objects_free(os);
	return n;
}

/* One site of each kind: a number, a function of several moves, one by the unwind table. */
static void put_all_kinds(struct image *im)
{
	static const uint8_t by_stack[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b,
					   0x44, 0x24, 0x20, 0x0f, 0x05};

	memcpy(im->at + FUNCTION, by_stack, sizeof(by_stack)); /* mov 32(%rsp),%rax; at SITE */
	put_site(im->at + TEXT + 0x200, SYS_openat);
	memcpy(im->at + TEXT + 0x500, "\x49\x89\xf2\x48\x89\xfa\x48\x89\xce\x48\x89\xdf\x0f\x05",
	       14);
	put_site(im->at + TEXT + TEXT_SIZE - 7, SYS_open);
}

Test(objects, what_a_run_learns_the_next_one_knows)
{
	char state[PATH_MAX];
	struct image im = image_new();
	struct stub_site was, is;
	uint64_t stub, same;

	tempdir_enter(state);
	image_put_id(&im, 1);
	put_all_kinds(&im);
	cr_expect_eq(known_at_once(state, &im), 0u);
	struct objects *first = objects_new(state), *second;
	const struct object *o = learn(first, &im), *again;
	cr_assert_not_null(o);
	cr_assert_eq(o->len, 4u);
	cr_expect_eq(run_and_learn(state, &im), 4u); /* its own knowledge is written at its end */
	second = objects_new(state);
	again = known(second, &im);
	cr_assert_not_null(again);
	cr_assert_eq(again->len, 4u);
	cr_expect_eq(find(second, &im), again);
	for (size_t i = 0; i < o->len; i++) {
		cr_assert(object_site(o, i, &im.where, &was, &stub));
		cr_assert(object_site(again, i, &im.where, &is, &same));
		cr_expect_arr_eq(&was, &is, sizeof(was));
		cr_expect_eq(stub, same);
	}
	/* What it comes upon beside, it adds. */
	put_site(im.at + TEXT + 0x600, SYS_mkdirat);
	im.t.at.ip = (uintptr_t)im.at + TEXT + 0x607;
	cr_expect_null(find(second, &im));
	cr_expect_eq(
		objects_learn(second, &im.t, &sysents[SYS_ID_mkdirat], &im.where, (uintptr_t)im.at),
		again);
	objects_free(second);
	objects_free(first); /* ends later, and knows less of it: it is written over that */
	cr_expect_eq(known_at_once(state, &im), 4u);
	cr_expect_eq(objects_learn(second = objects_new(state), &im.t, &sysents[SYS_ID_mkdirat],
				   &im.where, (uintptr_t)im.at)
			     ->len,
		     5u);
	objects_free(second);
	cr_expect_eq(known_at_once(state, &im), 5u);
	image_free(&im);
	tempdir_leave(state);
}

Test(objects, that_there_is_nothing_is_known_too)
{
	char state[PATH_MAX];
	struct image im = image_new();
	struct objects *os;

	tempdir_enter(state);
	image_put_id(&im, 1);
	memset(im.at + FUNCTION, 0, 16);
	os = objects_new(state);
	cr_expect_null(objects_survey(os, getpid(), &im.where, (uintptr_t)im.at));
	objects_free(os);
	put_site(im.at + TEXT + 0x200, SYS_openat); /* it would be found */
	os = objects_new(state);
	cr_expect_null(objects_survey(os, getpid(), &im.where, (uintptr_t)im.at));
	objects_free(os);
	im.where.ino++;
	os = objects_new(state);
	cr_expect_not_null(objects_survey(os, getpid(), &im.where, (uintptr_t)im.at));
	objects_free(os);
	image_free(&im);
	tempdir_leave(state);
}

/* A file that says so of itself, in the inode of the other or its own; and an upgrade. */
Test(objects, another_text_with_the_same_build_id)
{
	char state[PATH_MAX];
	struct image im = image_new();

	tempdir_enter(state);
	image_put_id(&im, 1);
	put_all_kinds(&im);
	cr_expect_eq(run_and_learn(state, &im), 4u);
	for (uint64_t at = TEXT + 0x500; at < TEXT + 0x50e; at++) { /* each byte of a function */
		im.at[at]++;
		cr_expect_eq(known_at_once(state, &im), 0u, "%lx", at);
		im.at[at]--;
	}
	im.at[FUNCTION] = 0x06; /* does not decode from there */
	cr_expect_eq(known_at_once(state, &im), 0u);
	im.at[FUNCTION] = 0xf3;
	cr_expect_eq(known_at_once(state, &im), 4u);
	/* The first one's is left as it is. */
	memset(im.at + TEXT + 0x200, 0x90, 7);
	put_site(im.at + TEXT + 0x240, SYS_openat);
	put_site(im.at + TEXT + 0x280, SYS_openat);
	cr_expect_eq(run_and_learn(state, &im), 5u);
	cr_expect_eq(known_at_once(state, &im), 0u);
	im.where.ino++;
	cr_expect_eq(known_at_once(state, &im), 0u);
	cr_expect_eq(run_and_learn(state, &im), 5u);
	cr_expect_eq(known_at_once(state, &im), 5u);
	im.where.ino--;
	memset(im.at + TEXT + 0x240, 0x90, 0x47);
	put_site(im.at + TEXT + 0x200, SYS_openat);
	cr_expect_eq(known_at_once(state, &im), 4u);
	/* Another in its place. */
	image_put_id(&im, 2);
	memset(im.at + TEXT + 0x200, 0x90, 7);
	cr_expect_eq(known_at_once(state, &im), 0u);
	cr_expect_eq(run_and_learn(state, &im), 3u);
	cr_expect_eq(known_at_once(state, &im), 3u);
	image_put_id(&im, 1);
	cr_expect_eq(known_at_once(state, &im), 0u);
	image_free(&im);
	tempdir_leave(state);
}

/*
 * A program changes its own copy of an unwind table, not of a text: later runs have the file's.
 * From the middle of an instruction there is one of five bytes, which would have been replaced.
 */
Test(objects, a_function_that_another_program_made_up)
{
	static const uint8_t code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0xb8, 0x00, 0x00,
				       0x00, 0x48, 0x8b, 0x44, 0x24, 0x20, 0x0f, 0x05};
	char state[PATH_MAX];
	struct image im = image_new();

	tempdir_enter(state);
	image_put_id(&im, 1);
	memcpy(im.at + FUNCTION, code, sizeof(code)); /* movabs $...,%rax over it all */
	im.t.at.ip = (uintptr_t)im.at + FUNCTION + sizeof(code);
	put_function(&im, FUNCTION + 9);
	cr_expect_eq(run_and_learn(state, &im), 1u);
	cr_expect_eq(known_at_once(state, &im), 1u);
	put_function(&im, FUNCTION);
	cr_expect_eq(known_at_once(state, &im), 0u);
	struct objects *os = objects_new(state);
	const struct object *o = learn(os, &im); /* as if nothing was known */
	cr_assert_not_null(o);
	cr_expect_eq(o->site[0].site.before_len, 10u);
	objects_free(os);
	image_free(&im);
	tempdir_leave(state);
}

Test(objects, without_a_build_id_it_is_learned_anew)
{
	char state[PATH_MAX];
	struct image im = image_new();

	tempdir_enter(state);
	cr_expect_eq(run_and_learn(state, &im), 1u);
	cr_expect_eq(known_at_once(state, &im), 0u);
	cr_expect_neq(access("sites", F_OK), 0);
	image_free(&im);
	tempdir_leave(state);
}

static struct sitefile_site odd_site(void)
{
	static const uint64_t near[] = {SITE, TEXT + 0x205, TEXT + 0x50c, TEXT + TEXT_SIZE - 2,
					TEXT + TEXT_SIZE};
	static const int32_t nrs[] = {SYS_openat, SYS_open, SYS_read, SYS_mkdirat, -1};
	struct sitefile_site s = {.offset = odd_number(), .nr = nrs[rand() % 5]};

	if (rand() % 4)
		s.offset = near[rand() % 5] + (rand() % 4 ? 0 : (uint64_t)(rand() % 3 - 1));
	if (rand() % 3 == 0)
		s.function = rand() % 2 ? (uint32_t)odd_number() : 9;
	return s;
}

/* Whatever is in it: what is known then lies in the text, and its bytes are what they are. */
Test(objects, hostile_knowledge)
{
	char state[PATH_MAX];
	struct image im = image_new();
	unsigned used = 0;

	tempdir_enter(state);
	image_put_id(&im, 1);
	put_all_kinds(&im);
	run_and_learn(state, &im);
	struct objects *os = objects_new(state);
	const struct sitefile_key key = known(os, &im)->key;
	objects_free(os);
	srand(11);
	for (int i = 0; i < 5000; i++) {
		struct sitefile_site site[SITEFILE_SITES_MAX];
		size_t n = (size_t)rand() % (rand() % 2 ? 3 : SITEFILE_SITES_MAX);
		struct sitefile *f = sitefile_new(state, OBJECTS_RULES);
		for (size_t s = 0; s < n; s++)
			site[s] = odd_site();
		sitefile_put(f, &key, site, n);
		sitefile_free(f);
		os = objects_new(state);
		const struct object *o = known(os, &im);
		used += o != NULL;
		for (size_t s = 0; o && s < o->len; s++) {
			struct stub_site is;
			uint64_t stub;
			cr_assert(object_site(o, s, &im.where, &is, &stub));
			const uint8_t *syscall = (const uint8_t *)(uintptr_t)is.syscall;
			cr_assert_arr_eq(syscall, "\x0f\x05", 2);
			cr_assert_arr_eq(syscall - is.before_len, is.before, is.before_len);
			cr_assert_leq(is.syscall + 2, (uintptr_t)im.at + TEXT + TEXT_SIZE);
			cr_assert_eq(o->site[s].offset, site[s].offset);
		}
		objects_free(os);
	}
	cr_expect(used > 50, "%u", used);
	image_free(&im);
	tempdir_leave(state);
}
