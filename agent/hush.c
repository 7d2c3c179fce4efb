#include "agent/hush.h"

#include "tracer/util.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <termios.h>
#include <unistd.h>

static const int signals[] = {SIGTSTP, SIGQUIT};

/* What a signal's handler needs; set before it is installed. */
static struct {
	struct termios before, quiet;
	bool on;
} hush;

static void set(const struct termios *t)
{
	if (tcgetpgrp(STDIN_FILENO) != getpgrp())
		return; /* another's modes are there: and we would be stopped */
	while (tcsetattr(STDIN_FILENO, TCSANOW, t) && errno == EINTR)
		;
}

/* The terminal goes back, then the signal does what it does; Ctrl-Z's returns with SIGCONT. Only
 * what may be called in a handler. */
static void on_signal(int sig)
{
	const int err = errno;
	struct sigaction ours;
	sigset_t one, before;
	sigemptyset(&one);
	sigaddset(&one, sig);
	sigaction(sig, &(struct sigaction){.sa_handler = SIG_DFL}, &ours);
	set(&hush.before);
	raise(sig);
	pthread_sigmask(SIG_UNBLOCK, &one, &before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sigaction(sig, &ours, NULL);
	set(&hush.quiet);
	errno = err;
}

static void take(int sig, bool on)
{
	struct sigaction old, sa = {.sa_handler = on ? on_signal : SIG_DFL, .sa_flags = SA_RESTART};
	sigemptyset(&sa.sa_mask);
	/* What was ignored stays ignored. */
	if (!sigaction(sig, NULL, &old) && old.sa_handler != SIG_IGN)
		sigaction(sig, &sa, NULL);
}

static void take_all(bool on)
{
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		take(signals[i], on);
}

void hush_begin(void)
{
	if (hush.on || tcgetattr(STDIN_FILENO, &hush.before))
		return;
	hush.quiet = hush.before;
	/* No line is made of them either: each key is the editor's, the end of input too. */
	hush.quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL | IEXTEN);
	hush.quiet.c_cc[VMIN] = 1;
	hush.quiet.c_cc[VTIME] = 0;
	hush.on = true;
	take_all(true);
	set(&hush.quiet);
}

bool hush_end(void)
{
	if (!hush.on)
		return false;
	set(&hush.before);
	take_all(false);
	hush.on = false;
	return true;
}
