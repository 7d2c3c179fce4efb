/*
 * The git directories of a project: breadth first, so that where the bound is hit the deep ones are
 * missing and not the obvious ones.
 */
#include "supervisor/fsmagic.h"
#include "supervisor/project.h"
#include "tracer/buf.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define PROJECT_DIRS_MAX    4000   /* directories looked into: some 30 ms */
#define PROJECT_ENTRIES_MAX 200000 /* names looked at */
#define LEAF_ENTRIES	    4	   /* as many names' time does a directory take that is not read */
#define PROJECT_GITS_MAX    256
#define LIST_SIZE	    32768 /* bytes of entries at once */

struct list {
	char **item; /* owned, NULL-terminated once anything is in it */
	size_t len, cap;
};

struct search {
	struct list queue, found;
	size_t entries;
	bool truncated;
	char *list; /* LIST_SIZE */
	dev_t dev;  /* the last one's file system; 0: none yet */
	bool counts;
};

void project_free_list(char **list)
{
	for (char **at = list; at && *at; at++)
		free(*at);
	free(list);
}

/* Takes path, which may be NULL for want of memory. */
static int push(struct list *l, char *path)
{
	if (!path)
		return -ENOMEM;
	if (l->len + 2 > l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 32;
		char **item = reallocarray(l->item, cap, sizeof(*item));
		if (!item) {
			free(path);
			return -ENOMEM;
		}
		l->item = item;
		l->cap = cap;
	}
	l->item[l->len++] = path;
	l->item[l->len] = NULL;
	return 0;
}

static char *join(const char *dir, const char *name)
{
	struct buf out = {0};
	buf_addf(&out, "%s/%s", strcmp(dir, "/") != 0 ? dir : "", name);
	return buf_take(&out);
}

static int add_found(struct search *s, const char *path)
{
	for (size_t i = 0; i < s->found.len; i++)
		if (strcmp(s->found.item[i], path) == 0)
			return 0;
	if (s->found.len == PROJECT_GITS_MAX) {
		s->truncated = true;
		return 0;
	}
	return push(&s->found, strdup(path));
}

static int add_queue(struct search *s, char *path)
{
	if (path && s->queue.len == PROJECT_DIRS_MAX) {
		s->truncated = true;
		free(path);
		return 0;
	}
	return push(&s->queue, path);
}

static bool is_directory(int dir, const struct dirent64 *d)
{
	struct stat st;
	if (d->d_type != DT_UNKNOWN)
		return d->d_type == DT_DIR;
	return fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static bool has_type(int dir, const char *name, mode_t type)
{
	struct stat st;
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (!type || (st.st_mode & S_IFMT) == type);
}

/* .git of a working tree, a bare repository, or a submodule's below .git/modules: all look alike.
 */
static bool is_git_dir(int dir)
{
	return has_type(dir, "HEAD", 0) && has_type(dir, "objects", S_IFDIR) &&
	       has_type(dir, "refs", S_IFDIR);
}

/*
 * Where a directory's links are its name, its "." and its children's "..": two of them say that no
 * directory is in it. Others have one for all (btrfs, overlayfs), or whatever their server says.
 */
static bool counts_children(struct search *s, int dir, dev_t dev)
{
	struct statfs fs;
	if (dev == s->dev)
		return s->counts;
	s->dev = dev;
	s->counts =
		!fstatfs(dir, &fs) && (fs.f_type == EXT4_SUPER_MAGIC ||
				       fs.f_type == XFS_SUPER_MAGIC || fs.f_type == TMPFS_MAGIC);
	return s->counts;
}

struct listing {
	int dir;
	const char *path;
	dev_t counts; /* its file system, where that counts children; else 0 */
};

/* Half of all directories, and most names are in them. */
static bool is_leaf(const struct listing *l, const char *name)
{
	struct stat st;
	return l->counts && fstatat(l->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(st.st_mode) && st.st_dev == l->counts && st.st_nlink == 2;
}

static int add_child(struct search *s, const struct listing *l, const char *name)
{
	char *path AUTOFREE = join(l->path, name);
	if (!path)
		return -ENOMEM;
	if (!is_leaf(l, name))
		return add_queue(s, TAKE_PTR(path));
	char *file AUTOFREE = join(name, ".git");
	s->entries += LEAF_ENTRIES;
	if (!file)
		return -ENOMEM;
	if (!has_type(l->dir, file, S_IFREG))
		return 0;
	char *whole AUTOFREE = join(path, ".git");
	return whole ? add_found(s, whole) : -ENOMEM;
}

static int add_entry(struct search *s, const struct listing *l, const struct dirent64 *e)
{
	if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
		return 0;
	return is_directory(l->dir, e) ? add_child(s, l, e->d_name) : 0;
}

/* Not by readdir(): a project has hundreds, and that asks three times more of each. */
static int add_children(struct search *s, int dir, const char *path)
{
	struct listing l = {.dir = dir, .path = path};
	struct stat st;
	const struct dirent64 *e;
	ssize_t n;
	int r = 0;
	if (fstat(dir, &st) == 0 && counts_children(s, dir, st.st_dev))
		l.counts = st.st_dev;
	while (r == 0 && (n = getdents64(dir, s->list, LIST_SIZE)) > 0) {
		for (ssize_t at = 0; r == 0 && at < n; at += e->d_reclen) {
			e = (const void *)(s->list + at);
			if (++s->entries > PROJECT_ENTRIES_MAX) {
				s->truncated = true;
				return 0;
			}
			r = add_entry(s, &l, e);
		}
	}
	return r;
}

/* A submodule's or a worktree's .git file leads git to its directory. */
static int add_git_file(struct search *s, int dir, const char *path)
{
	if (!has_type(dir, ".git", S_IFREG))
		return 0;
	char *file AUTOFREE = join(path, ".git");
	return file ? add_found(s, file) : -ENOMEM;
}

static int look_into(struct search *s, const char *path)
{
	int fd AUTOCLOSE = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0; /* gone, or not ours to read: nothing in it can be protected by name */
	int r;
	if (is_git_dir(fd)) {
		r = add_found(s, path);
		if (r == 0 && has_type(fd, "modules", S_IFDIR))
			r = add_queue(s, join(path, "modules"));
	} else {
		r = add_git_file(s, fd, path);
		if (r == 0)
			r = add_children(s, fd, path);
	}
	return r;
}

int project_git_dirs(const struct project *p, char ***ret, bool *ret_truncated)
{
	struct search s = {.list = malloc(LIST_SIZE)};
	int r = s.list ? 0 : -ENOMEM;
	if (r == 0 && p->git_dir)
		r = add_queue(&s, strdup(p->git_dir));
	if (r == 0 && p->work_git)
		r = add_found(&s, p->work_git);
	if (r == 0)
		r = add_queue(&s, strdup(p->dir));
	for (size_t i = 0; r == 0 && i < s.queue.len; i++)
		r = look_into(&s, s.queue.item[i]);
	project_free_list(s.queue.item);
	free(s.list);
	if (r == 0 && !s.found.item) {
		s.found.item = calloc(1, sizeof(char *));
		r = s.found.item ? 0 : -ENOMEM;
	}
	if (r < 0) {
		project_free_list(s.found.item);
		return r;
	}
	*ret = s.found.item;
	*ret_truncated = s.truncated;
	return 0;
}
