/*
 * errname: an error's number by its name, ENOENT or as older machines call it (EWOULDBLOCK). The
 * other way is strerrorname_np().
 */
#pragma once

#include <stddef.h>

/* Of the name's n bytes; 0: it is none. */
int errname_number(const char *name, size_t n);
