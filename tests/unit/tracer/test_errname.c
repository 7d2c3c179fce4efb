#include "tracer/errname.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

Test(errname, every_name_and_no_other)
{
	static const struct {
		const char *name;
		int number;
	} rows[] = {
		{"ENOENT", ENOENT},
		{"EAGAIN", EAGAIN},
		{"EWOULDBLOCK", EAGAIN},
		{"EOPNOTSUPP", EOPNOTSUPP},
		{"ENOTSUP", EOPNOTSUPP},
		{"EDEADLOCK", EDEADLK},
		{"EHWPOISON", EHWPOISON},
		{"ENOEN", 0},
		{"ENOENTX", 0},
		{"", 0},
		{"enoent", 0},
		{"E2", 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(errname_number(rows[i].name, strlen(rows[i].name)), rows[i].number,
			     "%s", rows[i].name);
	cr_expect_eq(errname_number("EPERM and more", 5), EPERM);
	size_t known = 0;
	for (int e = 1; e < 200; e++) {
		const char *name = strerrorname_np(e);
		known += name != NULL;
		if (name)
			cr_expect_eq(errname_number(name, strlen(name)), e, "%s", name);
	}
	cr_expect_gt(known, 100u);
}
