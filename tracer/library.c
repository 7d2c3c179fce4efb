#include "tracer/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

int library_load(const char *soname, const struct library_symbol *symbol, size_t symbols,
		 void *functions, char ret_why[256])
{
	void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
	size_t found = 0;

	for (; library && found < symbols; found++) {
		void *one = dlsym(library, symbol[found].name);
		if (!one)
			break;
		memcpy((char *)functions + symbol[found].at, &one, sizeof(one));
	}
	if (library && found == symbols)
		return 0;
	const char *why = dlerror();
	snprintf(ret_why, 256, "%s", why ? why : soname);
	if (library)
		dlclose(library);
	return -ELIBACC;
}

const char *library_missing(struct library *l)
{
	pthread_mutex_lock(&l->lock);
	if (!l->tried)
		library_load(l->soname, l->symbol, l->symbols, l->functions, l->missing);
	l->tried = true;
	pthread_mutex_unlock(&l->lock);
	return l->missing[0] ? l->missing : NULL;
}
