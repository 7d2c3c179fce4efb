#include "tracer/owed.h"

#include "tracer/filter.h"
#include "tracer/grant.h"
#include "tracer/regs.h"

#include <errno.h>

int owed_result(struct tracee *t, int64_t result)
{
	/* The kernel begins a call anew from its exit alone. */
	if (regs_restarts(result)) {
		t->owed = result;
		tracee_to(t, TRACEE_CALL);
		act_resume(t, 0);
		return 0;
	}
	int r = regs_skip(t->tid, result);
	tracee_owe_nothing(t);
	call_release(&t->call);
	act_run(t);
	return r;
}

int owed_again(struct tracee *t)
{
	int r = regs_make(t->tid, &t->entered, -1, 0);

	tracee_owe_nothing(t);
	call_release(&t->call);
	tracee_to(t, TRACEE_CALL);
	act_resume(t, 0);
	return r;
}

void owed_pay(struct tracee *t)
{
	int64_t result = t->owed;

	tracee_owe_nothing(t);
	if (regs_set_number(t->tid, t->at.nr) == 0)
		(void)regs_set_result(t->tid, result);
	call_release(&t->call);
	act_run(t);
}
