#include "supervisor/verdict.h"

#include "landlock/llmodel.h"
#include "landlock/llright.h"
#include "supervisor/exec_chain.h"
#include "supervisor/permits.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- would the ruleset refuse it? ---- */

static uint64_t rights_to_open(const struct call *c, const struct path_at *at)
{
	/* By access mode. The fourth, for ioctls alone, neither reads nor writes (OPEN_FMODE). */
	static const uint64_t by_mode[] = {LLR_READ_FILE, LLR_WRITE_FILE,
					   LLR_READ_FILE | LLR_WRITE_FILE, 0};
	if (at->exists && S_ISDIR(at->st.st_mode) && (c->open_flags & O_TMPFILE) != O_TMPFILE)
		return LLR_READ_DIR;
	uint64_t rights = by_mode[c->open_flags & O_ACCMODE];
	if (!at->exists)
		rights |= LLR_MAKE_REG;
	else if ((c->open_flags & O_TRUNC) && S_ISREG(at->st.st_mode))
		rights |= LLR_TRUNCATE;
	return rights;
}

/*
 * The rights the kernel asks for a call's one path: 0 where it asks none, -1 where nothing is known
 * of such calls. *ret_object false: they are asked of the parent alone.
 */
static uint64_t rights_for(const struct verdict_input *in, bool *ret_object)
{
	const struct call *c = in->call;
	const struct path_at *at = &c->path[0].at;
	const struct lldomain domain = lldomain_of(in->ruleset);
	*ret_object = false;
	switch (c->path[0].need) {
	case CALL_NEED_OPEN:
		*ret_object = at->exists;
		return rights_to_open(c, at);
	case CALL_NEED_EXEC:
		*ret_object = true;
		return LLR_EXECUTE | LLR_READ_FILE;
	case CALL_NEED_TRUNCATE:
		*ret_object = true;
		return LLR_TRUNCATE;
	case CALL_NEED_MKDIR:
		return LLR_MAKE_DIR;
	case CALL_NEED_MKNOD:
		return llmodel_to_make(&domain, c->mode, (dev_t)c->dev);
	case CALL_NEED_SYMLINK:
		return LLR_MAKE_SYM;
	case CALL_NEED_BIND:
		return LLR_MAKE_SOCK;
	case CALL_NEED_UNLINK:
		return c->at_flags & AT_REMOVEDIR ? LLR_REMOVE_DIR : LLR_REMOVE_FILE;
	case CALL_NEED_RMDIR:
		return LLR_REMOVE_DIR;
	case CALL_NEED_NONE:
	case CALL_NEED_MOVE_FROM:
	case CALL_NEED_MOVE_TO:
	case CALL_NEED_LINK_FROM:
	case CALL_NEED_LINK_TO:
	case CALL_NEED_IOCTL:
	case CALL_NEED_META:
	case CALL_NEED_CONNECT:
	case CALL_NEED_LOOK:
	case CALL_NEED_COUNT:
		break;
	}
	return UINT64_MAX;
}

/*
 * What was reached through a descriptor or a magic link: its parent is found by its path, which was
 * verified when it was resolved.
 */
static int granted_by_descriptor(const struct lldomain *d, const struct path_at *at, uint64_t *ret)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS};
	if (!at->real || S_ISDIR(at->st.st_mode))
		return llmodel_granted(d, at->object, ret);
	char *dir AUTOFREE = strdup(at->real);
	if (!dir)
		return -ENOMEM;
	*(strrchr(dir, '/') + 1) = '\0';
	int parent AUTOCLOSE = (int)syscall(SYS_openat2, AT_FDCWD, dir, &how, sizeof how);
	return parent < 0 ? -errno : llmodel_granted_at(d, at->object, parent, ret);
}

/* Is every right there? A walk that fails is taken as "no": then the policy decides. */
static bool grants(const struct llruleset *rs, const struct path_at *at, bool object,
		   uint64_t rights)
{
	const struct lldomain domain = lldomain_of(rs);
	uint64_t got = 0;
	int err;
	if (at->parent >= 0)
		err = llmodel_granted_at(&domain, object ? at->object : -1, at->parent, &got);
	else if (at->object >= 0)
		err = granted_by_descriptor(&domain, at, &got);
	else
		return false;
	return !err && !(rights & ~got);
}

/* What the ruleset says of a rename or link: 0, -EACCES or -EXDEV. */
static int wall_of_move(const struct verdict_input *in)
{
	const struct lldomain domain = lldomain_of(in->ruleset);
	const struct call *c = in->call;
	int answer;
	struct llmodel_move m = {.old_dir = c->path[0].at.parent,
				 .old_object = c->path[0].at.object,
				 .new_dir = c->path[1].at.parent,
				 .new_object = c->path[1].at.object,
				 .flags = c->at_flags};
	if (m.old_dir < 0 || m.new_dir < 0 || m.old_object < 0)
		return -EACCES;
	int err = c->path[0].need == CALL_NEED_LINK_FROM ? llmodel_link(&domain, &m, &answer)
							 : llmodel_rename(&domain, &m, &answer);
	return err ? -EACCES : answer;
}

/* ---- exec: which of the files was it? ---- */

/*
 * The first file of the chain that is refused: 0, by the ruleset; -EACCES, by its own permissions
 * (or by *ret_note); -ENOENT: all may run. *ret: the file, where it is not the one named.
 */
static int refused_in_chain(const struct verdict_input *in, struct path_at *ret,
			    const char **ret_note)
{
	const struct path_at *at = &in->call->path[0].at;
	const struct permits_who who = {in->view, in->as, in->self};
	char next[4096];
	for (int i = 0; i < EXEC_CHAIN_MAX && at->exists; i++) {
		if (permits_run(&who, at->object, ret_note))
			return -EACCES;
		if (!grants(in->ruleset, at, true, LLR_EXECUTE | LLR_READ_FILE))
			return 0;
		if (exec_chain_next(at->object, next, sizeof next))
			break;
		struct path_at found;
		path_init(&found);
		int err = path_resolve(in->view.tid, AT_FDCWD, next, PATH_FOLLOW, &found);
		path_release(ret);
		*ret = found;
		at = ret;
		if (err)
			break;
	}
	path_release(ret);
	return -ENOENT;
}

/* ---- together ---- */

/*
 * Devices are compared between directories: on overlayfs a file can have another one than the
 * directory it is in (Documentation/filesystems/overlayfs.rst, "Inode properties").
 */
static bool crosses_mounts(const struct call *c)
{
	struct statx thing, a, b;
	const struct path_at *from = &c->path[0].at;
	int to = c->path[1].at.parent;
	int dir = from->parent >= 0 ? from->parent : from->object;
	int moved = c->path[0].need == CALL_NEED_LINK_FROM ? from->object : dir;
	if (moved < 0 || to < 0 || statx(moved, "", AT_EMPTY_PATH, STATX_MNT_ID, &thing) ||
	    statx(dir, "", AT_EMPTY_PATH, STATX_MNT_ID, &a) ||
	    statx(to, "", AT_EMPTY_PATH, STATX_MNT_ID, &b))
		return false;
	return thing.stx_mnt_id != b.stx_mnt_id || a.stx_dev_major != b.stx_dev_major ||
	       a.stx_dev_minor != b.stx_dev_minor;
}

static int wall_of(const struct verdict_input *in)
{
	if (in->call->path[1].need != CALL_NEED_NONE)
		return wall_of_move(in);
	bool object;
	uint64_t rights = rights_for(in, &object);
	return !rights || grants(in->ruleset, &in->call->path[0].at, object, rights) ? 0 : -EACCES;
}

/* Which of the files an exec opens was it? */
static void judge_exec(const struct verdict_input *in, struct verdict_result *r)
{
	int err = refused_in_chain(in, &r->refused, &r->note);
	if (err == -ENOENT)
		return;
	if (r->refused.exists)
		r->need[0].at = &r->refused;
	if (!err)
		r->verdict = VERDICT_SANDBOX;
	else if (!r->note)
		r->verdict = VERDICT_PERMISSIONS;
}

/* Landlock asks about devices alone; of other files the owner or the file system said no. */
static void judge_ioctl(const struct verdict_input *in, struct verdict_result *r)
{
	const struct path_at *at = &in->call->path[0].at;
	if (!S_ISCHR(at->st.st_mode) && !S_ISBLK(at->st.st_mode))
		r->verdict = VERDICT_PERMISSIONS;
	else if (!grants(in->ruleset, at, true, LLR_IOCTL_DEV))
		r->verdict = VERDICT_SANDBOX;
	else
		r->note = "the device's driver refused it; no path grant can help";
}

static const char *other_note(const struct call *c, bool *ret_outside)
{
	struct statfs fs;
	int fd = c->path[0].at.object;
	/* What /proc/PID shows of a process is asked like ptrace (fs/proc/base.c). */
	*ret_outside = fd >= 0 && !fstatfs(fd, &fs) && fs.f_type == PROC_SUPER_MAGIC;
	if (*ret_outside)
		return "Landlock lets nobody look into processes outside of the sandbox";
	/* Another thread may have changed the text or the names since the kernel's own look. */
	return "another kernel policy refused it, or it was called by a name that led elsewhere "
	       "then; no path grant can help";
}

/* A path that was not to be read: then nothing is known of what it named. NULL: all were. */
static const char *why_unread(const struct call *c)
{
	for (unsigned i = 0; i < CALL_PATHS; i++) {
		const struct call_path *p = &c->path[i];
		if (p->need == CALL_NEED_NONE || p->given)
			continue;
		return p->error == -EPERM
			       ? "the program lets nobody read its memory (it is not dumpable)"
			       : "the text of the path was gone before it could be read";
	}
	return NULL;
}

/*
 * What procfs shows of one process: a rule for it ends with the process, and the supervisor can't
 * open it in its place. Only a rule from further up, there from the start, can allow it.
 */
static bool is_of_one_process(const struct path_at *at)
{
	struct statfs fs;
	int fd = at->object >= 0 ? at->object : at->parent, pid;
	return at->real && sscanf(at->real, "/proc/%d/", &pid) == 1 && fd >= 0 &&
	       !fstatfs(fd, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

/* Calls that Landlock has no right for. True: judged. */
static bool judge_without_rights(const struct call *c, struct verdict_result *r)
{
	if (c->ent->group == SYS_GROUP_MOUNT && c->result == -EPERM) {
		r->note = "Landlock lets nobody mount inside; no path grant can help";
		return true;
	}
	switch ((int)c->path[0].need) {
	case CALL_NEED_LOOK:
	case CALL_NEED_META:
	case CALL_NEED_CONNECT:
		r->verdict = VERDICT_PERMISSIONS;
		return true;
	default:
		return false;
	}
}

/* The permissions allow it: was it Landlock? */
static void judge_rights(const struct verdict_input *in, struct verdict_result *r)
{
	r->anyway = permits_anyway(in->call);
	if (in->call->path[0].need == CALL_NEED_EXEC)
		judge_exec(in, r);
	else if (in->call->path[0].need == CALL_NEED_IOCTL)
		judge_ioctl(in, r);
	else if ((r->wall = wall_of(in)))
		r->verdict = VERDICT_SANDBOX;
	else if (in->call->result == -ENOENT)
		r->verdict =
			VERDICT_SANDBOX; /* supervisor/handed.h: nothing but us is in the way */
	else if (in->call->result == -EXDEV)
		r->verdict = VERDICT_CROSS_DEVICE; /* within one mount: overlayfs, btrfs */
	if (r->verdict == VERDICT_SANDBOX && is_of_one_process(&in->call->path[0].at)) {
		r->verdict = VERDICT_OTHER;
		r->of_process = true;
		r->note = "an entry of one process on /proc: only a rule for /proc itself, from "
			  "the start, can allow it";
	}
	if (r->verdict == VERDICT_SANDBOX && !r->wall)
		r->wall = -EACCES;
	if (r->verdict == VERDICT_OTHER && !r->note)
		r->note = other_note(in->call, &r->outside);
}

int verdict_of(const struct verdict_input *in, struct verdict_result *r)
{
	const struct call *c = in->call;
	const struct permits_who who = {in->view, in->as, in->self};
	*r = (struct verdict_result){.verdict = VERDICT_OTHER};
	path_init(&r->refused);
	access_needed(c, r->need);
	if (judge_without_rights(c, r))
		return 0;
	r->note = why_unread(c);
	r->hidden = r->note != NULL;
	if (r->hidden)
		return 0;
	if (c->result == -EXDEV && crosses_mounts(c)) {
		r->verdict = VERDICT_CROSS_DEVICE;
		return 0;
	}
	int err = permits_call(&who, c, &r->note);
	if (err == -ENOMEM || err == -EMFILE || err == -ENFILE)
		return err;
	/* For names Landlock is asked before the permissions are; its answer is never EPERM. */
	if (err == -EACCES || err == -EPERM || err == -EROFS || c->result == -EPERM)
		r->verdict = r->note ? VERDICT_OTHER : VERDICT_PERMISSIONS;
	else if (err)
		r->note = "what it named changed meanwhile";
	else
		judge_rights(in, r);
	return 0;
}

void verdict_release(struct verdict_result *r)
{
	path_release(&r->refused);
}
