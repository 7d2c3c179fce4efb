/*
 * traceinput: a file as lines, decompressed where it is compressed (zstd, by its first bytes).
 *
 * Memory: one line (TRACE_LINE_MAX at most) and a block. Blocks as reading does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct traceinput;

/* "-": standard input. 0 or -errno; -ELIBACC: it is compressed, and libzstd is missing. */
int traceinput_open(const char *file, struct traceinput **ret);
/* What such an error says: static, or strerror()'s. */
const char *traceinput_trouble(int err);
void traceinput_close(struct traceinput *in);
/*
 * The next line, without its newline, NUL-terminated, the caller's to change until the next call
 * (but not before traceinput_back()).
 * 1, 0 at the end, -errno; -E2BIG: a line is longer than TRACE_LINE_MAX,
 * -EBADMSG: damaged compressed data (a compressed file that breaks off just ends). *ret_n: bytes;
 * there may be NULs among them.
 */
int traceinput_line(struct traceinput *in, char **ret, size_t *ret_n);
/* The same line is to be given once more (by the next traceinput_line()). */
void traceinput_back(struct traceinput *in);
/* Number of the last line, from 1. */
uint64_t traceinput_number(const struct traceinput *in);
/* Did the last line end in a newline? One that did not may be half of itself. */
bool traceinput_is_whole(const struct traceinput *in);
/* Did the end come in the middle of compressed data? */
bool traceinput_is_cut_off(const struct traceinput *in);
const char *traceinput_name(const struct traceinput *in);
