/*
 * The git directories of a project: breadth first, so that where the bound is hit the deep ones are
 * missing and not the obvious ones.
 */
#include "supervisor/project.h"
#include "tracer/buf.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define PROJECT_DIRS_MAX    4000   /* directories looked into: some 30 ms */
#define PROJECT_ENTRIES_MAX 200000 /* names looked at */
#define PROJECT_GITS_MAX    256

struct list {
	char **item; /* owned, NULL-terminated once anything is in it */
	size_t len, cap;
};

struct search {
	struct list queue, found;
	size_t entries;
	bool truncated;
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
	buf_addf(&out, "%s/%s", dir[1] ? dir : "", name);
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

static bool is_directory(int dir, const struct dirent *d)
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

static int add_children(struct search *s, DIR *d, const char *path)
{
	struct dirent *e;
	int r = 0;
	while (r == 0 && (e = readdir(d))) {
		if (++s->entries > PROJECT_ENTRIES_MAX) {
			s->truncated = true;
			break;
		}
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (is_directory(dirfd(d), e))
			r = add_queue(s, join(path, e->d_name));
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
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	if (!d) {
		if (fd >= 0)
			close(fd);
		return 0; /* gone, or not ours to read: nothing in it can be protected by name */
	}
	int r;
	if (is_git_dir(fd)) {
		r = add_found(s, path);
		if (r == 0 && has_type(fd, "modules", S_IFDIR))
			r = add_queue(s, join(path, "modules"));
	} else {
		r = add_git_file(s, fd, path);
		if (r == 0)
			r = add_children(s, d, path);
	}
	closedir(d);
	return r;
}

int project_git_dirs(const struct project *p, char ***ret, bool *ret_truncated)
{
	struct search s = {0};
	int r = p->git_dir ? add_queue(&s, strdup(p->git_dir)) : 0;
	if (r == 0 && p->work_git)
		r = add_found(&s, p->work_git);
	if (r == 0)
		r = add_queue(&s, strdup(p->dir));
	for (size_t i = 0; r == 0 && i < s.queue.len; i++)
		r = look_into(&s, s.queue.item[i]);
	project_free_list(s.queue.item);
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
