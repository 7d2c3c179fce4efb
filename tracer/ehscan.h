/*
 * ehscan: the unwind entry for an address in an .eh_frame section that has no index.
 *
 * Statically linked programs have no .eh_frame_hdr: gcc asks the linker for one only where there is
 * a dynamic loader to find it. The section is then read from its start (the Linux Standard Base,
 * Core, 10.6). It is the tracee's: bounded, nothing in it is followed out of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EHSCAN_SIZE_MAX (16u << 20)

/* n bytes at addr, all or nothing. */
typedef bool ehscan_read_fn(void *arg, uint64_t addr, void *buf, size_t n);

struct ehscan_entry {
	uint64_t at;	/* the FDE's address */
	uint64_t start; /* of the code it is about */
};

/* False: none covers ip. */
bool ehscan_find(ehscan_read_fn *read, void *arg, uint64_t addr, uint64_t size, uint64_t ip,
		 struct ehscan_entry *ret);
