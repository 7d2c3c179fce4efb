/*
 * audit: one JSON line a decision, appended to ${state}/audit.jsonl (0600) by a descriptor opened
 * before any tracee exists. A line is written whole by one write(2) with O_APPEND, so runs that
 * write at the same time never mix theirs.
 */
#pragma once

#include "supervisor/denial.h"

struct audit {
	int fd; /* owned; -1: closed, and decisions go nowhere */
	char run[33];
	const char *label; /* a loan that outlives the audit; may be NULL */
};

/*
 * Makes the file where it is missing. state_dir must exist. -errno; -ELOOP and -EINVAL: the name is
 * a symlink or no regular file; -EPERM: it is somebody else's.
 */
int audit_open(const char *state_dir, const char *run, const char *label, struct audit *ret);
void audit_close(struct audit *a);
/*
 * 0, or -errno (a full disk is reported once by the caller, and loses nothing else: a line that was
 * torn is ended before the next one). SIGXFSZ must be ignored by the program.
 */
int audit_decision(const struct audit *a, const struct denial *d);
