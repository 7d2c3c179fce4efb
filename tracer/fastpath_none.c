/*
 * The fast path of a machine that has none: nothing is changed, every watched call takes its two
 * stops. Built instead of fastpath.c (tracer/CMakeLists.txt).
 */
#include "tracer/fastpath.h"

#include <errno.h>

bool fastpath_exists(void)
{
	return false;
}

void fastpath_prepare(void)
{
}

int fastpath_new(const struct stub_marks *marks, enum stub_way way, const char *state_dir,
		 struct fastpath **ret)
{
	(void)marks;
	(void)way;
	(void)state_dir;
	(void)ret;
	return -EOPNOTSUPP;
}

void fastpath_free(struct fastpath *f)
{
	(void)f;
}

void fastpath_all_pass(struct fastpath *f)
{
	(void)f;
}

uint64_t fastpath_patched(const struct fastpath *f)
{
	(void)f;
	return 0;
}

unsigned fastpath_unwritable(const struct fastpath *f)
{
	(void)f;
	return 0;
}

void fastpath_execed(struct fastpath *f, struct tracee *t)
{
	(void)f;
	(void)t;
}

void fastpath_cloned(struct fastpath *f, struct tracee *t, struct tracee *child)
{
	(void)f;
	(void)t;
	(void)child;
}

void fastpath_close(struct fastpath *f, struct tracee *t)
{
	(void)f;
	(void)t;
}

void fastpath_surface(struct fastpath *f, struct tracee *t)
{
	(void)f;
	(void)t;
}

void fastpath_signalled(struct fastpath *f, struct tracee *t)
{
	(void)f;
	(void)t;
}

void fastpath_unblock(struct tracee *t)
{
	(void)t;
}

int fastpath_leave(struct fastpath *f, struct tracee *t)
{
	(void)f;
	(void)t;
	return 0;
}

bool fastpath_mend(struct fastpath *f, struct tracee *t)
{
	(void)f;
	(void)t;
	return false;
}

bool fastpath_count(struct fastpath *f, struct tracee *t, const struct sysent *ent, bool may_divert)
{
	(void)f;
	(void)t;
	(void)ent;
	(void)may_divert;
	return false;
}
