#include "tracer/fastpath.h"

#include "tracer/filter.h"
#include "tracer/mm.h"
#include "tracer/objects.h"
#include "tracer/regs.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The first stop at a site that is known from another process pays for the change (about as much
 * as one pair of stops); one that is not known has to be looked at first.
 */
#define HITS_TO_LEARN 2

struct fastpath {
	struct stub_marks marks;
	struct objects *objects;
	uint64_t patched;
	bool broken; /* this kernel does not let us write */
};

int fastpath_new(const struct stub_marks *marks, struct fastpath **ret)
{
	struct fastpath *f = calloc(1, sizeof(*f));

	if (f)
		f->objects = objects_new();
	if (!f || !f->objects) {
		free(f);
		return -ENOMEM;
	}
	f->marks = *marks;
	*ret = f;
	return 0;
}

void fastpath_free(struct fastpath *f)
{
	if (!f)
		return;
	objects_free(f->objects);
	free(f);
}

uint64_t fastpath_patched(const struct fastpath *f)
{
	return f ? f->patched : 0;
}

/* ---- whose address space ---- */

void fastpath_execed(struct tracee *t)
{
	mm_unref(t->mm);
	t->mm = mm_new();
	if (t->mm)
		t->mm->closed = t->own_filter;
}

/* 1 or 0; -1: it can't be known. */
static int share_memory(pid_t a, pid_t b)
{
	long r = syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0);

	return r < 0 ? -1 : r == 0;
}

void fastpath_cloned(const struct tracee *t, struct tracee *child)
{
	child->own_filter = t->own_filter;
	if (!t->mm)
		return;
	int shared = t->tgid == child->tgid ? 1 : share_memory(t->tid, child->tid);
	if (shared < 0)
		t->mm->closed = true;
	child->mm = shared == 1 ? mm_ref(t->mm) : mm_copy(t->mm);
}

/* ---- writing ---- */

static int open_memory(pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", tid);
	return open(path, O_RDWR | O_CLOEXEC);
}

static bool write_at(int mem, uint64_t addr, const void *bytes, size_t n)
{
	return pwrite(mem, bytes, n, (off_t)addr) == (ssize_t)n;
}

static bool holds(int mem, uint64_t addr, const uint8_t *bytes, size_t n)
{
	uint8_t now[STUB_SIZE];

	return pread(mem, now, n, (off_t)addr) == (ssize_t)n && memcmp(now, bytes, n) == 0;
}

/* The stub first, then the way to it. False: nothing was changed that anybody reaches. */
static bool patch_site(struct fastpath *f, int mem, const struct stub_site *site, uint64_t at)
{
	static const uint8_t unused[STUB_SIZE], call[] = {0x0f, 0x05};
	uint8_t stub[STUB_SIZE], jump[STUB_JUMP];

	if (stub_build(site, &f->marks, at, stub, jump) < 0 ||
	    !holds(mem, site->syscall, call, sizeof(call)) ||
	    !holds(mem, site->syscall - site->before_len, site->before, site->before_len) ||
	    !holds(mem, at, unused, sizeof(unused)))
		return false;
	if (!write_at(mem, at, stub, sizeof(stub)) ||
	    !write_at(mem, site->syscall - site->before_len, jump, sizeof(jump))) {
		f->broken = true;
		return false;
	}
	return true;
}

/* Every site that is known of the object. */
static void patch_object(struct fastpath *f, struct tracee *t, const struct object *o,
			 const struct maps_region *where)
{
	int mem AUTOCLOSE = open_memory(t->tid);

	for (size_t i = 0; mem >= 0 && i < o->len && !f->broken; i++) {
		struct stub_site site;
		uint64_t at;
		if (!object_site(o, i, where, &site, &at))
			continue;
		struct mm_site *s = mm_site(t->mm, site.syscall + 2);
		if (!s || s->stub || s->hopeless)
			continue;
		s->hopeless = !patch_site(f, mem, &site, at);
		if (s->hopeless)
			continue;
		s->stub = at;
		s->site = site;
		f->patched++;
	}
}

void fastpath_close(struct fastpath *f, struct tracee *t)
{
	t->own_filter = true;
	if (!t->mm || t->mm->closed)
		return;
	t->mm->closed = true;
	if (!f || t->mm->tasks != 1)
		return;
	int mem AUTOCLOSE = open_memory(t->tid);
	for (size_t i = 0; mem >= 0 && i < t->mm->len; i++) {
		struct mm_site *s = &t->mm->site[i];
		/* The stub stays: nobody is in it, and nobody comes any more. */
		if (s->stub &&
		    write_at(mem, s->site.syscall - s->site.before_len, s->site.before, STUB_JUMP))
			s->stub = 0;
	}
}

/* ---- at a stop ---- */

static const struct mm_site *site_of_stub(const struct mm *mm, uint64_t ip)
{
	for (size_t i = 0; mm && i < mm->len; i++)
		if (mm->site[i].stub && ip - mm->site[i].stub < STUB_SIZE)
			return &mm->site[i];
	return NULL;
}

/* Take the mark out of the copy of the arguments; false: there is none of ours. */
static bool unmark(const struct fastpath *f, struct regs_call *at, unsigned arg)
{
	uint32_t upper = (uint32_t)(at->args[arg] >> 32);

	if (upper != f->marks.pass && upper != f->marks.report)
		return false;
	at->args[arg] = (uint32_t)at->args[arg];
	return true;
}

int fastpath_leave(struct fastpath *f, struct tracee *t)
{
	bool report = t->at.data == FILTER_REPORT_DATA;
	const struct sysent *ent = sysent_by_nr(t->at.arch, t->at.nr);
	int error = 0;

	if (!f || t->at.arch != SYS_ARCH_X86_64 || !ent || ent->mark < 0 ||
	    !unmark(f, &t->at, (unsigned)ent->mark))
		return 0;
	if (report)
		error = regs_reported_error(t->tid);
	const struct mm_site *s = site_of_stub(t->mm, t->at.ip);
	if (s) {
		t->at.ip = s->ip;
		if (regs_move(t->tid, &t->at, (unsigned)ent->mark) < 0)
			return 0;
	}
	/* Without its site known it goes on in the stub: that takes the mark out by itself. */
	if (error && regs_skip(t->tid, -error) < 0)
		return 0;
	return error;
}

void fastpath_count(struct fastpath *f, struct tracee *t, const struct sysent *ent)
{
	struct maps_region where;
	uint64_t base;

	if (!f || f->broken || !t->mm || t->mm->closed || t->mm->tasks != 1 ||
	    t->at.arch != SYS_ARCH_X86_64 || !filter_passes(ent))
		return;
	struct mm_site *s = mm_site(t->mm, t->at.ip);
	if (!s || s->stub || s->hopeless || ++s->hits > HITS_TO_LEARN)
		return;
	if (maps_find(t->tid, t->at.ip - 2, &where, &base) < 0 || !where.ino || !where.exec)
		return;
	const struct object *o = objects_find(f->objects, &where, t->at.ip - 2);
	if (!o && s->hits == HITS_TO_LEARN)
		o = objects_learn(f->objects, t, ent, &where, base);
	if (o)
		patch_object(f, t, o, &where);
}
