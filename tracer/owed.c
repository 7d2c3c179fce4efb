#include "tracer/owed.h"

#include "tracer/filter.h"
#include "tracer/grant.h"
#include "tracer/regs.h"
#include "tracer/util.h"

#include <errno.h>

static int owe(struct tracee *t, struct tracee_owed owed)
{
	t->owed = owed;
	tracee_to(t, TRACEE_CALL);
	act_resume(t, 0);
	return 0;
}

int owed_result(struct tracee *t, int64_t result)
{
	/* The kernel begins a call anew from its exit alone. */
	if (regs_restarts(result))
		return owe(t, (struct tracee_owed){.kind = TRACEE_OWED_RESULT, .result = result});
	int r = regs_skip(t->tid, result);
	tracee_owe_nothing(t);
	call_release(&t->call);
	act_run(t);
	return r;
}

int owed_again(struct tracee *t)
{
	return owe(t, (struct tracee_owed){.kind = TRACEE_OWED_AGAIN});
}

int owed_fd(struct tracee *t, int fd, bool cloexec)
{
	int given AUTOCLOSE = fd;

	if (!filter_grants(t->call.ent))
		return -EINVAL;
	return owe(t, (struct tracee_owed){
			      .kind = TRACEE_OWED_FD, .fd = TAKE_FD(given), .cloexec = cloexec});
}

void owed_pay(const struct tracer *tr, struct tracee *t)
{
	struct tracee_owed owed = t->owed;

	t->owed = (struct tracee_owed){0};
	t->reported = false;
	tracee_to(t, TRACEE_HELD);
	if (owed.kind == TRACEE_OWED_FD) {
		(void)grant_begin(tr, t, owed.fd, owed.cloexec); /* ESRCH; an open it is */
		return;
	}
	if (owed.kind == TRACEE_OWED_AGAIN)
		(void)regs_repeat(t->tid, &t->entered, -1, 0);
	else if (regs_set_number(t->tid, t->at.nr) == 0)
		(void)regs_set_result(t->tid, owed.result);
	call_release(&t->call);
	act_run(t);
}
