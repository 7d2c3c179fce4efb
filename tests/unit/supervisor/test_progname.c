#include "supervisor/progname.h"

#include "tracer/util.h"

#include <criterion/criterion.h>

static const struct {
	const char *argv0, *exe, *name;
} rows[] = {
	{"sh", "/usr/bin/dash", "sh"},
	{"/bin/sh", "/usr/bin/dash", "sh"},
	{"-bash", "/usr/bin/bash", "bash"},
	{"-", "/usr/bin/bash", "-"},
	{"", "/usr/bin/cat", "cat"},
	{NULL, "/usr/bin/cat", "cat"},
	{"npm install", "/usr/bin/node", "npm install"},
	{"dir/", "/usr/bin/x", "dir/"},
	{NULL, "", "?"},
	{NULL, NULL, "?"},
};

Test(progname, names)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_str_eq(progname_of(rows[i].argv0, rows[i].exe), rows[i].name, "row %zu",
				 i);
}
