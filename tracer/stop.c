#include "tracer/stop.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static struct stop classify_event(int event, int sig)
{
	switch (event) {
	case PTRACE_EVENT_SECCOMP:
		return (struct stop){STOP_SECCOMP, 0};
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		return (struct stop){STOP_CLONED, 0};
	case PTRACE_EVENT_EXEC:
		return (struct stop){STOP_EXECED, 0};
	case PTRACE_EVENT_STOP:
		/* SIGTRAP: first stop, or awake after a group stop; a stop signal: a group stop. */
		return sig == SIGTRAP ? (struct stop){STOP_TRAP, 0}
				      : (struct stop){STOP_GROUP, sig};
	default:
		return (struct stop){STOP_OTHER, event};
	}
}

struct stop stop_classify(int status)
{
	if (WIFEXITED(status))
		return (struct stop){STOP_EXITED, WEXITSTATUS(status)};
	if (WIFSIGNALED(status))
		return (struct stop){STOP_KILLED, WTERMSIG(status)};
	if (!WIFSTOPPED(status))
		return (struct stop){STOP_NONE, 0};
	int sig = WSTOPSIG(status);
	if (status >> 16)
		return classify_event(status >> 16, sig);
	if (sig == (SIGTRAP | 0x80))
		return (struct stop){STOP_SYSCALL, 0};
	return (struct stop){STOP_SIGNAL, sig};
}
