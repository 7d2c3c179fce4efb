/*
 * visit: the other side of a desk (supervisor/desk.h): a run's questions come into a queue here,
 * what is answered here goes back.
 *
 * What the run says is checked as strictly as a stranger's word: a line that is none ends the
 * visit. Sending blocks for VISIT_SEND_MS at most, looking for a stack for VISIT_STACK_MS.
 */
#pragma once

#include "supervisor/ask.h"
#include "supervisor/loop.h"

#define VISIT_SEND_MS  5000
#define VISIT_STACK_MS 2000

struct visit;

struct visit_hooks {
	void *arg;
	/* Who it is that asks: a loan. Once, before the first question. */
	void (*begun)(void *arg, struct visit *v, const char *run, const char *label,
		      const char *command);
	/* The run is over, or has shown us out (`why` may be NULL). Free it later, not from here.
	 */
	void (*gone)(void *arg, struct visit *v, const char *why);
};

/* fd (desk_connect()) is taken over, also on failure. 0 or -errno. */
int visit_new(struct loop *l, struct ask *a, int fd, const struct visit_hooks *hooks,
	      struct visit **ret);
/* Its questions leave the queue unanswered: they stay open over there. NULL is fine. */
void visit_free(struct visit *v);

/* For ask_new() and ask_set_stack(): every question of the queue is a visit's. */
void visit_answered(void *arg, const struct question *q, const struct answer *a);
int visit_stack(void *arg, const struct question *q, struct unwind_stack **ret);
