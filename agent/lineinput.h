/*
 * lineinput: what the user types: with libedit on a capable terminal, plainly on a dumb one and
 * from a pipe. There pasted text and Alt-Enter make an entry of several lines, and Tab completes
 * words of ours and paths. The history is a file of ours, 0600.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A line longer than this ends the input (a pipe that is no text). */
#define LINEINPUT_MAX (1u << 20)

struct lineinput;

enum lineinput_result { LINEINPUT_LINE, LINEINPUT_END, LINEINPUT_INTERRUPTED };

/* history: path of the file; NULL: none. 0 or -errno. */
int lineinput_new(const char *history, struct lineinput **ret);
void lineinput_free(struct lineinput *l);
/* Why lines are read plainly on a capable terminal: libedit's absence, one line; NULL: they aren't.
 */
const char *lineinput_lacks(const struct lineinput *l);
/* Words that Tab completes at the beginning of an entry; NULL-terminated, a loan. */
void lineinput_words(struct lineinput *l, const char *const *words);
/* Is somebody typing (rather than a pipe)? */
bool lineinput_interactive(const struct lineinput *l);
/* Does an editor show what was typed before its prompt? */
bool lineinput_edits(const struct lineinput *l);
/* Blocks. *ret_line is owned, without its last newline; set for LINEINPUT_LINE only. */
enum lineinput_result lineinput_read(struct lineinput *l, const char *prompt, char **ret_line);
/* Keep an entry (which may have several lines); one that begins with a space is not kept. */
void lineinput_remember(struct lineinput *l, const char *entry);
