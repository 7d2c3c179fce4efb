/*
 * identity: as whom the broker acts: the tracee's file-system ids, groups, umask and capabilities.
 *
 * A tracee may have become somebody else than the supervisor (a root supervisor's tree that called
 * setuid). Acting with our own rights for it would make us its deputy, so every act and every
 * permission check is done as the tracee. Ids and capabilities belong to a thread on Linux
 * (credentials(7), the C library's wrappers change all threads: raw calls are used here), so other
 * threads notice nothing.
 */
#pragma once

#include "tracer/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define IDENTITY_GROUPS_MAX 1024

struct identity_ids {
	uid_t uid;
	gid_t gid;
};

struct identity {
	uid_t fsuid;
	gid_t fsgid;
	struct identity_ids real, effective, saved;
	mode_t umask;
	uint64_t caps; /* effective; 0 where the tracee lives in a user namespace of its own */
	size_t ngroups;
	gid_t groups[IDENTITY_GROUPS_MAX]; /* last: most have few of them (identity_copy()) */
};

/* Of the groups those that are there. */
void identity_copy(struct identity *to, const struct identity *from);

/* Of a stopped thread, from /proc/TID/status. 0, -ESRCH, -E2BIG (more groups than the limit). */
int identity_of(pid_t tid, struct identity *ret);
/* Our own calling thread's. */
int identity_self(struct identity *ret);
/* The same from what status_self() has read. */
int identity_told(const struct status *s, struct identity *ret);
/*
 * The calling thread, which has entered `id`, also shows it to who asks by SO_PEERCRED, which tells
 * the effective ids: 0 and in *before what is put back by identity_unshow(), or -errno. The real
 * and saved ids stay ours, so that the tracee's signals do not reach the thread: what tells the
 * real ones (SCM_CREDENTIALS) is to be told them, see identity_may_claim() and identity_claim().
 */
int identity_show(const struct identity *id, struct identity_ids *before);
void identity_unshow(const struct identity_ids *before);
/*
 * May it say in SCM_CREDENTIALS that it is this user and group (in our user namespace)? As the
 * kernel decides (net/core/scm.c, scm_check_creds()). Whom another user namespace gave capabilities
 * may name its own ids alone.
 */
bool identity_may_claim(const struct identity *id, const struct identity_ids *claim);
/*
 * The calling thread, which has entered `id`, may from now on name any ids in SCM_CREDENTIALS, as
 * far as we may; until it enters an identity again. 0 or -errno.
 */
int identity_claim(const struct identity *id);
/* Same rights to files? (The umask does not count.) */
bool identity_same(const struct identity *a, const struct identity *b);
/*
 * The same rights to names, modes, owners and times? Capabilities that have no say in these (of the
 * kernel's own, of devices, of other processes) may differ, as root's do from its tree's.
 */
bool identity_same_to_files(const struct identity *a, const struct identity *b);
/*
 * The calling thread takes the identity on for file access (not the umask). -EPERM where we may
 * not. It may be taken again and again: the permitted capabilities are kept.
 */
int identity_enter(const struct identity *id);
