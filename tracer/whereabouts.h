/*
 * whereabouts: on which processors a few threads were last. Inside the room, for near.h.
 *
 * The kernel tells it in /proc/TID/stat alone, which costs as much as half a stop to open and a
 * quarter to read. So the files of the last few are kept open, and who was woken on a processor a
 * moment ago is taken to be there still: the scheduler seldom moves what has hardly run. To be
 * wrong costs time, nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WHEREABOUTS_NOWHERE -1
#define WHEREABOUTS_MAX	    8

struct whereabouts {
	struct whereabouts_of {
		pid_t tid; /* 0: free */
		int stat;  /* its file, owned, while `is_open`: of this very thread, whoever has */
		bool is_open; /* its number later (fs/proc/base.c) */
		int cpu;      /* where it was woken last, */
		uint64_t at;  /* and when (CLOCK_MONOTONIC, ns); 0: never */
	} of[WHEREABOUTS_MAX];
	unsigned next; /* to be replaced */
};

/* How a thread stands to others on its processor. */
struct whereabouts_rank {
	bool is_ordinary; /* SCHED_OTHER, SCHED_BATCH or SCHED_IDLE */
	int nice;
};

/* Its processor, or WHEREABOUTS_NOWHERE where that can't be told. */
int whereabouts_look(struct whereabouts *w, pid_t tid, struct whereabouts_rank *ret);
/* Where it was woken within the last moment, or WHEREABOUTS_NOWHERE. Asks nobody. */
int whereabouts_recent(const struct whereabouts *w, pid_t tid);
/* Can it be told without opening anything? */
bool whereabouts_knows(const struct whereabouts *w, pid_t tid);
void whereabouts_woken(struct whereabouts *w, pid_t tid, int cpu);
void whereabouts_forget(struct whereabouts *w, pid_t tid);
void whereabouts_free(struct whereabouts *w);
