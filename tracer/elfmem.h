/*
 * elfmem: an ELF object as it lies in a tracee's memory. Only what is mapped is looked at, no file:
 * it is the tracee's word, bounded and checked. 64-bit objects.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The executable segment that holds an address. */
struct elfmem_text {
	uint64_t bias; /* address - vaddr */
	uint64_t end;  /* address behind the segment's last byte; up to the page's end is filler */
	uint64_t unwind; /* address of .eh_frame_hdr; 0: there is none */
	uint64_t unwind_size;
};

/*
 * base: where the object's first page is mapped; addr: in the segment or, before it, in its first
 * page, at file offset `file_offset`. 0; -ENOEXEC: not such an object, or two segments share that
 * page; -EFAULT, -ESRCH...
 */
int elfmem_text(pid_t tid, uint64_t base, uint64_t addr, uint64_t file_offset,
		struct elfmem_text *ret);
/*
 * The object's build id (NT_GNU_BUILD_ID, what its linker made of its content), up to `max` bytes:
 * how many it has. -ENOENT: none, or a longer one; or as above.
 */
int elfmem_build_id(pid_t tid, uint64_t base, uint8_t *ret, size_t max);
/*
 * The beginning of the function that holds addr, by the object's unwind table (.eh_frame_hdr,
 * Linux Standard Base). 0; -ENOENT.
 */
int elfmem_function(pid_t tid, const struct elfmem_text *text, uint64_t addr, uint64_t *ret);
