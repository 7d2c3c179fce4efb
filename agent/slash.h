/*
 * slash: the REPL's commands (slash.def).
 */
#pragma once

#include "agent/agent.h"

#include <stdbool.h>

/* "/help", "/helpp x": one word of letters after the slash; "/usr/bin/x is slow" is none. */
bool slash_is_command(const char *line);
/* "/help", ...: all of them, NULL-terminated; static. */
const char *const *slash_words(void);
/* Run one, its answer on stdout; an unknown one is answered with the list. False: the REPL ends. */
bool slash_run(struct agent *a, const char *line);
