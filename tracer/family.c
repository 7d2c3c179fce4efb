#include "tracer/family.h"

#include "tracer/execfd.h"
#include "tracer/grant.h"
#include "tracer/jobs.h"
#include "tracer/messages.h"
#include "tracer/near.h"
#include "tracer/spawn.h"
#include "tracer/util.h"

#include <errno.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

/* ---- begun ---- */

static int take_exec_error(struct tracer *tr, pid_t pid, enum tracer_stage *ret_stage)
{
	for (size_t i = 0; i < tr->newborns_len; i++) {
		if (tr->newborns[i].pid != pid)
			continue;
		int error = spawn_exec_error(tr->newborns[i].report, ret_stage);
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
	bool own_domain, own_seccomp;
	unsigned own_rulesets;
	uint32_t own_net;
	bool any, mixed;
};

static void ask_kin(struct tracee *t, void *arg)
{
	struct kin *kin = arg;
	if (t->tgid != kin->tgid)
		return;
	kin->own_domain |= t->own_domain;
	kin->own_seccomp |= t->own_seccomp;
	kin->own_rulesets |= t->own_rulesets;
	/* Of several domains the hardest is to be thought: one in which nothing is connected. */
	kin->mixed |= kin->any && kin->own_net != t->own_net;
	kin->own_net = kin->mixed ? TRACER_NET_UNKNOWN : t->own_net;
	kin->any = true;
}

/* Domains are inherited by threads and children. Which thread made it is not known here: any. */
static struct kin kin_of(struct tracer *tr, pid_t tgid)
{
	struct kin kin = {.tgid = tgid};
	tracee_each(&tr->table, ask_kin, &kin);
	return kin;
}

/* A death of such a one changes nothing; reap_exists() in family_cloned() sees that it is gone. */
int family_adopt(struct tracer *tr, pid_t tid, struct tracee **ret)
{
	pid_t tgid, parent, tracer;

	if (reap_kin(tid, &tgid, &parent, &tracer) < 0)
		return 0;
	struct kin own = kin_of(tr, tgid == tid ? parent : tgid);
	struct tracee *t = tracee_add(&tr->table, tid, tgid);
	if (!t)
		return -ENOMEM;
	struct tracee *kin = tracee_find(&tr->table, tid == tgid ? parent : tgid);
	if (kin) {
		fastpath_cloned(tr->fast, kin, t);
		near_born(t->near, kin->tid, tid);
	}
	t->own_domain = own.own_domain;
	t->own_seccomp = own.own_seccomp;
	t->own_rulesets = own.own_rulesets;
	t->own_net = own.own_net;
	t->net_guessed = own.mixed;
	announce(tr, t, parent);
	*ret = t;
	return 0;
}

static bool is_thread_of(pid_t tid, pid_t tgid)
{
	return syscall(SYS_tgkill, tgid, tid, 0) == 0 || errno == EPERM;
}

int family_cloned(struct tracer *tr, struct tracee *t)
{
	unsigned long tid = 0;

	if (ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &tid) < 0)
		return 0;
	struct tracee *there = tracee_find(&tr->table, (pid_t)tid);
	if (there && there->net_guessed) {
		there->own_net = t->own_net;
		there->net_guessed = false;
	}
	if (!there && reap_exists((pid_t)tid)) {
		pid_t tgid = is_thread_of((pid_t)tid, t->tgid) ? t->tgid : (pid_t)tid;
		struct tracee *child = tracee_add(&tr->table, (pid_t)tid, tgid);
		if (!child)
			return -ENOMEM;
		fastpath_cloned(tr->fast, t, child);
		near_born(t->near, t->tid, child->tid);
		child->own_domain = t->own_domain;
		child->own_seccomp = t->own_seccomp;
		child->own_rulesets = t->own_rulesets;
		child->own_net = t->own_net;
		announce(tr, child, t->tgid);
	}
	act_resume(t, 0);
	return 0;
}

/* ---- a new image, the end ---- */

/* Does the caller keep a call of this thread? */
static bool is_lent(const struct tracer *tr, const struct tracee *t)
{
	return t->state == TRACEE_HELD || t->state == TRACEE_WAITS || t->state == TRACEE_LOOK ||
	       t->looked || (t->state == TRACEE_CALL && t->read_early && tr->options.native);
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

int family_execed(struct tracer *tr, struct tracee *t)
{
	unsigned long former = 0;

	if (ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &former) < 0)
		return 0;
	near_execed(t->near, (pid_t)former, t->tid);
	t = take_over(tr, t, (pid_t)former);
	if (t->state == TRACEE_ENTER || t->state == TRACEE_DOOR)
		grant_end(t);
	if (t->state == TRACEE_HELD || t->state == TRACEE_WAITS) {
		/* its thread is not in the table: cannot be, but be whole */
		act_emit(tr, TRACER_GONE, t);
		call_release(&t->call);
	}
	t->restore_arg = -1;
	t->turn++;
	t->looked = false;
	execfd_free(t);
	messages_free(t);
	fastpath_execed(tr->fast, t);
	enum tracer_stage none;
	take_exec_error(tr, t->tgid, &none);
	lend_exec(tr, t, act_emit(tr, TRACER_EXECED, t));
	act_run(t); /* by CONT: the exit stop of this execve is not needed */
	return 0;
}

void family_ended(struct tracer *tr, struct tracee *t, int status)
{
	struct tracee whole = {.tid = t->tid, .tgid = t->tgid, .gen = t->gen};

	drop(tr, t);
	if (whole.tid != whole.tgid)
		return;
	enum tracer_stage stage = TRACER_STAGE_EXEC;
	int error = take_exec_error(tr, whole.tgid, &stage);
	if (error < 0) {
		struct tracer_event *e = act_emit(tr, TRACER_SPAWN_FAILED, &whole);
		e->error = error;
		e->stage = stage;
	}
	if (tr->any_stopped)
		tr->any_stopped = jobs_process_ended(&tr->table, whole.tid);
	act_emit(tr, TRACER_EXITED, &whole)->status = status;
}
