/*
 * sites: how many of a program's or a library's calls could be made without a stop, told from its
 * file before anything runs it: the places whose calls Landlock can refuse, and by what stands
 * before them whether the fast path would change them (tracer/objects.h). x86-64.
 *
 * The file is mapped as its loader would, and nothing in it is run.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SITES_LEFT_MAX 64

struct sites {
	unsigned calls;	 /* places that make such a call, */
	unsigned can;	 /* of them, those that can be changed */
	unsigned others; /* and those that can't, of which nothing tells what they call: not counted
			  */
	unsigned room;	 /* so many can at the same time: what follows the text is short */
	size_t left_len; /* those that can't, up to SITES_LEFT_MAX */
	struct {
		uint64_t offset;  /* of the syscall instruction in the file */
		const char *call; /* static: its name */
	} left[SITES_LEFT_MAX];
};

/*
 * 0; -ENOEXEC: no 64-bit ELF object of x86-64, or it was cut off meanwhile; -E2BIG: more of it than
 * any honest one has; or -errno. Blocks for the file; some milliseconds, seconds where somebody
 * made it to be slow.
 */
int sites_count(const char *path, struct sites *ret);
