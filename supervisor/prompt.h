/*
 * prompt: the question on a terminal: keys and paint. A front of the ask queue.
 *
 * Works on the real terminal: through a pty (supervisor/pty.h) where there is one, else on /dev/tty itself
 * (opened for the question, put into non-canonical mode, put back).
 */
#pragma once

#include "supervisor/ask.h"
#include "supervisor/pty.h"

struct prompt;

struct prompt_options {
	const char *home;   /* shown as ~ */
	bool color;
	/* Ctrl-C: after the "no", tell the command (NULL: pty_interrupt where there is a pty) */
	void (*interrupt)(void *arg);
	void *arg;
};

/* p may be NULL (no inner terminal): /dev/tty is opened by itself. -ENXIO: no terminal. */
int prompt_new(struct loop *l, struct ask *a, struct pty *p, const struct prompt_options *o,
	       struct prompt **ret);
void prompt_free(struct prompt *p);
/* Paint one question into a buffer (80 columns or `width`), as the terminal would show it: for tests and docs. */
void prompt_paint(struct buf *out, const struct question *q, const struct prompt_options *o,
		  size_t width, size_t more);
