/*
 * paint: a turn on a terminal, for the REPL and for `-p` as text. Everything foreign is escaped.
 *
 * On a terminal that knows escape sequences the model's text is Markdown, shown block by block
 * (mdstream.h), a call is one line, and a spinner says what is waited for. Anywhere else the text
 * is passed on as it is.
 */
#pragma once

#include "agent/details.h"
#include "agent/mdstream.h"
#include "agent/show.h"
#include "agent/spinner.h"
#include "agent/turn.h"

#include <stdbool.h>
#include <stdio.h>

/* Lines of a running command's output that are shown; the model gets more, /details has them. */
#define PAINT_LINES_MAX 20
/* Lines of a change that are shown before it is made. */
#define PAINT_DIFF_MAX 80

struct paint {
	FILE *text;		 /* the model's words */
	FILE *side;		 /* tools, notes; may be the same */
	bool output;		 /* show what commands print, as it comes */
	bool color;		 /* escape sequences for colours */
	bool markdown;		 /* text is a capable terminal */
	struct details *details; /* loan; NULL: calls are not numbered */
	struct spinner *spinner; /* loan; NULL: none */
	const char *waiting;	 /* for whom, while the provider is asked; loan */

	struct mdstream md;
	struct show words, printed;
	char *call;	  /* owned: what runs, for the spinner; NULL: the provider is waited for */
	bool call_shown;  /* its line stands on the screen */
	size_t lines;	  /* of the running command that came */
	bool line_begun;  /* on side: an indented line stands open */
	bool words_shown; /* of the message that is coming in */
	bool asking;	  /* a question is open */
	enum {
		PAINT_NOTHING,
		PAINT_WORDS,
		PAINT_CALL
	} last; /* what was shown last, in this turn */
};

/* The sink refers to p, which has to outlive it. */
struct turn_sink paint_sink(struct paint *p);
/* A turn begins, and ends: in between something is waited for. */
void paint_begin(struct paint *p);
void paint_end(struct paint *p);
/* One line of ours on side; foreign bytes in it are escaped. */
void paint_line(struct paint *p, const char *mark, const char *line);
