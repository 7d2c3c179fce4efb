#include "supervisor/verdict.h"

#include "landlock/llmodel.h"
#include "landlock/llright.h"
#include "supervisor/exec_chain.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* linux/capability.h */
#define CAP_BIT_FOWNER 3

/* ---- would the file's own permissions allow it? As the tracee. ---- */

/* 0, or -errno as access(2): by descriptor, with the effective ids of the calling thread. */
static int access_fd(int fd, int mode)
{
	if (!syscall(SYS_faccessat2, fd, "", mode, AT_EMPTY_PATH | AT_EACCESS))
		return 0;
	return -errno;
}

/* Every directory from here to the root lets the calling thread pass. */
static int search_upward(int dir_fd)
{
	struct stat here, up;
	int fd AUTOCLOSE = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0 || fstat(fd, &here))
		return -errno;
	for (;;) {
		int err = access_fd(fd, X_OK);
		if (err)
			return err;
		int above AUTOCLOSE = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (above < 0 || fstat(above, &up))
			return -errno;
		if (up.st_dev == here.st_dev && up.st_ino == here.st_ino)
			return 0;
		here = up;
		int old = fd;
		fd = TAKE_FD(above);
		close(old);
	}
}

static int read_sysctl(const char *file)
{
	char text[16] = "";
	int fd AUTOCLOSE = open(file, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, text, sizeof text - 1) > 0 ? atoi(text) : 0;
}

/*
 * O_CREAT on an existing file in a sticky directory that others may write to (fs/namei.c,
 * may_create_in_sticky): asked for before Landlock, with EACCES too.
 */
static bool protected_in_sticky(const struct call *c, const struct path_at *at,
				const struct identity *as)
{
	struct stat dir;
	if (!(c->open_flags & O_CREAT) || at->parent < 0 || fstat(at->parent, &dir) ||
	    !(dir.st_mode & S_ISVTX) || at->st.st_uid == dir.st_uid || at->st.st_uid == as->fsuid)
		return false;
	int level = 0;
	if (S_ISREG(at->st.st_mode))
		level = read_sysctl("/proc/sys/fs/protected_regular");
	else if (S_ISFIFO(at->st.st_mode))
		level = read_sysctl("/proc/sys/fs/protected_fifos");
	return level && ((dir.st_mode & S_IWOTH) || ((dir.st_mode & S_IWGRP) && level >= 2));
}

static int may_open(const struct call *c, const struct path_at *at, const struct identity *as)
{
	if (!at->exists)
		return at->parent < 0 ? -ENOENT : access_fd(at->parent, W_OK | X_OK);
	if (protected_in_sticky(c, at, as))
		return -EACCES;
	int mode = 0;
	switch (c->open_flags & O_ACCMODE) {
	case O_RDONLY:
		mode = R_OK;
		break;
	case O_WRONLY:
		mode = W_OK;
		break;
	default:
		mode = R_OK | W_OK;
	}
	if (c->open_flags & O_TRUNC)
		mode |= W_OK;
	if ((c->open_flags & O_TMPFILE) == O_TMPFILE)
		mode = W_OK | X_OK;
	return access_fd(at->object, mode);
}

/* A name may be taken out of this directory: write and search, and the sticky bit's rule. */
static int may_remove(const struct path_at *at, const struct identity *as)
{
	struct stat dir;
	if (!at->exists || at->parent < 0)
		return -ENOENT;
	int err = access_fd(at->parent, W_OK | X_OK);
	if (err)
		return err;
	if (fstat(at->parent, &dir))
		return -errno;
	bool fowner = as->caps >> CAP_BIT_FOWNER & 1;
	if ((dir.st_mode & S_ISVTX) && !fowner && as->fsuid != dir.st_uid &&
	    as->fsuid != at->st.st_uid)
		return -EPERM;
	return 0;
}

static int may_make(const struct path_at *at)
{
	return at->parent < 0 ? -ENOENT : access_fd(at->parent, W_OK | X_OK);
}

static int may(const struct call *c, unsigned i, const struct identity *as)
{
	const struct path_at *at = &c->path[i].at;
	switch (c->path[i].need) {
	case CALL_NEED_OPEN:
		return may_open(c, at, as);
	case CALL_NEED_EXEC:
		return at->exists ? access_fd(at->object, X_OK) : -ENOENT;
	case CALL_NEED_TRUNCATE:
		return at->exists ? access_fd(at->object, W_OK) : -ENOENT;
	case CALL_NEED_UNLINK:
	case CALL_NEED_RMDIR:
	case CALL_NEED_MOVE_FROM:
		return may_remove(at, as);
	case CALL_NEED_MOVE_TO:
		return at->exists ? may_remove(at, as) : may_make(at);
	case CALL_NEED_MKDIR:
	case CALL_NEED_MKNOD:
	case CALL_NEED_SYMLINK:
	case CALL_NEED_BIND:
	case CALL_NEED_LINK_TO:
		return may_make(at);
	case CALL_NEED_LINK_FROM:
		return S_ISDIR(at->st.st_mode) ? -EPERM : 0; /* nobody may */
	case CALL_NEED_NONE:
	case CALL_NEED_IOCTL:
	case CALL_NEED_META:
	case CALL_NEED_CONNECT:
	case CALL_NEED_LOOK:
	case CALL_NEED_COUNT:
		break;
	}
	return 0;
}

static int permissions_here(const struct verdict_input *in, bool walk)
{
	for (unsigned i = 0; i < CALL_PATHS; i++) {
		const struct call_path *p = &in->call->path[i];
		if (p->need == CALL_NEED_NONE)
			continue;
		if (p->error)
			return p->error;
		int err = walk && p->at.parent >= 0 ? search_upward(p->at.parent) : 0;
		if (!err)
			err = may(in->call, i, in->as);
		if (err)
			return err;
	}
	return 0;
}

/* 0: the permissions allow it; else what the kernel would say without any sandbox. */
static int permissions(const struct verdict_input *in)
{
	if (identity_same(in->as, in->self))
		return permissions_here(in, false);
	int err = identity_enter(in->as);
	if (!err)
		err = permissions_here(in, true);
	/* Staying somebody else would make every later act wrong. */
	BUG(identity_enter(in->self) != 0);
	return err;
}

/* ---- would the ruleset refuse it? ---- */

static uint64_t rights_to_open(const struct call *c, const struct path_at *at)
{
	uint64_t rights = 0;
	if (at->exists && S_ISDIR(at->st.st_mode) && (c->open_flags & O_TMPFILE) != O_TMPFILE)
		return LLR_READ_DIR;
	if ((c->open_flags & O_ACCMODE) != O_WRONLY)
		rights |= LLR_READ_FILE;
	if ((c->open_flags & O_ACCMODE) != O_RDONLY)
		rights |= LLR_WRITE_FILE;
	if (!at->exists)
		rights |= LLR_MAKE_REG;
	else if ((c->open_flags & O_TRUNC) && S_ISREG(at->st.st_mode))
		rights |= LLR_TRUNCATE;
	return rights;
}

/* The rights the kernel asks for path i; *ret_object false: they are asked of the parent alone. */
static uint64_t rights_for(const struct call *c, unsigned i, bool *ret_object)
{
	const struct path_at *at = &c->path[i].at;
	*ret_object = false;
	switch (c->path[i].need) {
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
		return llright_to_make(c->mode);
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
	return 0;
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
		err = llmodel_granted(&domain, at->object, &got);
	else
		return false;
	return !err && !(rights & ~got);
}

static bool move_granted(const struct verdict_input *in)
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
		return false;
	int err = c->path[0].need == CALL_NEED_LINK_FROM ? llmodel_link(&domain, &m, &answer)
							 : llmodel_rename(&domain, &m, &answer);
	return !err && answer == 0;
}

/* ---- exec: which of the files was it? ---- */

static bool may_run(const struct verdict_input *in, int object)
{
	if (identity_same(in->as, in->self))
		return !access_fd(object, X_OK);
	int err = identity_enter(in->as);
	if (!err)
		err = access_fd(object, X_OK);
	BUG(identity_enter(in->self) != 0);
	return !err;
}

/*
 * The first file of the chain that is refused: 0, by the ruleset; -EACCES, by its own permissions;
 * -ENOENT: all may run.
 */
static int refused_in_chain(const struct verdict_input *in, struct path_at *ret)
{
	const struct path_at *at = &in->call->path[0].at;
	struct path_at here;
	char next[4096];
	path_init(&here);
	int err = -ENOENT;
	for (int i = 0; i < EXEC_CHAIN_MAX; i++) {
		if (!at->exists)
			break;
		if (!may_run(in, at->object)) {
			err = -EACCES;
			break;
		}
		if (!grants(in->ruleset, at, true, LLR_EXECUTE | LLR_READ_FILE)) {
			err = 0;
			break;
		}
		if (exec_chain_next(at->object, next, sizeof next))
			break;
		struct path_at found;
		path_init(&found);
		int e = path_resolve(in->view.tid, in->view.tgid, AT_FDCWD, next, PATH_FOLLOW,
				     &found);
		path_release(&here);
		here = found;
		at = &here;
		if (e)
			break;
	}
	if (err != -ENOENT && at == &here) {
		*ret = here;
		return err;
	}
	path_release(&here);
	return err;
}

/* ---- together ---- */

static bool crosses_mounts(const struct call *c)
{
	struct statx a, b;
	int from = c->path[0].need == CALL_NEED_LINK_FROM ? c->path[0].at.object
							  : c->path[0].at.parent;
	int to = c->path[1].at.parent;
	if (from < 0 || to < 0 || statx(from, "", AT_EMPTY_PATH, STATX_MNT_ID, &a) ||
	    statx(to, "", AT_EMPTY_PATH, STATX_MNT_ID, &b))
		return false;
	return a.stx_mnt_id != b.stx_mnt_id || a.stx_dev_major != b.stx_dev_major ||
	       a.stx_dev_minor != b.stx_dev_minor;
}

static const char *mount_refuses(const struct call *c)
{
	struct statvfs fs;
	if (c->path[0].at.object < 0 || fstatvfs(c->path[0].at.object, &fs))
		return NULL;
	if (c->path[0].need == CALL_NEED_EXEC && (fs.f_flag & ST_NOEXEC))
		return "the file system is mounted noexec";
	mode_t type = c->path[0].at.st.st_mode & S_IFMT;
	if (c->path[0].need == CALL_NEED_OPEN && (type == S_IFCHR || type == S_IFBLK) &&
	    (fs.f_flag & ST_NODEV))
		return "the file system is mounted nodev";
	return NULL;
}

static bool holds_names(int dir)
{
	struct dirent *e;
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	bool some = false;
	if (!d && fd >= 0)
		close(fd);
	while (d && !some && (e = readdir(d)))
		some = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (d)
		closedir(d);
	return some;
}

/* Landlock is asked before the file system says that this can't be removed, or not like that. */
static int fails_anyway(const struct call *c)
{
	const struct path_at *at = &c->path[0].at;
	enum call_need need = c->path[0].need;
	if (!at->exists || (need != CALL_NEED_UNLINK && need != CALL_NEED_RMDIR))
		return 0;
	bool as_dir = need == CALL_NEED_RMDIR || (c->at_flags & AT_REMOVEDIR);
	if (as_dir != S_ISDIR(at->st.st_mode))
		return as_dir ? -ENOTDIR : -EISDIR;
	return as_dir && holds_names(at->object) ? -ENOTEMPTY : 0;
}

static bool ruleset_grants_all(const struct verdict_input *in)
{
	if (in->call->path[1].need != CALL_NEED_NONE)
		return move_granted(in);
	bool object;
	uint64_t rights = rights_for(in->call, 0, &object);
	return rights && grants(in->ruleset, &in->call->path[0].at, object, rights);
}

static void judge_exec(const struct verdict_input *in, struct verdict_result *r)
{
	if (grants(in->ruleset, &in->call->path[0].at, true, LLR_EXECUTE | LLR_READ_FILE)) {
		int err = refused_in_chain(in, &r->refused);
		if (err == -ENOENT) {
			r->verdict = VERDICT_OTHER;
			return;
		}
		r->need[0].at = &r->refused;
		if (err) {
			r->verdict = VERDICT_PERMISSIONS;
			return;
		}
	}
	r->verdict = VERDICT_SANDBOX;
}

static const char *other_note(const struct call *c)
{
	struct statfs fs;
	int fd = c->path[0].at.object;
	/* What /proc/PID shows of a process is asked like ptrace (fs/proc/base.c). */
	if (fd >= 0 && !fstatfs(fd, &fs) && fs.f_type == PROC_SUPER_MAGIC)
		return "Landlock lets nobody look into processes outside of the sandbox";
	return "another kernel policy refused it; no path grant can help";
}

int verdict_of(const struct verdict_input *in, struct verdict_result *r)
{
	const struct call *c = in->call;
	*r = (struct verdict_result){.verdict = VERDICT_OTHER};
	path_init(&r->refused);
	access_needed(c, r->need);
	int error = (int)-c->result;
	if (error == EXDEV && crosses_mounts(c)) {
		r->verdict = VERDICT_CROSS_DEVICE;
		return 0;
	}
	int err = permissions(in);
	if (err == -ENOMEM || err == -EMFILE || err == -ENFILE)
		return err;
	if (error == EXDEV && !err) {
		r->verdict = VERDICT_SANDBOX;
		return 0;
	}
	/* For names Landlock is asked before the permissions are, and its answer is EACCES, never
	 * EPERM. */
	if (err == -EACCES || err == -EPERM || err == -EROFS || error == EPERM) {
		r->verdict = VERDICT_PERMISSIONS;
		return 0;
	}
	if (err) {
		r->note = "what it named changed meanwhile";
		return 0;
	}
	r->note = mount_refuses(c);
	if (r->note)
		return 0;
	r->anyway = fails_anyway(c);
	if (c->path[0].need == CALL_NEED_EXEC)
		judge_exec(in, r);
	else if (!ruleset_grants_all(in))
		r->verdict = VERDICT_SANDBOX;
	if (r->verdict == VERDICT_OTHER)
		r->note = other_note(c);
	return 0;
}

void verdict_release(struct verdict_result *r)
{
	path_release(&r->refused);
}
