/*
 * libzydis: Zydis, opened with the first code that is to be decoded (tracer/library.h). The one
 * includer of Zydis.h; tracer/insn.c is the one user. x86-64.
 */
#pragma once

#include <Zydis/Zydis.h>

/* ZydisDecoderInit() is DecoderInit here, with the same type. */
struct libzydis {
#define LIBZYDIS_FUNCTION(name) __typeof__(Zydis##name) *name;
#include "tracer/libzydis.def"
#undef LIBZYDIS_FUNCTION
};

/* The same for the whole process; the first call loads it. NULL: it is not there. */
const struct libzydis *libzydis_get(void);
