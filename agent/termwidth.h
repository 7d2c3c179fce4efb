/*
 * termwidth: how wide a terminal is at this moment.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Columns; 80 where the terminal does not say or is none. */
size_t termwidth(int fd);
/* A terminal that knows escape sequences. */
bool termwidth_is_capable(int fd);
