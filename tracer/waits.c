#include "tracer/waits.h"

#include "tracer/filter.h"
#include "tracer/regs.h"

#include <errno.h>
#include <string.h>

static const struct sysent *row_of(const struct door_guest *guest)
{
	return sysent_by_nr(regs_arch(guest->audit_arch), guest->nr);
}

/* In CALL: a part of i386's socketcall, made at its stop into the call that it is. */
static bool may_wait(const struct tracee *t, const struct door_guest *guest)
{
	bool part = t->state == TRACEE_CALL && t->at.nr == guest->nr;

	return t->state == TRACEE_RUN || t->state == TRACEE_NEW || part;
}

static int read_call(struct tracee *t, const struct sysent *ent)
{
	const struct door_guest *g = &t->guest;

	t->call = (struct call){
		.ent = ent, .arch = regs_arch(g->audit_arch), .result = -EACCES, .ip = g->ip};
	memcpy(t->call.args, g->args, sizeof(t->call.args));
	return call_decode(&t->call, (struct call_view){.tid = t->tid, .tgid = t->tgid});
}

bool waits_begin(struct tracer *tr, const struct door_guest *guest)
{
	const struct sysent *ent = row_of(guest);

	/* Of the ioctls only those that set attributes come here. */
	if (!ent ||
	    !(filter_waits(ent) || filter_is_message(ent) || sysent_id(ent) == SYS_ID_ioctl))
		return false;
	struct tracee *t = tracee_find(&tr->table, guest->tid);
	if (!t || !may_wait(t, guest)) {
		door_answer(guest, -ENOSYS);
		return true;
	}
	t->guest = *guest;
	int r = read_call(t, ent);
	if (r < 0) {
		door_answer(guest, r == -ENOMEM ? r : -EACCES);
		return true;
	}
	t->waits_in_call = t->state == TRACEE_CALL;
	tracee_to(t, TRACEE_WAITS);
	tr->counts.waited++;
	act_emit(tr, TRACER_WAITS, t)->call = &t->call;
	return true;
}

void waits_end(struct tracee *t)
{
	call_release(&t->call);
	tracee_to(t, t->waits_in_call ? TRACEE_CALL : TRACEE_RUN);
}

void waits_answer(struct tracee *t, int64_t result)
{
	t->restarts = regs_restarts(result);
	waits_end(t);
	door_answer(&t->guest, result);
}

void waits_signalled(struct tracee *t)
{
	/* What we answered so means what the kernel makes of it: EINTR, or SA_RESTART. */
	if (!t->restarts)
		(void)regs_begin_anew(t->tid); /* ESRCH: it needs none any more */
	t->restarts = false;
}
