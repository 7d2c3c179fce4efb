/*
 * status: the lines of /proc/PID/status.
 *
 * No process can forge one: in the first, its name, the kernel escapes newlines (fs/proc/array.c,
 * task_state), and a line is found by its beginning alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define STATUS_MAX 16384 /* bytes; only the line of the groups could make it longer */

struct status {
	char text[STATUS_MAX];
	bool cut; /* it was longer */
};

/* The file below a directory (AT_FDCWD: absolute). 0, -ESRCH (no such process), -errno. */
int status_read(int dir, const char *file, struct status *ret);
/* Of this process or thread. The same. */
int status_of(pid_t tid, struct status *ret);
/* Of the calling thread. The same. */
int status_self(struct status *ret);

/* What is behind "KEY:" and white space, a loan that goes on beyond its newline; NULL: no such. */
const char *status_line(const struct status *s, const char *key);
/* A decimal number; false: no such line. */
bool status_number(const struct status *s, const char *key, int *ret);
/* A hexadecimal mask; 0 where there is no such line. */
uint64_t status_mask(const struct status *s, const char *key);
