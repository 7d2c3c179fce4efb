/*
 * toolchild: the file tools' other half, run by ourselves as a supervised, walled child
 * (`warder tool-child NAME`, not for users). Only here are paths touched that a model named.
 *
 * The arguments come as one JSON object on descriptor 3, read to its end; the answer goes as one
 * JSON object to descriptor 4. A line {"preview": "diff"} before it tells what will change, before
 * the file is opened for writing. Nothing is written to stdout or stderr. The arguments were
 * checked before (tools_parse) and are checked again: a wrong one is an answer, too.
 *
 * An answer's members, by tool; a failure has only path and error:
 *   read_file   path, content, start_line, end_line, total_lines, bytes, truncated, note
 *   write_file  path, bytes, created, made_dirs, added, removed
 *   edit_file   path, bytes, added, removed, diff
 *   list_dir    path, entries [{name, type, size, target}], total, truncated, note
 *   error       {operation, errno, message} where a call failed, else {message}
 */
#pragma once

#include "tracer/buf.h"
#include "tracer/json.h"

#include <stddef.h>

#define TOOLCHILD_ARGS_FD   3
#define TOOLCHILD_ANSWER_FD 4

/* Bytes of a file's text in one answer; it ends at a line's end where there is one. */
#define TOOLCHILD_READ_MAX (128u << 10)
/* Bytes looked at to count lines; beyond it total_lines is left out. */
#define TOOLCHILD_SCAN_MAX (64u << 20)
#define TOOLCHILD_LIST_MAX 1000

/* argv: "tool-child", NAME. The exit status: 0 an answer was written, 125 it could not
 * be. */
int toolchild_main(int argc, char **argv);

/* The work itself, for tests: append the answer of tool `name` to out. preview_fd: -1 none. */
void toolchild_answer(const char *name, const struct json *args, int preview_fd, struct buf *out);
