#include "agent/libmd4c.h"

#include "tracer/library.h"

static struct libmd4c functions;

static const struct library_symbol wanted[] = {{"md_parse", offsetof(struct libmd4c, parse)}};

static struct library library = LIBRARY(LIBMD4C_SONAME, wanted, &functions);

const struct libmd4c *libmd4c_get(void)
{
	return library_missing(&library) ? NULL : &functions;
}
