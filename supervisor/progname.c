#include "supervisor/progname.h"

#include <stddef.h>
#include <string.h>

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

const char *progname_of(const char *argv0, const char *exe)
{
	if (argv0 && argv0[0] == '-' && argv0[1])
		argv0++;
	if (argv0 && *argv0)
		return last_part(argv0);
	return exe && *exe ? last_part(exe) : "?";
}
