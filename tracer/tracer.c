#include "tracer/tracer.h"

#include "tracer/door.h"
#include "tracer/filter.h"
#include "tracer/reap.h"
#include "tracer/regs.h"
#include "tracer/spawn.h"
#include "tracer/stop.h"
#include "tracer/tracee.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define EVENTS_MAX    8	  /* one stop makes three at most */
#define STOPS_AT_ONCE 256 /* handled by one tracer_next() before the caller has its turn */

/* The kernel's own restart codes: a call that ended so has not ended (errno.h of the kernel). */
#define ERESTART_FIRST 512
#define ERESTART_LAST  516

/* A spawned child's report, until its exec. */
struct newborn {
	pid_t pid;
	int report;
};

struct tracer {
	struct tracer_options options;
	struct tracee_table table;
	struct reap_queue queue;
	struct door *door;
	uint32_t grant; /* the GRANT mark of this session */
	struct newborn *newborns;
	size_t newborns_len;
	struct tracer_event out[EVENTS_MAX];
	unsigned out_head, out_len;
	struct call noticed; /* what the last TRACER_NOTICED lent */
	struct tracer_counts counts;
};

/* ---- events ---- */

static struct tracee_name name_of(const struct tracee *t)
{
	return (struct tracee_name){t->tid, t->gen};
}

static struct tracer_event *emit(struct tracer *tr, enum tracer_event_kind kind,
				 const struct tracee *t)
{
	BUG(tr->out_len == EVENTS_MAX);
	struct tracer_event *e = &tr->out[(tr->out_head + tr->out_len++) % EVENTS_MAX];
	*e = (struct tracer_event){.kind = kind, .who = name_of(t), .pid = t->tgid};
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
		emit(tr, TRACER_NOTICED, t)->call = &tr->noticed;
	return r == -ESRCH ? 0 : r;
}

/* ---- going on ---- */

/* ESRCH is normal weather: a SIGKILL took the thread out of its stop, its end is on the way. */
static void ask_ptrace(enum __ptrace_request request, const struct tracee *t, int sig)
{
	if (ptrace(request, t->tid, NULL, (long)sig) < 0)
		BUG(errno != ESRCH);
}

static void resume(struct tracee *t, int sig)
{
	t->listening = false;
	ask_ptrace(tracee_needs_syscall(t) ? PTRACE_SYSCALL : PTRACE_CONT, t, sig);
}

static void run(struct tracee *t)
{
	tracee_to(t, TRACEE_RUN);
	resume(t, 0);
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
		emit(tr, TRACER_FORKED, t)->parent = parent;
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
	struct tracee *t = tracee_add(&tr->table, tid, tgid);
	if (!t)
		return -ENOMEM;
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
		announce(tr, child, t->tgid);
	}
	resume(t, 0);
	return 0;
}

static void drop(struct tracer *tr, struct tracee *t)
{
	if (t->state == TRACEE_HELD)
		emit(tr, TRACER_GONE, t);
	tracee_drop(&tr->table, t);
}

static void end_grant(struct tracee *t)
{
	if (t->grant_fd >= 0)
		close(TAKE_FD(t->grant_fd));
	(void)regs_set_sigmask(t->tid, t->sigmask); /* ESRCH: it needs none any more */
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
	drop(tr, leader);
	tracee_rename(&tr->table, t, tid);
	return t;
}

static int on_execed(struct tracer *tr, struct tracee *t)
{
	unsigned long former = 0;

	if (ptrace(PTRACE_GETEVENTMSG, t->tid, NULL, &former) < 0)
		return 0;
	t = take_over(tr, t, (pid_t)former);
	if (t->state == TRACEE_ENTER || t->state == TRACEE_DOOR)
		end_grant(t);
	if (t->state == TRACEE_HELD) { /* its thread is not in the table: cannot be, but be whole */
		emit(tr, TRACER_GONE, t);
		call_release(&t->call);
	}
	t->restore_arg = -1;
	take_exec_error(tr, t->tgid);
	emit(tr, TRACER_EXECED, t);
	run(t); /* by CONT: the exit stop of this execve is not needed */
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
		struct tracer_event *e = emit(tr, TRACER_SPAWN_FAILED, &whole);
		e->error = error;
		e->stage = TRACER_STAGE_EXEC;
	}
	emit(tr, TRACER_EXITED, &whole)->status = status;
}

/* ---- job control ---- */

static void on_group_stop(struct tracer *tr, struct tracee *t, int sig)
{
	struct tracee *leader = leader_of(tr, t);

	t->listening = true;
	ask_ptrace(PTRACE_LISTEN, t, 0);
	if (!leader || leader->job_stopped)
		return;
	leader->job_stopped = true;
	emit(tr, TRACER_STOPPED, t)->sig = sig;
}

static void note_continued(struct tracer *tr, struct tracee *t)
{
	struct tracee *leader = leader_of(tr, t);

	if (!t->listening || !leader || !leader->job_stopped)
		return;
	leader->job_stopped = false;
	emit(tr, TRACER_CONTINUED, t);
}

/* ---- calls ---- */

static int guard_clone(struct tracer *tr, struct tracee *t, const struct sysent *ent)
{
	uint64_t flags = t->at.args[0];

	if (!(flags & CLONE_UNTRACED)) {
		run(t);
		return 0;
	}
	/* The filter reads the registers again: without the bit the call passes it. */
	if (regs_set_arg(t->tid, t->at.arch, 0, flags & ~(uint64_t)CLONE_UNTRACED) < 0)
		return 0;
	t->restore_arg = 0;
	int r = notice(tr, t, ent, 0);
	tracee_to(t, TRACEE_CALL);
	resume(t, 0);
	return r;
}

static int guard(struct tracer *tr, struct tracee *t, const struct sysent *ent)
{
	enum sys_id id = sysent_id(ent);
	int64_t result = 0;

	if (id == SYS_ID_clone)
		return guard_clone(tr, t, ent);
	if (id == SYS_ID_io_uring_setup) {
		result = -ENOSYS;
		if (regs_skip(t->tid, result) < 0)
			return 0;
	}
	int r = notice(tr, t, ent, result);
	run(t);
	return r;
}

static int on_seccomp(struct tracer *tr, struct tracee *t)
{
	if (t->state == TRACEE_ENTER || t->state == TRACEE_DOOR) {
		end_grant(t);
		tracee_to(t, TRACEE_RUN);
	}
	if (regs_call(t->tid, &t->at) < 0)
		return 0;
	const struct sysent *ent = sysent_by_nr(t->at.arch, t->at.nr);
	tr->counts.calls++;
	if (!ent) {
		/* A tracee's own filter asks for a tracer that is not there: the kernel says
		 * ENOSYS. */
		if (regs_skip(t->tid, -ENOSYS) == 0)
			run(t);
		return 0;
	}
	if (ent->group == SYS_GROUP_GUARD)
		return guard(tr, t, ent);
	tracee_to(t, TRACEE_CALL);
	resume(t, 0);
	return 0;
}

static bool restarts(int64_t result)
{
	return result <= -ERESTART_FIRST && result >= -ERESTART_LAST;
}

/* Could Landlock have given this error? EXDEV: rename and link without REFER. */
static bool refused(const struct sysent *ent, int64_t result)
{
	bool two = ent->need[1] != CALL_NEED_NONE;

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

static void hold(struct tracer *tr, struct tracee *t, enum tracer_event_kind kind)
{
	tracee_to(t, TRACEE_HELD);
	tr->counts.refused += kind == TRACER_REFUSED;
	emit(tr, kind, t)->call = &t->call;
}

static int wall_exit(struct tracer *tr, struct tracee *t, const struct sysent *ent, int64_t result)
{
	bool is_refused = refused(ent, result);

	if (!is_refused && !(tr->options.see_changes && result >= 0)) {
		run(t);
		return 0;
	}
	fill_call(&t->call, t, ent, result);
	int r = call_decode(&t->call, view_of(t));
	if (r == 0 && (is_refused || changes(&t->call))) {
		hold(tr, t, is_refused ? TRACER_REFUSED : TRACER_CHANGED);
		return 0;
	}
	if (r == 0)
		call_release(&t->call);
	run(t); /* not known, so not granted: the result stands */
	return r == -ESRCH ? 0 : r;
}

static void restore_arg(struct tracee *t)
{
	int i = t->restore_arg;

	t->restore_arg = -1;
	if (i >= 0 && !regs_clobbers(t->at.arch, (unsigned)i))
		(void)regs_set_arg(t->tid, t->at.arch, (unsigned)i, t->at.args[i]); /* ESRCH */
}

static int on_call_exit(struct tracer *tr, struct tracee *t)
{
	struct regs_call now;

	if (regs_call(t->tid, &now) < 0)
		return 0;
	if (now.at != REGS_AT_EXIT) { /* never by counting stops: an entry may come twice */
		resume(t, 0);
		return 0;
	}
	restore_arg(t);
	const struct sysent *ent = sysent_by_nr(t->at.arch, t->at.nr);
	if (ent->group == SYS_GROUP_WALL && !restarts(now.result))
		return wall_exit(tr, t, ent, now.result);
	int r = 0;
	if (ent->group == SYS_GROUP_MOUNT && now.result == -EPERM)
		r = notice(tr, t, ent, now.result);
	run(t);
	return r;
}

/* ---- grants ---- */

static int mark_arg(const struct tracee *t)
{
	return t->at.arch == SYS_ARCH_I386 ? FILTER_MARK_ARG_I386 : t->call.ent->mark;
}

static uint64_t marked(const struct tracer *tr, const struct tracee *t, int arg)
{
	if (t->at.arch == SYS_ARCH_I386)
		return tr->grant;
	return (uint64_t)tr->grant << 32 | (uint32_t)t->at.args[arg];
}

static void on_entered(struct tracee *t)
{
	struct regs_call now;

	if (regs_call(t->tid, &now) < 0)
		return;
	/* Another thread may have changed the code under it: then this is some other call. */
	if (now.at == REGS_AT_ENTRY && now.nr == t->at.nr && now.ip == t->at.ip) {
		tracee_to(t, TRACEE_DOOR);
		resume(t, 0);
		return;
	}
	restore_arg(t);
	end_grant(t);
	run(t);
}

static void on_granted(struct tracee *t)
{
	struct regs_call now;

	if (regs_call(t->tid, &now) < 0)
		return;
	if (now.at == REGS_AT_EXIT && restarts(now.result) && t->grant_fd >= 0) {
		tracee_to(t,
			  TRACEE_ENTER); /* SIGSTOP broke the wait; the kernel repeats the call */
		resume(t, 0);
		return;
	}
	restore_arg(t);
	end_grant(t);
	run(t);
}

static void on_guest(struct tracer *tr, const struct door_guest *guest)
{
	struct tracee *t = tracee_find(&tr->table, guest->tid);

	/* A forged mark, or a foreign filter's work: nothing is pending for this one. */
	if (!t || t->state != TRACEE_DOOR || t->grant_fd < 0 || guest->nr != t->at.nr) {
		door_refuse(guest, -ENOSYS);
		return;
	}
	int r = door_give(guest, t->grant_fd, t->grant_cloexec);
	if (r == -ENOENT)
		return;
	if (r < 0)
		door_refuse(guest, r);
	tr->counts.handed += r == 0;
	close(TAKE_FD(t->grant_fd));
}

/* ---- the loop's body ---- */

static int act_on(struct tracer *tr, struct tracee *t, struct stop stop, int status)
{
	switch (tracee_step(t, stop.kind)) {
	case TRACEE_ACT_FIRST:
		run(t);
		return 0;
	case TRACEE_ACT_RESUME:
		if (stop.kind == STOP_TRAP)
			note_continued(tr, t);
		resume(t, stop.kind == STOP_SIGNAL ? stop.value : 0);
		return 0;
	case TRACEE_ACT_SECCOMP:
		return on_seccomp(tr, t);
	case TRACEE_ACT_EXIT:
		return on_call_exit(tr, t);
	case TRACEE_ACT_ENTERED:
		on_entered(t);
		return 0;
	case TRACEE_ACT_GRANTED:
		on_granted(t);
		return 0;
	case TRACEE_ACT_CLONED:
		return on_cloned(tr, t);
	case TRACEE_ACT_EXECED:
		return on_execed(tr, t);
	case TRACEE_ACT_LISTEN:
		on_group_stop(tr, t, stop.value);
		return 0;
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

static int handle(struct tracer *tr, const struct reap_status *s)
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

/* One status, else one guest. 1 something was done, 0 nothing is there. */
static int advance(struct tracer *tr)
{
	struct reap_status status;
	struct door_guest guest;
	int r = reap_next(&tr->queue, &tr->table, &status);

	if (r < 0)
		return r;
	if (r > 0) {
		r = handle(tr, &status);
		return r < 0 ? r : 1;
	}
	r = door_next(tr->door, &guest);
	if (r > 0)
		on_guest(tr, &guest);
	return r;
}

int tracer_next(struct tracer *tr, struct tracer_event *ret)
{
	call_release(&tr->noticed);
	for (unsigned n = 0; tr->out_len == 0; n++) {
		if (tr->table.len == 0)
			return -ECHILD;
		if (n == STOPS_AT_ONCE) {
			door_ring(tr->door);
			return 0;
		}
		int r = advance(tr);
		if (r < 0 && tr->out_len == 0)
			return r;
		if (r == 0)
			return 0;
	}
	*ret = tr->out[tr->out_head];
	tr->out_head = (tr->out_head + 1) % EVENTS_MAX;
	tr->out_len--;
	return 1;
}

/* ---- the face ---- */

static int new_mark(uint32_t *ret)
{
	uint32_t mark = 0;

	/* 0 and all ones are what a program's upper halves hold by themselves. */
	while (mark == 0 || mark == UINT32_MAX)
		if (getrandom(&mark, sizeof(mark), 0) != sizeof(mark))
			return -errno;
	*ret = mark;
	return 0;
}

int tracer_new(const struct tracer_options *options, struct tracer **ret)
{
	struct tracer *tr = calloc(1, sizeof(*tr));

	if (!tr)
		return -ENOMEM;
	tr->options = *options;
	int r = new_mark(&tr->grant);
	if (r == 0)
		r = door_new(&tr->door);
	if (r < 0) {
		free(tr);
		return r;
	}
	*ret = tr;
	return 0;
}

/* Whoever reaped a tracee behind our back, it must not be waited for. */
static void drop_vanished(struct tracee *t, void *arg)
{
	struct tracer *tr = arg;

	if (!reap_exists(t->tid))
		tracee_drop(&tr->table, t);
}

static void end_all(struct tracer *tr)
{
	while (tr->table.len > 0) {
		tracer_kill_all(tr);
		int r = advance(tr);
		tr->out_len = 0;
		if (r > 0)
			continue;
		tracee_each(&tr->table, drop_vanished, tr);
		usleep(200);
	}
}

void tracer_free(struct tracer *tr)
{
	if (!tr)
		return;
	end_all(tr);
	for (size_t i = 0; i < tr->newborns_len; i++)
		close(tr->newborns[i].report);
	free(tr->newborns);
	call_release(&tr->noticed);
	tracee_free_all(&tr->table);
	reap_free(&tr->queue);
	door_free(tr->door);
	free(tr);
}

int tracer_spawn(struct tracer *tr, const struct tracer_spawn *s, pid_t *ret_pid,
		 enum tracer_stage *ret_stage)
{
	struct spawn_result child;
	size_t n = tr->newborns_len;
	struct newborn *more = reallocarray(tr->newborns, n + 1, sizeof(*more));

	*ret_stage = TRACER_STAGE_SETUP;
	if (!more)
		return -ENOMEM;
	tr->newborns = more;
	int r = spawn_start(s, tr->grant, &child, ret_stage);
	if (r < 0)
		return r;
	r = door_add(tr->door, child.listener);
	struct tracee *t = r == 0 ? tracee_add(&tr->table, child.pid, child.pid) : NULL;
	if (!t) {
		spawn_end(child.pid);
		close(child.report);
		return r < 0 ? r : -ENOMEM;
	}
	tracee_to(t, TRACEE_RUN);
	tr->newborns[tr->newborns_len++] = (struct newborn){child.pid, child.report};
	*ret_pid = child.pid;
	return 0;
}

int tracer_fd(const struct tracer *tr)
{
	return door_fd(tr->door);
}

static struct tracee *held(const struct tracer *tr, struct tracee_name who)
{
	struct tracee *t = tracee_find(&tr->table, who.tid);

	return t && t->gen == who.gen && t->state == TRACEE_HELD ? t : NULL;
}

bool tracer_is_held(const struct tracer *tr, struct tracee_name who)
{
	return held(tr, who) != NULL;
}

int tracer_deny(struct tracer *tr, struct tracee_name who)
{
	struct tracee *t = held(tr, who);

	if (!t)
		return -ESRCH;
	call_release(&t->call);
	run(t);
	return 0;
}

int tracer_set_result(struct tracer *tr, struct tracee_name who, int64_t result)
{
	struct tracee *t = held(tr, who);

	if (!t)
		return -ESRCH;
	int r = regs_set_result(t->tid, result);
	call_release(&t->call);
	run(t);
	return r;
}

int tracer_again(struct tracer *tr, struct tracee_name who)
{
	struct tracee *t = held(tr, who);

	if (!t)
		return -ESRCH;
	int r = regs_repeat(t->tid, &t->at, -1, 0);
	call_release(&t->call);
	run(t);
	return r;
}

/* Set up the repeated call: marked, and with every signal kept away until it is over. */
static int prepare_grant(const struct tracer *tr, struct tracee *t)
{
	int arg = mark_arg(t);
	int r = regs_get_sigmask(t->tid, &t->sigmask);

	if (r == 0)
		r = regs_set_sigmask(t->tid, UINT64_MAX);
	if (r == 0)
		r = regs_repeat(t->tid, &t->at, arg, marked(tr, t, arg));
	if (r == 0)
		t->restore_arg = arg;
	return r;
}

int tracer_hand_over(struct tracer *tr, struct tracee_name who, int fd, bool cloexec)
{
	int given AUTOCLOSE = fd;
	struct tracee *t = held(tr, who);

	if (!t)
		return -ESRCH;
	if (!filter_grants(t->call.ent))
		return -EINVAL;
	int r = prepare_grant(tr, t);
	call_release(&t->call);
	if (r < 0) {
		run(t);
		return r;
	}
	t->grant_fd = TAKE_FD(given);
	t->grant_cloexec = cloexec;
	tracee_to(t, TRACEE_ENTER);
	resume(t, 0);
	return 0;
}

/* ---- all of them ---- */

struct list {
	pid_t *pids;
	size_t cap, len;
};

static void list_one(struct tracee *t, void *arg)
{
	struct list *list = arg;

	if (t->tid != t->tgid)
		return;
	if (list->len < list->cap)
		list->pids[list->len] = t->tid;
	list->len++;
}

size_t tracer_processes(const struct tracer *tr, pid_t *pids, size_t cap)
{
	struct list list = {.pids = pids, .cap = cap};

	tracee_each((struct tracee_table *)&tr->table, list_one, &list);
	return list.len;
}

static void kill_one(struct tracee *t, void *arg)
{
	(void)arg;
	/* Not reaped yet, so the number is still its own. */
	if (t->tid == t->tgid)
		kill(t->tid, SIGKILL);
}

void tracer_kill_all(struct tracer *tr)
{
	tracee_each(&tr->table, kill_one, NULL);
}

struct tracer_counts tracer_counts(const struct tracer *tr)
{
	return tr->counts;
}
