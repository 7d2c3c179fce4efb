/*
 * An object in this process's own memory, which serves as the tracee's: an ELF header, an unwind
 * table, a build id and a text, all in one file's pages. A program can put anything there.
 */
#pragma once

#include "tracer/objects.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE	  4096
#define PAGES	  4
#define TEXT	  PAGE /* the segment's offset, and in memory the same */
#define TEXT_SIZE (PAGE + 0x800)
#define TABLE	  0x400
#define NOTES	  0x600
#define FUNCTION  (TEXT + 0x40)
#define SITE	  (FUNCTION + 9) /* of the syscall instruction */

struct image {
	uint8_t *at;
	Elf64_Ehdr *head;
	Elf64_Phdr *ph;
	struct maps_region where;
	struct tracee t;
};

static inline const struct sysent *openat_row(void)
{
	return &sysents[SYS_ID_openat];
}

static inline void put_site(uint8_t *at, int32_t nr)
{
	*at = 0xb8;
	memcpy(at + 1, &nr, 4);
	memcpy(at + 5, "\x0f\x05", 2);
}

/* The unwind table: two functions, of the text's beginning and this one. */
static inline void put_function(struct image *im, int32_t offset)
{
	const int32_t table[] = {0, 2, TEXT - TABLE, 0, offset - TABLE, 0};
	uint8_t *at = im->at + TABLE;

	memcpy(at, "\x01\x1b\x03\x3b", 4);
	memcpy(at + 4, table, sizeof(table));
}

/* A build id of 20 bytes, behind another note. */
static inline void image_put_id(struct image *im, uint8_t id)
{
	const Elf64_Nhdr property = {4, 16, NT_GNU_PROPERTY_TYPE_0},
			 note = {4, 20, NT_GNU_BUILD_ID};
	uint8_t *at = im->at + NOTES;

	memcpy(at, &property, sizeof(property));
	memcpy(at + sizeof(property), "GNU", 4);
	at += sizeof(property) + 4 + 16;
	memcpy(at, &note, sizeof(note));
	memcpy(at + sizeof(note), "GNU", 4);
	memset(at + sizeof(note) + 4, id, 20);
	im->head->e_phnum = 3;
	im->ph[2] = (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = NOTES, .p_filesz = 80};
}

static inline struct image image_new(void)
{
	struct image im = {.at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};

	if (im.at == MAP_FAILED)
		abort();
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
	put_function(&im, FUNCTION);
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

static inline void image_free(struct image *im)
{
	munmap(im->at, PAGES * PAGE);
}
