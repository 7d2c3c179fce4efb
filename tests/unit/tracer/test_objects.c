#include "tracer/objects.h"

#include "tracer/elfmem.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * An object in this process's own memory, which serves as the tracee's: an ELF header, an unwind
 * table and a text, all in one file's pages. A program can put anything there.
 */

#define PAGE	  4096
#define PAGES	  4
#define TEXT	  PAGE /* the segment's offset, and in memory the same */
#define TEXT_SIZE (PAGE + 0x800)
#define TABLE	  0x400
#define FUNCTION  (TEXT + 0x40)
#define SITE	  (FUNCTION + 9) /* of the syscall instruction */

struct image {
	uint8_t *at;
	Elf64_Ehdr *head;
	Elf64_Phdr *ph;
	struct maps_region where;
	struct tracee t;
};

static const struct sysent *openat_row(void)
{
	return &sysents[SYS_ID_openat];
}

static void put_site(uint8_t *at, int32_t nr)
{
	*at = 0xb8;
	memcpy(at + 1, &nr, 4);
	memcpy(at + 5, "\x0f\x05", 2);
}

static void put_table(struct image *im)
{
	const int32_t table[] = {0, 2, TEXT - TABLE, 0, FUNCTION - TABLE, 0};
	uint8_t *at = im->at + TABLE;

	memcpy(at, "\x01\x1b\x03\x3b", 4);
	memcpy(at + 4, table, sizeof(table));
}

static struct image image_new(void)
{
	struct image im = {.at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};

	cr_assert_neq(im.at, MAP_FAILED);
	im.head = (Elf64_Ehdr *)im.at;
	memcpy(im.head->e_ident, ELFMAG, SELFMAG);
	im.head->e_ident[EI_CLASS] = ELFCLASS64;
	im.head->e_phoff = sizeof(*im.head);
	im.head->e_phentsize = sizeof(*im.ph);
	im.head->e_phnum = 2;
	im.ph = (Elf64_Phdr *)(im.head + 1);
	im.ph[0] = (Elf64_Phdr){.p_type = PT_LOAD,
				.p_flags = PF_R | PF_X,
				.p_offset = TEXT,
				.p_vaddr = TEXT,
				.p_filesz = TEXT_SIZE,
				.p_memsz = TEXT_SIZE};
	im.ph[1] = (Elf64_Phdr){
		.p_type = PT_GNU_EH_FRAME, .p_offset = TABLE, .p_vaddr = TABLE, .p_memsz = 0x100};
	put_table(&im);
	memcpy(im.at + FUNCTION, "\xf3\x0f\x1e\xfa", 4);
	put_site(im.at + FUNCTION + 4, SYS_openat);
	im.where = (struct maps_region){.start = (uintptr_t)im.at + TEXT,
					.end = (uintptr_t)im.at + 3 * PAGE,
					.offset = TEXT,
					.dev = 1,
					.ino = 42,
					.exec = true};
	im.t = (struct tracee){.tid = getpid(), .at.nr = SYS_openat};
	im.t.at.ip = (uintptr_t)im.at + SITE + 2;
	return im;
}

static const struct object *learn(struct objects *os, struct image *im)
{
	return objects_learn(os, &im->t, openat_row(), &im->where, (uintptr_t)im->at);
}

static const struct object *find(struct objects *os, struct image *im)
{
	return objects_find(os, getpid(), &im->where, (uintptr_t)im->at, im->t.at.ip - 2);
}

static void image_free(struct image *im)
{
	munmap(im->at, PAGES * PAGE);
}

Test(objects, a_site_and_the_others_in_the_text)
{
	struct image im = image_new();
	struct objects *os = objects_new();
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
		struct objects *os = objects_new();
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
		struct objects *os = objects_new();
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
	struct objects *os = objects_new();

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
		struct objects *os = objects_new();
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
	struct objects *os = objects_new();
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
		struct objects *os = objects_new();
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
