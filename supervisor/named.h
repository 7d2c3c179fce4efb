/*
 * named: what runs of one name share (--session NAME): the answers given, as policy lines, and the
 * private temporary directory; below the state directory, in named/NAME, until `warder session
 * end`.
 *
 * Every run that uses it holds a shared lock; who ends it needs the whole one. The tree can't reach
 * any of it: the state directory is closed to it.
 */
#pragma once

#include "supervisor/policyfile.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#define NAMED_DIRECTORY "named"
#define NAMED_NAME_MAX	64

struct named {
	char *dir;     /* owned */
	char *answers; /* owned: the policy lines; there may be no such file yet */
	int lock;      /* shared; -1: none */
};

/* Letters, digits, ".", "_" and "-", at most NAMED_NAME_MAX, and no "." at the beginning. */
bool named_is_name(const char *name);
/*
 * The session of this name, begun where there is none. Blocks while another process begins or ends
 * it. 0, or -errno with a sentence.
 */
int named_open(const char *state_dir, const char *name, struct named *ret,
	       struct policy_error *ret_error);
void named_close(struct named *n);
/*
 * Its temporary directory (owned), made in env's TMPDIR where there is none or what is there is not
 * ours. Its mode is 0700 again; *ret_mode is what a command had made of it. 0 or -errno.
 */
int named_tmpdir(const struct named *n, char *const *env, char **ret, mode_t *ret_mode);

struct named_info {
	const char *name; /* a loan */
	struct timespec begun;
	size_t answers;
	bool in_use;
	const char *tmpdir; /* a loan, or NULL */
};

typedef int named_fn(void *arg, const struct named_info *info);

/* Each of them, in the order of their names; what fn returned if not 0. 0 or -errno. */
int named_each(const char *state_dir, named_fn *fn, void *arg);
/* Its files and its temporary directory are removed. -ENOENT; -EBUSY: a run uses it; -errno. */
int named_end(const char *state_dir, const char *name);
