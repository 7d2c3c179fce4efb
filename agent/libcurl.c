#include "agent/libcurl.h"

#include "tracer/util.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The name of its binary interface since 2006. */
#define LIBCURL_SONAME "libcurl.so.4"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct libcurl functions;
static char missing[256];

static const struct {
	const char *name;
	size_t at;
} wanted[] = {
#define LIBCURL_FUNCTION(name) {"curl_" #name, offsetof(struct libcurl, name)},
#include "agent/libcurl.def"
#undef LIBCURL_FUNCTION
};

static bool find_all(void *library)
{
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		void *found = dlsym(library, wanted[i].name);
		if (!found)
			return false;
		memcpy((char *)&functions + wanted[i].at, &found, sizeof(found));
	}
	return true;
}

static void load(void)
{
	void *library = dlopen(LIBCURL_SONAME, RTLD_NOW | RTLD_LOCAL);
	if (library && find_all(library) && !functions.global_init(CURL_GLOBAL_DEFAULT))
		return; /* it stays for good: it can't be unloaded once it was used */
	const char *why = dlerror();
	snprintf(missing, sizeof(missing), "%s", why ? why : LIBCURL_SONAME " does not start");
	if (library)
		dlclose(library);
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
