#include "tracer/fastpath.h"

#include "tracer/filter.h"
#include "tracer/insn.h"
#include "tracer/mm.h"
#include "tracer/objects.h"
#include "tracer/patch.h"
#include "tracer/regs.h"
#include "tracer/util.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * To look through a file's text takes as long as some ten stops: a run of no more calls than a
 * small program's own is not worth it.
 */
#define STOPS_TO_LEARN 4
/* A site that was changed and stops all the same may have been mapped anew. */
#define HITS_TO_DOUBT 8
/* Kernels can forbid it (proc_mem.force_override, 6.12). */
#define FAILURES_MAX 3

struct fastpath {
	struct stub_marks marks;
	struct objects *objects;
	uint64_t patched;
	uint64_t stops;	   /* watched calls that took the slow way */
	enum stub_way way; /* of a new stub */
	unsigned failures; /* in a row: writes that the kernel did not let us do */
};

bool fastpath_exists(void)
{
	return true;
}

void fastpath_prepare(void)
{
	insn_prepare();
}

int fastpath_new(const struct stub_marks *marks, enum stub_way way, const char *state_dir,
		 struct fastpath **ret)
{
	struct fastpath *f = calloc(1, sizeof(*f));

	if (f)
		f->objects = objects_new(state_dir);
	if (!f || !f->objects) {
		free(f);
		return -ENOMEM;
	}
	f->marks = *marks;
	f->way = way;
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

unsigned fastpath_unwritable(const struct fastpath *f)
{
	return f && f->failures >= FAILURES_MAX ? f->failures : 0;
}

/* ---- changing ---- */

static bool may_change(const struct fastpath *f, const struct mm *mm)
{
	return mm && !mm->closed && mm->tasks == 1 && f->failures < FAILURES_MAX;
}

static bool may_hold_sites(const struct maps_region *where)
{
	return where->ino && where->exec && !where->write && !where->shared;
}

/* True: the kernel did not let us. */
static bool note_job(struct fastpath *f, struct mm *mm, const struct patch_job *job)
{
	struct mm_site *s = mm_site(mm, job->site.syscall + 2);

	s->hopeless = job->result < 0;
	if (job->result < 0)
		return job->result != -ENOENT;
	f->failures = 0;
	mm_patched(mm, s, &job->site, job->stub);
	f->patched++;
	return false;
}

/* Every site that is known of the object. */
static void patch_object(struct fastpath *f, struct tracee *t, const struct object *o,
			 const struct maps_region *where)
{
	struct patch_job job[PATCH_JOBS_MAX];
	int mem AUTOCLOSE = patch_open(t->tid);
	size_t n = 0;

	for (size_t i = 0; i < o->len && n < PATCH_JOBS_MAX; i++) {
		if (!object_site(o, i, where, &job[n].site, &job[n].stub))
			continue;
		const struct mm_site *s = mm_site(t->mm, job[n].site.syscall + 2);
		job[n].site.way = f->way;
		n += s && !s->stub && !s->hopeless && !(job[n].site.several && t->mm->signalled);
	}
	if (mem < 0) { /* it is not dumpable, or gone */
		t->mm->closed = true;
		return;
	}
	patch_sites(mem, &f->marks, job, n);
	bool failed = false;
	for (size_t i = 0; i < n; i++)
		failed |= note_job(f, t->mm, &job[i]);
	f->failures += failed;
}

/* What the image begins in: its loader, or itself where it has none. */
static void patch_loader(struct fastpath *f, struct tracee *t)
{
	struct maps_region where;
	const struct object *o;
	uint64_t ip, base;

	if (!may_change(f, t->mm) || regs_ip(t->tid, &ip) < 0 ||
	    maps_find(t->tid, ip, &where, &base) < 0 || !base || !may_hold_sites(&where))
		return;
	if (f->stops >= STOPS_TO_LEARN)
		o = objects_survey(f->objects, t->tid, &where, base);
	else
		o = objects_known(f->objects, t->tid, &where, base);
	if (o)
		patch_object(f, t, o, &where);
}

void fastpath_execed(struct fastpath *f, struct tracee *t)
{
	bool filtered = t->own_filter || (t->mm && t->mm->filtered);

	mm_unref(t->mm);
	t->mm = mm_new();
	t->own_filter = filtered;
	if (t->mm)
		t->mm->closed = t->mm->filtered = filtered;
	if (f)
		patch_loader(f, t);
}

/* A walk over what t has mapped. */
struct survey {
	struct fastpath *f;
	struct tracee *t;
};

static void survey_region(void *arg, const struct maps_region *where, uint64_t base)
{
	struct survey *s = arg;
	const struct object *o = NULL;

	if (base && may_hold_sites(where))
		o = objects_survey(s->f->objects, s->t->tid, where, base);
	if (o)
		patch_object(s->f, s->t, o, where);
}

/*
 * The first thread is being born: its creator is in clone(2) and it has not run yet, so nobody is
 * in the middle of any bytes. Afterwards it is too late: so every file that is mapped is looked at,
 * not only those that have called already. A program that has one thread at a time bears many first
 * ones: it is looked at again when a call has come from where none was known.
 */
static void patch_before_threads(struct fastpath *f, struct tracee *t)
{
	struct survey s = {f, t};

	if (!may_change(f, t->mm) || t->mm->surveyed)
		return;
	(void)maps_each(t->tid, survey_region, &s); /* what is not seen stays slow */
	t->mm->surveyed = true;
}

/* 1 or 0; -1: it can't be known. */
static int share_memory(pid_t a, pid_t b)
{
	long r = syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0);

	return r < 0 ? -1 : r == 0;
}

void fastpath_cloned(struct fastpath *f, struct tracee *t, struct tracee *child)
{
	child->own_filter = t->own_filter;
	if (!t->mm)
		return;
	int shared = t->tgid == child->tgid ? 1 : share_memory(t->tid, child->tid);
	if (shared < 0)
		t->mm->closed = true;
	if (f && shared == 1 && t->tgid == child->tgid)
		patch_before_threads(f, t);
	child->mm = shared == 1 ? mm_ref(t->mm) : mm_copy(t->mm);
}

void fastpath_close(struct fastpath *f, struct tracee *t)
{
	t->own_filter = true;
	if (!t->mm || t->mm->filtered)
		return;
	t->mm->closed = t->mm->filtered = true;
	if (!f)
		return;
	int mem AUTOCLOSE = patch_open(t->tid);
	for (size_t i = 0; mem >= 0 && i < t->mm->len; i++) {
		struct mm_site *s = &t->mm->site[i];
		/* The stub stays, if nobody comes to it any more: a handler may return into it. */
		if (s->stub && t->mm->tasks == 1)
			(void)patch_undo(mem, s, &f->marks);
		else if (s->stub)
			(void)patch_switch(mem, s, &f->marks, STUB_WAY_PLAIN);
	}
}

/* ---- at a stop ---- */

static bool stands(const struct fastpath *f, const struct tracee *t, const struct mm_site *s)
{
	int mem AUTOCLOSE = patch_open(t->tid);

	return mem >= 0 && patch_stands(mem, s, &f->marks);
}

static uint32_t mark_at(const struct fastpath *f, const struct mm_site *s, uint64_t ip)
{
	return stub_mark(&s->site, &f->marks, ip - s->stub);
}

/* True: it has something to report first. */
static bool leave_stub(struct fastpath *f, struct tracee *t)
{
	uint64_t ip;

	if (!f || !t->mm || !t->mm->len || regs_ip(t->tid, &ip) < 0)
		return false;
	const struct mm_site *s = mm_site_of_stub(t->mm, ip);
	return s && stands(f, t, s) &&
	       regs_leave_stub(t->tid, &s->site, s->stub, mark_at(f, s, ip)) > 0;
}

void fastpath_surface(struct fastpath *f, struct tracee *t)
{
	(void)leave_stub(f, t);
}

void fastpath_signalled(struct fastpath *f, struct tracee *t)
{
	if (t->mm)
		t->mm->signalled = true;
	if (leave_stub(f, t) && !t->reports && regs_get_sigmask(t->tid, &t->sigmask) == 0 &&
	    regs_set_sigmask(t->tid, UINT64_MAX) == 0)
		t->reports = true;
}

void fastpath_unblock(struct tracee *t)
{
	if (t->reports)
		(void)regs_set_sigmask(t->tid, t->sigmask); /* ESRCH */
	t->reports = false;
}

/* Does it come from the marked call of this stub? The mark may have met something there. */
static bool is_marked_call(const struct fastpath *f, const struct tracee *t,
			   const struct mm_site *s, uint32_t upper)
{
	if (t->at.nr != s->site.nr || stub_place(&s->site, t->at.ip - s->stub) != STUB_CALLED)
		return false;
	return upper == mark_at(f, s, t->at.ip) || stands(f, t, s);
}

void fastpath_all_pass(struct fastpath *f)
{
	f->way = STUB_WAY_PASS;
}

/* Stubs that have made calls to be looked at, when none is any more. */
static void go_the_new_way(struct fastpath *f, struct tracee *t)
{
	int mem AUTOCLOSE = patch_open(t->tid);

	for (size_t i = 0; mem >= 0 && i < t->mm->len; i++) {
		struct mm_site *s = &t->mm->site[i];
		if (s->stub && s->site.way == STUB_WAY_LOOK)
			(void)patch_switch(mem, s, &f->marks, f->way); /* else it stays slow */
	}
}

int fastpath_leave(struct fastpath *f, struct tracee *t)
{
	bool report = t->at.data == FILTER_REPORT_DATA;
	const struct sysent *ent = sysent_by_nr(t->at.arch, t->at.nr);
	int error = 0;

	if (!f || t->at.arch != SYS_ARCH_X86_64 || !ent || ent->mark < 0)
		return 0;
	uint64_t *arg = &t->at.args[ent->mark];
	uint32_t upper = (uint32_t)(*arg >> 32);
	const struct mm_site *s = t->mm ? mm_site_of_stub(t->mm, t->at.ip) : NULL;
	if (report && upper == f->marks.report) {
		/* Without its site known it goes on in the stub: that takes the mark out by itself.
		 */
		*arg = (uint32_t)*arg;
		t->at.ip = s ? s->ip : t->at.ip;
		(void)regs_take_report(t->tid, &t->at, s ? ent->mark : -1, &error); /* ESRCH */
	} else if (s && is_marked_call(f, t, s, upper)) {
		*arg -= (uint64_t)mark_at(f, s, t->at.ip) << 32;
		if (s->site.way != f->way)
			go_the_new_way(f, t);
		t->at.ip = s->ip;
		(void)regs_move(t->tid, &t->at, (unsigned)ent->mark); /* ESRCH */
	}
	return error;
}

bool fastpath_mend(struct fastpath *f, struct tracee *t)
{
	if (!f || !t->mm || t->at.arch != SYS_ARCH_X86_64)
		return false;
	struct mm_site *s = mm_site(t->mm, t->at.ip);
	int mem AUTOCLOSE = s && s->site.nr ? patch_open(t->tid) : -ENOENT;
	bool alone = t->mm->tasks == 1;
	if (mem < 0 || patch_mend(mem, s, &f->marks, t->at.nr, alone) < 0)
		return false;
	if (alone) {
		s->stub = 0;
		s->hopeless = true; /* where one probe was, another may come */
	}
	return regs_again(t->tid, s->site.nr) == 0;
}

/* What has a stub and stops all the same: a call interrupted, or the text is another by now. */
static void doubt(struct fastpath *f, struct tracee *t, struct mm_site *s)
{
	if (t->at.nr != s->site.nr || ++s->hits % HITS_TO_DOUBT || stands(f, t, s))
		return;
	s->stub = 0;
	s->hits = 0;
}

/* The site that t is stopped behind, and what else is known of its file. */
static void patch_here(struct fastpath *f, struct tracee *t, const struct sysent *ent,
		       struct mm_site *s)
{
	struct maps_region where;
	uint64_t base, syscall = t->at.ip - 2;
	bool learns = f->stops >= STOPS_TO_LEARN;

	s->hopeless = true;
	if (maps_find(t->tid, syscall, &where, &base) < 0 || !may_hold_sites(&where))
		return;
	const struct object *o = objects_find(f->objects, t->tid, &where, base, syscall);
	if (!o && learns)
		o = objects_learn(f->objects, t, ent, &where, base);
	s->hopeless = !o && learns;
	if (o)
		patch_object(f, t, o, &where);
}

bool fastpath_count(struct fastpath *f, struct tracee *t, const struct sysent *ent, bool may_divert)
{
	if (!f || t->at.arch != SYS_ARCH_X86_64 || !filter_passes(ent) || !t->mm)
		return false;
	t->mm->surveyed &= mm_known(t->mm, t->at.ip) != NULL;
	if (!may_change(f, t->mm))
		return false;
	f->stops++;
	struct mm_site *s = mm_site(t->mm, t->at.ip);
	if (s && s->stub)
		doubt(f, t, s);
	if (!s || s->stub || s->hopeless)
		return false;
	patch_here(f, t, ent, s);
	s = mm_site(t->mm, t->at.ip);
	return may_divert && s && s->stub && s->site.nr == t->at.nr &&
	       regs_enter_stub(t->tid, &s->site, s->stub) == 0;
}
