/*
 * unwinder: the helper process behind unwind.h. Inside the room.
 *
 * What it finds it writes into memory that it shares with its parent, frame by frame, so that what
 * was found before it is killed is not lost. The parent believes none of it.
 */
#pragma once

#include "tracer/elfsym.h"
#include "tracer/regs.h"
#include "tracer/unwind.h"

#define UNWINDER_TEXT (64u << 10)

struct unwinder_frame {
	uint64_t ip, function_offset, object_offset;
	struct elfsym_id id; /* of the file whose symbols it needs; ino 0: none */
	uint64_t lookup;     /* the address in it that was looked up */
	bool searched; /* the file was searched to its end: what it does not name has no name */
	uint32_t function, object; /* where in text; 0: not known */
	bool is_signal;
};

struct unwinder_result {
	uint32_t len;
	uint32_t end; /* enum unwind_end */
	uint32_t tables;
	uint32_t text_len;
	struct unwinder_frame frame[UNWIND_FRAMES_MAX];
	char text[UNWINDER_TEXT]; /* the first byte is for nobody */
};

struct libunwind;

struct unwinder_job {
	const struct libunwind *lib;
	pid_t tid;
	int mem; /* its /proc/TID/mem */
	const struct regs_dwarf *regs;
	size_t max;
	const struct elfsym_cache *cache; /* names known already; only read */
	struct unwinder_result *result;	  /* shared */
};

/* In the forked helper: closes every other descriptor, never returns. */
_Noreturn void unwinder_main(const struct unwinder_job *job);
