/*
 * library: a shared library that is opened when it is first needed. To bind one is paid at every
 * start, also of what never calls it: that of four took a third of the time of `warder --version`.
 */
#pragma once

#include "tracer/util.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct library_symbol {
	const char *name;
	size_t at; /* of its pointer in `functions` */
};

/*
 * Load it and fill `functions`, a struct of pointers to functions. 0; -ELIBACC: it is not there, or
 * lacks one of them, and ret_why says so in one line. Reads files, some milliseconds; the dynamic
 * linker looks where it always looks, LD_LIBRARY_PATH among it: load what a command could put there
 * before it runs. It stays loaded: few libraries can be unloaded once they were used.
 */
int library_load(const char *soname, const struct library_symbol *symbol, size_t symbols,
		 void *functions, char ret_why[256]);

/* One that a process loads once, by whichever thread asks first; in static storage. */
struct library {
	const char *soname;
	const struct library_symbol *symbol;
	size_t symbols;
	void *functions; /* as library_load() */
	pthread_mutex_t lock;
	bool tried;
	char missing[256];
};
#define LIBRARY(soname_, symbol_, functions_)                                                      \
	{                                                                                          \
		.soname = (soname_), .symbol = (symbol_), .symbols = ARRAY_LEN(symbol_),           \
		.functions = (functions_), .lock = PTHREAD_MUTEX_INITIALIZER                       \
	}

/* Load it, if nobody has. What stands in the way: one line, static; NULL: nothing. */
const char *library_missing(struct library *l);
