/*
 * stracesym: what strace's words for flags are as numbers of this machine (stracesym.def). Pure.
 */
#pragma once

#include "tracer/straceline.h"

#include <stdbool.h>
#include <stdint.h>

/* O_CREAT, AT_EMPTY_PATH ... False: none we know; *ret is untouched then. */
bool stracesym_find(struct strace_span word, uint64_t *ret);
/* The rows, for a test of their order. */
const char *stracesym_at(size_t i);
