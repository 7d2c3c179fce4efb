#include "supervisor/broker_meta.h"

#include "tracer/mem.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#define NR_FCHMODAT2	452 /* 6.6 */
#define NR_FILE_SETATTR 469 /* 6.17 */

#define CAP_BIT_CHOWN  0
#define CAP_BIT_FOWNER 3

#define AT_KNOWN (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)

/* include/uapi/linux/fs.h of 6.17 */
#define FILE_ATTR_SIZE_MIN 24
#define FILE_ATTR_SIZE_MAX 4096

/* How the times are given. */
enum times { TIMES_NONE, TIMES_SECONDS, TIMES_MICRO, TIMES_NANO, TIMES_NANO64 };

/* Where a call's arguments are. */
struct shape {
	enum sys_id id;
	enum broker_meta_kind kind;
	int value;    /* the first argument behind path or descriptor that says what is wanted */
	int at_flags; /* -1: it has none */
	bool by_fd;   /* the first argument is the file's descriptor */
	enum times times; /* of BROKER_META_TIMES */
};

static const struct shape shapes[] = {
	{SYS_ID_chmod, BROKER_META_MODE, 1, -1, false, 0},
	{SYS_ID_fchmod, BROKER_META_MODE, 1, -1, true, 0},
	{SYS_ID_fchmodat, BROKER_META_MODE, 2, -1, false, 0},
	{SYS_ID_fchmodat2, BROKER_META_MODE, 2, 3, false, 0},
	{SYS_ID_chown, BROKER_META_OWNER, 1, -1, false, 0},
	{SYS_ID_lchown, BROKER_META_OWNER, 1, -1, false, 0},
	{SYS_ID_fchown, BROKER_META_OWNER, 1, -1, true, 0},
	{SYS_ID_fchownat, BROKER_META_OWNER, 2, 4, false, 0},
	{SYS_ID_chown32, BROKER_META_OWNER, 1, -1, false, 0},
	{SYS_ID_lchown32, BROKER_META_OWNER, 1, -1, false, 0},
	{SYS_ID_fchown32, BROKER_META_OWNER, 1, -1, true, 0},
	{SYS_ID_utime, BROKER_META_TIMES, 1, -1, false, TIMES_SECONDS},
	{SYS_ID_utimes, BROKER_META_TIMES, 1, -1, false, TIMES_MICRO},
	{SYS_ID_futimesat, BROKER_META_TIMES, 2, -1, false, TIMES_MICRO},
	{SYS_ID_utimensat, BROKER_META_TIMES, 2, 3, false, TIMES_NANO},
	{SYS_ID_utimensat_time64, BROKER_META_TIMES, 2, 3, false, TIMES_NANO64},
	{SYS_ID_setxattr, BROKER_META_SET_XATTR, 1, -1, false, 0},
	{SYS_ID_lsetxattr, BROKER_META_SET_XATTR, 1, -1, false, 0},
	{SYS_ID_fsetxattr, BROKER_META_SET_XATTR, 1, -1, true, 0},
	{SYS_ID_setxattrat, BROKER_META_SET_XATTR, 3, 2, false, 0},
	{SYS_ID_removexattr, BROKER_META_REMOVE_XATTR, 1, -1, false, 0},
	{SYS_ID_lremovexattr, BROKER_META_REMOVE_XATTR, 1, -1, false, 0},
	{SYS_ID_fremovexattr, BROKER_META_REMOVE_XATTR, 1, -1, true, 0},
	{SYS_ID_removexattrat, BROKER_META_REMOVE_XATTR, 3, 2, false, 0},
	{SYS_ID_file_setattr, BROKER_META_FILE_ATTR, 2, 4, false, 0},
	{SYS_ID_ioctl, BROKER_META_IOCTL, 1, -1, true, 0},
};

static const struct shape *shape_of(enum sys_id id)
{
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		if (shapes[i].id == id)
			return &shapes[i];
	return NULL;
}

bool broker_meta_knows(enum sys_id id)
{
	return shape_of(id) != NULL;
}

/* ---- reading ---- */

/* A failed read is the call's EFAULT; that we may not look (a tracee that is not dumpable) is ours.
 */
static int copy_in(struct call_view view, uint64_t from, void *to, size_t n)
{
	return n ? mem_read(view.tid, from, to, n) : 0;
}

/* i386's chown takes 16 bits, of which all ones mean "leave it". */
static unsigned id_of(const struct call *c, unsigned i)
{
	enum sys_id id = sysent_id(c->ent);
	bool narrow = c->arch == SYS_ARCH_I386 &&
		      (id == SYS_ID_chown || id == SYS_ID_lchown || id == SYS_ID_fchown);
	if (!narrow)
		return (unsigned)c->args[i];
	uint16_t value = (uint16_t)c->args[i];
	return value == UINT16_MAX ? UINT32_MAX : value;
}

/* n numbers of 32 or 64 bits. */
static int read_numbers(struct call_view view, uint64_t from, bool wide, int64_t *ret, unsigned n)
{
	int32_t narrow[4];
	if (wide)
		return copy_in(view, from, ret, n * sizeof *ret);
	int err = copy_in(view, from, narrow, n * sizeof *narrow);
	for (unsigned i = 0; !err && i < n; i++)
		ret[i] = narrow[i];
	return err;
}

static int read_times(const struct call *c, struct call_view view, const struct shape *s,
		      struct broker_meta *m)
{
	int64_t v[4];
	bool wide = c->arch != SYS_ARCH_I386 || s->times == TIMES_NANO64;
	uint64_t from = c->args[s->value];
	m->now = !from;
	if (m->now)
		return 0;
	int err = read_numbers(view, from, wide, v, s->times == TIMES_SECONDS ? 2 : 4);
	if (err)
		return err;
	for (int i = 0; i < 2; i++) {
		struct timespec *t = &m->times[i];
		if (s->times == TIMES_SECONDS) {
			*t = (struct timespec){.tv_sec = v[i]};
			continue;
		}
		*t = (struct timespec){.tv_sec = v[2 * i], .tv_nsec = v[2 * i + 1]};
		if (s->times == TIMES_MICRO && (t->tv_nsec < 0 || t->tv_nsec >= 1000000))
			return -EINVAL;
		if (s->times == TIMES_MICRO)
			t->tv_nsec *= 1000;
		/* A 32-bit program's long: the kernel does not look at what stands above it. */
		if (s->times == TIMES_NANO64 && c->arch == SYS_ARCH_I386)
			t->tv_nsec = (uint32_t)t->tv_nsec;
	}
	m->done = m->times[0].tv_nsec == UTIME_OMIT && m->times[1].tv_nsec == UTIME_OMIT;
	return 0;
}

static int read_name(struct call_view view, uint64_t from, struct broker_meta *m)
{
	char *name AUTOFREE = NULL;
	int err = mem_read_str(view.tid, from, sizeof m->name, &name);
	if (err == -ENAMETOOLONG || (!err && !*name))
		return -ERANGE;
	if (!err)
		memcpy(m->name, name, strlen(name) + 1);
	return err;
}

static int read_value(struct call_view view, uint64_t from, size_t size, struct broker_meta *m)
{
	m->size = size;
	m->value = malloc(size ? size : 1);
	return m->value ? copy_in(view, from, m->value, size) : -ENOMEM;
}

/* setxattrat's struct xattr_args { u64 value; u32 size; u32 flags; }, which may grow by zeros. */
static int read_xattr_args(const struct call *c, struct call_view view, uint64_t args[3])
{
	struct {
		uint64_t value;
		uint32_t size, flags;
	} in;
	uint64_t size = c->args[5];
	char more[64];
	if (size < sizeof in)
		return -EINVAL;
	if (size > 4096)
		return -E2BIG;
	int err = copy_in(view, c->args[4], &in, sizeof in);
	for (uint64_t at = sizeof in; !err && at < size; at += sizeof more) {
		size_t n = size - at < sizeof more ? (size_t)(size - at) : sizeof more;
		err = copy_in(view, c->args[4] + at, more, n);
		for (size_t i = 0; !err && i < n; i++)
			err = more[i] ? -E2BIG : 0;
	}
	args[0] = in.value;
	args[1] = in.size;
	args[2] = in.flags;
	return err;
}

static int read_xattr(const struct call *c, struct call_view view, const struct shape *s,
		      struct broker_meta *m)
{
	uint64_t args[3] = {0};
	if (s->kind == BROKER_META_REMOVE_XATTR)
		return read_name(view, c->args[s->value], m);
	if (s->id == SYS_ID_setxattrat) {
		int err = read_xattr_args(c, view, args);
		if (err)
			return err;
	} else {
		memcpy(args, &c->args[s->value + 1], sizeof args);
	}
	m->flags = (int)args[2];
	if (m->flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	int err = read_name(view, c->args[s->value], m);
	if (err)
		return err;
	if (args[1] > XATTR_SIZE_MAX)
		return -E2BIG;
	return read_value(view, args[0], (size_t)args[1], m);
}

static int read_file_attr(const struct call *c, struct call_view view, struct broker_meta *m)
{
	uint64_t size = c->args[3];
	if (size > FILE_ATTR_SIZE_MAX)
		return -E2BIG;
	if (size < FILE_ATTR_SIZE_MIN)
		return -EINVAL;
	return read_value(view, c->args[2], (size_t)size, m);
}

static int read_ioctl(const struct call *c, struct call_view view, struct broker_meta *m)
{
	switch ((uint32_t)c->args[1]) {
	case FS_IOC_FSSETXATTR:
		m->ioctl = FS_IOC_FSSETXATTR;
		return read_value(view, c->args[2], sizeof(struct fsxattr), m);
	case (uint32_t)FS_IOC_SETFLAGS:
	case FS_IOC32_SETFLAGS:
		m->ioctl = FS_IOC_SETFLAGS;
		break;
	default:
		m->ioctl = FS_IOC_SETVERSION;
		break;
	}
	/* Their numbers say long; what is read is an int. */
	return read_value(view, c->args[2], sizeof(int), m);
}

static int read_wish(const struct call *c, struct call_view view, const struct shape *s,
		     struct broker_meta *m)
{
	switch (m->kind) {
	case BROKER_META_MODE:
		m->mode = c->mode;
		return 0;
	case BROKER_META_OWNER:
		m->uid = id_of(c, (unsigned)s->value);
		m->gid = id_of(c, (unsigned)s->value + 1);
		return 0;
	case BROKER_META_TIMES:
		return read_times(c, view, s, m);
	case BROKER_META_SET_XATTR:
	case BROKER_META_REMOVE_XATTR:
		return read_xattr(c, view, s, m);
	case BROKER_META_FILE_ATTR:
		return read_file_attr(c, view, m);
	case BROKER_META_IOCTL:
		return read_ioctl(c, view, m);
	}
	return -ENOSYS;
}

/* The newest calls take a NULL path for an empty one where AT_EMPTY_PATH is given. */
static int empty_path(struct call *c, const struct shape *s)
{
	bool newest = s->id == SYS_ID_setxattrat || s->id == SYS_ID_removexattrat ||
		      s->id == SYS_ID_file_setattr;
	if (!newest || c->args[1] || !(c->at_flags & AT_EMPTY_PATH) || c->path[0].given)
		return 0;
	c->path[0].given = strdup("");
	c->path[0].error = 0;
	return c->path[0].given ? 0 : -ENOMEM;
}

static int check_flags(const struct call *c, const struct shape *s, bool by_fd)
{
	uint32_t known = by_fd ? 0 : AT_KNOWN;
	return s->at_flags >= 0 && ((uint32_t)c->args[s->at_flags] & ~known) ? -EINVAL : 0;
}

static int read_all(struct call *c, struct call_view view, const struct shape *s,
		    struct broker_meta *m)
{
	bool by_fd = s->by_fd || call_means_fd(c);
	/* The times are read, and found to be none, before the flags are looked at (fs/utimes.c).
	 */
	bool times_first = s->kind == BROKER_META_TIMES;
	int err = times_first ? read_wish(c, view, s, m) : 0;
	if (err || m->done)
		return err;
	err = check_flags(c, s, by_fd);
	if (!err && !times_first)
		err = read_wish(c, view, s, m);
	if (err)
		return err;
	m->by_fd = by_fd;
	return by_fd ? 0 : empty_path(c, s);
}

/*
 * What older kernels have not: there it is not to be had here either, though we could do it by
 * other calls. The numbers are those of every architecture, and flags that mean nothing refuse them
 * first.
 */
static bool is_missing(enum sys_id id)
{
	const int none = INT_MAX;
	if (id == SYS_ID_fchmodat2) /* 6.6 */
		return syscall(sysents[id].nr[0], -1, NULL, 0, none) && errno == ENOSYS;
	if (id == SYS_ID_setxattrat || id == SYS_ID_removexattrat) /* 6.13 */
		return syscall(sysents[id].nr[0], -1, NULL, none, NULL, NULL, 0) && errno == ENOSYS;
	if (id == SYS_ID_file_setattr) /* 6.17 */
		return syscall(sysents[id].nr[0], -1, NULL, NULL, 0, none) && errno == ENOSYS;
	return false;
}

/* Of the name its end is enough, and it is most of it. */
static void empty(struct broker_meta *m)
{
	memset(m, 0, offsetof(struct broker_meta, name) + 1);
}

int broker_meta_read(struct call *c, struct call_view view, struct broker_meta *ret)
{
	const struct shape *s = shape_of(sysent_id(c->ent));
	BUG(!s);
	empty(ret);
	ret->kind = s->kind;
	int err = is_missing(s->id) ? -ENOSYS : read_all(c, view, s, ret);
	if (err)
		broker_meta_release(ret);
	return err;
}

void broker_meta_release(struct broker_meta *m)
{
	free(m->value);
	empty(m);
}

/* ---- doing ---- */

static long by_fd(const struct broker_meta *m, int fd)
{
	switch (m->kind) {
	case BROKER_META_MODE:
		return fchmod(fd, m->mode);
	case BROKER_META_OWNER:
		return fchown(fd, m->uid, m->gid);
	case BROKER_META_TIMES:
		return syscall(SYS_utimensat, fd, NULL, m->now ? NULL : m->times, 0);
	case BROKER_META_SET_XATTR:
		return fsetxattr(fd, m->name, m->value, m->size, m->flags);
	case BROKER_META_REMOVE_XATTR:
		return fremovexattr(fd, m->name);
	case BROKER_META_IOCTL:
		return ioctl(fd, m->ioctl, m->value);
	case BROKER_META_FILE_ATTR:
		break;
	}
	errno = ENOSYS;
	return -1;
}

/* The way through /proc leads to the very object, a symlink included: it is a magic link. */
static long by_object(const struct broker_meta *m, int object)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/thread-self/fd/%d", object);
	switch (m->kind) {
	case BROKER_META_MODE:
		if (!syscall(NR_FCHMODAT2, object, "", m->mode, AT_EMPTY_PATH) || errno != ENOSYS)
			return errno ? -1 : 0;
		return chmod(path, m->mode);
	case BROKER_META_OWNER:
		return fchownat(object, "", m->uid, m->gid, AT_EMPTY_PATH);
	case BROKER_META_TIMES:
		return syscall(SYS_utimensat, object, "", m->now ? NULL : m->times, AT_EMPTY_PATH);
	case BROKER_META_SET_XATTR:
		return setxattr(path, m->name, m->value, m->size, m->flags);
	case BROKER_META_REMOVE_XATTR:
		return removexattr(path, m->name);
	case BROKER_META_FILE_ATTR:
		return syscall(NR_FILE_SETATTR, AT_FDCWD, path, m->value, m->size, 0);
	case BROKER_META_IOCTL:
		break;
	}
	errno = ENOSYS;
	return -1;
}

int broker_meta_perform(const struct broker_meta *m, int object)
{
	errno = 0;
	return (m->by_fd ? by_fd(m, object) : by_object(m, object)) ? -errno : 0;
}

/* ---- what fails anyway ---- */

static bool in_group(const struct identity *as, gid_t gid)
{
	bool in = as->fsgid == gid;
	for (size_t i = 0; i < as->ngroups && !in; i++)
		in = as->groups[i] == gid;
	return in;
}

/* chown: fs/attr.c, chown_ok() and chgrp_ok(). */
static bool may_chown(const struct broker_meta *m, const struct stat *st, const struct identity *as)
{
	if (as->caps >> CAP_BIT_CHOWN & 1)
		return true;
	bool owner = as->fsuid == st->st_uid;
	bool uid_ok = m->uid == (uid_t)-1 || (owner && m->uid == st->st_uid);
	bool gid_ok =
		m->gid == (gid_t)-1 || (owner && (m->gid == st->st_gid || in_group(as, m->gid)));
	return uid_ok && gid_ok;
}

static bool nsec_valid(const struct timespec *t)
{
	return t->tv_nsec == UTIME_NOW || t->tv_nsec == UTIME_OMIT ||
	       (t->tv_nsec >= 0 && t->tv_nsec < 1000000000);
}

/* fs/xattr.c, xattr_permission(): a user's attributes are of files and directories only. */
static bool has_attributes(const char *name, mode_t mode)
{
	return strncmp(name, "user.", 5) != 0 || S_ISREG(mode) || S_ISDIR(mode);
}

static bool touches(const struct broker_meta *m)
{
	return m->now || (m->times[0].tv_nsec == UTIME_NOW && m->times[1].tv_nsec == UTIME_NOW);
}

/* May the calling thread write it? */
static int may_write(int object)
{
	if (!syscall(SYS_faccessat2, object, "", W_OK, AT_EMPTY_PATH | AT_EACCESS))
		return 0;
	return -errno;
}

static int times_fail(const struct broker_meta *m, int object, bool owner)
{
	if (!m->now && !(nsec_valid(&m->times[0]) && nsec_valid(&m->times[1])))
		return -EINVAL;
	if (owner)
		return 0;
	return touches(m) ? may_write(object) : -EPERM;
}

static int xattr_fails(const struct broker_meta *m, int object, mode_t mode)
{
	char path[64];
	if (!has_attributes(m->name, mode))
		return -EPERM;
	int err = may_write(object);
	if (err)
		return err;
	snprintf(path, sizeof path, "/proc/thread-self/fd/%d", object);
	int there = getxattr(path, m->name, NULL, 0) < 0 ? -errno : 0;
	bool missing = there == -ENODATA;
	if (there == -EOPNOTSUPP)
		return there;
	bool must_be = m->kind == BROKER_META_REMOVE_XATTR || (m->flags & XATTR_REPLACE);
	if (missing && must_be)
		return -ENODATA;
	return !missing && (m->flags & XATTR_CREATE) ? -EEXIST : 0;
}

int broker_meta_fails_anyway(const struct broker_meta *m, int object, const struct stat *st,
			     const struct identity *as)
{
	struct statvfs fs;
	bool owner = as->fsuid == st->st_uid || (as->caps >> CAP_BIT_FOWNER & 1);
	if (!fstatvfs(object, &fs) && (fs.f_flag & ST_RDONLY))
		return -EROFS;
	switch (m->kind) {
	case BROKER_META_MODE:
		if (S_ISLNK(st->st_mode))
			return -EOPNOTSUPP;
		return owner ? 0 : -EPERM;
	case BROKER_META_FILE_ATTR:
	case BROKER_META_IOCTL:
		return owner ? 0 : -EPERM;
	case BROKER_META_OWNER:
		return may_chown(m, st, as) ? 0 : -EPERM;
	case BROKER_META_TIMES:
		return times_fail(m, object, owner);
	case BROKER_META_SET_XATTR:
	case BROKER_META_REMOVE_XATTR:
		return xattr_fails(m, object, st->st_mode);
	}
	return 0;
}
