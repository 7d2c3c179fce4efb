/*
 * reap: whose wait status is it?
 *
 * This process may have children that are no tracees (the host program's): their statuses are not
 * ours to take. So nothing is reaped before it is known to be a tracee: waitid(P_ALL, WNOWAIT)
 * looks who is first, and only a tid of the table, or one whose TracerPid is this thread, is waited
 * for by its number. While a foreign zombie stands first it hides the others; then each tid of the
 * table is asked by itself (tracees that are not in the table yet are announced by their creator's
 * stop).
 *
 * Statuses are queued and handed out in order, and a tracee stays stopped until it is resumed, so
 * one busy thread cannot starve the others. __WNOTHREAD: tracees belong to the tracer's thread.
 */
#pragma once

#include "tracer/tracee.h"

#include <stddef.h>
#include <sys/types.h>

struct reap_status {
	pid_t tid;
	int status;
};

/* Zeroed: empty. Owns its memory. */
struct reap_queue {
	struct reap_status *ring;
	size_t head, len, cap;
	bool looked;  /* nobody was left when these were taken */
	bool drained; /* nobody was left at the last look: who came since raised SIGCHLD */
};

/*
 * 1 and a status, 0 none now, -ENOMEM (nothing is lost). Does not block. Behind the last of those
 * that were there together comes a 0 without another look: what is there since raises SIGCHLD anew,
 * and on one CPU nothing has run meanwhile that could be.
 */
int reap_next(struct reap_queue *q, struct tracee_table *table, struct reap_status *ret);
/* Is nothing left to be handed out, and was nobody there at the last look? */
bool reap_is_drained(const struct reap_queue *q);
void reap_free(struct reap_queue *q);

/* From /proc/TID/status. 0, or -ESRCH. */
int reap_kin(pid_t tid, pid_t *ret_tgid, pid_t *ret_parent, pid_t *ret_tracer);
/*
 * With an empty table: is there a tracee all the same? One whose creator was killed between making
 * it and announcing it is on its way to its first stop.
 */
bool reap_strays(void);
/* Is there a thread `tid` that we could wait for? Takes no status. */
bool reap_exists(pid_t tid);
