/*
 * jobs: terminal stops in a session that a tracer leads from outside.
 *
 * The kernel ignores the default action of SIGTSTP, SIGTTIN and SIGTTOU in an orphaned process
 * group (kernel/signal.c, get_signal): one whose members' parents are all outside of the session. A
 * command that got a terminal of its own (tracer_spawn.ctty) leads such a group, since its parent
 * is the supervisor. Without the supervisor the shell would be its parent, and ^Z would stop it.
 */
#pragma once

#include <sys/types.h>

/*
 * The signal to deliver to process tgid in place of `sig`: SIGSTOP, which stops orphans too, where
 * sig is a terminal stop with the default action in the leading group of `session`; else sig
 * itself. session 0: none.
 */
int jobs_signal(pid_t session, pid_t tgid, int sig);
