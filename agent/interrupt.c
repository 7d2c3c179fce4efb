#include "agent/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>

static volatile sig_atomic_t raised, ending, stop_asked, resized;

static void on_signal(int sig)
{
	if (sig == SIGTSTP || sig == SIGWINCH) {
		*(sig == SIGTSTP ? &stop_asked : &resized) = 1;
		return;
	}
	raised = 1;
	if (sig != SIGINT)
		ending = sig;
}

static int take(int sig)
{
	struct sigaction old, sa = {.sa_handler = on_signal};
	sigemptyset(&sa.sa_mask);
	if (sigaction(sig, NULL, &old))
		return -errno;
	/* nohup and the like: what was ignored stays ignored. */
	if (old.sa_handler == SIG_IGN)
		return 0;
	return sigaction(sig, &sa, NULL) ? -errno : 0;
}

int interrupt_install(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		int err = take(signals[i]);
		if (err)
			return err;
	}
	return 0;
}

volatile sig_atomic_t *interrupt_flag(void)
{
	return &raised;
}

bool interrupt_raised(void)
{
	return raised;
}

bool interrupt_any(void)
{
	return raised || ending || stop_asked;
}

void interrupt_clear(void)
{
	raised = 0;
}

int interrupt_ending(void)
{
	return ending;
}

void interrupt_take_stop(bool on)
{
	if (on)
		take(SIGTSTP);
	else
		signal(SIGTSTP, SIG_DFL);
}

bool interrupt_stop_asked(void)
{
	bool asked = stop_asked;
	stop_asked = 0;
	return asked;
}

void interrupt_take_resize(bool on)
{
	if (on)
		take(SIGWINCH);
	else
		signal(SIGWINCH, SIG_DFL);
}

bool interrupt_resized(void)
{
	bool changed = resized;
	resized = 0;
	return changed;
}

int interrupt_wait_input(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	sigset_t ours, before;
	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGHUP);
	sigaddset(&ours, SIGTSTP);
	sigaddset(&ours, SIGWINCH);
	if (sigprocmask(SIG_BLOCK, &ours, &before))
		return -errno;
	int err = 0;
	if (interrupt_any() || resized)
		err = -EINTR;
	else if (ppoll(&p, 1, NULL, &before) < 0)
		err = -errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err;
}

void interrupt_die(int sig)
{
	sigset_t one;
	signal(sig, SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, sig);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	raise(sig);
}
