#include "agent/libcurl.h"

#include "tracer/library.h"
#include "tracer/util.h"

#include <pthread.h>
#include <stdio.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct libcurl functions;
static char missing[256];

static const struct library_symbol wanted[] = {
#define LIBCURL_FUNCTION(name) {"curl_" #name, offsetof(struct libcurl, name)},
#include "agent/libcurl.def"
#undef LIBCURL_FUNCTION
};

/* By the name of its binary interface since 2006. */
static void load(void)
{
	if (!library_load("libcurl.so.4", wanted, ARRAY_LEN(wanted), &functions, missing) &&
	    functions.global_init(CURL_GLOBAL_DEFAULT))
		snprintf(missing, sizeof(missing), "libcurl.so.4 does not start");
}

const char *libcurl_missing(void)
{
	pthread_once(&once, load);
	return missing[0] ? missing : NULL;
}

const struct libcurl *libcurl_get(void)
{
	return libcurl_missing() ? NULL : &functions;
}
