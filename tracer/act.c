#include "tracer/act.h"

#include "tracer/execfd.h"
#include "tracer/filter.h"
#include "tracer/grant.h"
#include "tracer/jobs.h"
#include "tracer/mem.h"
#include "tracer/regs.h"
#include "tracer/spawn.h"
#include "tracer/stop.h"
#include "tracer/util.h"
#include "tracer/waits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* linux/landlock.h, ABI 8: the whole process enters the domain. */
#define RESTRICT_TSYNC 8

/* ---- events ---- */

static struct tracee_name name_of(const struct tracee *t)
{
	return (struct tracee_name){t->tid, t->gen};
}

struct tracer_event *act_emit(struct tracer *tr, enum tracer_event_kind kind,
			      const struct tracee *t)
{
	BUG(tr->out_len == ACT_EVENTS_MAX);
	struct tracer_event *e = &tr->out[(tr->out_head + tr->out_len++) % ACT_EVENTS_MAX];
	*e = (struct tracer_event){
		.kind = kind, .who = name_of(t), .pid = t->tgid, .own_domain = t->own_domain};
	return e;
}

static void fill_call(struct call *c, const struct tracee *t, const struct sysent *ent,
		      int64_t result)
{
	*c = (struct call){.ent = ent, .arch = t->at.arch, .result = result, .ip = t->at.ip};
	memcpy(c->args, t->at.args, sizeof(c->args));
}

static struct call_view view_of(const struct tracee *t)
{
	return (struct call_view){.tid = t->tid, .tgid = t->tgid};
}

/* A tracee that is gone by now is simply not noticed. */
static int notice(struct tracer *tr, const struct tracee *t, const struct sysent *ent,
		  int64_t result)
{
	call_release(&tr->noticed);
	fill_call(&tr->noticed, t, ent, result);
	int r = call_decode(&tr->noticed, view_of(t));
	if (r == 0)
		act_emit(tr, TRACER_NOTICED, t)->call = &tr->noticed;
	return r == -ESRCH ? 0 : r;
}

/* ---- going on ---- */

/* ESRCH is normal weather: a SIGKILL took the thread out of its stop, its end is on the way. */
static void ask_ptrace(enum __ptrace_request request, const struct tracee *t, int sig)
{
	if (ptrace(request, t->tid, NULL, (long)sig) < 0)
		BUG(errno != ESRCH);
}

void act_resume(struct tracee *t, int sig)
{
	t->listening = false;
	ask_ptrace(tracee_needs_syscall(t) ? PTRACE_SYSCALL : PTRACE_CONT, t, sig);
}

void act_run(struct tracee *t)
{
	tracee_to(t, TRACEE_RUN);
	act_resume(t, 0);
}

/* ---- processes ---- */

static struct tracee *leader_of(const struct tracer *tr, const struct tracee *t)
{
	return tracee_find(&tr->table, t->tgid);
}

static int take_exec_error(struct tracer *tr, pid_t pid)
{
	for (size_t i = 0; i < tr->newborns_len; i++) {
		if (tr->newborns[i].pid != pid)
			continue;
		int error = spawn_exec_error(tr->newborns[i].report);
		close(tr->newborns[i].report);
		tr->newborns[i] = tr->newborns[--tr->newborns_len];
		return error;
	}
	return 0;
}

static void announce(struct tracer *tr, const struct tracee *t, pid_t parent)
{
	if (t->tid == t->tgid)
		act_emit(tr, TRACER_FORKED, t)->parent = parent;
}

struct kin {
	pid_t tgid;
	bool own_domain;
};

static void ask_kin(struct tracee *t, void *arg)
{
	struct kin *kin = arg;
	kin->own_domain |= t->tgid == kin->tgid && t->own_domain;
}

/* Domains are inherited by threads and children. Which thread made it is not known here: any. */
static bool has_own_domain(struct tracer *tr, pid_t tgid)
{
	struct kin kin = {.tgid = tgid};
	tracee_each(&tr->table, ask_kin, &kin);
	return kin.own_domain;
}

/*
 * A tracee's first stop came before its creator's word, or the creator died before it could say it:
 * the kernel knows whose it is. A death of such a one changes nothing; reap_exists() in on_cloned()
 * sees that it is gone.
 */
static int adopt(struct tracer *tr, pid_t tid, struct tracee **ret)
{
	pid_t tgid, parent, tracer;

	if (reap_kin(tid, &tgid, &parent, &tracer) < 0)
		return 0;
	bool own_domain = has_own_domain(tr, tgid == tid ? parent : tgid);
	struct tracee *t = tracee_add(&tr->table, tid, tgid);
	if (!t)
		return -ENOMEM;
	const struct tracee *kin = tracee_find(&tr->table, tid == tgid ? parent : tgid);
	if (kin)
		fastpath_cloned(kin, t);
	t->own_domain = own_domain;
	announce(tr, t, parent);
	*ret = t;
	return 0;
}

static bool is_thread_of(pid_t tid, pid_t tgid)
{
	return syscall(SYS_tgkill, tgid, tid, 0) == 0 || errno == EPERM;
}

static int on_cloned(struct tracer *tr, struct tracee *t)
{
	unsigned long tid = 0;

	if (ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &tid) < 0)
		return 0;
	if (!tracee_find(&tr->table, (pid_t)tid) && reap_exists((pid_t)tid)) {
		pid_t tgid = is_thread_of((pid_t)tid, t->tgid) ? t->tgid : (pid_t)tid;
		struct tracee *child = tracee_add(&tr->table, (pid_t)tid, tgid);
		if (!child)
			return -ENOMEM;
		fastpath_cloned(t, child);
		child->own_domain = t->own_domain;
		announce(tr, child, t->tgid);
	}
	act_resume(t, 0);
	return 0;
}

/* Does the caller keep a call of this thread? */
static bool is_lent(const struct tracer *tr, const struct tracee *t)
{
	return t->state == TRACEE_HELD || t->state == TRACEE_WAITS || t->state == TRACEE_LOOK ||
	       (t->state == TRACEE_CALL && t->read_early && tr->options.native);
}

static void drop(struct tracer *tr, struct tracee *t)
{
	if (is_lent(tr, t))
		act_emit(tr, TRACER_GONE, t);
	tracee_drop(&tr->table, t);
}

/*
 * exec by a thread that is not the leader: the leader vanished without a word, and the thread that
 * called exec has its tid now (ptrace(2), "execve(2) under ptrace").
 */
static struct tracee *take_over(struct tracer *tr, struct tracee *leader, pid_t former)
{
	struct tracee *t = tracee_find(&tr->table, former);
	pid_t tid = leader->tid;

	if (!t || t == leader)
		return leader;
	t->job_stopped = leader->job_stopped;
	t->stopped_under = leader->stopped_under;
	t->spawned = leader->spawned;
	drop(tr, leader);
	tracee_rename(&tr->table, t, tid);
	return t;
}

/* The call that gave the image its name; its text was read before the exec destroyed it. */
static void lend_exec(struct tracer *tr, struct tracee *t, struct tracer_event *e)
{
	if (!t->read_early)
		return;
	call_release(&tr->noticed);
	tr->noticed = t->call;
	t->call = (struct call){0};
	t->read_early = false;
	e->call = &tr->noticed;
}

static int on_execed(struct tracer *tr, struct tracee *t)
{
	unsigned long former = 0;

	if (ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &former) < 0)
		return 0;
	t = take_over(tr, t, (pid_t)former);
	if (t->state == TRACEE_ENTER || t->state == TRACEE_DOOR)
		grant_end(t);
	if (t->state == TRACEE_HELD || t->state == TRACEE_WAITS) {
		/* its thread is not in the table: cannot be, but be whole */
		act_emit(tr, TRACER_GONE, t);
		call_release(&t->call);
	}
	t->restore_arg = -1;
	execfd_free(t);
	fastpath_execed(t);
	take_exec_error(tr, t->tgid);
	lend_exec(tr, t, act_emit(tr, TRACER_EXECED, t));
	act_run(t); /* by CONT: the exit stop of this execve is not needed */
	return 0;
}

static void on_ended(struct tracer *tr, struct tracee *t, int status)
{
	struct tracee whole = {.tid = t->tid, .tgid = t->tgid, .gen = t->gen};

	drop(tr, t);
	if (whole.tid != whole.tgid)
		return;
	int error = take_exec_error(tr, whole.tgid);
	if (error < 0) {
		struct tracer_event *e = act_emit(tr, TRACER_SPAWN_FAILED, &whole);
		e->error = error;
		e->stage = TRACER_STAGE_EXEC;
	}
	if (tr->any_stopped)
		tr->any_stopped = jobs_process_ended(&tr->table, whole.tid);
	act_emit(tr, TRACER_EXITED, &whole)->status = status;
}

/* ---- job control ---- */

static pid_t parent_of(pid_t pid)
{
	pid_t tgid, parent = 0, tracer;

	return reap_kin(pid, &tgid, &parent, &tracer) < 0 ? 0 : parent;
}

static void on_group_stop(struct tracer *tr, struct tracee *t, int sig)
{
	struct tracee *leader = leader_of(tr, t);

	t->listening = true;
	ask_ptrace(PTRACE_LISTEN, t, 0);
	if (!leader || leader->job_stopped)
		return;
	leader->job_stopped = true;
	leader->stopped_under = parent_of(leader->tid);
	tr->any_stopped = true;
	act_emit(tr, TRACER_STOPPED, t)->sig = sig;
}

static void note_continued(struct tracer *tr, struct tracee *t)
{
	struct tracee *leader = leader_of(tr, t);

	if (!t->listening || !leader || !leader->job_stopped)
		return;
	leader->job_stopped = false;
	act_emit(tr, TRACER_CONTINUED, t);
}

/* ---- calls ---- */

static int guard_clone(struct tracer *tr, struct tracee *t, const struct sysent *ent)
{
	uint64_t flags = t->at.args[0];

	if (!(flags & CLONE_UNTRACED)) {
		act_run(t);
		return 0;
	}
	/* The filter reads the registers again: without the bit the call passes it. */
	if (regs_set_arg(t->tid, t->at.arch, 0, flags & ~(uint64_t)CLONE_UNTRACED) < 0)
		return 0;
	t->restore_arg = 0;
	int r = notice(tr, t, ent, 0);
	tracee_to(t, TRACEE_CALL);
	act_resume(t, 0);
	return r;
}

static void hold(struct tracer *tr, struct tracee *t, enum tracer_event_kind kind)
{
	tracee_to(t, kind == TRACER_ENTERS ? TRACEE_LOOK : TRACEE_HELD);
	tr->counts.refused += kind == TRACER_REFUSED;
	act_emit(tr, kind, t)->call = &t->call;
}

static int read_call(struct tracee *t, const struct sysent *ent, int64_t result)
{
	call_release(&t->call);
	fill_call(&t->call, t, ent, result);
	return call_decode(&t->call, view_of(t));
}

/* By path, or by a descriptor; but Landlock goes by what that may since it was opened (ftruncate).
 */
static bool is_about_a_file(const struct call *c)
{
	const struct sysent *ent = c->ent;

	if (ent->arg[0] == ARG_FILE && ent->need[0] == CALL_NEED_TRUNCATE)
		return false;
	return c->path[0].given || ent->group == SYS_GROUP_META;
}

/*
 * A watched call begins. What an exec destroys and what a call removes or moves can't be looked at
 * afterwards.
 */
static int on_enter(struct tracer *tr, struct tracee *t, const struct sysent *ent)
{
	bool native = tr->options.native && ent->group != SYS_GROUP_MOUNT;

	tracee_to(t, TRACEE_CALL);
	if (native || ent->need[0] == CALL_NEED_EXEC) {
		int r = read_call(t, ent, 0);
		if (r < 0 && r != -ESRCH)
			return r;
		t->read_early = r == 0 && is_about_a_file(&t->call);
		if (native && t->read_early) {
			hold(tr, t, TRACER_ENTERS);
			return 0;
		}
	}
	act_resume(t, 0);
	return 0;
}

/* Its flags are in memory, where they can't be changed for the kernel alone: C libraries fall back.
 */
static int guard_clone3(struct tracee *t)
{
	uint64_t flags = 0;
	int r = mem_read(t->tid, t->at.args[0], &flags, sizeof(flags));

	if (r == -ESRCH)
		return 0;
	if ((flags & CLONE_UNTRACED) && regs_skip(t->tid, -ENOSYS) < 0)
		return 0;
	act_run(t);
	return 0;
}

/*
 * The part of a socketcall becomes the call itself, its arguments out of memory and into registers:
 * read once, by us, so that nobody can change them under the kernel's eyes. The filter judges it
 * anew, as if the program had made it so: one that waits at the door does it from here, in CALL.
 */
static int guard_socketcall(struct tracer *tr, struct tracee *t)
{
	const struct sysent_part *part = sysent_parts, *end = sysent_parts + SYSENT_PARTS;
	uint32_t words[6];

	while (part < end && part->number != (uint32_t)t->at.args[0])
		part++;
	int r = part == end ? -ENOSYS /* a filter of the program's own wants us to see it */
			    : mem_read(t->tid, (uint32_t)t->at.args[1], words,
				       part->args * sizeof(*words));
	if (r < 0) {
		if (regs_skip(t->tid, r == -ENOSYS ? r : -EFAULT) == 0)
			act_run(t);
		return 0;
	}
	t->at.nr = sysents[part->id].nr[SYS_ARCH_I386];
	for (unsigned i = 0; i < part->args; i++)
		t->at.args[i] = words[i];
	if (regs_set_call(t->tid, &t->at) < 0)
		return 0;
	if (tr->options.native)
		return on_enter(tr, t, &sysents[part->id]);
	tracee_to(t, TRACEE_CALL);
	act_resume(t, 0);
	return 0;
}

static int guard(struct tracer *tr, struct tracee *t, const struct sysent *ent)
{
	enum sys_id id = sysent_id(ent);
	int64_t result = 0;

	if (id == SYS_ID_clone)
		return guard_clone(tr, t, ent);
	if (id == SYS_ID_clone3)
		return guard_clone3(t);
	if (id == SYS_ID_socketcall)
		return guard_socketcall(tr, t);
	if (id == SYS_ID_seccomp || id == SYS_ID_prctl)
		fastpath_close(tr->fast, t);
	if (id == SYS_ID_landlock_restrict_self) {
		tracee_to(t, TRACEE_CALL);
		act_resume(t, 0);
		return 0;
	}
	if (id == SYS_ID_io_uring_setup && !tr->options.native)
		result = -ENOSYS;
	/* With the supervisor's limits its report and audit end; Landlock has no say in it. */
	if (id == SYS_ID_prlimit64 && !tr->options.native &&
	    !tracee_find(&tr->table, (pid_t)t->at.args[0]))
		result = -EPERM;
	if (result && regs_skip(t->tid, result) < 0)
		return 0;
	int r = notice(tr, t, ent, result);
	act_run(t);
	return r;
}

static int on_seccomp(struct tracer *tr, struct tracee *t)
{
	if (t->execfd) {
		execfd_abandon(t);
		return 0;
	}
	if (t->state == TRACEE_ENTER || t->state == TRACEE_DOOR) {
		grant_end(t);
		tracee_to(t, TRACEE_RUN);
	}
	if (regs_call(t->tid, &t->at) < 0)
		return 0;
	t->reported = fastpath_leave(tr->fast, t) > 0;
	t->entered = t->at;
	const struct sysent *ent = sysent_by_nr(t->at.arch, t->at.nr);
	tr->counts.calls++;
	t->read_early = false;
	if (!ent || (t->at.data != FILTER_TRACE_DATA && t->at.data != FILTER_REPORT_DATA)) {
		/* A tracee's own filter asks for a tracer that is not there: the kernel says
		 * ENOSYS. */
		if (regs_skip(t->tid, -ENOSYS) == 0)
			act_run(t);
		return 0;
	}
	if (ent->group == SYS_GROUP_GUARD)
		return guard(tr, t, ent);
	if (!t->reported)
		fastpath_count(tr->fast, t, ent);
	return on_enter(tr, t, ent);
}

/*
 * Could Landlock have given this error? EXDEV: rename and link without REFER. Of a descriptor the
 * file's own owner or driver says EPERM (security/landlock/fs.c, hook_file_truncate and _ioctl:
 * EACCES).
 */
static bool refused(const struct sysent *ent, const uint64_t args[6], int64_t result)
{
	bool two = ent->need[1] != CALL_NEED_NONE;

	if (ent->arg[0] == ARG_FILE)
		return result == -EACCES;
	if (sysent_id(ent) == SYS_ID_linkat && (args[4] & AT_EMPTY_PATH) && result == -ENOENT)
		return true;
	return result == -EACCES || result == -EPERM || (two && result == -EXDEV);
}

static bool changes(const struct call *c)
{
	switch ((enum call_need)c->ent->need[0]) {
	case CALL_NEED_OPEN:
		return (c->open_flags & (O_ACCMODE | O_CREAT | O_TRUNC)) != 0;
	case CALL_NEED_TRUNCATE:
	case CALL_NEED_MKDIR:
	case CALL_NEED_MKNOD:
	case CALL_NEED_SYMLINK:
	case CALL_NEED_BIND:
	case CALL_NEED_UNLINK:
	case CALL_NEED_RMDIR:
	case CALL_NEED_MOVE_FROM:
	case CALL_NEED_LINK_FROM:
		return true;
	case CALL_NEED_NONE:
	case CALL_NEED_EXEC:
	case CALL_NEED_IOCTL:
	case CALL_NEED_MOVE_TO:
	case CALL_NEED_LINK_TO:
	case CALL_NEED_META:
	case CALL_NEED_CONNECT:
	case CALL_NEED_LOOK:
	case CALL_NEED_COUNT:
		return false;
	}
	return false;
}

static int native_exit(struct tracer *tr, struct tracee *t, int64_t result)
{
	t->call.result = result;
	hold(tr, t, TRACER_LEFT);
	return 0;
}

static int wall_exit(struct tracer *tr, struct tracee *t, const struct sysent *ent, int64_t result)
{
	bool is_refused = refused(ent, t->at.args, result);

	if (!is_refused && !(tr->options.see_changes && result >= 0)) {
		act_run(t);
		return 0;
	}
	int r = read_call(t, ent, result);
	/* A bind to a port or an abstract name is about no path, and not ours. */
	bool named = t->call.path[0].need != CALL_NEED_NONE;
	if (r == 0 && named && (is_refused || changes(&t->call))) {
		hold(tr, t, is_refused ? TRACER_REFUSED : TRACER_CHANGED);
		return 0;
	}
	if (r == 0)
		call_release(&t->call);
	act_run(t); /* not known, so not granted: the result stands */
	return r == -ESRCH ? 0 : r;
}

static void set_own_domain(struct tracee *t, void *arg)
{
	const pid_t *tgid = arg;
	t->own_domain |= t->tgid == *tgid;
}

/* Without a ruleset nothing is restricted but what the kernel logs. */
static void note_own_domain(struct tracer *tr, struct tracee *t)
{
	if ((int)t->at.args[0] < 0)
		return;
	t->own_domain = true;
	if (t->at.args[1] & RESTRICT_TSYNC)
		tracee_each(&tr->table, set_own_domain, &t->tgid);
}

static int on_call_exit(struct tracer *tr, struct tracee *t)
{
	struct regs_call now;

	if (regs_call(t->tid, &now) < 0)
		return 0;
	if (now.at != REGS_AT_EXIT) { /* never by counting stops: an entry may come twice */
		act_resume(t, 0);
		return 0;
	}
	grant_restore_arg(t);
	if (t->entered.nr != t->at.nr && regs_set_call(t->tid, &t->entered) < 0)
		return 0;
	if (t->reported && regs_set_number(t->tid, t->at.nr) < 0)
		return 0;
	t->reported = false;
	const struct sysent *ent = sysent_by_nr(t->at.arch, t->at.nr);
	if (t->read_early && tr->options.native)
		return native_exit(tr, t, now.result);
	bool native = tr->options.native;
	if (ent->group == SYS_GROUP_WALL && !native && !regs_restarts(now.result))
		return wall_exit(tr, t, ent, now.result);
	int r = 0;
	if (sysent_id(ent) == SYS_ID_landlock_restrict_self && now.result == 0)
		note_own_domain(tr, t);
	bool mounted = native && now.result >= 0;
	if (ent->group == SYS_GROUP_MOUNT && (now.result == -EPERM || mounted))
		r = notice(tr, t, ent, now.result);
	act_run(t);
	return r;
}

/* ---- the loop's body ---- */

/* A signal is about to be delivered. */
static void on_signal(struct tracer *tr, struct tracee *t, int sig)
{
	waits_signalled(t);
	act_resume(t, jobs_signal(tr->terminal_session, t->tgid, sig));
}

static int act_on(struct tracer *tr, struct tracee *t, struct stop stop, int status)
{
	switch (tracee_step(t, stop.kind)) {
	case TRACEE_ACT_FIRST:
		act_run(t);
		return 0;
	case TRACEE_ACT_RESUME:
		if (stop.kind == STOP_TRAP)
			note_continued(tr, t);
		if (stop.kind == STOP_SIGNAL)
			on_signal(tr, t, stop.value);
		else
			act_resume(t, 0);
		return 0;
	case TRACEE_ACT_SECCOMP:
		return on_seccomp(tr, t);
	case TRACEE_ACT_EXIT:
		return on_call_exit(tr, t);
	case TRACEE_ACT_ENTERED:
		grant_entered(t);
		return 0;
	case TRACEE_ACT_GRANTED:
		grant_exited(t);
		return 0;
	case TRACEE_ACT_EXECFD_SECCOMP:
		execfd_seccomp(t);
		return 0;
	case TRACEE_ACT_EXECFD_SYSCALL:
		execfd_syscall(t);
		return 0;
	case TRACEE_ACT_CLONED:
		return on_cloned(tr, t);
	case TRACEE_ACT_EXECED:
		return on_execed(tr, t);
	case TRACEE_ACT_LISTEN:
		on_group_stop(tr, t, stop.value);
		return 0;
	case TRACEE_ACT_LEFT:
		act_emit(tr, TRACER_GONE, t);
		waits_end(t);
		return act_on(tr, t, stop, status);
	case TRACEE_ACT_ENDED:
		on_ended(tr, t, status);
		return 0;
	case TRACEE_ACT_BUG:
	case TRACEE_ACT_COUNT:
		break;
	}
	BUG("a stop that this state cannot have");
	return 0;
}

int act_on_status(struct tracer *tr, const struct reap_status *s)
{
	struct tracee *t = tracee_find(&tr->table, s->tid);
	struct stop stop = stop_classify(s->status);

	tr->counts.stops += WIFSTOPPED(s->status);
	if (!t && WIFSTOPPED(s->status)) {
		int r = adopt(tr, s->tid, &t);
		if (r < 0)
			return r;
	}
	return t ? act_on(tr, t, stop, s->status) : 0;
}
