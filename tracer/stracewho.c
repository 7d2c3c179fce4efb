#include "tracer/straceimport_inside.h"

#include "tracer/util.h"

#include <sched.h>
#include <signal.h>
#include <string.h>

bool stracewho_is_living(const struct straceproc *p)
{
	return !p->ended && !p->announced;
}

static bool is_forking(const struct straceproc *p)
{
	static const char *const names[] = {"fork", "vfork", "clone", "clone3"};
	for (size_t i = 0; i < ARRAY_LEN(names) && p->begun; i++)
		if (!strcmp(p->name, names[i]))
			return true;
	return false;
}

struct straceproc *stracewho_find(const struct straceimport *in, pid_t pid)
{
	return straceprocs_find(&in->procs, in->nameless && pid == in->nameless ? 0 : pid);
}

#define SHARES (CLONE_FS | CLONE_FILES | CLONE_THREAD)

/* A child that spoke before its creator's call returned: now that call says whose it is. */
static struct straceproc *confirm(struct straceproc *child, const struct straceproc *parent,
				  uint64_t flags)
{
	bool known = !child->ended && parent->fs;
	/* Older versions of strace tell the flags only now. */
	if (known && ((flags ^ child->flags) & SHARES) &&
	    straceproc_inherit(child, parent, flags) < 0)
		return NULL;
	if (known && child->guessed && !child->fs->cwd && parent->fs->cwd && child->fs->refs == 1)
		straceproc_chdir(child, strdup(parent->fs->cwd));
	child->early = child->guessed = false;
	return child;
}

struct straceproc *stracewho_born(struct straceimport *in, pid_t pid,
				  const struct straceproc *parent, uint64_t flags)
{
	struct straceproc *child = stracewho_find(in, pid);
	if (child && child->early)
		return confirm(child, parent, flags);
	if (pid == parent->pid)
		return child;
	pid_t creator = parent->pid;
	child = straceprocs_claim(&in->procs, pid);
	/* Claiming may drop what ended. */
	parent = straceprocs_find(&in->procs, creator);
	in->changes++;
	if (!child || !parent || straceproc_inherit(child, parent, flags) < 0)
		return NULL;
	child->flags = flags;
	struct trace_event *ev = straceimport_owe(in, TRACE_FORK, parent);
	ev->child = pid;
	ev->thread = child->tgid != child->pid;
	return child;
}

/* The flags of a call that is begun. */
static uint64_t begun_flags(struct straceimport *in, const struct straceproc *p)
{
	struct strace_span text = {buf_str(&p->text), p->text.len};
	(void)straceargs_parse(&in->args, text);
	return stracestate_clone_flags(in);
}

/* Its creator's call has not returned; if there are several, what they don't agree in is not told.
 */
static struct straceproc *born_early(struct straceimport *in, pid_t pid, struct straceproc *parent,
				     size_t candidates)
{
	struct straceproc *child =
		stracewho_born(in, pid, parent, candidates == 1 ? begun_flags(in, parent) : 0);
	if (!child)
		return NULL;
	child->early = true;
	child->guessed = candidates > 1;
	if (!child->guessed)
		return child;
	child->files->loose = true;
	for (size_t i = 0; i < STRACEPROC_BUCKETS; i++)
		for (const struct straceproc *p = in->procs.bucket[i]; p; p = p->next)
			if (is_forking(p) && child->fs->cwd &&
			    (!p->fs->cwd || strcmp(p->fs->cwd, child->fs->cwd) != 0))
				straceproc_chdir(child, NULL);
	return child;
}

static struct straceproc *first_process(struct straceimport *in, const struct straceline *line,
					pid_t pid)
{
	struct straceproc *p = straceprocs_claim(&in->procs, pid);
	in->changes++;
	in->started = true;
	in->from_exec = strace_span_is(line->name, "execve") && line->kind != STRACELINE_RESUMED;
	if (!p || !in->cwd)
		return p;
	p->fs->cwd = strdup(in->cwd);
	return p->fs->cwd ? p : NULL;
}

/*
 * Whose creator is not told: the trace leaves fork out, or strace was told to attach to it. Of a
 * command that strace ran itself all are descendants; and where none has ever moved, none can be
 * elsewhere.
 */
static struct straceproc *stranger(struct straceimport *in, pid_t pid)
{
	struct straceproc *p = straceprocs_claim(&in->procs, pid);
	in->changes++;
	if (!p || !in->from_exec || in->moved || !in->cwd)
		return p;
	p->fs->cwd = strdup(in->cwd);
	return p->fs->cwd ? p : NULL;
}

/* A number that was not seen before, or was only announced. */
static struct straceproc *new_process(struct straceimport *in, const struct straceline *line,
				      pid_t pid, bool announced)
{
	struct straceproc *nameless = in->nameless ? NULL : straceprocs_find(&in->procs, 0);
	if (!in->started)
		return first_process(in, line, pid);
	if (nameless && nameless->ended)
		nameless = NULL;
	bool resumes = line->kind == STRACELINE_RESUMED;
	if (nameless && resumes && nameless->begun && strace_span_is(line->name, nameless->name)) {
		in->nameless = pid;
		return nameless;
	}
	size_t forking = 0;
	struct straceproc *parent = straceprocs_which(&in->procs, is_forking, &forking);
	if (forking)
		return born_early(in, pid, parent, forking);
	if (nameless && !announced) {
		in->nameless = pid;
		return nameless;
	}
	return stranger(in, pid);
}

/* Whose line is it that has no number? strace leaves it out where only one process is left. */
static struct straceproc *unnumbered(struct straceimport *in, const struct straceline *line)
{
	if (!in->started)
		return first_process(in, line, 0);
	if (in->alone && in->alone_at == in->changes)
		return in->alone;
	size_t living = 0;
	struct straceproc *p = straceprocs_which(&in->procs, stracewho_is_living, &living);
	if (living != 1) {
		struct straceproc *nameless = straceprocs_find(&in->procs, 0);
		p = nameless ? nameless : p;
	}
	in->alone = p;
	in->alone_at = in->changes;
	return p;
}

struct straceproc *stracewho_of(struct straceimport *in, const struct straceline *line)
{
	pid_t pid = line->pid ? line->pid : in->file_pid;
	if (!pid)
		return unnumbered(in, line);
	struct straceproc *p = stracewho_find(in, pid);
	if (p && !p->announced)
		return p;
	return new_process(in, line, pid, p != NULL);
}

static int signal_of(struct strace_span word)
{
	for (int i = 1; i < 32; i++) {
		const char *name = sigabbrev_np(i);
		if (name && word.len > 3 &&
		    strace_span_is((struct strace_span){word.at + 3, word.len - 3}, name))
			return i;
	}
	return 0;
}

void stracewho_end(struct straceimport *in, struct straceproc *p, const struct straceline *line)
{
	in->ends_shown = true;
	in->changes++;
	if (!p->ended && p->pid == p->tgid)
		straceimport_owe(in, TRACE_EXIT, p)->status =
			line->kind == STRACELINE_KILLED ? signal_of(line->word) : line->number << 8;
	/* Its creator's call will name it, and must not find it unknown. */
	if (p->early)
		straceproc_end(p);
	else
		straceprocs_drop(&in->procs, p);
}

void stracewho_supersede(struct straceimport *in, struct straceproc *leader, pid_t by)
{
	struct straceproc *p = stracewho_find(in, by);
	in->changes++;
	if (!p || p == leader || p->ended)
		return;
	struct straceproc had = *leader;
	leader->fs = p->fs;
	leader->files = p->files;
	leader->exe = p->exe;
	leader->begun = p->begun;
	leader->text = p->text;
	leader->ended = false;
	leader->own_wall = p->own_wall;
	memcpy(leader->name, p->name, sizeof(leader->name));
	p->fs = had.fs;
	p->files = had.files;
	p->exe = had.exe;
	p->text = had.text;
	straceprocs_drop(&in->procs, p);
}
