/*
 * paint: a turn on a terminal, for the REPL and for `-p` as text. Everything foreign is escaped.
 */
#pragma once

#include "agent/show.h"
#include "agent/turn.h"

#include <stdbool.h>
#include <stdio.h>

/* Lines of a running command's output that are shown; the model gets more. */
#define PAINT_LINES_MAX 40
/* Lines of a change that are shown before it is made. */
#define PAINT_DIFF_MAX 80

struct paint {
	FILE *text;  /* the model's words */
	FILE *side;  /* tools, notes; may be the same */
	bool output; /* show what commands print, as it comes */
	bool color;  /* on side */
	struct show words, printed;
	unsigned lines;	  /* of the running command */
	bool line_begun;  /* on side: an indented line stands open */
	bool words_shown; /* of the message that is coming in */
};

/* The sink refers to p, which has to outlive it. */
struct turn_sink paint_sink(struct paint *p);
/* One line of ours on side; foreign bytes in it are escaped. */
void paint_line(struct paint *p, const char *mark, const char *line);
