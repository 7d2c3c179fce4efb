/*
 * What is allowed is done in the command's place: by the broker, at once at the door, or, where it
 * can't be, in another run.
 */
#include "supervisor/run.h"

#include "supervisor/broker_message.h"
#include "supervisor/broker_now.h"
#include "supervisor/devices.h"
#include "supervisor/doorstep.h"
#include "supervisor/proc.h"
#include "supervisor/reach.h"
#include "tracer/mem.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/* What these give depends on who opens them: the supervisor must not, for somebody else. */
static bool depends_on_opener(const struct path_at *at)
{
	struct statfs fs;
	int fd = at->object >= 0 ? at->object : at->parent;
	if (at->exists && S_ISCHR(at->st.st_mode) && at->st.st_rdev == makedev(5, 0))
		return true; /* /dev/tty */
	if (fd < 0 || fstatfs(fd, &fs))
		return true;
	switch ((unsigned long)fs.f_type) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case TRACEFS_MAGIC:
	case DEBUGFS_MAGIC:
	case SECURITYFS_MAGIC:
		return true;
	default:
		return false;
	}
}

/* Was it not the named program that was refused, but one that it needs to run? */
static bool needs_another(const struct waiter *w)
{
	return w->call->path[0].need == CALL_NEED_EXEC &&
	       w->verdict.need[0].at != &w->call->path[0].at;
}

/*
 * Run from a copy it would make calls of ours (tracer/execfd.h), and a filter of its own beside the
 * one that it has from us may kill it for such.
 */
static bool has_own_filter(const struct waiter *w)
{
	return proc_filters(w->who.tid) > proc_filters(getpid()) + 1;
}

bool inplace_can(const struct waiter *w)
{
	if (w->at_door)
		return true;
	if (w->call->path[0].need == CALL_NEED_EXEC && has_own_filter(w))
		return false;
	return broker_can(w->call) && !depends_on_opener(&w->call->path[0].at);
}

/* May a name be made everywhere below the directory of this one? */
static bool is_open_around(const struct run *r, const struct path_at *at)
{
	struct reach below;
	char *dir AUTOFREE = NULL;
	if (at->parent < 0 || path_of_fd(at->parent, &dir))
		return false;
	reach_of(r->session->policy, dir, &below);
	return below.allow & ACCESS_CREATE;
}

/* While it was asked about the thread may have died, and its number be another's. */
void inplace_at_door(struct run *r, struct waiter *w)
{
	if (w->was_asked && !tracer_is_held(r->tracer, w->who))
		return;
	int64_t result = doorstep_perform(r, w);
	r->brokered += w->was_asked && result >= 0;
	waiter_return(r, w, result);
}

/*
 * A device is opened: are its ioctls not allowed? A terminal has them all the same: the filter does
 * not see them refused there (devices.h), and a terminal without is none.
 */
static bool is_without_ioctl(const struct run *r, const struct waiter *w)
{
	const struct path_at *at = &w->call->path[0].at;
	bool device = at->exists && (S_ISCHR(at->st.st_mode) || S_ISBLK(at->st.st_mode));
	if (w->call->path[0].need != CALL_NEED_OPEN || !device || !at->real ||
	    devices_is_terminal(&at->st))
		return false;
	return policy_decide(r->session->policy, at->real, ACCESS_IOCTL).effect != EFFECT_ALLOW &&
	       !(once_bits(r, w->pid, at->real) & ACCESS_IOCTL);
}

static void act_done(struct run *r, struct waiter *w, const struct broker_done *done);

/* True: it was done, and the waiter is dropped. */
static bool act_now(struct run *r, struct waiter *w)
{
	struct broker_done done = {.fd = -1};
	int err = broker_now_open(w->call, &w->as, &r->self, &done.fd);
	if (err == -EAGAIN)
		return false;
	done.result = err;
	act_done(r, w, &done);
	return true;
}

void inplace_act(struct run *r, struct waiter *w)
{
	if (!inplace_can(w)) {
		r->rerun_useful = true;
		waiter_refuse(r, w);
		return;
	}
	waiter_leave_question(r, w, "covered");
	if (w->at_door && doorstep_is_instant(w)) {
		inplace_at_door(r, w);
		waiter_drop(r, w);
		return;
	}
	if (!w->at_door && act_now(r, w))
		return;
	bool binds = w->call->path[0].need == CALL_NEED_BIND;
	struct broker_request request = {.call = w->call,
					 .view = {.tid = w->who.tid, .tgid = w->pid},
					 .as = &w->as,
					 .as_given =
						 binds && is_open_around(r, &w->call->path[0].at),
					 .scripts_alone = needs_another(w),
					 .no_ioctl = is_without_ioctl(r, w),
					 .pool = ruling_pool(r, w)};
	int err = w->at_door ? doorstep_request(r, w, &request) : 0;
	if (err) {
		waiter_return(r, w, err);
		waiter_drop(r, w);
		return;
	}
	err = broker_submit(r->broker, &request, &w->act);
	if (!err) {
		waiter_tell_holding(r);
		return;
	}
	run_say(r, "%s could not be done in the command's place: %s", w->call->ent->name,
		strerror(-err));
	waiter_refuse(r, w);
}

/* It takes another run, in which the ruleset knows: what was allowed once holds there too. */
static void leave_to_rerun(struct run *r, struct waiter *w)
{
	const struct need *need = &w->verdict.need[0];
	struct rule rule = {.effect = EFFECT_ALLOW,
			    .kind = RULE_EXACT,
			    .access = once_bits(r, w->pid, need->at->real),
			    .path = need->at->real,
			    .origin = (char *)"answer"};
	if (rule.access && session_grant(r->session, &rule))
		run_say(r, "no memory to remember an answer");
	r->rerun_useful = true;
	waiter_refuse(r, w);
}

/*
 * A copy runs in the program's place. One that the user was asked for, and that looks for its own
 * file, would be led astray: that one is run as it is, in another run.
 */
static void run_copy(struct run *r, struct waiter *w, const struct broker_done *done)
{
	int fd AUTOCLOSE = done->fd;
	if (fd < 0 || (w->was_asked && done->finds_itself)) {
		leave_to_rerun(r, w);
		return;
	}
	/* Still held: there was no memory for it, and nobody else would let it go on. */
	if (tracer_exec_fd(r->tracer, w->who, TAKE_FD(fd)) && tracer_is_held(r->tracer, w->who)) {
		waiter_refuse(r, w);
		return;
	}
	r->brokered++;
	r->noticed[RUN_NOTICE_COPIED]++;
	if (needs_another(w))
		once_keep(r, w->pid);
	waiter_drop(r, w);
}

/* sendmmsg: the next of its messages, where nobody needs to be asked about that. */
static bool begin_next(struct run *r, struct waiter *w)
{
	int64_t result;
	path_release(&w->verdict.refused);
	w->verdict = (struct verdict_result){0};
	path_init(&w->verdict.refused);
	run_see_mounts(r);
	if (!broker_message_next(w->call) || !doorstep_look(r, w, &result) ||
	    (w->verdict.need[0].access && ruling_of(r, w).effect != EFFECT_ALLOW))
		return false;
	struct broker_request request = {.call = w->call,
					 .view = {.tid = w->who.tid, .tgid = w->pid},
					 .as = &w->as,
					 .connect = &w->connect};
	return !broker_submit(r->broker, &request, &w->act);
}

/*
 * A connect or send is over. Of several messages those that were sent are counted, and what ends
 * the row is heard with the next call (net/socket.c, __sys_sendmmsg).
 */
static void done_at_door(struct run *r, struct waiter *w, int64_t result)
{
	uint64_t sent_at = w->connect.sent_at;
	uint32_t sent = (uint32_t)result;
	if (sent_at && result >= 0 && tracer_is_held(r->tracer, w->who)) {
		int err = mem_write(w->who.tid, sent_at, &sent, sizeof sent);
		result = err ? err : ++w->sent;
		/* Sent in part: what follows would be taken for its rest. */
		bool whole = sent >= w->connect.wanted;
		if (!err && whole && begin_next(r, w))
			return;
	}
	if (sent_at && w->sent)
		result = w->sent;
	waiter_return(r, w, result);
	waiter_drop(r, w);
}

static void act_done(struct run *r, struct waiter *w, const struct broker_done *done)
{
	int fd AUTOCLOSE = done->fd;
	if (w->at_door) {
		r->brokered += w->was_asked && done->result >= 0;
		done_at_door(r, w, done->result);
		return;
	}
	if (w->call->path[0].need == CALL_NEED_EXEC) {
		struct broker_done copy = *done;
		copy.fd = TAKE_FD(fd);
		run_copy(r, w, &copy);
		return;
	}
	if (!done->stale && (fd >= 0 || done->result >= 0))
		changes_add(&r->changes, w->call, changes_replaces(w->call), r->session->tmpdir);
	if (done->stale) {
		tracer_again(r->tracer, w->who);
	} else if (fd >= 0) {
		r->brokered++;
		handed_add(&r->handed, fd);
		bool cloexec = w->call->open_flags & O_CLOEXEC;
		tracer_hand_over(r->tracer, w->who, TAKE_FD(fd), cloexec);
	} else {
		r->brokered += done->result >= 0;
		int64_t result = done->result == -EINTR ? -RUN_ERESTARTSYS : done->result;
		waiter_return(r, w, result);
	}
	waiter_drop(r, w);
}

void inplace_done(struct run *r, const struct broker_done *done)
{
	struct waiter *w = r->waiters;
	while (w && w->act != done->id)
		w = w->next;
	if (!w) { /* the thread died meanwhile */
		if (done->fd >= 0)
			close(done->fd);
		return;
	}
	w->act = 0;
	if (w->probes)
		refusal_probed(r, w, done->result);
	else
		act_done(r, w, done);
}
