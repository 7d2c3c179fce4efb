/*
 * walk: a program is looked for along PATH, live or in a trace.
 *
 * A thread is named by any number that no other one has meanwhile.
 */
#pragma once

#include "supervisor/denial.h"

#include <stdint.h>
#include <sys/types.h>

struct walks {
	struct walk *first;
	void *arg;
	/* A refusal that stands. */
	void (*tell)(void *arg, const struct denial *d);
	/* One that was passed over: a program of this name was found further on. May be NULL. */
	void (*passed_over)(void *arg, const char *name);
};

/* An exec was refused (EACCES): kept until it is known how the walk goes on. Copies. */
void walk_refused(struct walks *l, uint64_t who, pid_t pid, const char *given,
		  const struct denial *d);
/* The thread did something else: what is kept of it was no walk, or the end of one. */
void walk_over(struct walks *l, uint64_t who);
/* A new image, by this name as it was given (NULL: not known). */
void walk_execed(struct walks *l, uint64_t who, const char *given);
/* The process ended; 0: all of them. */
void walk_ended(struct walks *l, pid_t pid);
