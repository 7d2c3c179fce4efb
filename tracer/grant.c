#include "tracer/grant.h"

#include "tracer/execfd.h"
#include "tracer/filter.h"
#include "tracer/messages.h"
#include "tracer/regs.h"
#include "tracer/util.h"

#include <errno.h>

void grant_restore_arg(struct tracee *t)
{
	int i = t->restore_arg;

	t->restore_arg = -1;
	if (i >= 0 && !regs_clobbers(t->at.arch, (unsigned)i))
		(void)regs_set_arg(t->tid, t->at.arch, (unsigned)i, t->at.args[i]); /* ESRCH */
}

void grant_end(struct tracee *t)
{
	if (t->grant_fd >= 0)
		close(TAKE_FD(t->grant_fd));
	(void)regs_set_sigmask(t->tid, t->sigmask); /* ESRCH: it needs none any more */
}

void grant_entered(struct tracee *t)
{
	struct regs_call now;

	if (regs_call(t->tid, &now) < 0)
		return;
	/* Another thread may have changed the code under it: then this is some other call. */
	if (now.at == REGS_AT_ENTRY && now.nr == t->at.nr && now.ip == t->at.ip) {
		tracee_to(t, TRACEE_DOOR);
		act_resume(t, 0);
		return;
	}
	if (t->execfd) {
		execfd_abandon(t);
		return;
	}
	if (t->watch) {
		messages_abandon(t);
		return;
	}
	grant_restore_arg(t);
	grant_end(t);
	act_run(t);
}

void grant_exited(struct tracee *t)
{
	struct regs_call now;

	if (regs_call(t->tid, &now) < 0)
		return;
	if (now.at == REGS_AT_EXIT && regs_restarts(now.result) && t->grant_fd >= 0) {
		tracee_to(t,
			  TRACEE_ENTER); /* SIGSTOP broke the wait; the kernel repeats the call */
		act_resume(t, 0);
		return;
	}
	if (t->execfd) {
		execfd_given(t, now.at == REGS_AT_EXIT ? now.result : -EINTR);
		return;
	}
	if (t->watch) {
		messages_given(t, now.at == REGS_AT_EXIT ? now.result : -EINTR);
		return;
	}
	t->over = now.at == REGS_AT_EXIT;
	t->result = now.result;
	grant_restore_arg(t);
	grant_end(t);
	act_run(t);
}

void grant_guest(struct tracer *tr, const struct door_guest *guest)
{
	struct tracee *t = tracee_find(&tr->table, guest->tid);

	/* A forged mark, or a foreign filter's work: nothing is pending for this one. */
	if (!t || t->state != TRACEE_DOOR || t->grant_fd < 0 || guest->nr != t->at.nr) {
		door_answer(guest, -ENOSYS);
		return;
	}
	int r = door_give(guest, t->grant_fd, t->grant_cloexec);
	if (r == -ENOENT)
		return;
	if (r < 0)
		door_answer(guest, r);
	tr->counts.handed += r == 0;
	close(TAKE_FD(t->grant_fd));
}

/* Every signal is kept away until it is over. */
static int block_signals(struct tracee *t)
{
	int r = regs_get_sigmask(t->tid, &t->sigmask);

	return r < 0 ? r : regs_set_sigmask(t->tid, UINT64_MAX);
}

/* Set up the call, marked: as it is not made yet, or once more. */
static int prepare(const struct tracer *tr, struct tracee *t)
{
	int r = block_signals(t);

	if (r == 0 && t->reported)
		r = regs_make(t->tid, &t->at, FILTER_MARK_ARG, tr->filter.grant);
	else if (r == 0)
		r = regs_repeat(t->tid, &t->at, FILTER_MARK_ARG, tr->filter.grant);
	if (r == 0)
		t->restore_arg = FILTER_MARK_ARG;
	return r;
}

/* The thread is on its way to the door: to its entry first, or behind that already. */
static void set_out(struct tracee *t, enum tracee_state to, int fd, bool cloexec)
{
	t->grant_fd = fd;
	t->grant_cloexec = cloexec;
	tracee_to(t, to);
	act_resume(t, 0);
}

int grant_begin(const struct tracer *tr, struct tracee *t, int fd, bool cloexec)
{
	int given AUTOCLOSE = fd;

	if (t->state != TRACEE_HELD || !filter_grants(t->call.ent))
		return -EINVAL;
	int r = prepare(tr, t);
	enum tracee_state to = t->reported ? TRACEE_DOOR : TRACEE_ENTER;
	tracee_owe_nothing(t);
	call_release(&t->call);
	if (r < 0) {
		act_run(t);
		return r;
	}
	set_out(t, to, TAKE_FD(given), cloexec);
	return 0;
}

int grant_begin_as(const struct tracer *tr, struct tracee *t, const struct regs_call *door, int fd)
{
	int given AUTOCLOSE = fd;
	struct regs_saved now;
	struct regs_call at = *door;

	at.args[FILTER_MARK_ARG] = tr->filter.grant;
	int r = regs_save(t->tid, &now);
	if (r == 0)
		r = block_signals(t);
	if (r == 0)
		r = regs_redirect(t->tid, &now, &at);
	call_release(&t->call);
	if (r < 0) {
		act_run(t);
		return r;
	}
	t->at = at;
	set_out(t, TRACEE_ENTER, TAKE_FD(given), true);
	return 0;
}
