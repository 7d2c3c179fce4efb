#include "agent/libedit.h"

#include "tracer/library.h"
#include "tracer/util.h"

#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct libedit functions;
static char missing[256];

static const struct library_symbol wanted[] = {
#define LIBEDIT_FUNCTION(name) {#name, offsetof(struct libedit, name)},
#include "agent/libedit.def"
#undef LIBEDIT_FUNCTION
};

static void load(void)
{
	library_load(LIBEDIT_SONAME, wanted, ARRAY_LEN(wanted), &functions, missing);
}

const char *libedit_missing(void)
{
	pthread_once(&once, load);
	return missing[0] ? missing : NULL;
}

const struct libedit *libedit_get(void)
{
	return libedit_missing() ? NULL : &functions;
}
