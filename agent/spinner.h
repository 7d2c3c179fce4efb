/*
 * spinner: one line of a terminal that says what is being waited for, while it is.
 *
 * A thread of its own draws it (no signal reaches that), so that nobody who waits has to. The line
 * is drawn where the cursor stands, which must be the beginning of an empty line; hide() leaves it
 * so. Not for dumb terminals.
 */
#pragma once

struct spinner;

/* fd stays the caller's. 0 or -errno. */
int spinner_new(int fd, struct spinner **ret);
void spinner_free(struct spinner *s);
/* From now on (a short while later, so that what is quick does not flicker). NULL is fine for both.
 */
void spinner_show(struct spinner *s, const char *words);
/* Nothing of it is on the screen when this returns. */
void spinner_hide(struct spinner *s);
