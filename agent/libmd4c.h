/*
 * libmd4c: the library, opened with the first answer that is shown as a page (tracer/library.h).
 * The one includer of md4c.h; agent/mdrender.c is the one user.
 */
#pragma once

#include <md4c.h>

struct libmd4c {
	__typeof__(md_parse) *parse;
};

/* The same for the whole process; the first call loads it. NULL: it is not there. */
const struct libmd4c *libmd4c_get(void);
