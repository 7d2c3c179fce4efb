/*
 * jobs: what of job control the kernel gets wrong because a supervisor stands in between.
 *
 * Terminal stops in a session that a tracer leads from outside:
 * The kernel ignores the default action of SIGTSTP, SIGTTIN and SIGTTOU in an orphaned process
 * group (kernel/signal.c, get_signal): one whose members' parents are all outside of the session. A
 * command that got a terminal of its own (tracer_spawn.ctty) leads such a group, since its parent
 * is the supervisor. Without the supervisor the shell would be its parent, and ^Z would stop it.
 *
 * The hang-up at that command's end: it leads the session, so its end takes the terminal from the
 * session and sends SIGHUP to the foreground group (drivers/tty/tty_jobctrl.c, disassociate_ctty).
 * Natively the shell leads, and what a command leaves behind goes on.
 */
#pragma once

#include "tracer/tracee.h"

#include <sys/types.h>

/*
 * The signal to deliver to thread tid of process tgid, at its signal stop, in place of `sig`. In
 * the leading group of `session`: SIGSTOP, which stops orphans too, for a terminal stop with the
 * default action; 0 for the SIGHUP of the leader's end. Else sig itself. session 0: none.
 */
int jobs_signal(pid_t session, pid_t tid, pid_t tgid, int sig);

/*
 * Process `ended` has ended, and its children came to us, the subreaper. Where they are in our
 * session we are a link to it for their group; with init in our place that would be orphaned, and
 * get SIGHUP and SIGCONT if it has a stopped member (kernel/exit.c, kill_orphaned_pgrp). Then it
 * gets them from here. For a command that was spawned we stand for the shell. False: no process is
 * stopped, so there is nothing to be done at an end until one is.
 */
bool jobs_process_ended(struct tracee_table *table, pid_t ended);
