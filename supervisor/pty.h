/*
 * pty: the command's inner terminal. Only we hold the real one.
 *
 * Otherwise a tracee blocked in read would get the key meant for the question, and a background one
 * could type the answer itself. Which stdio goes where:
 *   - no controlling terminal: nothing is made, stdio passes as it is;
 *   - stdout is the terminal: every stdio that is the terminal becomes the inner one, keys are relayed
 *     from the start, the real terminal is raw while we are in its foreground;
 *   - stdout is not (a pipeline's middle, `warder run ls | less`): stdin stays the real terminal, so
 *     that nobody's keys are stolen, a stderr that is the terminal goes through a second inner
 *     terminal that only drains; the controlling one is the inner one all the same, and relaying starts at
 *     the first output there (ssh asking for a password).
 */
#pragma once

#include "supervisor/loop.h"

#include <stdbool.h>
#include <stddef.h>

struct pty;

struct pty_hooks {
	void *arg;
	/* ^Z reached the command: the real terminal is put back, stop ourselves; called by pty_suspended's caller */
	void (*hangup)(void *arg); /* the real terminal is gone */
};

/*
 * Look at stdio and the controlling terminal and make what is needed. 0 and *ret == NULL: no
 * terminal. -errno.
 */
int pty_open(struct loop *l, const struct pty_hooks *hooks, struct pty **ret);
/* Drain what is left (bounded: until EOF or 200 ms without output), restore the real terminal, free. */
void pty_close(struct pty *p);

/* The descriptors for tracer_spawn: stdio[i] = slave or -1 (keep ours); ctty = slave. */
void pty_child_stdio(const struct pty *p, int stdio[3], int *ret_ctty);
/* After the spawn: our copies of the slaves are closed. */
void pty_spawned(struct pty *p);

/* The real terminal for the prompt (its own /dev/tty descriptor). */
int pty_terminal(const struct pty *p);
/*
 * A question opens: output of the tree is no longer drained, keys go to `keys` instead of the program,
 * the terminal is put into the mode it had at the start with ICANON and ECHO off (ISIG off). Keys
 * that arrived before, or within 300 ms after, go to the program once it resumes.
 */
typedef void pty_keys_fn(void *arg, const char *bytes, size_t n);
int pty_hold(struct pty *p, pty_keys_fn *keys, void *arg);
void pty_resume(struct pty *p);
bool pty_held(const struct pty *p);
/* Send SIGINT to the inner foreground group as ^C would (a "no" by Ctrl-C). */
void pty_interrupt(struct pty *p);

/* The command was stopped by a terminal signal: restore the real terminal (before we stop ourselves). */
void pty_suspend(struct pty *p);
/* We were continued: raw again where we are in the foreground, size checked. */
void pty_continue(struct pty *p);
/* SIGWINCH arrived. */
void pty_resized(struct pty *p);
