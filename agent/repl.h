/*
 * repl: the agent at a prompt: lines in, turns out, slash commands (slash.h).
 */
#pragma once

#include "agent/agent.h"

/*
 * Until /quit, Ctrl-D or a signal that asks us to end. 0; 1: the last turn failed and stdin was no
 * terminal; negative: the signal to end by.
 */
int repl_run(struct agent *a);
