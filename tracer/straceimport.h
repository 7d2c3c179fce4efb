/*
 * straceimport: strace's text as a trace: the calls that a policy is about, with their names made
 * absolute by what the text itself tells (docs/strace.md). Another format for trace_open().
 *
 * Streams: memory follows the processes that live at once, and what is remembered of names is of
 * bounded size. What is not understood is passed over, told and counted. Any bytes are fine.
 */
#pragma once

#include "tracer/trace.h"
#include "tracer/traceinput.h"

#include <stdbool.h>
#include <stddef.h>

/* Does the line look like one of strace's? */
bool straceimport_is(const char *line, size_t len);
/* Takes the input over, on failure too. 0 and a source, or -ENOMEM. */
int straceimport_open(struct traceinput *in, const struct trace_options *o,
		      struct trace_source *ret);
/*
 * The files of one run of strace -ff, NAME.PID: one a process. They are opened one after the other.
 * 0, -ENOMEM, or -errno with a sentence where the first can't be read.
 */
int straceimport_open_family(const char *const *files, size_t n, const struct trace_options *o,
			     struct trace_source *ret, struct trace_error *ret_error);
/*
 * How many of the files, from the first on, are of one run of strace -ff: their names differ in the
 * pid alone, and the first is strace's text without pids. 1: it stands alone (or can't be read).
 * Blocks as opening and reading a file does.
 */
size_t straceimport_together(const char *const *files, size_t n);
/* The pid of a file's name NAME.PID, and the length of NAME with its dot; false: it has none. */
bool straceimport_family(const char *file, pid_t *ret_pid, size_t *ret_len);
