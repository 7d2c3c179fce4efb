/*
 * terminals: whose terminal is it? The one the user sits at is out of every command's reach (it
 * could paint over a question, or read the key meant for it); the command's own inner one and those
 * that its tree opened itself are its own.
 */
#pragma once

#include "supervisor/policy.h"
#include "tracer/path.h"
#include "tracer/tracer.h"

#include <stdbool.h>

/* Forbid our controlling terminal by its own name, where there is one. 0, -ENOMEM. */
int terminals_forbid_ours(struct policy *p);
#define TERMINALS_OWN 2

/* Names of a command's inner terminals while it runs. Zeroed: none. */
struct terminals {
	char name[TERMINALS_OWN][32];
};

/* Allow the command its inner terminals (slaves; -1: none). 0 or -ENOMEM. */
int terminals_own(struct policy *p, const int slaves[TERMINALS_OWN], struct terminals *ret);
/* Take that back: their names are given to others later. */
void terminals_disown(struct policy *p, struct terminals *t);
/* A pseudo-terminal whose master some process of the tree holds. Looks through /proc. */
bool terminals_is_the_trees(const struct tracer *t, const struct path_at *at);
