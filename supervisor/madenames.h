/*
 * madenames: names drawn by lot that a program made for the moment, in the directories that all
 * programs share for that (/tmp, /var/tmp, /dev/shm). They do not come again, so no rule is about
 * them; a directory there that somebody else made is another matter. Names alone, no I/O.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* So many are told apart; beyond it every name there that looks drawn by lot counts as made. */
#define MADENAMES_MAX 8192

struct madenames {
	char **slot; /* owned */
	size_t len;
};

/* The path is about to be made. 0 or -ENOMEM. */
int madenames_add(struct madenames *m, const char *path);
/* The shared directory (a constant), where the path is or lies below such a name in it; else NULL.
 */
const char *madenames_dir(const struct madenames *m, const char *path);
void madenames_release(struct madenames *m);
