/*
 * linediff: what changed between two texts, line by line, for people. Pure.
 */
#pragma once

#include "tracer/buf.h"

#include <stdbool.h>

/*
 * Appends "- line" and "+ line" in the order of the texts, escaped; what stayed is left out.
 * False: nothing changed. Of very long differing texts (LINEDIFF_CELLS_MAX) all of the one is
 * removed and all of the other added.
 */
#define LINEDIFF_CELLS_MAX (4u << 20)
bool linediff(const char *old, const char *new, struct buf *out);
