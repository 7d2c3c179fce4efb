#include "supervisor/pool.h"

#include "supervisor/dirwalk.h"
#include "supervisor/place.h"
#include "tracer/buf.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define PREFIX	    ".warder-pool-"
#define TAKEN_MAX   20 /* new ones that others took, who started at the same moment */
#define STALE_DEPTH 64 /* deeper than that is left lying */

enum spare_state { SPARE_MISSING, SPARE_READY, SPARE_GIVEN };

struct spare {
	enum spare_state state;
	dev_t dev;
	ino_t ino;
};

struct pool {
	pthread_mutex_t lock; /* of the spares: workers give them out */
	char *directory;      /* owned */
	int place;	      /* the directory that ours is in */
	int dir;	      /* ours, locked (flock) while we live */
	bool kept;	      /* for the next one, with what is left in it */
	uid_t owner;
	bool ruled;
	struct reach class;
	struct spare spare[POOL_SPARES];
	int fd[POOL_SPARES]; /* O_PATH; -1: missing */
};

/* ---- what others left ---- */

static void empty(int dir, unsigned depth);

static void remove_entry(int dir, const char *name, unsigned depth)
{
	if (!unlinkat(dir, name, 0) || !unlinkat(dir, name, AT_REMOVEDIR))
		return;
	int fd AUTOCLOSE = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || depth >= STALE_DEPTH)
		return;
	empty(fd, depth + 1);
	unlinkat(dir, name, AT_REMOVEDIR);
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* A stream of its own: the descriptor stays the caller's. */
static DIR *open_stream(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !d)
		close(fd);
	return d;
}

bool pool_is_name(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}

/* By descriptors, following no symlink. */
static void empty(int dir, unsigned depth)
{
	DIR *d = open_stream(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (!is_dots(e->d_name))
			remove_entry(dir, e->d_name, depth);
	if (d)
		closedir(d);
}

/* Ours by owner, and nobody holds it. */
static int open_stale(int place, const char *name)
{
	struct stat st;
	int fd AUTOCLOSE = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) || st.st_uid != geteuid() || flock(fd, LOCK_EX | LOCK_NB))
		return -1;
	return TAKE_FD(fd);
}

/*
 * What is held by nobody is removed; but the first one, where it is to be kept, is ours from now on
 * (its name in *ret, the descriptor is the caller's; -1: none).
 */
static int look_for_stale(int place, bool keep, char *ret, size_t size)
{
	DIR *d = open_stream(place);
	struct dirent *e;
	int kept = -1;

	while (d && (e = readdir(d))) {
		if (!pool_is_name(e->d_name) || strlen(e->d_name) >= size)
			continue;
		int fd AUTOCLOSE = open_stale(place, e->d_name);
		if (fd < 0)
			continue;
		if (keep && kept < 0) {
			strcpy(ret, e->d_name);
			kept = TAKE_FD(fd);
			continue;
		}
		empty(fd, 0);
		unlinkat(place, e->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
	return kept;
}

/* ---- where they lie ---- */

/* A command that could make names here could reach what is ours. */
static bool is_closed(const struct policy *p, const char *place)
{
	for (uint32_t bit = 1; bit < ACCESS_ALL; bit <<= 1)
		if (reach_of_stranger(p, place, bit) == EFFECT_ALLOW)
			return false;
	return true;
}

/* On target's mount: a rename to another fails. */
static int open_place(const char *path, const struct place *target, const struct policy *p)
{
	struct place here;
	struct stat st;
	int fd AUTOCLOSE = dirwalk_open(path, &st);

	if (fd < 0)
		return fd;
	if (place_of(fd, &here) || here.mount != target->mount || here.dev != target->dev ||
	    !is_closed(p, path))
		return -ENOENT;
	return TAKE_FD(fd);
}

static int make_name(char *ret, size_t size)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	snprintf(ret, size, PREFIX "%016llx", (unsigned long long)number);
	return 0;
}

/* One that starts at the same moment may take ours for a stale one, before it is locked. */
static int make_directory(int place, const char *name)
{
	struct stat st;

	if (mkdirat(place, name, 0700))
		return -errno;
	int fd AUTOCLOSE = open_stale(place, name);
	if (fd < 0 || fstat(fd, &st) || !st.st_nlink)
		return -ENOENT;
	return TAKE_FD(fd);
}

/* What another took or made of it does not lie elsewhere: one more is made here. */
static int take_directory(const struct pool *p, char *name, size_t size)
{
	int fd = look_for_stale(p->place, p->kept, name, size);

	for (int tries = 0; fd < 0 && tries < TAKEN_MAX; tries++) {
		int err = make_name(name, size);
		if (err)
			return err;
		fd = make_directory(p->place, name);
		if (fd < 0 && fd != -ENOENT)
			return fd;
	}
	return fd;
}

static int settle_in(struct pool *p, const char *place)
{
	char name[64];
	struct stat st;
	struct buf path = {0};

	p->dir = take_directory(p, name, sizeof(name));
	if (p->dir < 0)
		return p->dir;
	if (fstat(p->dir, &st))
		return -errno;
	p->owner = st.st_uid;
	buf_addf(&path, "%s/%s", place[1] ? place : "", name);
	p->directory = buf_take(&path);
	return p->directory ? 0 : -ENOMEM;
}

static struct pool *pool_alloc(void)
{
	struct pool *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	p->place = p->dir = -1;
	for (size_t i = 0; i < POOL_SPARES; i++)
		p->fd[i] = -1;
	return p;
}

int pool_new(const char *own, const char *other, const char *target, const struct policy *policy,
	     struct pool **ret)
{
	const char *const places[] = {own, other};
	struct place there;
	struct stat st;
	int fd AUTOCLOSE = dirwalk_open(target, &st);
	int err = fd < 0 ? fd : place_of(fd, &there);

	for (size_t i = 0; !err && i < ARRAY_LEN(places); i++) {
		struct pool *p = pool_alloc();
		if (!p)
			return -ENOMEM;
		p->kept = i == 0;
		p->place = open_place(places[i], &there, policy);
		if (p->place >= 0 && !settle_in(p, places[i])) {
			*ret = p;
			return 0;
		}
		pool_free(p);
	}
	return err ? err : -ENOENT;
}

const char *pool_directory(const struct pool *p)
{
	return p->directory;
}

void pool_free(struct pool *p)
{
	if (!p)
		return;
	if (p->directory && !p->kept) {
		empty(p->dir, 0);
		unlinkat(p->place, strrchr(p->directory, '/') + 1, AT_REMOVEDIR);
	}
	for (size_t i = 0; i < POOL_SPARES; i++)
		util_close(&p->fd[i]);
	util_close(&p->dir);
	util_close(&p->place);
	pthread_mutex_destroy(&p->lock);
	free(p->directory);
	free(p);
}

/* ---- before a run ---- */

static void spare_name(size_t i, char ret[24])
{
	snprintf(ret, 24, "%zu", i);
}

static bool is_empty(int dir)
{
	DIR *d = open_stream(dir);
	struct dirent *e = NULL;

	errno = 0;
	while (d && (e = readdir(d)) && is_dots(e->d_name))
		;
	bool yes = d && !e && !errno;
	if (d)
		closedir(d);
	return yes;
}

/*
 * Its rule opened it to an earlier run's command, which may have learned its name (inotify tells):
 * what that put into it would be open to this one, a hard link to another project's file too.
 */
static bool clear(const struct pool *p, const char *name)
{
	int fd AUTOCLOSE = openat(p->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && !is_empty(fd))
		empty(fd, 0);
	return fd >= 0 && is_empty(fd);
}

/* One of an earlier run's will do. */
static bool make_spare(struct pool *p, size_t i)
{
	char name[24];
	struct stat st;

	util_close(&p->fd[i]);
	p->spare[i].state = SPARE_MISSING;
	spare_name(i, name);
	p->fd[i] = openat(p->dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->fd[i] < 0 && errno == ENOENT && !mkdirat(p->dir, name, 0700))
		p->fd[i] = openat(p->dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->fd[i] < 0 || fstat(p->fd[i], &st) || st.st_uid != p->owner || !clear(p, name))
		return false;
	p->spare[i] = (struct spare){SPARE_READY, st.st_dev, st.st_ino};
	return true;
}

size_t pool_fill(struct pool *p, const int **ret_fd)
{
	size_t n = 0;

	pthread_mutex_lock(&p->lock);
	p->ruled = false;
	while (n < POOL_SPARES && (p->spare[n].state == SPARE_READY || make_spare(p, n)))
		n++;
	pthread_mutex_unlock(&p->lock);
	*ret_fd = p->fd;
	return n;
}

void pool_ruled(struct pool *p, const struct reach *class)
{
	pthread_mutex_lock(&p->lock);
	p->ruled = class != NULL;
	if (class)
		p->class = *class;
	pthread_mutex_unlock(&p->lock);
}

/* ---- which directory may be one of them ---- */

bool pool_suits(const struct pool *p, const struct policy *policy, const char *path,
		const struct identity *as)
{
	struct reach here;

	if (!p->ruled || as->fsuid != p->owner)
		return false;
	reach_of(policy, path, &here);
	return !here.varies && here.allow == p->class.allow && here.deny == p->class.deny &&
	       here.forbid == p->class.forbid;
}

uint64_t pool_rights(const struct pool *p)
{
	return p->ruled ? access_rights(p->class.allow) : 0;
}

/* 1 yes, 0 no, -errno. */
static int lies_in(int spare, const struct stat *dir)
{
	struct place place;
	int fd AUTOCLOSE = fcntl(spare, F_DUPFD_CLOEXEC, 3);
	int r = fd < 0 ? -errno : place_of(fd, &place);

	for (unsigned level = 0; r == 0; level++) {
		if (place.dev == dir->st_dev && place.ino == dir->st_ino)
			return 1;
		r = level < PLACE_LEVELS_MAX ? place_climb(&fd, &place) : -ELOOP;
	}
	return r < 0 ? r : 0;
}

/* One that was removed again has no way up, and lies nowhere. */
bool pool_is_in(struct pool *p, const struct stat *dir)
{
	struct stat st;
	bool found = false;

	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; !found && i < POOL_SPARES; i++)
		found = p->spare[i].state == SPARE_GIVEN && !fstat(p->fd[i], &st) && st.st_nlink &&
			lies_in(p->fd[i], dir);
	pthread_mutex_unlock(&p->lock);
	return found;
}

/* ---- the act ---- */

/* What a new directory inherits of its parent beside mode and group (include/linux/fs.h). */
#define INHERITED                                                                                  \
	(FS_SECRM_FL | FS_UNRM_FL | FS_COMPR_FL | FS_SYNC_FL | FS_NODUMP_FL | FS_NOATIME_FL |      \
	 FS_NOCOMP_FL | FS_ENCRYPT_FL | FS_JOURNAL_DATA_FL | FS_NOTAIL_FL | FS_DIRSYNC_FL |        \
	 FS_NOCOW_FL | FS_DAX_FL | FS_PROJINHERIT_FL | FS_CASEFOLD_FL)

static const char *const labels[] = {"security.selinux", "security.SMACK64"};

static bool same_flags(int a, int b)
{
	unsigned long fa = 0, fb = 0; /* the kernel writes an int */
	bool has_a = !ioctl(a, FS_IOC_GETFLAGS, &fa), has_b = !ioctl(b, FS_IOC_GETFLAGS, &fb);

	return has_a == has_b && !((fa ^ fb) & INHERITED);
}

static bool same_label(int a, int b, const char *name)
{
	char la[256], lb[256];
	ssize_t na = fgetxattr(a, name, la, sizeof(la)), nb = fgetxattr(b, name, lb, sizeof(lb));

	return na == nb && (na <= 0 || !memcmp(la, lb, (size_t)na));
}

/* Would mkdir(2) give it nothing but a mode and a group? */
static bool inherits_nothing(int parent, int spare)
{
	int dir AUTOCLOSE = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0 || fgetxattr(dir, "system.posix_acl_default", NULL, 0) >= 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(labels); i++)
		if (!same_label(dir, spare, labels[i]))
			return false;
	return same_flags(dir, spare);
}

/* As vfs_mkdir() and inode_init_owner() would have made it. */
static bool dress(int spare, const struct stat *parent, mode_t mode, mode_t mask)
{
	bool setgid = parent->st_mode & S_ISGID;
	gid_t gid = setgid ? parent->st_gid : (gid_t)setfsgid((gid_t)-1);
	mode_t wanted = (mode & 01777 & ~mask) | (setgid ? S_ISGID : 0);
	struct stat st;

	if (fstat(spare, &st) || (st.st_gid != gid && fchown(spare, (uid_t)-1, gid)) ||
	    fchmod(spare, wanted) || futimens(spare, NULL) || fstat(spare, &st))
		return false;
	return (st.st_mode & 07777) == wanted && st.st_gid == gid;
}

static bool take_place(struct pool *p, size_t i, int parent, const char *name, mode_t mode,
		       mode_t mask)
{
	struct stat st, there;
	char own[24];

	spare_name(i, own);
	int fd AUTOCLOSE = openat(p->dir, own, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || st.st_dev != p->spare[i].dev ||
	    st.st_ino != p->spare[i].ino || fstat(parent, &there) || !is_empty(fd) ||
	    !inherits_nothing(parent, fd))
		return false;
	if (dress(fd, &there, mode, mask) &&
	    !renameat2(p->dir, own, parent, name, RENAME_NOREPLACE))
		return true;
	fchmod(fd, 0700); /* else the next one might not even open it */
	return false;
}

int pool_mkdir(struct pool *p, int parent, const char *name, mode_t mode, mode_t mask)
{
	bool done = false;
	size_t i = 0;

	/* To be moved, a directory must be its owner's to write. */
	if (!(mode & ~mask & S_IWUSR))
		return -EAGAIN;
	pthread_mutex_lock(&p->lock);
	while (i < POOL_SPARES && p->spare[i].state != SPARE_READY)
		i++;
	if (p->ruled && i < POOL_SPARES) {
		done = take_place(p, i, parent, name, mode, mask);
		if (done)
			p->spare[i].state = SPARE_GIVEN;
	}
	pthread_mutex_unlock(&p->lock);
	return done ? 0 : -EAGAIN;
}
