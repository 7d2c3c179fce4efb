/*
 * libzstd: the library, opened with the first compressed trace (tracer/library.h). The one includer
 * of zstd.h; tracewrite.c and traceinput.c are its users.
 */
#pragma once

#include <zstd.h>

/* ZSTD_isError() is isError here, with the same type. */
struct libzstd {
#define LIBZSTD_FUNCTION(name) __typeof__(ZSTD_##name) *name;
#include "tracer/libzstd.def"
#undef LIBZSTD_FUNCTION
};

/* The same for the whole process; the first call loads it. NULL: it is not there. */
const struct libzstd *libzstd_get(void);
