/*
 * pty: the command's inner terminal. Only we hold the real one.
 *
 * Otherwise a tracee blocked in read would get the key meant for the question, and a background one
 * could type the answer itself. Which stdio goes where:
 *   - no controlling terminal: nothing is made, stdio passes as it is;
 *   - stdout is the terminal, or a file while stdin is the terminal: every stdio that is the
 * terminal becomes the inner one, keys are relayed from the start, the real terminal is raw while
 * we are in its foreground;
 *   - stdout is not (a pipeline's middle, `warder run ls | less`): stdin stays the real terminal,
 * so that nobody's keys are stolen, a stderr that is the terminal goes through a second inner
 *     terminal that only drains; the controlling one is the inner one all the same, and keys are
 * relayed from the first output there until its last user closes it (ssh asking for a password).
 *
 * In a pipeline (stdin or stdout a pipe) the real terminal keeps ISIG while the program keeps it,
 * so that ^C still reaches every member; what then reaches us as a signal goes on by pty_signal().
 *
 * Nothing blocks but pty_close() and pty_suspend(), each with its bound. The terminal is opened
 * anew, so that O_NONBLOCK is ours alone. SIGTTOU and SIGTTIN must not be taken by the loop.
 */
#pragma once

#include "supervisor/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct pty;

struct pty_hooks {
	void *arg;
	void (*hangup)(void *arg); /* the real terminal is gone; NULL is fine; not the place for
				      pty_close() */
};

/*
 * Look at stdio and the controlling terminal and make what is needed; the real terminal is not
 * touched yet. 0 and *ret == NULL: no terminal. -errno. `l` must outlive it.
 */
int pty_open(struct loop *l, const struct pty_hooks *hooks, struct pty **ret);
/*
 * Drain what is left (until EOF or 200 ms without output, 2 s in all), restore the real terminal
 * exactly as it was, free. NULL is fine.
 */
void pty_close(struct pty *p);

/* The descriptors for tracer_spawn: stdio[i] = slave or -1 (keep ours); ctty = slave. Loans. */
void pty_child_stdio(const struct pty *p, int stdio[3], int *ret_ctty);
/* After the spawn: relaying begins, the real terminal becomes raw where we are in its foreground.
 */
void pty_spawned(struct pty *p);

/* The real terminal (a /dev/tty descriptor of its own): for its size. Write with pty_write(). */
int pty_terminal(const struct pty *p);
/* Queue our own bytes for the real terminal, behind the program's that are on their way. */
void pty_write(struct pty *p, const char *bytes, size_t n);

/*
 * Keys for the question; returns how many it took, and what is left goes to the program once the
 * hold ends. n == 0: the end, the terminal is gone. May call everything here but pty_close().
 */
typedef size_t pty_keys_fn(void *arg, const char *bytes, size_t n);
/*
 * A question opens: what the tree wrote so far is shown, its further output is not drained, keys go
 * to `keys`, the terminal is in the mode it had at the start with ICANON, ECHO and ISIG off, on a
 * fresh line of the primary screen. Keys that arrived before go to the program once it resumes.
 * Held already: only `keys` is another. -EIO: the terminal is gone.
 */
int pty_hold(struct pty *p, pty_keys_fn *keys, void *arg);
/*
 * The program's line, screen and modes come back; where only the program can do that, it is made to
 * paint again by a size that changes and changes back.
 */
void pty_resume(struct pty *p);
bool pty_held(const struct pty *p);

/* Has the real terminal hung up? */
bool pty_is_gone(const struct pty *p);

/* The inner foreground group; -errno. */
pid_t pty_foreground(const struct pty *p);
/* SIGINT, SIGQUIT or SIGTSTP to the inner foreground group, as its key would. */
void pty_signal(struct pty *p, int signo);
/* SIGINT (a "no" by Ctrl-C). */
void pty_interrupt(struct pty *p);

/*
 * The command was stopped by a terminal signal: what it wrote is shown (bounded: 500 ms), the real
 * terminal restored, nothing more is relayed. Then stop ourselves.
 */
void pty_suspend(struct pty *p);
/* SIGCONT: raw again where we are in the foreground, size checked. */
void pty_continue(struct pty *p);
/*
 * The command has ended, others of its tree go on: the inner terminal sends no signals any more, so
 * ^C and ^\ of the real one are ours.
 */
void pty_command_ended(struct pty *p);
/* SIGWINCH arrived. */
void pty_resized(struct pty *p);
