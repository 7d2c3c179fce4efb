#include "tracer/act.h"

#include "tracer/absent.h"
#include "tracer/execfd.h"
#include "tracer/family.h"
#include "tracer/filter.h"
#include "tracer/grant.h"
#include "tracer/guardcalls.h"
#include "tracer/jobs.h"
#include "tracer/messages.h"
#include "tracer/near.h"
#include "tracer/owed.h"
#include "tracer/regs.h"
#include "tracer/stop.h"
#include "tracer/util.h"
#include "tracer/waits.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

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
	*e = (struct tracer_event){.kind = kind,
				   .who = name_of(t),
				   .pid = t->tgid,
				   .turn = tr->options.see_identities ? t->turn : 0,
				   .own_domain = t->own_domain,
				   .own_about = t->own_domain ? t->own_rulesets : 0,
				   .own_net = t->own_net};
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

int act_notice(struct tracer *tr, const struct tracee *t, const struct sysent *ent, int64_t result)
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
	near_hold(t->near, t->tid);
	ask_ptrace(tracee_needs_syscall(t) ? PTRACE_SYSCALL : PTRACE_CONT, t, sig);
	near_let_go(t->near);
}

void act_run(struct tracee *t)
{
	tracee_to(t, TRACEE_RUN);
	act_resume(t, 0);
}

static struct tracee *leader_of(const struct tracer *tr, const struct tracee *t)
{
	return tracee_find(&tr->table, t->tgid);
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

static void hold(struct tracer *tr, struct tracee *t, enum tracer_event_kind kind)
{
	tracee_to(t, kind == TRACER_ENTERS ? TRACEE_LOOK : TRACEE_HELD);
	if (kind == TRACER_ENTERS || kind == TRACER_LEFT)
		t->looked = kind == TRACER_ENTERS && (tr->options.record || !tr->options.native);
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

/* An exec of nothing: nine of ten are such, where programs are looked for along PATH. */
static bool searches_path(const struct tracee *t, const struct sysent *ent)
{
	return sysent_id(ent) == SYS_ID_execve && t->read_early && t->call.path[0].given &&
	       absent_surely(t->tid, t->call.path[0].given);
}

int act_enter(struct tracer *tr, struct tracee *t, const struct sysent *ent)
{
	bool native = tr->options.native && ent->group != SYS_GROUP_MOUNT &&
		      ent->group != SYS_GROUP_QUEUE;
	/* What a rename puts another thing in the place of is there before it alone. */
	bool replaces = tr->options.see_changes && ent->need[0] == CALL_NEED_MOVE_FROM;
	bool record = (tr->options.record || replaces) && !native && ent->group == SYS_GROUP_WALL;

	tracee_to(t, TRACEE_CALL);
	if (native || record || ent->need[0] == CALL_NEED_EXEC) {
		int r = read_call(t, ent, 0);
		if (r < 0 && r != -ESRCH)
			return r;
		t->read_early = r == 0 && (record ? t->call.path[0].given != NULL
						  : is_about_a_file(&t->call));
		if ((native || record) && t->read_early) {
			hold(tr, t, TRACER_ENTERS);
			return 0;
		}
	}
	if (searches_path(t, ent))
		act_run(t); /* should it be there by now, the exec's own stop tells */
	else
		act_resume(t, 0);
	return 0;
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

static int seen_exit(struct tracer *tr, struct tracee *t, int64_t result)
{
	bool changed = tr->options.see_changes && result >= 0 && changes(&t->call);
	t->call.result = result;
	hold(tr, t, TRACER_LEFT);
	tr->out[(tr->out_head + tr->out_len - 1) % ACT_EVENTS_MAX].changed = changed;
	return 0;
}

/* A call that was let run on. */
static void tell_over(struct tracer *tr, struct tracee *t)
{
	if (t->over && t->looked) {
		act_emit(tr, TRACER_OVER, t)->result = t->result;
		t->looked = false;
	}
	t->over = false;
}

static int wall_exit(struct tracer *tr, struct tracee *t, const struct sysent *ent, int64_t result)
{
	bool is_refused = refused(ent, t->at.args, result);

	if (t->looked && !is_refused)
		return seen_exit(tr, t, result);
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
	if (t->owed) {
		owed_pay(t);
		return 0;
	}
	const struct sysent *ent = sysent_by_nr(t->at.arch, t->at.nr);
	if (t->read_early && tr->options.native)
		return seen_exit(tr, t, now.result);
	bool native = tr->options.native;
	if (ent->group == SYS_GROUP_WALL && !native && !regs_restarts(now.result))
		return wall_exit(tr, t, ent, now.result);
	int r = 0;
	if (sysent_id(ent) == SYS_ID_landlock_restrict_self && now.result == 0 &&
	    guardcalls_restricted(tr, t)) {
		r = read_call(t, ent, 0);
		if (r == 0)
			hold(tr, t, TRACER_CONFINED);
		else
			act_run(t);
		return r == -ESRCH ? 0 : r;
	}
	bool could = native && now.result >= 0; /* what it could not do behind the wall */
	if ((ent->group == SYS_GROUP_MOUNT && (now.result == -EPERM || could)) ||
	    (ent->group == SYS_GROUP_QUEUE && (now.result == -EACCES || could)) ||
	    (!native && guardcalls_refused(t, ent, now.result)))
		r = act_notice(tr, t, ent, now.result);
	act_run(t);
	return r;
}

/* A stub's call, refused already: it is held where it is. */
static int on_report(struct tracer *tr, struct tracee *t, const struct sysent *ent, int error)
{
	tracee_to(t, TRACEE_CALL);
	t->reported = true;
	int r = wall_exit(tr, t, ent, -error);
	if (t->state != TRACEE_HELD)
		t->reported = false;
	return r;
}

static int on_seccomp(struct tracer *tr, struct tracee *t)
{
	fastpath_unblock(t);
	if (t->execfd || t->watch)
		t->turn++; /* whatever call it is */
	if (t->execfd) {
		execfd_abandon(t);
		tell_over(tr, t);
		return 0;
	}
	if (t->watch) {
		messages_abandon(t);
		return 0;
	}
	if (t->state == TRACEE_ENTER || t->state == TRACEE_DOOR) {
		grant_end(t);
		tracee_to(t, TRACEE_RUN);
	}
	if (regs_call(t->tid, &t->at) < 0)
		return 0;
	int error = fastpath_leave(tr->fast, t);
	t->entered = t->at;
	const struct sysent *ent = sysent_by_nr(t->at.arch, t->at.nr);
	tr->counts.calls++;
	t->read_early = false;
	if (!ent || (t->at.data != FILTER_TRACE_DATA && t->at.data != FILTER_REPORT_DATA &&
		     t->at.data != FILTER_MESSAGE_DATA)) {
		/* A tracee's own filter asks for a tracer that is not there: the kernel says
		 * ENOSYS. So it does of a number that no call has. */
		if (fastpath_mend(tr->fast, t) || regs_skip(t->tid, -ENOSYS) == 0)
			act_run(t);
		return 0;
	}
	if (ent->group == SYS_GROUP_GUARD)
		return guardcalls_enter(tr, t, ent);
	if (filter_is_message(ent) && !tr->options.native) {
		messages_to_door(tr, t);
		return 0;
	}
	if (filter_opens_nothing(ent, t->at.args)) {
		act_run(t); /* a stub's: without a mark it does not stop */
		return 0;
	}
	if (error)
		return on_report(tr, t, ent, error);
	if (fastpath_count(tr->fast, t, ent, filter_passes_call(&tr->filter, ent, t->at.args))) {
		act_run(t); /* and makes it there */
		return 0;
	}
	return act_enter(tr, t, ent);
}

/* ---- the loop's body ---- */

/* A signal is about to be delivered. */
static void on_signal(struct tracer *tr, struct tracee *t, int sig)
{
	waits_signalled(t);
	fastpath_signalled(tr->fast, t);
	act_resume(t, jobs_signal(tr->terminal_session, t->tid, t->tgid, sig));
}

static int act_on(struct tracer *tr, struct tracee *t, struct stop stop, int status)
{
	switch (tracee_step(t, stop.kind)) {
	case TRACEE_ACT_FIRST:
		act_run(t);
		return 0;
	case TRACEE_ACT_RESUME:
		if (stop.kind == STOP_TRAP) {
			note_continued(tr, t);
			fastpath_surface(tr->fast, t);
		}
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
		tell_over(tr, t);
		return 0;
	case TRACEE_ACT_GRANTED:
		grant_exited(t);
		tell_over(tr, t);
		return 0;
	case TRACEE_ACT_EXECFD_SECCOMP:
		t->turn++;
		execfd_seccomp(t);
		tell_over(tr, t);
		return 0;
	case TRACEE_ACT_EXECFD_SYSCALL:
		execfd_syscall(t);
		tell_over(tr, t);
		return 0;
	case TRACEE_ACT_WATCH_SECCOMP:
		messages_seccomp(t);
		return 0;
	case TRACEE_ACT_WATCH_SYSCALL:
		messages_syscall(tr, t);
		return 0;
	case TRACEE_ACT_CLONED:
		return family_cloned(tr, t);
	case TRACEE_ACT_EXECED:
		return family_execed(tr, t);
	case TRACEE_ACT_LISTEN:
		on_group_stop(tr, t, stop.value);
		return 0;
	case TRACEE_ACT_LEFT:
		act_emit(tr, TRACER_GONE, t);
		waits_end(t);
		return act_on(tr, t, stop, status);
	case TRACEE_ACT_ENDED:
		family_ended(tr, t, status);
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
		int r = family_adopt(tr, s->tid, &t);
		if (r < 0)
			return r;
	}
	if (!t)
		return 0;
	/* To a thread at its birth is not worth coming: it is let go at once. */
	bool is_born = t->state == TRACEE_NEW && t->tid != t->tgid;
	if (WIFSTOPPED(s->status) && !is_born)
		near_meet(t->near, t->tid);
	return act_on(tr, t, stop, s->status);
}
