/*
 * termwidth: how wide a terminal is at this moment.
 */
#pragma once

#include "tracer/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* Columns; 80 where the terminal does not say or is none. */
size_t termwidth(int fd);
/* Lines; 24 likewise. */
size_t termwidth_rows(int fd);
/* A terminal that knows escape sequences. */
bool termwidth_is_capable(int fd);
/*
 * Append lines of words to be read (escaped already, each ending in a newline): where fd is a
 * terminal wrapped for it between words (supervisor/prose.h), else as they are.
 */
void termwidth_wrap(struct buf *out, const struct buf *text, int fd);
