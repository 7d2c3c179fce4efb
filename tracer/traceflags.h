/*
 * traceflags: the flags of calls as text ("O_WRONLY|O_CREAT"), as traces and strace have them.
 * Pure.
 */
#pragma once

#include "tracer/buf.h"
#include "tracer/sysent.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits without a name come out as a number in hex. Nothing set: "0", or "O_RDONLY" of an open. */
void traceflags_format(const struct sysent *ent, uint64_t flags, struct buf *out);
/*
 * n bytes: names and numbers (hex, octal, decimal) with '|' between. False where a word is neither;
 * *ret then has the others.
 */
bool traceflags_parse(const char *text, size_t n, uint64_t *ret);
