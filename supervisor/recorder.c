/*
 * The trace of a run, while it runs: each watched call from its beginning, when all that it names
 * is still as it was, to its end, with what was decided about it.
 */
#include "supervisor/run.h"

#include "supervisor/exec_chain.h"
#include "supervisor/proc.h"
#include "supervisor/redact.h"
#include "supervisor/timestamp.h"
#include "supervisor/tracepolicy.h"
#include "supervisor/tracewords.h"
#include "tracer/clock.h"
#include "tracer/tracewrite.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>

#define STRINGS_MAX 40

/* A call on its way. */
struct sight {
	struct sight *next;
	struct tracee_name who;
	struct trace_event ev; /* its strings are below, or static */
	char *string[STRINGS_MAX];
	unsigned strings;
	char words[TRACE_PATHS][2][TRACEWORDS_MAX]; /* access, refused */
	bool decided;
};

struct recorder {
	struct tracewrite *to; /* the caller's */
	struct sight *sights;
	bool told; /* of trouble */
};

/* ---- strings ---- */

/* Takes a malloc'ed string over, NULL too. */
static const char *keep(struct sight *s, char *string)
{
	if (!string || s->strings == STRINGS_MAX) {
		free(string);
		return NULL;
	}
	s->string[s->strings++] = string;
	return string;
}

static const char *copy(struct sight *s, const char *text)
{
	return text ? keep(s, strdup(text)) : NULL;
}

static void sight_free(struct sight *s)
{
	for (unsigned i = 0; i < s->strings; i++)
		free(s->string[i]);
	free(s);
}

/* ---- the list ---- */

static struct sight *find(const struct recorder *rec, struct tracee_name who)
{
	for (struct sight *s = rec->sights; s; s = s->next)
		if (s->who.gen == who.gen)
			return s;
	return NULL;
}

static struct sight *take(struct recorder *rec, struct tracee_name who)
{
	for (struct sight **p = &rec->sights; *p; p = &(*p)->next) {
		struct sight *s = *p;
		if (s->who.gen != who.gen)
			continue;
		*p = s->next;
		return s;
	}
	return NULL;
}

/* Nanoseconds since the run's start, as its milliseconds are counted. */
static uint64_t now_ns(const struct run *r)
{
	int64_t ns = clock_ns() - r->started_ms * 1000000;
	return ns < 0 ? 0 : (uint64_t)ns;
}

static void write_event(struct run *r, const struct trace_event *ev)
{
	struct recorder *rec = r->recorder;
	int err = tracewrite_event(rec->to, ev);
	if (!err || rec->told)
		return;
	rec->told = true;
	run_say(r, "the trace can't be written any more: %s; what there is of it stays in %s",
		strerror(-err), tracewrite_name(rec->to));
}

/* ---- what a call is about ---- */

static void set_access(struct sight *s, unsigned i, uint32_t access)
{
	tracewords_format(access, s->words[i][0]);
	s->ev.path[i].access = s->words[i][0];
}

static void set_refused(struct sight *s, unsigned i, uint32_t access)
{
	if (i >= s->ev.paths || !access)
		return;
	tracewords_format(access, s->words[i][1]);
	s->ev.path[i].refused = s->words[i][1];
}

static enum trace_thing thing_of(const struct path_at *at, int error)
{
	if (at->exists)
		return trace_thing_of_mode(at->st.st_mode);
	return !error || error == -ENOENT || error == -ENOTDIR ? TRACE_THING_ABSENT
							       : TRACE_THING_UNKNOWN;
}

static struct trace_path *add_path(struct sight *s, const struct path_at *at, int error)
{
	if (s->ev.paths == TRACE_PATHS)
		return NULL;
	struct trace_path *p = &s->ev.path[s->ev.paths++];
	p->real = copy(s, at->real);
	p->thing = thing_of(at, error);
	if (!p->real && at->told)
		p->told = copy(s, at->told);
	return p;
}

/* Which accesses would a wall ask for that allows nothing? What the tree itself made needs none. */
static uint32_t needed(struct run *r, const struct waiter *w, const struct need *need)
{
	const struct call *c = w->call;
	uint32_t access = need->access;
	const struct path_at *at = need->at;
	bool device = at && at->exists && (S_ISCHR(at->st.st_mode) || S_ISBLK(at->st.st_mode));
	if (!access || !at)
		return access;
	/* What a descriptor may was settled when it was opened. */
	if (c->ent->arg[0] == ARG_FILE && (c->path[0].need == CALL_NEED_TRUNCATE || !device))
		return access == ACCESS_META ? access : 0;
	return ruling_needs_none(r, w, need) ? 0 : access;
}

static void see_path(struct run *r, struct sight *s, const struct waiter *w, unsigned i,
		     const struct need *need)
{
	const struct call_path *from = &w->call->path[i];
	const struct path_at *at = need->at ? need->at : &from->at;
	if (ruling_is_unnamed(w->call, i))
		return;
	struct trace_path *p = add_path(s, at, from->error);
	if (!p->real && !p->told && from->given && (from->error || at->object < 0))
		p->told = keep(s, proc_absolute(w->who.tid, from->dirfd, from->given));
	const char *name = p->real ? p->real : p->told;
	if (from->given && from->given[0] && (!name || strcmp(from->given, name) != 0))
		p->given = copy(s, from->given);
	set_access(s, s->ev.paths - 1, needed(r, w, need));
}

/* The further files that the kernel opens to run this one. */
static void see_chain(struct sight *s, const struct waiter *w)
{
	char next[4096];
	struct path_at at;
	path_init(&at);
	int object = w->call->path[0].at.object;
	for (int i = 0; i < EXEC_CHAIN_MAX && object >= 0; i++) {
		if (exec_chain_next(object, next, sizeof next))
			break;
		struct path_at found;
		path_init(&found);
		int err = path_resolve(w->who.tid, AT_FDCWD, next, PATH_FOLLOW, &found);
		path_release(&at);
		at = found;
		if (err || !add_path(s, &at, 0))
			break;
		set_access(s, s->ev.paths - 1, at.real ? ACCESS_EXEC | ACCESS_READ : 0);
		object = at.object;
	}
	path_release(&at);
}

static void see_arguments(struct sight *s, const struct call *c)
{
	struct trace_event *ev = &s->ev;
	bool open = c->path[0].need == CALL_NEED_OPEN;
	for (unsigned i = 0; i < ARRAY_LEN(c->ent->arg); i++) {
		ev->has_flags |= c->ent->arg[i] == ARG_ATFLAGS;
		ev->has_mode |= c->ent->arg[i] == ARG_MODE && !open;
	}
	ev->has_flags |= open;
	ev->flags = open ? c->open_flags : c->at_flags;
	ev->has_mode |= open && (c->open_flags & (O_CREAT | __O_TMPFILE));
	ev->mode = c->mode;
	ev->has_request = c->path[0].need == CALL_NEED_IOCTL;
	ev->request = (uint32_t)c->args[1];
	ev->target = copy(s, c->target);
}

/* The call is resolved, where it has paths. */
static struct sight *see(struct run *r, const struct waiter *w)
{
	const struct call *c = w->call;
	struct need need[CALL_PATHS];
	struct sight *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->who = w->who;
	s->ev = (struct trace_event){.kind = TRACE_CALL,
				     .t_ns = now_ns(r),
				     .pid = w->pid,
				     .tid = w->who.tid,
				     .run = r->number,
				     .call = c->ent->name,
				     .ent = c->ent,
				     .own_wall = w->own_domain};
	access_needed(c, need);
	/* At the door: an attribute call by descriptor has its file beside the call's paths. */
	if (w->at_door && w->verdict.need[0].at)
		need[0] = w->verdict.need[0];
	for (unsigned i = 0; i < CALL_PATHS; i++)
		if (c->path[i].need != CALL_NEED_NONE || (need[i].at && need[i].access))
			see_path(r, s, w, i, &need[i]);
	if (c->path[0].need == CALL_NEED_EXEC)
		see_chain(s, w);
	see_arguments(s, c);
	return s;
}

static void add(struct run *r, struct sight *s)
{
	s->next = r->recorder->sights;
	r->recorder->sights = s;
}

/* ---- from the events ---- */

void recorder_looks(struct run *r, const struct waiter *w)
{
	if (!r->recorder)
		return;
	struct sight *old = take(r->recorder, w->who); /* a signal made it begin anew */
	if (old)
		sight_free(old);
	struct sight *s = see(r, w);
	if (!s) {
		run_say(r, "no memory to record a call of %s", w->call->ent->name);
		return;
	}
	s->ev.anyway = w->verdict.anyway;
	add(r, s);
}

void recorder_enters(struct run *r, const struct tracer_event *ev)
{
	struct waiter w = {
		.who = ev->who, .pid = ev->pid, .call = ev->call, .own_domain = ev->own_domain};
	struct call_view view = {.tid = ev->who.tid, .tgid = ev->pid};
	if (!r->recorder)
		return;
	/* Nobody waits for a file system that may not answer: its names are told as they were said.
	 */
	run_see_mounts(r);
	bool slow = slowfs_concerns(r->slowfs, ev->call, view);
	if (!slow && call_resolve(ev->call, view))
		return;
	recorder_looks(r, &w);
	struct sight *s = find(r->recorder, ev->who);
	if (slow && s)
		s->ev.unsure[s->ev.unsure_len++] =
			"it lies on a file system that may not answer, and was not looked at";
}

/* The call is over; -512 and its like were never seen by the program. */
static void end(struct run *r, struct tracee_name who, bool returned, int64_t result)
{
	struct sight *s = r->recorder ? take(r->recorder, who) : NULL;
	if (!s)
		return;
	bool restarts = returned && result <= -RUN_ERESTARTSYS;
	s->ev.returned = returned && !restarts;
	s->ev.ret = s->ev.returned ? result : 0;
	if (!restarts || s->decided)
		write_event(r, &s->ev);
	sight_free(s);
}

void recorder_left(struct run *r, const struct tracer_event *ev)
{
	end(r, ev->who, true, ev->call->result);
}

void recorder_over(struct run *r, const struct tracer_event *ev)
{
	end(r, ev->who, true, ev->result);
}

void recorder_gone(struct run *r, struct tracee_name who)
{
	end(r, who, false, 0);
}

void recorder_returns(struct run *r, struct tracee_name who, int64_t result)
{
	end(r, who, true, result);
}

void recorder_noticed(struct run *r, const struct tracer_event *ev)
{
	if (!r->recorder)
		return;
	if (!find(r->recorder, ev->who)) {
		struct waiter w = {.who = ev->who, .pid = ev->pid, .call = ev->call};
		struct call_view view = {.tid = ev->who.tid, .tgid = ev->pid};
		struct sight *s = call_resolve(ev->call, view) ? NULL : see(r, &w);
		if (s)
			add(r, s);
	}
	end(r, ev->who, true, ev->call->result);
}

void recorder_forked(struct run *r, const struct tracer_event *ev)
{
	struct trace_event out = {.kind = TRACE_FORK,
				  .t_ns = r->recorder ? now_ns(r) : 0,
				  .pid = ev->parent,
				  .tid = ev->parent,
				  .child = ev->pid};
	if (r->recorder && ev->parent > 0)
		write_event(r, &out);
}

void recorder_execed(struct run *r, const struct tracer_event *ev)
{
	if (!r->recorder)
		return;
	end(r, ev->who, true, 0);
	char *exe AUTOFREE = proc_link(ev->pid, "exe");
	char **argv = proc_argv(ev->pid);
	struct trace_event out = {.kind = TRACE_EXEC,
				  .t_ns = now_ns(r),
				  .pid = ev->pid,
				  .tid = ev->pid,
				  .run = r->number,
				  .exe = exe,
				  .argv0 = argv && argv[0] ? argv[0] : "",
				  .argv = (const char *const *)argv};
	write_event(r, &out);
	redact_free(argv);
}

void recorder_exited(struct run *r, const struct tracer_event *ev)
{
	struct trace_event out = {.kind = TRACE_EXIT,
				  .t_ns = r->recorder ? now_ns(r) : 0,
				  .pid = ev->pid,
				  .tid = ev->pid,
				  .status = ev->status};
	if (r->recorder)
		write_event(r, &out);
}

/* ---- what was decided ---- */

static bool is_path(const struct trace_path *p, const struct path_at *at)
{
	return at && at->real && p->real && !strcmp(p->real, at->real);
}

/* Of an exec's files it may be another than the one named. */
static unsigned place_of(const struct sight *s, const struct waiter *w, unsigned i)
{
	if (i || w->call->path[0].need != CALL_NEED_EXEC)
		return ruling_is_unnamed(w->call, 0) ? 0 : i;
	for (unsigned k = 0; k < s->ev.paths; k++)
		if (is_path(&s->ev.path[k], w->verdict.need[0].at))
			return k;
	return 0;
}

/* The report's milliseconds are told by the event's nanoseconds. */
static uint64_t time_of(const struct run *r, const struct denial *d)
{
	uint64_t now = now_ns(r), told = (uint64_t)d->t_ms * 1000000;
	return now / 1000000 == (uint64_t)d->t_ms ? now : told + 999999;
}

void recorder_decided(struct run *r, const struct waiter *w, const struct ruling *ruling,
		      const struct denial *d)
{
	if (!r->recorder)
		return;
	struct sight *s = find(r->recorder, w->who);
	if (!s) {
		s = see(r, w);
		if (!s)
			return;
		add(r, s);
	}
	bool asked = ruling && (ruling->asked[0] | ruling->asked[1]);
	for (unsigned i = 0; i < CALL_PATHS; i++)
		set_refused(s, place_of(s, w, i),
			    asked ? ruling->asked[i] : w->verdict.need[i].access);
	s->decided = true;
	s->ev.t_ns = time_of(r, d);
	s->ev.wall = -d->error;
	s->ev.verdict = verdict_name(d->verdict);
	s->ev.answer = d->allowed ? "allow" : "deny";
	s->ev.by = tracewords_by(d->by);
	s->ev.lifetime = lifetime_name(d->lifetime);
	s->ev.rule = copy(s, d->rule);
	s->ev.note = copy(s, d->note);
	s->ev.exe = copy(s, d->exe);
	s->ev.argv0 = copy(s, d->argv0);
}

void recorder_anyway(struct run *r, const struct waiter *w)
{
	struct sight *s = r->recorder ? find(r->recorder, w->who) : NULL;
	if (s)
		s->ev.anyway = w->verdict.anyway;
}

void recorder_answered(struct run *r, const struct denial *d)
{
	char words[TRACEWORDS_MAX];
	if (!r->recorder)
		return;
	struct trace_event ev = {.kind = TRACE_ANSWER,
				 .t_ns = now_ns(r),
				 .pid = d->pid,
				 .run = r->number,
				 .call = d->call,
				 .ent = sysent_by_name(d->call),
				 .path = {{.real = d->path, .refused = words}, {.real = d->path2}},
				 .paths = d->path2 ? 2 : 1,
				 .verdict = verdict_name(d->verdict),
				 .answer = d->allowed ? "allow" : "deny",
				 .by = tracewords_by(d->by),
				 .lifetime = lifetime_name(d->lifetime)};
	tracewords_format(d->access, words);
	write_event(r, &ev);
}

/* ---- beginning and end ---- */

static int write_header(struct run *r)
{
	struct utsname u;
	char started[TIMESTAMP_LEN];
	struct buf policy = {0};
	char **argv = redact_argv(r->command->argv);
	uname(&u);
	int err = argv ? tracepolicy_write(r->session->policy, &policy) : -ENOMEM;
	struct trace_header h = {
		.version = WARDER_VERSION,
		.started = timestamp_format(&r->out->report.started, started),
		.host = u.nodename,
		.argv = (const char *const *)argv,
		.cwd = r->cwd ? r->cwd : r->session->cwd,
		.arch = u.machine,
		.kernel = u.release,
		.landlock_abi = r->abi.abi,
		.has_uid = true,
		.uid = (int64_t)r->self.fsuid,
		.home = r->session->home,
		.project = r->session->project.dir,
		.tmpdir = session_tmpdir(r->session),
		.label = r->session->label,
		.mode = run_mode_name(r->mode),
		.policy = buf_str(&policy),
	};
	if (!err)
		err = tracewrite_header(r->recorder->to, &h);
	redact_free(argv);
	buf_free(&policy);
	return err;
}

int recorder_begin(struct run *r)
{
	if (!r->command->trace || r->recorder)
		return 0;
	r->recorder = calloc(1, sizeof *r->recorder);
	if (!r->recorder)
		return run_refuse(r, -ENOMEM, "no memory to record");
	r->recorder->to = r->command->trace;
	int err = write_header(r);
	return err ? run_refuse(r, err, "the trace can't be written: %s; nothing was run",
				strerror(-err))
		   : 0;
}

void recorder_end_run(struct run *r)
{
	while (r->recorder && r->recorder->sights)
		end(r, r->recorder->sights->who, false, 0);
}

void recorder_release(struct run *r)
{
	free(r->recorder);
	r->recorder = NULL;
}
