#include "tracer/errname.h"

#include "tracer/util.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define LAST EHWPOISON

static bool is(const char *name, size_t n, const char *other)
{
	return strlen(other) == n && memcmp(name, other, n) == 0;
}

int errname_number(const char *name, size_t n)
{
	static const struct {
		const char *name;
		int number;
	} others[] = {{"ENOTSUP", EOPNOTSUPP}, {"EDEADLOCK", EDEADLK}, {"EWOULDBLOCK", EAGAIN}};

	for (int e = 1; e <= LAST; e++) {
		const char *known = strerrorname_np(e); /* some numbers are nobody's */
		if (known && is(name, n, known))
			return e;
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (is(name, n, others[i].name))
			return others[i].number;
	return 0;
}
