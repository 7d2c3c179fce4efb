/*
 * libedit: the library, opened when somebody types at a terminal (tracer/library.h): it brings
 * three others with it. The one includer of histedit.h; agent/lineinput.c is the one user.
 */
#pragma once

#include <histedit.h>

struct libedit {
#define LIBEDIT_FUNCTION(name) __typeof__(name) *name;
#include "agent/libedit.def"
#undef LIBEDIT_FUNCTION
};

/* The same for the whole process; the first call loads it. NULL: it is not there. */
const struct libedit *libedit_get(void);
/* What stands in the way: one line, static; NULL: nothing, it is loaded. */
const char *libedit_missing(void);
