#include "supervisor/identity.h"

#include "tracer/status.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void identity_copy(struct identity *to, const struct identity *from)
{
	memcpy(to, from,
	       offsetof(struct identity, groups) + from->ngroups * sizeof from->groups[0]);
}

static int parse_groups(const char *text, struct identity *id)
{
	id->ngroups = 0;
	while (text && *text && *text != '\n') {
		char *end;
		unsigned long g = strtoul(text, &end, 10);
		if (end == text)
			break;
		if (id->ngroups == IDENTITY_GROUPS_MAX)
			return -E2BIG;
		id->groups[id->ngroups++] = (gid_t)g;
		text = end;
		while (*text == ' ')
			text++;
	}
	return 0;
}

/* The four ids of a line: real, effective, saved, of the file system. */
static bool parse_ids(const char *text, unsigned ret[4])
{
	return text && sscanf(text, "%u %u %u %u", &ret[0], &ret[1], &ret[2], &ret[3]) == 4;
}

static int parse_status(const struct status *s, struct identity *id)
{
	unsigned uid[4], gid[4], mask;
	uint64_t caps;
	const char *umask_text = status_line(s, "Umask"), *caps_text = status_line(s, "CapEff");
	if (!parse_ids(status_line(s, "Uid"), uid) || !parse_ids(status_line(s, "Gid"), gid) ||
	    !umask_text || sscanf(umask_text, "%o", &mask) != 1 || !caps_text ||
	    sscanf(caps_text, "%" SCNx64, &caps) != 1)
		return -ESRCH; /* a zombie's status has no Umask line */
	id->real = (struct identity_ids){uid[0], gid[0]};
	id->effective = (struct identity_ids){uid[1], gid[1]};
	id->saved = (struct identity_ids){uid[2], gid[2]};
	id->fsuid = uid[3];
	id->fsgid = gid[3];
	id->umask = mask;
	id->caps = caps;
	return parse_groups(status_line(s, "Groups"), id);
}

/* Capabilities count only in the namespace that gave them. */
static bool in_our_user_namespace(const char *proc)
{
	char file[64];
	struct stat ours, theirs;
	snprintf(file, sizeof file, "%s/ns/user", proc);
	if (stat("/proc/thread-self/ns/user", &ours))
		return false;
	/* A non-dumpable tracee's link can't be read; then nothing is assumed in its favour. */
	return !stat(file, &theirs) && ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

int identity_told(const struct status *s, struct identity *ret)
{
	struct identity id;
	int err = s->cut ? -E2BIG : parse_status(s, &id);
	if (!err)
		identity_copy(ret, &id);
	return err;
}

int identity_of(pid_t tid, struct identity *ret)
{
	char proc[32];
	struct status s;
	int err = status_of(tid, &s);
	if (!err)
		err = identity_told(&s, ret);
	if (err)
		return err;
	snprintf(proc, sizeof proc, "/proc/%d", tid);
	if (ret->caps && !in_our_user_namespace(proc))
		ret->caps = 0;
	return 0;
}

int identity_self(struct identity *ret)
{
	struct status s;
	int err = status_self(&s);
	return err ? err : identity_told(&s, ret);
}

static bool same_groups(const struct identity *a, const struct identity *b)
{
	return a->ngroups == b->ngroups &&
	       !memcmp(a->groups, b->groups, a->ngroups * sizeof a->groups[0]);
}

bool identity_same(const struct identity *a, const struct identity *b)
{
	return a->fsuid == b->fsuid && a->fsgid == b->fsgid && a->caps == b->caps &&
	       same_groups(a, b);
}

#define BIT(cap) (1ull << (cap))

/* CAP_DAC_READ_SEARCH gives nothing to who has CAP_DAC_OVERRIDE. */
static uint64_t caps_for_files(const struct identity *id)
{
	uint64_t mask = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) |
			BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_LINUX_IMMUTABLE) |
			BIT(CAP_SETFCAP);
	if (id->caps & BIT(CAP_DAC_OVERRIDE))
		mask &= ~BIT(CAP_DAC_READ_SEARCH);
	return id->caps & mask;
}

bool identity_same_to_files(const struct identity *a, const struct identity *b)
{
	return a->fsuid == b->fsuid && a->fsgid == b->fsgid &&
	       caps_for_files(a) == caps_for_files(b) && same_groups(a, b);
}

static int set_effective(uint64_t want, bool all)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	if (syscall(SYS_capget, &head, data))
		return -errno;
	for (int i = 0; i < 2; i++) {
		uint32_t half = all ? UINT32_MAX : (uint32_t)(want >> (32 * i));
		data[i].effective = data[i].permitted & half;
	}
	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

static bool has_groups(const struct identity *id)
{
	gid_t now[IDENTITY_GROUPS_MAX];
	long n = syscall(SYS_getgroups, IDENTITY_GROUPS_MAX, now);
	return n >= 0 && (size_t)n == id->ngroups &&
	       !memcmp(now, id->groups, id->ngroups * sizeof now[0]);
}

int identity_enter(const struct identity *id)
{
	/* Everything we may have, to be able to change; exactly the tracee's at the end. */
	int err = set_effective(0, true);
	if (err)
		return err;
	/* By system calls alone: this must work where no descriptor is left. */
	if (!has_groups(id) && syscall(SYS_setgroups, id->ngroups, id->groups))
		return -errno;
	/* setfsuid and setfsgid report by what a second, invalid call says. */
	syscall(SYS_setfsgid, id->fsgid);
	if ((gid_t)syscall(SYS_setfsgid, -1) != id->fsgid)
		return -EPERM;
	syscall(SYS_setfsuid, id->fsuid);
	if ((uid_t)syscall(SYS_setfsuid, -1) != id->fsuid)
		return -EPERM;
	return set_effective(id->caps, false);
}

int identity_show(const struct identity *id, struct identity_ids *before)
{
	struct identity_ids now = {(uid_t)syscall(SYS_geteuid), (gid_t)syscall(SYS_getegid)};
	*before = now;
	if (now.uid == id->effective.uid && now.gid == id->effective.gid)
		return 0;
	int err = set_effective(0, true);
	if (err)
		return err;
	if (syscall(SYS_setresgid, -1, id->effective.gid, -1))
		return -errno;
	if (syscall(SYS_setresuid, -1, id->effective.uid, -1)) {
		err = -errno;
		BUG(syscall(SYS_setresgid, -1, now.gid, -1));
		return err;
	}
	return identity_enter(id); /* the change has moved capabilities */
}

void identity_unshow(const struct identity_ids *before)
{
	uid_t uid = (uid_t)syscall(SYS_geteuid);
	gid_t gid = (gid_t)syscall(SYS_getegid);
	if (uid == before->uid && gid == before->gid)
		return;
	/* The saved ids are these, so no capability is needed. */
	BUG(syscall(SYS_setresuid, -1, before->uid, -1) ||
	    syscall(SYS_setresgid, -1, before->gid, -1));
}

bool identity_may_claim(const struct identity *id, const struct identity_ids *claim)
{
	bool user = claim->uid == id->real.uid || claim->uid == id->effective.uid ||
		    claim->uid == id->saved.uid || (id->caps & BIT(CAP_SETUID));
	bool group = claim->gid == id->real.gid || claim->gid == id->effective.gid ||
		     claim->gid == id->saved.gid || (id->caps & BIT(CAP_SETGID));
	return user && group;
}

int identity_claim(const struct identity *id)
{
	return set_effective(id->caps | BIT(CAP_SETUID) | BIT(CAP_SETGID), false);
}
