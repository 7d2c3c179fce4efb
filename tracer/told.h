/*
 * told: what a thing is called that no path of ours leads to: a deleted file, one in another mount
 * namespace, one whose path is longer than PATH_MAX. To be shown, never to be looked up or compared
 * with a rule: the same text may be another thing's path.
 */
#pragma once

/* Directories that are climbed for a path that the kernel does not spell out. */
#define TOLD_LEVELS_MAX 256

/*
 * The thing `object` (O_PATH; or -1: absent), or `name` in the directory `parent` (-1: not known).
 * First the kernel's own words (d_path: "/x/y (deleted)", "pipe:[1]"); where these would be too
 * long the directories are climbed and their names looked up. 0 with *ret (owned) set, or left
 * alone where nothing is known; -ENOMEM. Reads directories: blocks as they do.
 */
int told_of(int object, int parent, const char *name, char **ret);
