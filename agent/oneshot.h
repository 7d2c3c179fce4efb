/*
 * oneshot: `warder agent -p`: one turn, and the exit status that says how it went.
 */
#pragma once

#include "agent/agent.h"

enum oneshot_output { ONESHOT_TEXT, ONESHOT_JSON, ONESHOT_STREAM_JSON };

/*
 * text: the model's words on stdout, tools and notes on stderr (what commands print only where
 * verbose). 0 done; 1 the turn failed; 125 nothing could be run; negative: the signal to end by.
 */
int oneshot_run(struct agent *a, const char *words, enum oneshot_output output, bool verbose);
