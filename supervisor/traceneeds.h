/*
 * traceneeds: which accesses a traced call needs: as its trace tells, or worked out from the call
 * where it does not (strace's text). Pure.
 */
#pragma once

#include "supervisor/access.h"
#include "tracer/trace.h"

/* The file type (S_IFMT) of what lay there; what is not told counts as a regular file. */
mode_t traceneeds_mode(enum trace_thing t);
/* For each path its bits. False: none at all. */
bool traceneeds_of(const struct trace_event *ev, uint32_t ret[TRACE_PATHS]);
