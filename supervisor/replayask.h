/*
 * replayask: what a replay refused, put to the person at the terminal, one after the other, as a
 * live run would have asked it.
 */
#pragma once

#include "supervisor/denial.h"
#include "supervisor/policy.h"

/*
 * Ask about each denial that stayed refused and that no rule of a policy decided; the answers are
 * entered into the list. A yes for the session is a rule: it settles what it covers, and is a
 * line of *rules (appended). policy may be NULL. What a scope opens beside is not counted: the
 * files are another machine's. Blocks until all is answered. 0, -ENXIO: no terminal, -ENOMEM, or
 * -errno.
 */
int replayask_run(struct denial_list *l, const struct policy *policy, const char *home,
		  struct buf *rules);
