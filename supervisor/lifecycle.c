/*
 * The life of a run beside its calls: signals, job control, time limits, what outlives the command.
 */
#include "supervisor/run.h"

#include "supervisor/proc.h"
#include "supervisor/redact.h"
#include "tracer/clock.h"
#include "tracer/util.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long processes that are about to end anyway get before they count as leftovers. */
#define LEFTOVER_GRACE_MS 100
/* TERM, and this much later KILL. */
#define KILL_AFTER_MS 2000
/* Held threads are looked at for pending signals this often. */
#define POLL_MS 50

#define NS_PER_MS INT64_C(1000000)

#define PIDS_MAX 4096

static void signal_tree(struct run *r, int sig)
{
	static pid_t pids[PIDS_MAX];
	size_t n = tracer_processes(r->tracer, pids, PIDS_MAX);
	for (size_t i = 0; i < n && i < PIDS_MAX; i++) {
		kill(pids[i], sig);
		kill(pids[i], SIGCONT); /* a stopped one could not see it */
	}
}

/* ---- ending the tree ---- */

static void kill_tree(void *arg)
{
	struct run *r = arg;
	r->end_timer = 0;
	r->end = RUN_KILLED;
	tracer_kill_all(r->tracer);
}

static void end_tree(struct run *r, int sig, int64_t kill_after_ms)
{
	if (r->end != RUN_GOES_ON)
		return;
	r->end = RUN_ENDING;
	refusal_give_up(r);
	signal_tree(r, sig);
	loop_remove(r->loop, r->end_timer);
	if (loop_add_timer(r->loop, kill_after_ms, kill_tree, r, &r->end_timer))
		kill_tree(r);
}

/* ---- leftovers ---- */

static void note_leftover(struct run *r, pid_t pid)
{
	struct report *rep = &r->out->report;
	struct report_leftover *list =
		realloc(rep->leftovers, (rep->leftovers_len + 1) * sizeof *list);
	if (!list)
		return;
	rep->leftovers = list;
	char **argv = proc_argv(pid);
	list[rep->leftovers_len++] = (struct report_leftover){
		.pid = pid,
		.exe = proc_link(pid, "exe"),
		.argv0 = strdup(argv && argv[0] ? argv[0] : ""),
	};
	redact_free(argv);
}

static void end_leftovers(void *arg)
{
	struct run *r = arg;
	static pid_t pids[PIDS_MAX];
	r->end_timer = 0;
	size_t n = tracer_processes(r->tracer, pids, PIDS_MAX);
	for (size_t i = 0; i < n && i < PIDS_MAX; i++)
		note_leftover(r, pids[i]);
	if (n)
		end_tree(r, SIGTERM, KILL_AFTER_MS);
}

void lifecycle_main_ended(struct run *r, int status)
{
	pid_t one;
	r->main_ended = true;
	r->main_status = status;
	if (r->pty)
		pty_command_ended(r->pty);
	/* Who waits for the leftovers waits no longer than that. */
	if (!r->command->leftovers_wait) {
		loop_remove(r->loop, r->limit_timer);
		r->limit_timer = 0;
	}
	if (r->end != RUN_GOES_ON || r->command->leftovers_wait ||
	    !tracer_processes(r->tracer, &one, 1))
		return;
	if (loop_add_timer(r->loop, LEFTOVER_GRACE_MS, end_leftovers, r, &r->end_timer))
		end_leftovers(r);
}

/* ---- the time limit; waiting for an answer does not count ---- */

static void time_is_up(void *arg)
{
	struct run *r = arg;
	r->limit_timer = 0;
	r->out->timed_out = true;
	int sig = r->command->timeout_signal ? r->command->timeout_signal : SIGTERM;
	int64_t after = r->command->kill_after_ms ? r->command->kill_after_ms : KILL_AFTER_MS;
	end_tree(r, sig, after);
}

static void start_limit(struct run *r)
{
	bool over = r->main_ended && !r->command->leftovers_wait;
	if (r->limit_timer || r->limit_left_ns <= 0 || over || r->end != RUN_GOES_ON)
		return;
	r->limit_since_ns = clock_ns();
	int64_t ms = (r->limit_left_ns + NS_PER_MS - 1) / NS_PER_MS;
	if (loop_add_timer(r->loop, ms, time_is_up, r, &r->limit_timer))
		run_fail(r, -ENOMEM, "the time limit can't be kept");
}

/* What is refused one call after the other holds them all the time, for a moment each. */
static void stop_limit(struct run *r)
{
	if (!r->limit_timer)
		return;
	int64_t left = r->limit_left_ns - (clock_ns() - r->limit_since_ns);
	if (left <= 0)
		return; /* it is over: its timer tells, within a millisecond */
	loop_remove(r->loop, r->limit_timer);
	r->limit_timer = 0;
	r->limit_left_ns = left;
}

/* ---- holding ---- */

static void poll_signals(void *arg)
{
	struct run *r = arg;
	r->poll_timer = 0;
	refusal_check_signals(r);
	if (r->waiters && loop_add_timer(r->loop, POLL_MS, poll_signals, r, &r->poll_timer))
		run_fail(r, -ENOMEM, "held calls can't be watched");
}

void lifecycle_holding(struct run *r, bool held)
{
	if (held && !r->held_since_ms) {
		r->held_since_ms = clock_ms();
		stop_limit(r);
	} else if (!held && r->held_since_ms) {
		r->out->report.held_ms += clock_ms() - r->held_since_ms;
		r->held_since_ms = 0;
		start_limit(r);
	}
}

void lifecycle_watch_signals(struct run *r, bool watch)
{
	if (watch && !r->poll_timer) {
		if (loop_add_timer(r->loop, POLL_MS, poll_signals, r, &r->poll_timer))
			run_fail(r, -ENOMEM, "held calls can't be watched");
	} else if (!watch && r->poll_timer) {
		loop_remove(r->loop, r->poll_timer);
		r->poll_timer = 0;
	}
}

/* ---- signals to us ---- */

/* The command's own group: where it made a session it leads one; else it is in ours. */
static void forward(struct run *r, int sig)
{
	if (r->main_ended || !r->main)
		return;
	kill(r->main, sig);
}

/*
 * A hang-up of the real terminal is for its whole foreground group; one that somebody sends, as
 * every other signal, for the command.
 */
static void forward_end(struct run *r, const struct signalfd_siginfo *info)
{
	bool hangup = info->ssi_signo == SIGHUP && r->pty &&
		      (info->ssi_code == SI_KERNEL || pty_is_gone(r->pty));
	if (hangup && r->main)
		kill(-r->main, SIGHUP);
	else
		forward(r, (int)info->ssi_signo);
}

/* Typed at a terminal that we share with the command: its group got it from the kernel as well. */
static bool reached_it_already(const struct run *r, const struct signalfd_siginfo *info)
{
	return r->command->own_terminal && !r->pty && info->ssi_code == SI_KERNEL;
}

/* The command has ended and its leftovers or an answer are waited for: that ends, as if by it. */
static void end_the_wait(struct run *r, int sig)
{
	if (r->end != RUN_GOES_ON)
		return;
	r->main_status = sig; /* a wait status: ended by this signal */
	if (r->tracer)
		end_tree(r, SIGTERM, KILL_AFTER_MS);
	else
		r->end = RUN_ENDING;
}

static void on_end_signal(void *arg, const struct signalfd_siginfo *info)
{
	struct run *r = arg;
	int sig = (int)info->ssi_signo;
	if (r->command->own_terminal) {
		if (r->main_ended) {
			end_the_wait(r, sig);
		} else if (!reached_it_already(r, info)) {
			forward_end(r, info);
			if (r->main_stopped)
				forward(r, SIGCONT); /* it could not see it, as timeout(1) knows */
		}
		return;
	}
	/* A tool of the agent's has no terminal: the user stops it by stopping us. */
	if (r->command->cancel)
		*r->command->cancel = 1;
	r->owed_signal = sig;
	end_tree(r, SIGTERM, KILL_AFTER_MS);
}

static void on_window(void *arg, const struct signalfd_siginfo *info)
{
	struct run *r = arg;
	(void)info;
	if (r->pty)
		pty_resized(r->pty);
	if (r->prompt)
		prompt_make_way(r->prompt);
}

static void on_continue(void *arg, const struct signalfd_siginfo *info)
{
	struct run *r = arg;
	(void)info;
	if (r->pty)
		pty_continue(r->pty);
	if (r->main && !r->main_ended)
		kill(r->pty ? -r->main : r->main, SIGCONT);
}

/* The shell sees its job stopped, with the terminal as it was. */
static void stop_ourselves(struct run *r)
{
	if (r->pty)
		pty_suspend(r->pty);
	stop_limit(r);
	kill(getpid(), SIGSTOP);
	/* Continued: SIGCONT arrives by the loop as well, where the tree is continued. */
	start_limit(r);
}

/*
 * The command stopped; so do we, as the shell expects of its job. Without a terminal there is no
 * shell that would wake us: the time limit goes on, and a command that stops itself does not
 * outlive it.
 */
void lifecycle_stopped(struct run *r, const struct tracer_event *ev)
{
	if (ev->pid != r->main)
		return;
	r->main_stopped = true;
	if (r->command->own_terminal && r->pty)
		stop_ourselves(r);
}

static void on_stop_key(void *arg, const struct signalfd_siginfo *info)
{
	struct run *r = arg;
	/* Its leftovers are waited for: the shell would have the terminal by now, and they go on.
	 */
	if (r->main_ended)
		stop_ourselves(r);
	else if (!reached_it_already(r, info))
		forward(r, SIGTSTP);
}

static void on_other(void *arg, const struct signalfd_siginfo *info)
{
	forward(arg, (int)info->ssi_signo);
}

/* Signals that a full disk or a closed pipe sends: we handle the error instead. */
static const int write_signals[] = {SIGPIPE, SIGXFSZ};

/* Ignored by us, not by the command (ignored_before). */
static void ignore_for_us(struct run *r)
{
	for (size_t i = 0; i < ARRAY_LEN(write_signals); i++) {
		struct sigaction ignore = {.sa_handler = SIG_IGN};
		sigaction(write_signals[i], &ignore, &r->write_actions[i]);
	}
	r->ignoring = true;
}

void lifecycle_end(struct run *r)
{
	for (size_t i = 0; r->ignoring && i < ARRAY_LEN(write_signals); i++)
		sigaction(write_signals[i], &r->write_actions[i], NULL);
}

int lifecycle_begin(struct run *r, loop_signal_fn *on_child)
{
	const struct loop_signal taken[] = {
		{SIGCHLD, on_child},
		{SIGINT, on_end_signal},
		{SIGTERM, on_end_signal},
		{SIGHUP, on_end_signal},
		/* The rest only where the command stands for us in front of a shell: */
		{SIGQUIT, on_end_signal},
		{SIGWINCH, on_window},
		{SIGCONT, on_continue},
		{SIGTSTP, on_stop_key},
		{SIGUSR1, on_other},
		{SIGUSR2, on_other},
		{SIGALRM, on_other},
	};
	const size_t always = 4, n = r->command->own_terminal ? ARRAY_LEN(taken) : always;
	int err = loop_take_signals(r->loop, taken, n, r);
	if (err)
		return err;
	r->limit_left_ns = r->command->timeout_ms < INT64_MAX / NS_PER_MS
				   ? r->command->timeout_ms * NS_PER_MS
				   : INT64_MAX - NS_PER_MS;
	ignore_for_us(r);
	return 0;
}

void lifecycle_spawned(struct run *r)
{
	start_limit(r);
}

void lifecycle_release(struct run *r)
{
	loop_remove(r->loop, r->end_timer);
	loop_remove(r->loop, r->poll_timer);
	loop_remove(r->loop, r->limit_timer);
	r->end_timer = r->poll_timer = r->limit_timer = 0;
}
