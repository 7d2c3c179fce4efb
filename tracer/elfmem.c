#include "tracer/elfmem.h"

#include "tracer/mem.h"
#include "tracer/util.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define HEADERS_MAX 64
#define PAGE_REST   (uint64_t)0xfff
#define NOTES_MAX   1024 /* bytes of one segment of notes */

/* Of .eh_frame_hdr: how its fields are encoded (DW_EH_PE_*), always this way in practice. */
#define ENC_COUNT 0x03 /* unsigned, 4 bytes */
#define ENC_TABLE 0x3b /* signed, 4 bytes, relative to the section */

struct unwind_header {
	uint8_t version, frame_encoding, count_encoding, table_encoding;
	int32_t frame;
	uint32_t count;
};

struct unwind_entry {
	int32_t function, record;
};

static void take_text(const Elf64_Phdr *ph, uint64_t addr, uint64_t file_offset,
		      struct elfmem_text *text)
{
	text->bias = addr - (file_offset - ph->p_offset + ph->p_vaddr);
	text->end = addr + (ph->p_filesz - (file_offset - ph->p_offset));
}

/* It is mapped from the beginning of its first page on. */
static bool holds(const Elf64_Phdr *ph, uint64_t file_offset)
{
	return ph->p_type == PT_LOAD && (ph->p_flags & PF_X) &&
	       file_offset >= (ph->p_offset & ~PAGE_REST) &&
	       (int64_t)(file_offset - ph->p_offset) < (int64_t)ph->p_filesz;
}

/* How many there are, or -errno. */
static int read_headers(pid_t tid, uint64_t base, Elf64_Phdr ph[HEADERS_MAX])
{
	Elf64_Ehdr head;
	int r = mem_read(tid, base, &head, sizeof(head));

	if (r < 0)
		return r;
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_phentsize != sizeof(*ph) || head.e_phnum > HEADERS_MAX)
		return -ENOEXEC;
	r = mem_read(tid, base + head.e_phoff, ph, head.e_phnum * sizeof(*ph));
	return r < 0 ? r : head.e_phnum;
}

int elfmem_text(pid_t tid, uint64_t base, uint64_t addr, uint64_t file_offset,
		struct elfmem_text *ret)
{
	Elf64_Phdr ph[HEADERS_MAX];
	const Elf64_Phdr *unwind = NULL;
	struct elfmem_text text = {0};
	int n = read_headers(tid, base, ph), found = 0;

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		if (holds(&ph[i], file_offset) && ++found)
			take_text(&ph[i], addr, file_offset, &text);
		if (ph[i].p_type == PT_GNU_EH_FRAME)
			unwind = &ph[i];
	}
	if (found != 1 || text.end <= addr)
		return -ENOEXEC;
	if (unwind) {
		text.unwind = text.bias + unwind->p_vaddr;
		text.unwind_size = unwind->p_memsz;
	}
	*ret = text;
	return 0;
}

/* The length of the build id in these notes, and where it is; 0: none. */
static size_t find_build_id(const uint8_t *notes, size_t len, const uint8_t **ret)
{
	Elf64_Nhdr note;

	for (size_t at = 0; len - at >= sizeof(note);) {
		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
		size_t desc = ((size_t)note.n_descsz + 3) & ~(size_t)3;
		if (name > len - at || desc > len - at - name)
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    memcmp(notes + at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0) {
			*ret = notes + at + name;
			return note.n_descsz;
		}
		at += name + desc;
	}
	return 0;
}

int elfmem_build_id(pid_t tid, uint64_t base, uint8_t *ret, size_t max)
{
	Elf64_Phdr ph[HEADERS_MAX];
	uint8_t notes[NOTES_MAX];
	const uint8_t *id = NULL;
	size_t found = 0;
	int n = read_headers(tid, base, ph);

	if (n < 0)
		return n;
	for (int i = 0; !found && i < n; i++) {
		size_t len = ph[i].p_filesz < sizeof(notes) ? ph[i].p_filesz : sizeof(notes);
		/* By its place in the file: it is near the first page. */
		if (ph[i].p_type == PT_NOTE &&
		    mem_read(tid, base + ph[i].p_offset, notes, len) == 0)
			found = find_build_id(notes, len, &id);
	}
	if (!found || found > max)
		return -ENOENT;
	memcpy(ret, id, found);
	return (int)found;
}

int elfmem_function(pid_t tid, const struct elfmem_text *text, uint64_t addr, uint64_t *ret)
{
	struct unwind_header head;
	struct unwind_entry entry = {0};
	uint64_t table = text->unwind + sizeof(head);

	if (!text->unwind || text->unwind_size < sizeof(head) ||
	    mem_read(tid, text->unwind, &head, sizeof(head)) < 0)
		return -ENOENT;
	if (head.version != 1 || head.count_encoding != ENC_COUNT ||
	    head.table_encoding != ENC_TABLE || !head.count ||
	    head.count > (text->unwind_size - sizeof(head)) / sizeof(entry))
		return -ENOENT;
	uint32_t lo = 0, hi = head.count; /* the last entry at or below addr is in [lo, hi) */
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (mem_read(tid, table + mid * sizeof(entry), &entry, sizeof(entry)) < 0)
			return -ENOENT;
		if (text->unwind + (uint64_t)(int64_t)entry.function <= addr)
			lo = mid;
		else
			hi = mid;
	}
	if (mem_read(tid, table + lo * sizeof(entry), &entry, sizeof(entry)) < 0)
		return -ENOENT;
	uint64_t function = text->unwind + (uint64_t)(int64_t)entry.function;
	if (function > addr)
		return -ENOENT;
	*ret = function;
	return 0;
}
