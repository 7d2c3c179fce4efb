/*
 * tracejson: our own traces, from their lines.
 *
 * A scanner of its own for events: they come by the million, and all of them have the same few
 * members (tracer/tracekeys.def). It reads any JSON, in any order, passes over members that it does
 * not know, and works in the line itself: nothing is allocated for an event.
 */
#pragma once

#include "tracer/trace.h"
#include "tracer/traceinput.h"

/* Does the line look like the first one of such a trace? */
bool tracejson_is_header(const char *line, size_t n);
/*
 * A source that goes on where the input stands (before the header). Takes the input over, also on
 * failure. 0, or -errno with a sentence.
 */
int tracejson_open(struct traceinput *in, struct trace_source *ret, struct trace_error *ret_error);

/* What one event's strings and lists lie in beside its line. */
struct tracejson_room {
	const char *argv[TRACE_ARGV_MAX + 1];
	const struct sysent *known[64]; /* by name: what was looked up before */
};
/*
 * One event of a line of n bytes (NUL-terminated, changed). 0; -ENOMSG: an event of a kind that is
 * not known; -EINVAL with *ret_at (the offset of the fault) and *ret_expected (static).
 */
int tracejson_event(char *line, size_t n, struct tracejson_room *room, struct trace_event *ret,
		    size_t *ret_at, const char **ret_expected);
