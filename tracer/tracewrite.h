/*
 * tracewrite: a trace's way into its file.
 *
 * The file has a temporary name beside the wanted one until it is whole (NAME.XXXXXX.part), so a
 * file of the final name is complete. What is not a regular file (a pipe, /dev/null) is written
 * straight. The directory is held open: whoever moves it or puts another in its place moves the
 * file with it. Mode 0600, close-on-exec, *.zst compressed.
 *
 * Events are gathered and written some 100 KiB at a time, and at the latest at the first event
 * half a second after: who dies leaves whole lines, and at most one that is cut. The first failure
 * (a full disk) is kept: what comes later is dropped, and answered with it. Blocks as writing does.
 */
#pragma once

#include "tracer/trace.h"

struct tracewrite;

/* file: its real name (outfile.h). 0, or -errno with a sentence; -ELOOP: it is not, any more. */
int tracewrite_open(const char *file, struct tracewrite **ret, struct trace_error *ret_error);
/* 0 or -errno, as all that write. */
int tracewrite_header(struct tracewrite *w, const struct trace_header *h);
int tracewrite_event(struct tracewrite *w, const struct trace_event *ev);
/* The end line and the final name. On failure the temporary file stays. */
int tracewrite_finish(struct tracewrite *w);
/* 0, or the failure that is kept. */
int tracewrite_failure(const struct tracewrite *w);
uint64_t tracewrite_events(const struct tracewrite *w);
/* Was the header written? Without it the file is nothing, and goes with tracewrite_free(). */
bool tracewrite_has_header(const struct tracewrite *w);
/* Absolute names. Where it is now: the temporary name, or once it is finished the final one. */
const char *tracewrite_name(const struct tracewrite *w);
/* The name it is to have. */
const char *tracewrite_final_name(const struct tracewrite *w);
/* Is it one that gets another name at its end? */
bool tracewrite_is_temporary(const struct tracewrite *w);
/* Without tracewrite_finish(): what was written stays where it is. NULL is fine. */
void tracewrite_free(struct tracewrite *w);

/* One line with its newline, as it is written. */
void tracewrite_format(const struct trace_event *ev, struct buf *out);
void tracewrite_format_header(const struct trace_header *h, struct buf *out);
