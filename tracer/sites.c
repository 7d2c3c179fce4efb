#include "tracer/sites.h"

#include "tracer/elfmem.h"
#include "tracer/filter.h"
#include "tracer/insn.h"
#include "tracer/mem.h"
#include "tracer/objects.h"
#include "tracer/util.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADERS_MAX  64
#define FUNCTION_MAX 4096 /* as the fast path */
#define LOOK_BACK    256  /* bytes, where no index tells of functions: decoding falls in step */
#define SPAN_MAX     (1ull << 32) /* of addresses: no honest program is larger */
#define PAGE	     4096u
#define SYSCALL_SIZE 2
#define CHUNK	     (1u << 20) /* of text, looked through at once */
/* node has 95 MiB and a thousand places where the two bytes lie; a file may have nothing else.
 */
#define TEXT_MAX   (1ull << 30)
#define PLACES_MAX 32768

/*
 * A file, laid out in this process's memory as its headers say. Read by mem_read() alone: where the
 * file was cut off meanwhile that is an error, and would be a SIGBUS by a pointer.
 */
struct layout {
	uint8_t *at;
	size_t span;
	uint64_t file_size;
	Elf64_Phdr ph[HEADERS_MAX];
	unsigned phs;
};

/* ---- layout ---- */

static int read_headers(int fd, struct layout *l, uint64_t *ret_low)
{
	Elf64_Ehdr head;
	struct stat st;
	uint64_t low = UINT64_MAX, high = 0;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_machine != EM_X86_64 || head.e_phentsize != sizeof(l->ph[0]) ||
	    head.e_phnum > HEADERS_MAX)
		return -ENOEXEC;
	ssize_t size = (ssize_t)(head.e_phnum * sizeof(l->ph[0]));
	if (pread(fd, l->ph, (size_t)size, (off_t)head.e_phoff) != size)
		return -ENOEXEC;
	l->phs = head.e_phnum;
	l->file_size = (uint64_t)st.st_size;
	for (unsigned i = 0; i < l->phs; i++) {
		const Elf64_Phdr *ph = &l->ph[i];
		if (ph->p_type != PT_LOAD)
			continue;
		if (ph->p_vaddr > SPAN_MAX || ph->p_memsz > SPAN_MAX)
			return -ENOEXEC;
		if (ph->p_vaddr < low)
			low = ph->p_vaddr;
		if (ph->p_vaddr + ph->p_memsz > high)
			high = ph->p_vaddr + ph->p_memsz;
	}
	if (low >= high)
		return -ENOEXEC;
	*ret_low = low & -(uint64_t)PAGE;
	l->span = (high - *ret_low + PAGE - 1) & -(uint64_t)PAGE;
	return 0;
}

/* As a loader does: with the rest of the file's last page behind a segment. */
static int map_segment(int fd, const struct layout *l, const Elf64_Phdr *ph, uint64_t low)
{
	uint64_t skew = ph->p_vaddr % PAGE;
	size_t size = (ph->p_filesz + skew + PAGE - 1) & -(uint64_t)PAGE;

	if (!ph->p_filesz)
		return 0;
	if (ph->p_offset > l->file_size || ph->p_filesz > l->file_size - ph->p_offset ||
	    ph->p_offset % PAGE != skew || ph->p_vaddr - skew - low + size > l->span)
		return -ENOEXEC;
	void *at = mmap(l->at + (ph->p_vaddr - skew - low), size, PROT_READ,
			MAP_PRIVATE | MAP_FIXED, fd, (off_t)(ph->p_offset - skew));
	return at == MAP_FAILED ? -errno : 0;
}

static int lay_out(int fd, struct layout *l)
{
	uint64_t low;
	int r = read_headers(fd, l, &low);

	if (r < 0)
		return r;
	void *at =
		mmap(NULL, l->span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	l->at = at;
	for (unsigned i = 0; r == 0 && i < l->phs; i++)
		if (l->ph[i].p_type == PT_LOAD)
			r = map_segment(fd, l, &l->ph[i], low);
	for (unsigned i = 0; i < l->phs; i++) /* where it lies here */
		l->ph[i].p_vaddr += (uintptr_t)l->at - low;
	return r;
}

/* ---- one text ---- */

struct text {
	struct sites *found;
	struct elfmem_text elf;
	struct maps_region where;
	uint64_t base;
	struct objects *os;	    /* what the fast path learns of it at once, */
	const struct object *known; /* may be NULL */
};

/* What may still be looked at of the file. */
struct bounds {
	uint64_t text;
	unsigned places;
};

static bool is_known(const struct text *x, uint64_t offset)
{
	for (size_t i = 0; x->known && i < x->known->len; i++)
		if (x->known->site[i].offset == offset)
			return true;
	return false;
}

/* A place for whatever number is taken for one that opens files, if it can be changed. */
static void count(struct text *x, uint64_t syscall, int32_t nr)
{
	struct sites *s = x->found;
	uint64_t offset = syscall - x->where.start + x->where.offset;
	const struct sysent *ent =
		nr < 0 ? &sysents[SYS_ID_openat] : sysent_by_nr(SYS_ARCH_X86_64, nr);
	bool can = is_known(x, offset);

	if (!can && (!ent || !filter_passes(ent)))
		return;
	can = can || (s->room && objects_can_change(getpid(), ent, &x->elf, syscall));
	if (!can && nr < 0) {
		s->others++;
		return;
	}
	s->calls++;
	s->can += can;
	if (can || s->left_len == SITES_LEFT_MAX)
		return;
	s->left[s->left_len].offset = offset;
	s->left[s->left_len++].call = ent->name;
}

/* From where decoding reaches this address; 0: from nowhere. */
static uint64_t begin_for(const struct text *x, uint64_t at)
{
	uint64_t begin;

	if (!x->elf.unwind)
		return at - x->where.start < LOOK_BACK ? x->where.start : at - LOOK_BACK;
	if (elfmem_function(getpid(), &x->elf, at, &begin) < 0 || begin < x->where.start ||
	    at - begin > FUNCTION_MAX)
		return 0;
	return begin;
}

/* A part of the text, with what decoding may need before it and behind. */
struct part {
	uint64_t begin, end; /* addresses: what is looked through, */
	uint64_t low;	     /* and where the bytes begin */
	const uint8_t *bytes;
};

/* Is there an instruction at this address, and what does it call? */
static bool is_call(const struct text *x, const struct part *p, uint64_t at, int32_t *ret_nr)
{
	uint64_t begin = begin_for(x, at), left = x->elf.end - at;

	if (!begin)
		return false;
	/* With what follows: the two bytes can be in the middle of a longer one. */
	struct insn_calls c = {.code = p->bytes + (begin - p->low),
			       .len = at - begin + (left < STUB_INSN_MAX ? left : STUB_INSN_MAX)};
	while (insn_next_call(&c)) {
		if (begin + c.call < at)
			continue;
		*ret_nr = c.nr;
		return begin + c.call == at;
	}
	return false;
}

/* Only what leads to the two bytes is decoded. 0 or -E2BIG. */
static int count_part(struct text *x, const struct part *p, struct bounds *left)
{
	const uint8_t *at = p->bytes + (p->begin - p->low);
	const uint8_t *end = p->bytes + (p->end - p->low);
	/* The last one's second byte is the first behind. */
	const uint8_t *last = p->end < x->elf.end ? end + 1 : end;
	int32_t nr;

	while ((at = memmem(at, (size_t)(last - at), "\x0f\x05", SYSCALL_SIZE))) {
		uint64_t syscall = p->low + (uint64_t)(at - p->bytes);
		if (!left->places--)
			return -E2BIG;
		if (is_call(x, p, syscall, &nr))
			count(x, syscall, nr);
		at += SYSCALL_SIZE;
		if (at >= end)
			break;
	}
	return 0;
}

/* 0, -E2BIG, -ENOMEM; -ENOEXEC: it is not there any more. */
static int count_all(struct text *x, struct bounds *left)
{
	uint64_t start = x->where.start, end = x->elf.end;
	uint8_t *bytes AUTOFREE = malloc(FUNCTION_MAX + CHUNK + STUB_INSN_MAX);

	if (!bytes)
		return -ENOMEM;
	if (end - start > left->text)
		return -E2BIG;
	left->text -= end - start;
	for (uint64_t at = start; at < end;) {
		struct part p = {.begin = at, .end = end, .low = start, .bytes = bytes};
		uint64_t high = end;
		if (end - at > CHUNK)
			p.end = at + CHUNK;
		if (end - p.end > STUB_INSN_MAX)
			high = p.end + STUB_INSN_MAX;
		if (at - start > FUNCTION_MAX)
			p.low = at - FUNCTION_MAX;
		if (mem_read(getpid(), p.low, bytes, high - p.low) < 0)
			return -ENOEXEC;
		int r = count_part(x, &p, left);
		if (r < 0)
			return r;
		at = p.end;
	}
	return 0;
}

static int count_segment(const struct layout *l, const Elf64_Phdr *ph, struct bounds *left,
			 struct sites *s)
{
	struct text x = {.found = s, .base = (uintptr_t)l->at};
	uint64_t skew = ph->p_vaddr % PAGE;

	x.where = (struct maps_region){.start = ph->p_vaddr - skew,
				       .offset = ph->p_offset - skew,
				       .dev = 1,
				       .ino = 1,
				       .exec = true};
	x.where.end = x.where.start + ((ph->p_filesz + skew + PAGE - 1) & -(uint64_t)PAGE);
	if (elfmem_text(getpid(), x.base, ph->p_vaddr, ph->p_offset, &x.elf) < 0)
		return 0;
	/* It reads what lies where headers are, which need not be what this was laid out by. */
	if (x.elf.end > ph->p_vaddr + ph->p_filesz)
		return -ENOEXEC;
	x.os = objects_new(NULL);
	if (!x.os)
		return -ENOMEM;
	x.known = objects_survey(x.os, getpid(), &x.where, x.base);
	s->room += (unsigned)objects_room(&x.where, &x.elf);
	int r = count_all(&x, left);
	objects_free(x.os);
	return r;
}

int sites_count(const char *path, struct sites *ret)
{
	struct sites s = {0};
	struct layout l = {0};
	struct bounds left = {TEXT_MAX, PLACES_MAX};
	int fd AUTOCLOSE = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	int r = lay_out(fd, &l);
	for (unsigned i = 0; r == 0 && i < l.phs; i++)
		if (l.ph[i].p_type == PT_LOAD && (l.ph[i].p_flags & PF_X) && l.ph[i].p_filesz)
			r = count_segment(&l, &l.ph[i], &left, &s);
	if (l.at)
		munmap(l.at, l.span);
	if (r == 0)
		*ret = s;
	return r;
}
