/*
 * hush: keys that are typed while something works are not shown; they stay for the next prompt,
 * whose line editor shows them.
 *
 * The terminal is stdin. Ctrl-C, Ctrl-Z and Ctrl-\ stay signals: whoever stops or ends us by one of
 * the last two gets the terminal as it was (a handler of ours puts it back; one state a process).
 * Where we are not in the terminal's foreground nothing is changed. Neither blocks nor fails.
 */
#pragma once

#include <stdbool.h>

void hush_begin(void);
/* Without a beginning: nothing, and false. */
bool hush_end(void);
