/*
 * libunwind: the library, opened when the first stack is wanted (tracer/library.h). The one
 * includer of libunwind.h; tracer/unwinder.c is the one user.
 */
#pragma once

#include <libunwind.h>

/* Exported, but in no header of libunwind 1.6: how its own unwinders search .eh_frame_hdr. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip,
					      unw_dyn_info_t *di, unw_proc_info_t *pi,
					      int need_unwind_info, void *arg);

/* unw_step() is step here, with the same type. */
struct libunwind {
#define LIBUNWIND_FUNCTION(name) __typeof__(UNW_OBJ(name)) *name;
#include "tracer/libunwind.def"
#undef LIBUNWIND_FUNCTION
};

/* 0, or as library_load(). */
int libunwind_load(struct libunwind *ret);
