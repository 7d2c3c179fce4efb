#include "supervisor/broker_act.h"

#include "landlock/llabi.h"
#include "landlock/llright.h"
#include "landlock/llruleset.h"
#include "supervisor/exec_copy.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static void self_path(char out[64], int fd)
{
	snprintf(out, 64, "/proc/thread-self/fd/%d", fd);
}

/* Flags that keep their meaning when the inode is opened again by descriptor. */
static int reopen_flags(uint64_t flags)
{
	return (int)(flags & ~(uint64_t)(O_CREAT | O_EXCL | O_NOFOLLOW)) | O_NOCTTY | O_CLOEXEC;
}

int broker_act_reopen(int object, uint64_t flags)
{
	char path[64];
	self_path(path, object);
	int fd = open(path, reopen_flags(flags));
	return fd < 0 ? -errno : fd;
}

/* The calling thread may do this much from now on, to this and below it; it ends after its act. */
static int wall_thread(int fd, uint64_t rights)
{
	struct llabi abi;
	struct llruleset *rules = NULL;
	int err = llabi_detect(&abi);
	if (!err)
		err = llruleset_new(&abi, 0, &rules);
	if (!err)
		err = llruleset_allow_fd(rules, fd, rights);
	if (!err)
		err = llruleset_restrict(rules);
	llruleset_free(rules);
	return err;
}

static int open_existing(const struct broker_job *j, struct broker_act_result *r)
{
	const struct broker_thing *t = &j->at[0];
	if ((j->flags & O_CREAT) && (j->flags & O_EXCL))
		return -EEXIST;
	if (S_ISLNK(t->mode))
		return -ELOOP;
	if ((j->flags & O_CREAT) && S_ISDIR(t->mode))
		return -EISDIR;
	/* A descriptor keeps what its opener was allowed: a device's ioctls. */
	int err = j->no_ioctl ? wall_thread(t->object, LLR_READ_FILE | LLR_WRITE_FILE) : 0;
	if (err)
		return err;
	int fd = broker_act_reopen(t->object, j->flags);
	r->fd = fd < 0 ? -1 : fd;
	return fd < 0 ? fd : 0;
}

static int open_tmpfile(const struct broker_job *j, struct broker_act_result *r)
{
	char path[64];
	self_path(path, j->at[0].object);
	r->fd = open(path, (int)(j->flags & ~(uint64_t)O_NOFOLLOW) | O_CLOEXEC, j->mode);
	return r->fd < 0 ? -errno : 0;
}

static int open_absent(const struct broker_job *j, struct broker_act_result *r)
{
	const struct broker_thing *t = &j->at[0];
	if (!(j->flags & O_CREAT) || t->parent < 0)
		return -ENOENT;
	/* O_EXCL follows no link either; O_NOFOLLOW would stay to be seen in F_GETFL. */
	int flags = (int)j->flags | O_CREAT | O_EXCL | O_NOCTTY | O_CLOEXEC;
	r->fd = openat(t->parent, t->name, flags, j->mode);
	if (r->fd >= 0)
		return 0;
	/* Somebody made it meanwhile: which thing it is now was never decided on. */
	if (errno == EEXIST && !(j->flags & O_EXCL))
		r->stale = true;
	return -errno;
}

static int act_open(const struct broker_job *j, struct broker_act_result *r)
{
	if ((j->flags & O_TMPFILE) == O_TMPFILE)
		return j->at[0].exists ? open_tmpfile(j, r) : -ENOENT;
	return j->at[0].exists ? open_existing(j, r) : open_absent(j, r);
}

static int act_truncate(const struct broker_job *j, struct broker_act_result *r)
{
	(void)r;
	if (!j->at[0].exists)
		return -ENOENT;
	char path[64];
	self_path(path, j->at[0].object);
	return truncate(path, (off_t)j->length) ? -errno : 0;
}

/* Is the name still the thing that was decided on (or still absent)? */
static bool unchanged(const struct broker_thing *t)
{
	struct stat st;
	if (fstatat(t->parent, t->name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT && !t->exists;
	return t->exists && st.st_dev == t->dev && st.st_ino == t->ino;
}

/* Every act on a name: it must have a parent and be what it was. */
static int check_name(const struct broker_thing *t, struct broker_act_result *r)
{
	if (t->parent < 0 || !t->name[0])
		return -EACCES;
	if (!unchanged(t)) {
		r->stale = true;
		return -EAGAIN;
	}
	return 0;
}

static int act_mkdir(const struct broker_job *j, struct broker_act_result *r)
{
	int err = check_name(&j->at[0], r);
	if (err)
		return err;
	const struct broker_thing *t = &j->at[0];
	if (j->pool && !t->exists &&
	    !pool_mkdir(j->pool, t->parent, t->name, j->mode, j->as.umask & 0777))
		return 0;
	return mkdirat(t->parent, t->name, j->mode) ? -errno : 0;
}

static int act_mknod(const struct broker_job *j, struct broker_act_result *r)
{
	int err = check_name(&j->at[0], r);
	if (err)
		return err;
	return mknodat(j->at[0].parent, j->at[0].name, j->mode, j->dev) ? -errno : 0;
}

static int act_symlink(const struct broker_job *j, struct broker_act_result *r)
{
	int err = check_name(&j->at[0], r);
	if (err)
		return err;
	return symlinkat(j->text, j->at[0].parent, j->at[0].name) ? -errno : 0;
}

static int act_unlink(const struct broker_job *j, struct broker_act_result *r)
{
	int err = check_name(&j->at[0], r);
	if (err)
		return err;
	int flags = j->need == CALL_NEED_RMDIR ? AT_REMOVEDIR : (int)j->flags & AT_REMOVEDIR;
	return unlinkat(j->at[0].parent, j->at[0].name, flags) ? -errno : 0;
}

static int act_rename(const struct broker_job *j, struct broker_act_result *r)
{
	int err = check_name(&j->at[0], r);
	if (!err)
		err = check_name(&j->at[1], r);
	if (err)
		return err;
	return syscall(SYS_renameat2, j->at[0].parent, j->at[0].name, j->at[1].parent,
		       j->at[1].name, (unsigned)j->flags)
		       ? -errno
		       : 0;
}

static int act_link(const struct broker_job *j, struct broker_act_result *r)
{
	int err = check_name(&j->at[1], r);
	if (err)
		return err;
	if (!j->at[0].exists)
		return -ENOENT;
	char path[64];
	self_path(path, j->at[0].object);
	return linkat(AT_FDCWD, path, j->at[1].parent, j->at[1].name, AT_SYMLINK_FOLLOW) ? -errno
											 : 0;
}

/*
 * bind keeps the tracee's own string where it can (getsockname shows it), so the kernel walks a
 * path again here. What it may reach is therefore walled in: this thread takes on a Landlock domain
 * whose one rule is MAKE_SOCK on the parent that was decided on, and ends after the act. A rule
 * covers what is below as well: where that is not all the same, the address is the plain name in
 * the parent.
 */
static int bind_walled(const struct broker_job *j)
{
	int err = wall_thread(j->at[0].parent, LLR_MAKE_SOCK);
	if (err)
		return err;
	if (fchdir(j->cwd))
		return -errno;
	return bind(j->socket, (const struct sockaddr *)&j->address, j->address_len) ? -errno : 0;
}

static int act_bind(const struct broker_job *j, struct broker_act_result *r)
{
	int err = check_name(&j->at[0], r);
	return err ? err : bind_walled(j);
}

/* The copy that is to be run in the program's place. */
static int act_exec(const struct broker_job *j, struct broker_act_result *r)
{
	struct exec_copy copy;
	if (!j->at[0].exists || !j->text)
		return -EACCES;
	int err = exec_copy_make(j->at[0].object, j->text, j->scripts_alone, &copy);
	if (err)
		return err;
	r->fd = copy.fd;
	r->finds_itself = copy.finds_itself;
	return 0;
}

/* The thread's file-system ids follow the effective ones back: the role is to be taken anew. */
static int act_connect(const struct broker_job *j, struct broker_act_result *r)
{
	(void)r;
	return (int)broker_connect_perform(&j->connect, j->at[0].object, &j->as);
}

static int act_meta(const struct broker_job *j, struct broker_act_result *r)
{
	(void)r;
	return broker_meta_perform(&j->meta, j->at[0].object);
}

/* The file, its file system, and whether it may be written: what is asked before an act. */
static void look_at(int fd)
{
	struct stat st;
	struct statvfs fs;
	if (fd >= 0 && !fstat(fd, &st) && !fstatvfs(fd, &fs))
		(void)syscall(SYS_faccessat2, fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS);
}

/* Whatever it comes to: that it does is enough. */
static int act_probe(const struct broker_job *j, struct broker_act_result *r)
{
	struct call *c = (struct call *)&j->probe; /* this worker's alone */
	(void)r;
	look_at(j->at[0].object);
	(void)call_resolve(c, j->view);
	for (int i = 0; i < CALL_PATHS; i++) {
		look_at(c->path[i].given ? c->path[i].at.object : -1);
		look_at(c->path[i].given ? c->path[i].at.parent : -1);
	}
	return 0;
}

static const struct broker_act acts[CALL_NEED_COUNT] = {
	[CALL_NEED_OPEN] = {act_open, false, false},
	[CALL_NEED_EXEC] = {act_exec, false, false},
	[CALL_NEED_TRUNCATE] = {act_truncate, false, false},
	[CALL_NEED_MKDIR] = {act_mkdir, true, false},
	[CALL_NEED_MKNOD] = {act_mknod, true, false},
	[CALL_NEED_SYMLINK] = {act_symlink, true, false},
	[CALL_NEED_BIND] = {act_bind, true, true},
	[CALL_NEED_CONNECT] = {act_connect, false, false},
	[CALL_NEED_META] = {act_meta, false, false},
	[CALL_NEED_LOOK] = {act_probe, false, false},
	[CALL_NEED_UNLINK] = {act_unlink, true, false},
	[CALL_NEED_RMDIR] = {act_unlink, true, false},
	[CALL_NEED_MOVE_FROM] = {act_rename, true, false},
	[CALL_NEED_LINK_FROM] = {act_link, true, false},
};

const struct broker_act *broker_act_of(enum call_need need)
{
	return &acts[need];
}
