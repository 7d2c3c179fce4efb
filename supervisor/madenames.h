/*
 * madenames: names that a program made up for the moment. They do not come again, so no rule is
 * about them: questions, hints and learn ask here. Names alone, no I/O.
 *
 * A struct madenames keeps those of the directories that all programs share for that (/tmp,
 * /var/tmp, /dev/shm): a directory there that somebody else made is another matter.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* So many are told apart; beyond it every name there that looks drawn by lot counts as made. */
#define MADENAMES_MAX 8192

struct madenames {
	char **slot; /* owned */
	size_t len;
};

/* Does what pid (0: not known) makes there look made up for the moment? A guess. */
bool madenames_is(const char *path, pid_t pid);
/* Directly in one of the directories that all programs share. */
bool madenames_is_shared(const char *path);
/* The path is about to be made. 0 or -ENOMEM. */
int madenames_add(struct madenames *m, const char *path, pid_t pid);
/* The shared directory (a constant), where the path is or lies below such a name in it; else NULL.
 */
const char *madenames_dir(const struct madenames *m, const char *path);
void madenames_release(struct madenames *m);
