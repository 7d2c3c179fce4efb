#include "tracer/libzydis.h"

#include "tracer/library.h"

static struct libzydis functions;

static const struct library_symbol wanted[] = {
#define LIBZYDIS_FUNCTION(name) {"Zydis" #name, offsetof(struct libzydis, name)},
#include "tracer/libzydis.def"
#undef LIBZYDIS_FUNCTION
};

static struct library library = LIBRARY(LIBZYDIS_SONAME, wanted, &functions);

const struct libzydis *libzydis_get(void)
{
	return library_missing(&library) ? NULL : &functions;
}
