#include "agent/libedit.h"

#include "tracer/library.h"

static struct libedit functions;

static const struct library_symbol wanted[] = {
#define LIBEDIT_FUNCTION(name) {#name, offsetof(struct libedit, name)},
#include "agent/libedit.def"
#undef LIBEDIT_FUNCTION
};

static struct library library = LIBRARY(LIBEDIT_SONAME, wanted, &functions);

const char *libedit_missing(void)
{
	return library_missing(&library);
}

const struct libedit *libedit_get(void)
{
	return libedit_missing() ? NULL : &functions;
}
