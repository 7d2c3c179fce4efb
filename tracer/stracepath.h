/*
 * stracepath: names of strace's text made absolute, by what the trace itself tells and nothing
 * else: no file of this machine is looked at.
 *
 * A symlink is followed where the trace told of it (readlink, a call that made it, -y); where it
 * told that there is one but not where it leads, the answer is unsure. A name of which nothing was
 * told is taken to be none. /proc/self, /proc/PID/fd/N and the like, and /dev/fd and /dev/stdin,
 * are what they are on every Linux.
 */
#pragma once

#include "tracer/stracenames.h"
#include "tracer/straceproc.h"

/* Why an event is not certain: sentences, static. */
struct strace_unsure {
	const char *why[TRACE_UNSURE_MAX];
	unsigned len;
};

/* Once each; what is too much is left out. */
void strace_unsure_add(struct strace_unsure *u, const char *why);

struct stracepath_view {
	struct stracenames *names;
	const struct straceprocs *procs;
	const struct straceproc *p; /* whose name it is */
};

/*
 * `given` from `base` (absolute; not looked at where given starts with a slash), to *out (emptied
 * first). follow: through a last symlink, too. 0; -ENOENT: it can't be told (why is in *u);
 * -ENAMETOOLONG, -ELOOP, -ENOMEM.
 */
struct stracepath_name {
	const char *base;
	const char *given;
	bool follow;
	bool scoped; /* the base is the root (RESOLVE_IN_ROOT) */
};
int stracepath_walk(const struct stracepath_view *v, const struct stracepath_name *name,
		    struct buf *out, struct strace_unsure *u);
/* The real path has been told by strace (-y): what led there is remembered. */
void stracepath_learn(struct stracenames *names, const char *walked, const char *real);
