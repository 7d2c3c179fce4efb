#include "tracer/jobs.h"

#include "tracer/reap.h"
#include "tracer/status.h"
#include "tracer/util.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>

static bool is_terminal_stop(int sig)
{
	return sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static bool has_default_action(pid_t pid, int sig)
{
	struct status s;

	if (status_of(pid, &s) < 0)
		return false; /* gone, most likely */
	uint64_t other = status_mask(&s, "SigIgn") | status_mask(&s, "SigCgt");
	return !(other >> (sig - 1) & 1);
}

/* To another than the leader the kernel itself sends it only for the leader's end. */
static bool is_of_leaders_end(pid_t session, pid_t tid, pid_t tgid)
{
	siginfo_t info;

	return tgid != session && ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) == 0 &&
	       info.si_code == SI_KERNEL;
}

int jobs_signal(pid_t session, pid_t tid, pid_t tgid, int sig)
{
	if (session <= 0 || (sig != SIGHUP && !is_terminal_stop(sig)))
		return sig;
	if (getpgid(tgid) != session || getsid(tgid) != session)
		return sig;
	if (sig == SIGHUP)
		return is_of_leaders_end(session, tid, tgid) ? 0 : sig;
	return has_default_action(tgid, sig) ? SIGSTOP : sig;
}

/* ---- groups that lose their last link ---- */

struct group {
	pid_t pgrp;
	bool linked;
};

/* Has this process a parent in the session, but outside of the group? */
static void find_link(struct tracee *t, void *arg)
{
	struct group *g = arg;
	pid_t tgid, parent, tracer;

	if (g->linked || t->tid != t->tgid || getpgid(t->tid) != g->pgrp ||
	    reap_kin(t->tid, &tgid, &parent, &tracer) < 0)
		return;
	g->linked = parent == getpid() ? t->spawned
				       : getsid(parent) == getsid(0) && getpgid(parent) != g->pgrp;
}

struct end {
	struct tracee_table *table;
	pid_t ended;
	bool any;
};

static void look_at_stopped(struct tracee *t, void *arg)
{
	struct end *end = arg;
	struct group g = {.pgrp = t->job_stopped ? getpgid(t->tid) : -1};

	end->any |= t->job_stopped;
	if (!t->job_stopped || t->stopped_under != end->ended)
		return;
	t->stopped_under = 0;
	if (g.pgrp <= 0 || g.pgrp == getpgrp() || getsid(t->tid) != getsid(0))
		return;
	tracee_each(end->table, find_link, &g);
	if (g.linked)
		return;
	kill(-g.pgrp, SIGHUP);
	kill(-g.pgrp, SIGCONT);
}

bool jobs_process_ended(struct tracee_table *table, pid_t ended)
{
	struct end end = {.table = table, .ended = ended};

	tracee_each(table, look_at_stopped, &end);
	return end.any;
}
