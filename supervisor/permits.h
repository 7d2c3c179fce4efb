/*
 * permits: what the kernel would say to a call if there were no sandbox: the mode, owner and ACL of
 * what it names, attributes (chattr +i), the sticky bit, mounts, the fs.protected_* settings.
 *
 * Asked as the tracee: the calling thread takes its identity on meanwhile, and is itself again when
 * a function returns (that it can't is a bug). Blocks only as path lookups do.
 */
#pragma once

#include "supervisor/identity.h"
#include "tracer/call.h"

struct permits_who {
	struct call_view view;
	const struct identity *as;   /* the tracee's */
	const struct identity *self; /* ours */
};

/*
 * 0: allowed; else -errno as the kernel says it, or our own -ENOMEM, -EMFILE, -ENFILE. *ret_note:
 * set (static) where something else than the file's own permissions refuses it.
 */
int permits_call(const struct permits_who *who, const struct call *c, const char **ret_note);
/* May it come to what the call's path i names at all? 0 or -EACCES. */
int permits_way(const struct permits_who *who, const struct call *c, unsigned i);
/* May it be run, as a program of the chain that an exec opens? */
int permits_run(const struct permits_who *who, int object, const char **ret_note);
/*
 * -errno that the call gets from the file system itself whatever is allowed: a directory that is
 * not empty, a socket that is opened. 0: nothing is known to speak against it.
 */
int permits_anyway(const struct call *c);
