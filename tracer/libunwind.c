#include "tracer/libunwind.h"

#include "tracer/library.h"
#include "tracer/util.h"

#define NAME_OF_(name) #name
#define NAME_OF(name)  NAME_OF_(name)

static const struct library_symbol wanted[] = {
#define LIBUNWIND_FUNCTION(name) {NAME_OF(UNW_OBJ(name)), offsetof(struct libunwind, name)},
#include "tracer/libunwind.def"
#undef LIBUNWIND_FUNCTION
};

int libunwind_load(struct libunwind *ret)
{
	char why[256];

	return library_load(LIBUNWIND_SONAME, wanted, ARRAY_LEN(wanted), ret, why);
}
