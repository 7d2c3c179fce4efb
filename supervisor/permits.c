#include "supervisor/permits.h"

#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define WALK_TRIES 32

/* linux/capability.h */
#define CAP_BIT_FOWNER 3
#define CAP_BIT_MKNOD  27

/* Where a path's walk begins, in the tracee's view. */
struct start {
	int fd; /* -1: the walk is not looked at */
	uint64_t resolve;
};

struct asking {
	const struct call *call;
	const struct identity *as;
	const char *note;
};

/* 0, or -errno as access(2): by descriptor, with the effective ids of the calling thread. */
static int access_fd(int fd, int mode)
{
	if (!syscall(SYS_faccessat2, fd, "", mode, AT_EMPTY_PATH | AT_EACCESS))
		return 0;
	return -errno;
}

static bool has_cap(const struct identity *as, unsigned bit)
{
	return as->caps >> bit & 1;
}

static int read_sysctl(const char *file)
{
	char text[16] = "";
	int fd AUTOCLOSE = open(file, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, text, sizeof text - 1) > 0 ? atoi(text) : 0;
}

/* ---- the way to it ---- */

/* procfs shows each process its own, and magic links lead where no path does. */
static bool depends_on_walker(const struct path_at *at)
{
	struct statfs fs;
	int fd = at->parent >= 0 ? at->parent : at->object;
	return at->magic || fd < 0 || fstatfs(fd, &fs) || fs.f_type == PROC_SUPER_MAGIC;
}

/* Before the identity is taken on: only we may look into the tracee's /proc. */
static struct start start_of(const struct permits_who *who, const struct call_path *p)
{
	struct start s = {.fd = -1};
	char path[64];
	if (!p->given || !p->given[0] || depends_on_walker(&p->at))
		return s;
	if (p->given[0] == '/') {
		snprintf(path, sizeof path, "/proc/%d/root", who->view.tid);
		s.resolve = RESOLVE_IN_ROOT;
	} else if (!path_has_our_root(who->view.tid)) {
		return s; /* ".." and links would lead elsewhere than they lead the tracee */
	} else if (p->dirfd == AT_FDCWD) {
		snprintf(path, sizeof path, "/proc/%d/cwd", who->view.tid);
	} else {
		snprintf(path, sizeof path, "/proc/%d/fd/%d", who->view.tid, p->dirfd);
	}
	s.fd = open(path, O_PATH | O_CLOEXEC);
	return s;
}

/*
 * The kernel's own walk, with the tracee's rights: search permission on the way, and
 * fs.protected_symlinks (fs/namei.c, may_follow_link). Only its EACCES means something. EAGAIN:
 * something was renamed or mounted anywhere on the machine while ".." was followed (openat2(2)).
 */
static int walk(const struct asking *a, unsigned i, const struct start *s)
{
	const struct call_path *p = &a->call->path[i];
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = s->resolve};
	if (!call_follows(a->call, i))
		how.flags |= O_NOFOLLOW;
	if (s->fd < 0)
		return 0;
	for (unsigned n = 0; n < WALK_TRIES; n++) {
		int fd AUTOCLOSE = (int)syscall(SYS_openat2, s->fd, p->given, &how, sizeof how);
		if (fd >= 0 || errno != EAGAIN)
			return fd < 0 && errno == EACCES ? -EACCES : 0;
	}
	return 0;
}

/* ---- what is done at its end ---- */

/* chattr +i and +a, a mounted file system's root: has it any of these STATX_ATTR_*? */
static bool has_attribute(int fd, uint64_t which)
{
	struct statx st;
	return fd >= 0 && !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) &&
	       (st.stx_attributes & which);
}

/*
 * O_CREAT on an existing file in a sticky directory that others may write to (fs/namei.c,
 * may_create_in_sticky): asked for before Landlock, with EACCES too.
 */
static bool protected_in_sticky(struct asking *a, const struct path_at *at)
{
	struct stat dir;
	if (!(a->call->open_flags & O_CREAT) || at->parent < 0 || fstat(at->parent, &dir) ||
	    !(dir.st_mode & S_ISVTX) || at->st.st_uid == dir.st_uid ||
	    at->st.st_uid == a->as->fsuid)
		return false;
	int level = 0;
	if (S_ISREG(at->st.st_mode))
		level = read_sysctl("/proc/sys/fs/protected_regular");
	else if (S_ISFIFO(at->st.st_mode))
		level = read_sysctl("/proc/sys/fs/protected_fifos");
	bool refused =
		level && ((dir.st_mode & S_IWOTH) || ((dir.st_mode & S_IWGRP) && level >= 2));
	if (refused)
		a->note = "the kernel's fs.protected_regular or fs.protected_fifos refuses it";
	return refused;
}

static const char *mount_refuses(int fd, mode_t mode, enum call_need need)
{
	struct statvfs fs;
	bool runs = need == CALL_NEED_EXEC;
	bool device = need == CALL_NEED_OPEN && (S_ISCHR(mode) || S_ISBLK(mode));
	if (fd < 0 || (!runs && !device) || fstatvfs(fd, &fs))
		return NULL;
	if (runs && (fs.f_flag & ST_NOEXEC))
		return "the file system is mounted noexec";
	if (device && (fs.f_flag & ST_NODEV))
		return "the file system is mounted nodev";
	return NULL;
}

static int open_mode(const struct call *c)
{
	if ((c->open_flags & O_TMPFILE) == O_TMPFILE)
		return W_OK | X_OK;
	int mode = c->open_flags & O_TRUNC ? W_OK : 0;
	switch (c->open_flags & O_ACCMODE) {
	case O_RDONLY:
		return mode | R_OK;
	case O_WRONLY:
		return mode | W_OK;
	default:
		return mode | R_OK | W_OK;
	}
}

static int may_open(struct asking *a, const struct path_at *at)
{
	if (!at->exists)
		return at->parent < 0 ? -ENOENT : access_fd(at->parent, W_OK | X_OK);
	if (protected_in_sticky(a, at))
		return -EACCES;
	int err = access_fd(at->object, open_mode(a->call));
	if (err)
		return err;
	a->note = mount_refuses(at->object, at->st.st_mode, CALL_NEED_OPEN);
	return a->note ? -EACCES : 0;
}

/* Files alone: a directory's x is another right (fs/exec.c, do_open_execat). */
static int may_run(struct asking *a, int object)
{
	struct stat st;
	if (object < 0 || fstat(object, &st))
		return -ENOENT;
	a->note = mount_refuses(object, st.st_mode, CALL_NEED_EXEC);
	if (!a->note && !S_ISREG(st.st_mode))
		a->note = "only a regular file can be run";
	return a->note ? -EACCES : access_fd(object, X_OK);
}

/* A name may be taken out of this directory (fs/namei.c, may_delete). */
static int may_remove(struct asking *a, const struct path_at *at)
{
	struct stat dir;
	if (!at->exists || at->parent < 0)
		return -ENOENT;
	int err = access_fd(at->parent, W_OK | X_OK);
	if (err)
		return err;
	if (fstat(at->parent, &dir))
		return -errno;
	if ((dir.st_mode & S_ISVTX) && !has_cap(a->as, CAP_BIT_FOWNER) &&
	    a->as->fsuid != dir.st_uid && a->as->fsuid != at->st.st_uid)
		return -EPERM;
	if (has_attribute(at->parent, STATX_ATTR_APPEND) ||
	    has_attribute(at->object, STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND))
		return -EPERM;
	return 0;
}

static int may_make(const struct path_at *at)
{
	return at->parent < 0 ? -ENOENT : access_fd(at->parent, W_OK | X_OK);
}

static int may_mknod(struct asking *a, const struct path_at *at)
{
	mode_t type = a->call->mode & S_IFMT;
	int err = may_make(at);
	bool whiteout = type == S_IFCHR && a->call->dev == 0;
	if (err || has_cap(a->as, CAP_BIT_MKNOD) || whiteout)
		return err;
	if (type != S_IFCHR && type != S_IFBLK)
		return 0;
	a->note = "device nodes need CAP_MKNOD, which nothing has inside";
	return -EPERM;
}

static bool is_another_directory(const struct call *c)
{
	struct stat from, to;
	int a = c->path[0].at.parent, b = c->path[1].at.parent;
	return a < 0 || b < 0 || fstat(a, &from) || fstat(b, &to) || from.st_dev != to.st_dev ||
	       from.st_ino != to.st_ino;
}

/* A directory that gets another parent is written to: its ".." (fs/namei.c, vfs_rename). */
static int may_move(struct asking *a, const struct path_at *at, bool moves)
{
	int err = may_remove(a, at);
	if (!err && moves && S_ISDIR(at->st.st_mode) && is_another_directory(a->call))
		err = access_fd(at->object, W_OK);
	return err;
}

/* fs/namei.c, vfs_link and may_linkat. */
static int may_link(struct asking *a, const struct path_at *at)
{
	mode_t mode = at->st.st_mode;
	if (has_attribute(at->object, STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND))
		return -EPERM;
	if (S_ISDIR(mode)) /* permits_anyway() */
		return 0;
	if (a->as->fsuid == at->st.st_uid || has_cap(a->as, CAP_BIT_FOWNER) ||
	    !read_sysctl("/proc/sys/fs/protected_hardlinks"))
		return 0;
	bool plain = S_ISREG(mode) && !(mode & S_ISUID) && (mode & 02010) != 02010 &&
		     !access_fd(at->object, R_OK | W_OK);
	if (plain)
		return 0;
	a->note = "the kernel's fs.protected_hardlinks refuses it";
	return -EPERM;
}

static int may(struct asking *a, unsigned i)
{
	const struct call *c = a->call;
	const struct path_at *at = &c->path[i].at;
	bool exchange = c->at_flags & RENAME_EXCHANGE;
	switch (c->path[i].need) {
	case CALL_NEED_OPEN:
		return may_open(a, at);
	case CALL_NEED_EXEC:
		return may_run(a, at->object);
	case CALL_NEED_TRUNCATE:
		if (c->ent->arg[0] == ARG_FILE)
			return 0; /* the descriptor was for writing */
		return at->exists ? access_fd(at->object, W_OK) : -ENOENT;
	case CALL_NEED_UNLINK:
	case CALL_NEED_RMDIR:
		return may_remove(a, at);
	case CALL_NEED_MOVE_FROM:
		return may_move(a, at, true);
	case CALL_NEED_MOVE_TO:
		return at->exists ? may_move(a, at, exchange) : may_make(at);
	case CALL_NEED_MKNOD:
		return may_mknod(a, at);
	case CALL_NEED_MKDIR:
	case CALL_NEED_SYMLINK:
	case CALL_NEED_BIND:
	case CALL_NEED_LINK_TO:
		return may_make(at);
	case CALL_NEED_LINK_FROM:
		return may_link(a, at);
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

/* ---- as the tracee ---- */

static int ask_all(struct asking *a, const struct start *start)
{
	for (unsigned i = 0; i < CALL_PATHS; i++) {
		const struct call_path *p = &a->call->path[i];
		if (p->need == CALL_NEED_NONE)
			continue;
		int err = p->error ? p->error : walk(a, i, &start[i]);
		if (!err)
			err = may(a, i);
		if (err)
			return err;
	}
	return 0;
}

/* What is asked here is about files alone. */
static int become(const struct permits_who *who)
{
	return identity_same_to_files(who->as, who->self) ? 0 : identity_enter(who->as);
}

static void become_self(const struct permits_who *who)
{
	/* Staying somebody else would make every later act wrong. */
	if (!identity_same_to_files(who->as, who->self))
		BUG(identity_enter(who->self) != 0);
}

/*
 * Did our own walk find what the caller's would? With the same rights it did, but for symlinks that
 * the kernel would not follow (fs.protected_symlinks).
 */
static bool way_is_known(const struct permits_who *who, const struct call_path *p)
{
	return !p->given || (!p->at.linked && identity_same_to_files(who->as, who->self));
}

int permits_call(const struct permits_who *who, const struct call *c, const char **ret_note)
{
	struct asking a = {.call = c, .as = who->as};
	struct start start[CALL_PATHS];
	for (unsigned i = 0; i < CALL_PATHS; i++) {
		const struct call_path *p = &c->path[i];
		start[i] = way_is_known(who, p) ? (struct start){.fd = -1} : start_of(who, p);
	}
	int err = become(who);
	if (!err)
		err = ask_all(&a, start);
	become_self(who);
	for (unsigned i = 0; i < CALL_PATHS; i++)
		util_close(&start[i].fd);
	*ret_note = err ? a.note : NULL;
	return err;
}

int permits_way(const struct permits_who *who, const struct call *c, unsigned i)
{
	struct asking a = {.call = c, .as = who->as};
	if (way_is_known(who, &c->path[i]))
		return 0;
	struct start start = start_of(who, &c->path[i]);
	int fd AUTOCLOSE = start.fd;
	if (fd < 0)
		return 0;
	int err = become(who);
	if (!err)
		err = walk(&a, i, &start);
	become_self(who);
	return err;
}

int permits_run(const struct permits_who *who, int object, const char **ret_note)
{
	struct asking a = {.as = who->as};
	int err = become(who);
	if (!err)
		err = may_run(&a, object);
	become_self(who);
	*ret_note = err ? a.note : NULL;
	return err;
}

/* ---- whatever is allowed ---- */

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

/* A name that goes away, or is replaced, as a directory or as something else. */
static int goes_wrong(const struct path_at *at, bool as_dir)
{
	if (has_attribute(at->object, STATX_ATTR_MOUNT_ROOT))
		return -EBUSY;
	if (as_dir != S_ISDIR(at->st.st_mode))
		return as_dir ? -ENOTDIR : -EISDIR;
	return as_dir && holds_names(at->object) ? -ENOTEMPTY : 0;
}

static int rename_goes_wrong(const struct call *c)
{
	const struct path_at *from = &c->path[0].at, *to = &c->path[1].at;
	if (!from->exists)
		return 0;
	if (has_attribute(from->object, STATX_ATTR_MOUNT_ROOT))
		return -EBUSY;
	bool same =
		to->exists && from->st.st_dev == to->st.st_dev && from->st.st_ino == to->st.st_ino;
	if (!to->exists || same || (c->at_flags & (RENAME_EXCHANGE | RENAME_NOREPLACE)))
		return 0;
	return goes_wrong(to, S_ISDIR(from->st.st_mode));
}

int permits_anyway(const struct call *c)
{
	const struct path_at *at = &c->path[0].at;
	switch ((int)c->path[0].need) {
	case CALL_NEED_OPEN: /* fs/inode.c, no_open: after Landlock */
		return at->exists && S_ISSOCK(at->st.st_mode) ? -ENXIO : 0;
	case CALL_NEED_UNLINK:
		return at->exists ? goes_wrong(at, c->at_flags & AT_REMOVEDIR) : 0;
	case CALL_NEED_RMDIR:
		return at->exists ? goes_wrong(at, true) : 0;
	case CALL_NEED_MOVE_FROM:
		return rename_goes_wrong(c);
	case CALL_NEED_LINK_FROM: /* fs/namei.c, vfs_link: after Landlock */
		return at->exists && S_ISDIR(at->st.st_mode) ? -EPERM : 0;
	default:
		return 0;
	}
}
