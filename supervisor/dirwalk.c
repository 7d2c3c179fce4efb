#include "supervisor/dirwalk.h"

#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#define PROCFS_MAGIC 0x9fa0
#define PROCFS_ROOT  1 /* its inode number */

#define LIST_SIZE 32768 /* bytes of entries at once */

#define PLAIN (O_PATH | O_NOFOLLOW | O_CLOEXEC)

int dirwalk_open(const char *path, struct stat *ret)
{
	struct open_how how = {.flags = PLAIN, .resolve = RESOLVE_NO_SYMLINKS};
	int fd AUTOCLOSE = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd < 0 || fstat(fd, ret) < 0)
		return -errno;
	/* A last one is opened itself (O_PATH with O_NOFOLLOW). */
	return S_ISLNK(ret->st_mode) ? -ELOOP : TAKE_FD(fd);
}

int dirwalk_open_parent(const char *path)
{
	struct stat st;
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t n = (size_t)(slash - path);

	if (n >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(dir, path, n);
	dir[n] = '\0';
	return dirwalk_open(n ? dir : "/", &st);
}

int dirwalk_chmod(int fd, mode_t mode)
{
	char self[40];

	/* fchmod() takes no O_PATH descriptor, and what may not be read gives no other. */
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return chmod(self, mode) ? -errno : 0;
}

int dirwalk_init(struct dirwalk *w, const char *path, uint64_t left)
{
	size_t n = strlen(path);

	if (n >= sizeof(w->path))
		return -ENAMETOOLONG;
	memcpy(w->path, path, n + 1);
	w->len = n;
	w->depth = 0;
	w->left = left;
	w->walked = 0;
	w->cut = false;
	w->by_name = w->only_directories = false;
	w->skips = NULL;
	return 0;
}

static bool is_left_out(const struct dirwalk *w, const struct dirent64 *e)
{
	if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || e->d_type == DT_LNK)
		return true;
	return w->only_directories && e->d_type != DT_DIR && e->d_type != DT_UNKNOWN;
}

/* Make w->path the child's; false: too long. */
static bool push(struct dirwalk *w, const char *name)
{
	size_t n = strlen(name), slash = w->len > 1;

	if (w->len + slash + n >= sizeof(w->path))
		return false;
	if (slash)
		w->path[w->len++] = '/';
	memcpy(w->path + w->len, name, n + 1);
	w->len += n;
	return true;
}

static bool is_procfs(int fd, const struct stat *st)
{
	struct statfs fs;

	/* It lies on no disk. */
	return !major(st->st_dev) && fstatfs(fd, &fs) == 0 && fs.f_type == PROCFS_MAGIC;
}

static bool is_process(int fd, const struct stat *st, const char *name)
{
	return name[strspn(name, "0123456789")] == '\0' && is_procfs(fd, st);
}

static int open_child(struct dirwalk *w, int dir, const char *name, dirwalk_fn *fn, void *arg)
{
	int fd AUTOCLOSE = openat(dir, name, PLAIN);
	struct stat st;

	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		w->cut = true;
	if (fd < 0 || fstat(fd, &st) < 0 || S_ISLNK(st.st_mode))
		return 0;
	if (w->only_directories && !S_ISDIR(st.st_mode))
		return 0;
	if (S_ISDIR(st.st_mode) && is_process(fd, &st, name))
		return 0;
	return fn(arg, w, fd, &st);
}

static int look_at(struct dirwalk *w, int dir, const struct dirent64 *e, dirwalk_fn *fn, void *arg)
{
	struct stat st;

	if (w->skips && w->skips(arg, w))
		return 0;
	if (!w->by_name || e->d_type == DT_DIR || e->d_type == DT_UNKNOWN)
		return open_child(w, dir, e->d_name, fn, arg);
	if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(st.st_mode))
		return 0;
	if (S_ISDIR(st.st_mode)) /* since it was listed */
		return open_child(w, dir, e->d_name, fn, arg);
	return w->only_directories ? 0 : fn(arg, w, -1, &st);
}

static int enter(struct dirwalk *w, int dir, const struct dirent64 *e, dirwalk_fn *fn, void *arg)
{
	size_t len = w->len;
	int r = 0;

	w->left--;
	w->walked++;
	if (push(w, e->d_name))
		r = look_at(w, dir, e, fn, arg);
	else
		w->cut = true;
	w->len = len;
	w->path[len] = '\0';
	return r;
}

/* Not by readdir(): that asks four times more of each directory than the entries. */
static int each(struct dirwalk *w, int dir, dirwalk_fn *fn, void *arg)
{
	char *entries AUTOFREE = malloc(LIST_SIZE);
	const struct dirent64 *e;
	ssize_t n = 0;
	int r = 0;

	w->cut |= !entries;
	while (r == 0 && entries && (n = getdents64(dir, entries, LIST_SIZE)) > 0) {
		for (ssize_t at = 0; r == 0 && at < n; at += e->d_reclen) {
			e = (const void *)(entries + at);
			if (is_left_out(w, e))
				continue;
			if (w->left == 0) {
				w->cut = true;
				return 0;
			}
			r = enter(w, dir, e, fn, arg);
		}
	}
	return r;
}

int dirwalk_children(struct dirwalk *w, int fd, const struct stat *st, dirwalk_fn *fn, void *arg)
{
	if (st->st_ino != PROCFS_ROOT && is_procfs(fd, st))
		return 0;
	if (w->depth >= DIRWALK_DEPTH_MAX) {
		w->cut = true;
		return 0;
	}
	int dir AUTOCLOSE = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0) {
		w->cut |= errno == EMFILE || errno == ENFILE || errno == ENOMEM;
		return 0;
	}
	w->depth++;
	int r = each(w, dir, fn, arg);
	w->depth--;
	return r;
}
