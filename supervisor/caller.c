/*
 * Who made a refused call: the held thread's native stack, for the question's details and the
 * report. Nothing is looked at before somebody asks for it.
 */
#include "supervisor/run.h"

#include "supervisor/stack.h"

#include <errno.h>
#include <string.h>

int caller_of_question(void *run, const struct question *q, struct unwind_stack **ret)
{
	const struct run *r = run;
	for (const struct waiter *w = r->waiters; w; w = w->next)
		if (w->question == q->id)
			return tracer_stack(r->tracer, w->who, STACK_FRAMES, ret);
	return -ESRCH; /* asked at the end of the run: no thread waits */
}

void caller_add(struct run *r, const struct waiter *w, struct denial *d)
{
	const struct denial_list *told = &r->out->report.denials;
	if (!r->command->stacks || d->stack || told->len == DENIAL_MAX || denial_find(told, d) ||
	    denial_find(&r->unasked, d))
		return;
	int err = tracer_stack(r->tracer, w->who, STACK_FRAMES, &d->stack);
	if (err && err != -ESRCH)
		run_say(r, "who made the call for %s is not known: %s", d->path, strerror(-err));
}
