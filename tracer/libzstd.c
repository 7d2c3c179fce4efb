#include "tracer/libzstd.h"

#include "tracer/library.h"

static struct libzstd functions;

static const struct library_symbol wanted[] = {
#define LIBZSTD_FUNCTION(name) {"ZSTD_" #name, offsetof(struct libzstd, name)},
#include "tracer/libzstd.def"
#undef LIBZSTD_FUNCTION
};

static struct library library = LIBRARY(LIBZSTD_SONAME, wanted, &functions);

const struct libzstd *libzstd_get(void)
{
	return library_missing(&library) ? NULL : &functions;
}
