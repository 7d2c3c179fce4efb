/*
 * prompt: the question on a terminal. A front of the ask queue.
 *
 * Works on the real terminal: through a pty (supervisor/pty.h) where there is one, else on /dev/tty
 * itself (opened for the question, put into non-canonical mode, put back). What it looks like is
 * supervisor/prompt_paint.h; its keys are supervisor/prompt_keys.def. Pasted text answers nothing,
 * and no key but Ctrl-C does before nothing was typed for a moment: until then they are the
 * program's (without a pty: nobody's), each lets the moment begin anew, and the question's last
 * line says so where its keys will stand.
 */
#pragma once

#include "supervisor/ask.h"
#include "supervisor/pty.h"

struct prompt;

struct prompt_options {
	const char *home; /* shown as ~; a loan until prompt_free() */
	bool color;
	bool dumb;	/* prompt_is_dumb(): nothing is painted over, no escape sequences */
	bool own_lines; /* all on this terminal is ours: the cursor is where a line starts */
	/* Ctrl-C: before the "no", tell the command (NULL: pty_interrupt where there is a pty) */
	void (*interrupt)(void *arg);
	void *arg;
};

/* Says TERM of env that the terminal knows no escape sequences? */
bool prompt_is_dumb(char *const *env);
/*
 * p may be NULL (no inner terminal): /dev/tty is opened by itself. -ENXIO: no terminal. All of l,
 * a and p must outlive it.
 */
int prompt_new(struct loop *l, struct ask *a, struct pty *p, const struct prompt_options *o,
	       struct prompt **ret);
/*
 * A line of another's is about to be written to the terminal, or it has another size: the question
 * that stands there goes, and comes back (below the line) on the loop's next turn.
 */
void prompt_make_way(struct prompt *p);
/* Of the terminal, for such a line. */
size_t prompt_columns(const struct prompt *p);
/* Open questions stay in the queue. */
void prompt_free(struct prompt *p);
