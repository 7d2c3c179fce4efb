/*
 * traceneed: what a recorded call needs, where the trace itself does not say it (strace's text).
 * Pure. As supervisor/access.h does for a stopped call, from what the trace tells of it.
 */
#pragma once

#include "tracer/trace.h"

#include <stdint.h>

/*
 * The accesses of the event's path i, as the trace says them or else worked out from the call; what
 * is not known of the thing counts as needing more rather than less. 0: none.
 */
uint32_t traceneed(const struct trace_event *ev, unsigned i);
