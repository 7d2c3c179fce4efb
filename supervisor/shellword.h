/*
 * shellword: words of commands that people copy into a shell (sh, bash, zsh, ksh).
 */
#pragma once

#include "tracer/buf.h"

/* One word that means exactly these bytes; $'\033' (not sh) where a terminal could not take it. */
void shellword_add(struct buf *out, const char *word);
/*
 * A word that `warder policy` reads as exactly this absolute path: with home as an unquoted ~, and
 * a \ before what a pattern would see in it. home may be NULL.
 */
void shellword_add_path(struct buf *out, const char *path, const char *home);
/* The same for a pattern (supervisor/glob.h): its wildcards stay. */
void shellword_add_glob(struct buf *out, const char *pattern, const char *home);
