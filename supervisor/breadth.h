/*
 * breadth: directories too wide to be opened as a whole for one thing below them. Text alone, no
 * I/O.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* path is dir or below it. */
bool breadth_is_below(const char *path, const char *dir);
/*
 * Never offered with all that is below: "/", its direct children, the home directory and its
 * ancestors, the children of /home. home may be NULL. path need not end at n.
 */
bool breadth_is_closed(const char *path, size_t n, const char *home);
/*
 * Never suggested unasked either: what many programs share (~/.config, ~/.cache, /usr/share,
 * /var/lib, /dev/shm) or keep secrets in (~/.ssh, ~/.gnupg). Reads the XDG base directories'
 * variables: where they lead is as wide as where they usually do.
 */
bool breadth_is_wide(const char *path, size_t n, const char *home);
/* Names that mean something else the next time: /proc, /dev/fd, /dev/pts. */
bool breadth_is_volatile(const char *path);
