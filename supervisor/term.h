/*
 * term: the terminal a question is asked on: the real one behind an inner terminal
 * (supervisor/pty.h), or /dev/tty by itself where the command has none.
 */
#pragma once

#include "supervisor/pty.h"

#include <stddef.h>

struct term;

/* p may be NULL; it and `l` must outlive the term. -ENXIO: there is no terminal. Nothing is changed
 * yet. */
int term_new(struct loop *l, struct pty *p, struct term **ret);
/* Put back, closed. NULL is fine. */
void term_free(struct term *t);
/*
 * As pty_hold(). By itself: keys that are not taken are dropped (nobody else could get them), and
 * in the background the keys wait until we are in the foreground.
 */
int term_hold(struct term *t, pty_keys_fn *keys, void *arg);
void term_resume(struct term *t);
void term_write(struct term *t, const char *bytes, size_t n);
/* 80x24 where the terminal does not know. */
void term_size(const struct term *t, size_t *ret_columns, size_t *ret_rows);
/* Held, and in the foreground: a key that is pressed now comes here. */
bool term_hears(const struct term *t);
/* Some have come that were not read yet. */
bool term_has_keys(const struct term *t);
/* Nobody can say in which column the cursor stands. */
bool term_column_unknown(const struct term *t);
