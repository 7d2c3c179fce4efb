#include "tracer/pathname.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define REMEMBERED 4
#define LINKS	   16
#define PROCS	   4

/* What the kernel puts behind the name of what was unlinked (fs/d_path.c); a file may be called so.
 */
#define DELETED " (deleted)"

struct pathname_memory {
	int links; /* /proc/self/fd, -1 */
	/*
	 * Links of it, by the number modulo LINKS: what such a link says is looked for in the table
	 * of descriptors each time that it is read (fs/proc/fd.c, proc_fd_link()), so that it can
	 * be held while the number means one file after the other. All are opened for a moment and
	 * get the lowest free number: it is the same few, and procfs is slow to look names up.
	 */
	struct {
		int number, fd; /* fd -1: none yet */
	} link[LINKS];
	struct {
		pid_t tid;
		int fd; /* /proc/TID, -1 */
	} proc[PROCS];
	struct pathname_dir *dir[REMEMBERED];
	unsigned next; /* the oldest */
	uint64_t mount[PATHNAME_MOUNTS_MAX];
	unsigned mounts;
};

/* ---- directories ---- */

void pathname_dir_leave(struct pathname_dir *d)
{
	if (!d || --d->users)
		return;
	close(d->fd);
	free(d);
}

struct pathname_memory *pathname_memory_new(void)
{
	struct pathname_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	/* Without it each link is looked up from the root. */
	m->links = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; i < LINKS; i++)
		m->link[i].fd = -1;
	for (unsigned i = 0; i < PROCS; i++)
		m->proc[i].fd = -1;
	return m;
}

void pathname_memory_forget(struct pathname_memory *m)
{
	for (unsigned i = 0; i < REMEMBERED; i++) {
		pathname_dir_leave(m->dir[i]);
		m->dir[i] = NULL;
	}
}

void pathname_memory_free(struct pathname_memory *m)
{
	if (!m)
		return;
	pathname_memory_forget(m);
	for (unsigned i = 0; i < LINKS; i++)
		util_close(&m->link[i].fd);
	for (unsigned i = 0; i < PROCS; i++)
		util_close(&m->proc[i].fd);
	util_close(&m->links);
	free(m);
}

/* ---- threads ---- */

static int open_path(int dir, const char *name)
{
	int fd = openat(dir, name, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int pathname_open_proc(struct pathname_memory *m, pid_t tid, const char *what)
{
	char path[64];
	unsigned i = (unsigned)tid % PROCS;
	int fd = m && m->proc[i].fd >= 0 && m->proc[i].tid == tid ? open_path(m->proc[i].fd, what)
								  : -ESRCH;

	/* ENOENT, too: of one that is gone nothing is found. */
	if (fd >= 0 || (fd != -ESRCH && fd != -ENOENT))
		return fd;
	if (!m) {
		snprintf(path, sizeof(path), "/proc/%d/%s", tid, what);
		return open_path(AT_FDCWD, path);
	}
	snprintf(path, sizeof(path), "/proc/%d", tid);
	util_close(&m->proc[i].fd);
	m->proc[i].tid = tid;
	m->proc[i].fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return m->proc[i].fd < 0 ? -errno : open_path(m->proc[i].fd, what);
}

/* ---- remembered directories ---- */

/* Where it is remembered what this path led to; REMEMBERED: nowhere. */
static unsigned place_of_path(const struct pathname_memory *m, const char *text, size_t len,
			      uint64_t mount)
{
	unsigned i = 0;

	for (; i < REMEMBERED; i++) {
		const struct pathname_dir *d = m->dir[i];
		if (d && d->mount == mount && d->len == len && memcmp(d->path, text, len) == 0)
			break;
	}
	return i;
}

static bool may_hold(const struct pathname_memory *m, uint64_t mount)
{
	bool may = false;

	for (unsigned i = 0; i < m->mounts; i++)
		may |= m->mount[i] == mount;
	return may;
}

static void remember(struct pathname_memory *m, struct pathname_dir *d)
{
	unsigned i = place_of_path(m, d->path, d->len, d->mount);

	if (!may_hold(m, d->mount))
		return;
	if (i == REMEMBERED) {
		i = m->next;
		m->next = (m->next + 1) % REMEMBERED;
	}
	pathname_dir_leave(m->dir[i]);
	d->users++;
	m->dir[i] = d;
}

/* ---- looking ---- */

static struct timespec time_of(struct statx_timestamp t)
{
	return (struct timespec){.tv_sec = t.tv_sec, .tv_nsec = t.tv_nsec};
}

int pathname_stat(int fd, struct stat *ret, uint64_t *ret_mount)
{
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &x) < 0)
		return -errno;
	ret->st_dev = makedev(x.stx_dev_major, x.stx_dev_minor);
	ret->st_ino = x.stx_ino;
	ret->st_nlink = x.stx_nlink;
	ret->st_mode = x.stx_mode;
	ret->st_uid = x.stx_uid;
	ret->st_gid = x.stx_gid;
	ret->st_rdev = makedev(x.stx_rdev_major, x.stx_rdev_minor);
	ret->st_size = (off_t)x.stx_size;
	ret->st_blksize = x.stx_blksize;
	ret->st_blocks = (blkcnt_t)x.stx_blocks;
	ret->st_atim = time_of(x.stx_atime);
	ret->st_mtim = time_of(x.stx_mtime);
	ret->st_ctim = time_of(x.stx_ctime);
	/* From 5.8; ids begin at 1, and none is used again while something holds its mount. */
	*ret_mount = x.stx_mask & STATX_MNT_ID ? x.stx_mnt_id : 0;
	return 0;
}

void pathname_memory_allow(struct pathname_memory *m, const char *path)
{
	struct stat st;
	uint64_t mount;
	int fd AUTOCLOSE = open(path, O_PATH | O_CLOEXEC);

	if (fd >= 0 && m->mounts < PATHNAME_MOUNTS_MAX && pathname_stat(fd, &st, &mount) == 0 &&
	    mount != 0)
		m->mount[m->mounts++] = mount;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Its digits, at the end of the buffer. */
static const char *number(int fd, char buffer[40])
{
	char *at = buffer + 39;

	*at = '\0';
	do {
		*--at = (char)('0' + fd % 10);
		fd /= 10;
	} while (fd);
	return at;
}

/* The link that says what this descriptor is; -1: none could be opened. */
static int link_of(struct pathname_memory *m, int fd)
{
	char name[40];
	unsigned i = (unsigned)fd % LINKS;

	if (m->link[i].fd >= 0 && m->link[i].number == fd)
		return m->link[i].fd;
	util_close(&m->link[i].fd);
	m->link[i].number = fd;
	m->link[i].fd = openat(m->links, number(fd, name), O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return m->link[i].fd;
}

/* What the kernel calls it; nothing says that it is true. */
static int read_name(struct pathname_memory *m, int fd, char text[PATH_MAX + 1])
{
	char path[40];
	ssize_t n;
	int link = m && m->links >= 0 ? link_of(m, fd) : -1;

	if (link >= 0) {
		n = readlinkat(link, "", text, PATH_MAX);
	} else {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, text, PATH_MAX);
	}
	if (n < 0)
		return errno == ENAMETOOLONG ? -ENOENT : -errno;
	text[n] = '\0';
	return text[0] == '/' ? 0 : -ENOENT;
}

/*
 * RESOLVE_NO_SYMLINKS refuses a last symlink too unless O_NOFOLLOW goes with O_PATH: then the link
 * itself is opened (openat2(2)).
 */
static int walk(const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)flags | O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS};

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

static bool leads_to(const char *path, const struct stat *st)
{
	struct stat there;
	int other AUTOCLOSE = walk(path, O_NOFOLLOW);

	return other >= 0 && fstat(other, &there) == 0 && is_same(&there, st);
}

static bool has_entry(int dir, const char *name, const struct stat *st)
{
	struct stat there;

	return fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&there, st);
}

static bool may_be_deleted(const char *name)
{
	size_t n = strlen(name), tail = sizeof(DELETED) - 1;

	return n >= tail && strcmp(name + n - tail, DELETED) == 0;
}

/* By the path up to its last slash. NULL: there is none. */
static struct pathname_dir *walk_to(const char *text, size_t len)
{
	struct stat st;
	struct pathname_dir *d = malloc(sizeof(*d) + len + 1);

	if (!d)
		return NULL;
	*d = (struct pathname_dir){.users = 1, .len = len};
	memcpy(d->path, text, len);
	d->path[len] = '\0';
	d->fd = walk(d->path, O_DIRECTORY);
	if (d->fd >= 0 && pathname_stat(d->fd, &st, &d->mount) == 0) {
		d->dev = st.st_dev;
		d->ino = st.st_ino;
		return d;
	}
	util_close(&d->fd);
	free(d);
	return NULL;
}

/* The directory where it lies by the name that the kernel gave it; NULL: not found to be true. */
static struct pathname_dir *dir_of(struct pathname_memory *m, const char *text,
				   const struct stat *st, uint64_t mount)
{
	const char *name = strrchr(text, '/') + 1;
	size_t len = (size_t)(name - text);

	if (!*name || strlen(name) > NAME_MAX)
		return NULL;
	unsigned i = mount ? place_of_path(m, text, len, mount) : REMEMBERED;
	struct pathname_dir *d = i < REMEMBERED ? m->dir[i] : NULL;
	if (d && !may_be_deleted(name) && has_entry(d->fd, name, st)) {
		d->users++;
		return d;
	}
	d = walk_to(text, len);
	if (!d)
		return NULL;
	if (!has_entry(d->fd, name, st)) {
		pathname_dir_leave(d);
		return NULL;
	}
	if (mount && d->mount == mount)
		remember(m, d);
	return d;
}

/* ---- names ---- */

static bool is_true(struct pathname_memory *m, const char *text, const struct stat *st,
		    uint64_t mount)
{
	struct pathname_dir *d = m ? dir_of(m, text, st, mount) : NULL;
	bool found = d != NULL;

	pathname_dir_leave(d);
	return found || leads_to(text, st);
}

int pathname_of(struct pathname_memory *m, int fd, const struct stat *st, uint64_t mount,
		char **ret)
{
	char text[PATH_MAX + 1];
	int r = read_name(m, fd, text);

	if (r < 0)
		return r;
	if (!is_true(m, text, st, mount))
		return -ENOENT;
	char *copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

int pathname_fill(struct pathname_memory *m, struct path_at *at)
{
	char text[PATH_MAX + 1];
	uint64_t mount;
	int r = pathname_stat(at->object, &at->st, &mount);

	if (r < 0)
		return r;
	at->exists = true;
	r = read_name(m, at->object, text);
	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	at->dir = dir_of(m, text, &at->st, mount);
	if (!at->dir && !leads_to(text, &at->st))
		return -ENOENT;
	if (at->dir) {
		at->parent = at->dir->fd;
		const char *name = text + at->dir->len;
		memcpy(at->name, name, strlen(name) + 1);
	}
	at->real = strdup(text);
	return at->real ? 0 : -ENOMEM;
}
