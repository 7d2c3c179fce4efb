#include "tracer/reap.h"

#include "tracer/near.h"
#include "tracer/status.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define WAIT_FLAGS (__WALL | __WNOTHREAD)
#define RING_STEP  64

static int push(struct reap_queue *q, pid_t tid, int status)
{
	if (q->len == q->cap) {
		struct reap_status *ring = reallocarray(NULL, q->cap + RING_STEP, sizeof(*ring));
		if (!ring)
			return -ENOMEM;
		for (size_t i = 0; i < q->len; i++)
			ring[i] = q->ring[(q->head + i) % q->cap];
		free(q->ring);
		q->ring = ring;
		q->head = 0;
		q->cap += RING_STEP;
	}
	q->ring[(q->head + q->len++) % q->cap] = (struct reap_status){tid, status};
	return 0;
}

/* 1: a status of this tracee was queued, 0: it has none. Room is made before anything is reaped. */
static int take(struct reap_queue *q, pid_t tid)
{
	int status;
	int r = push(q, tid, 0);

	if (r < 0)
		return r;
	if (waitpid(tid, &status, WAIT_FLAGS | WNOHANG) != tid) {
		q->len--;
		return 0;
	}
	q->ring[(q->head + q->len - 1) % q->cap].status = status;
	return 1;
}

struct scan {
	struct reap_queue *q;
	int result;
};

static void scan_one(struct tracee *t, void *arg)
{
	struct scan *scan = arg;

	if (scan->result < 0)
		return;
	int r = take(scan->q, t->tid);
	if (r != 0)
		scan->result = r;
}

static int scan_all(struct reap_queue *q, struct tracee_table *table)
{
	struct scan scan = {.q = q};

	tracee_each(table, scan_one, &scan);
	return scan.result;
}

int reap_kin(pid_t tid, pid_t *ret_tgid, pid_t *ret_parent, pid_t *ret_tracer)
{
	struct status s;

	if (status_of(tid, &s) < 0)
		return -ESRCH;
	if (!status_number(&s, "Tgid", ret_tgid) || !status_number(&s, "PPid", ret_parent) ||
	    !status_number(&s, "TracerPid", ret_tracer))
		return -ESRCH;
	return 0;
}

/* TracerPid is the thread that traces, not its process. */
static bool is_ours(pid_t tid)
{
	pid_t tgid, parent, tracer;

	return reap_kin(tid, &tgid, &parent, &tracer) == 0 && tracer == gettid();
}

bool reap_exists(pid_t tid)
{
	siginfo_t info;

	return waitid(P_PID, (id_t)tid, &info,
		      WAIT_FLAGS | WEXITED | WSTOPPED | WNOHANG | WNOWAIT) == 0;
}

bool reap_strays(void)
{
	siginfo_t info;
	struct dirent *entry;
	bool found = false;

	if (waitid(P_ALL, 0, &info, WAIT_FLAGS | WEXITED | WSTOPPED | WNOHANG | WNOWAIT) < 0)
		return false;
	/* Somebody's child is there: only /proc tells whether it is a tracee. */
	DIR *proc = opendir("/proc");
	while (proc && !found && (entry = readdir(proc)))
		found = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
			is_ours((pid_t)strtol(entry->d_name, NULL, 10));
	if (proc)
		closedir(proc);
	return found;
}

/* Who stands first, and is it dead? 0: nobody. */
static pid_t peek(bool *ret_dead)
{
	siginfo_t info = {.si_pid = 0};

	if (waitid(P_ALL, 0, &info, WAIT_FLAGS | WEXITED | WSTOPPED | WNOHANG | WNOWAIT) < 0)
		return 0;
	*ret_dead = info.si_code == CLD_EXITED || info.si_code == CLD_KILLED ||
		    info.si_code == CLD_DUMPED;
	return info.si_pid;
}

/* Queue all there is. */
static int drain(struct reap_queue *q, struct tracee_table *table)
{
	q->drained = false;
	for (;;) {
		bool dead;
		pid_t tid = peek(&dead);
		if (tid == 0) {
			q->looked = q->len > 0;
			q->drained = true;
			return 0;
		}
		if (!tracee_find(table, tid)) {
			/* Its creator's word may be one of these, or be waiting behind it: either
			 * is better than asking. */
			if (q->len > 0)
				return 0;
			int r = scan_all(q, table);
			if (r != 0)
				return r;
			if (!is_ours(tid))
				return 0;
		}
		if (dead)
			near_mourn(table->near, tid);
		int r = take(q, tid);
		if (r <= 0)
			return r;
	}
}

int reap_next(struct reap_queue *q, struct tracee_table *table, struct reap_status *ret)
{
	if (q->len == 0) {
		bool looked = q->looked;
		q->looked = false;
		int r = looked ? 0 : drain(q, table);
		if (q->len == 0)
			return r < 0 ? r : 0;
	}
	*ret = q->ring[q->head];
	q->head = (q->head + 1) % q->cap;
	q->len--;
	return 1;
}

bool reap_is_drained(const struct reap_queue *q)
{
	return q->drained && q->len == 0;
}

void reap_free(struct reap_queue *q)
{
	free(q->ring);
	*q = (struct reap_queue){0};
}
