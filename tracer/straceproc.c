#include "tracer/straceproc.h"

#include "tracer/util.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

/* ---- what is shared ---- */

static struct stracefs *fs_new(void)
{
	struct stracefs *fs = calloc(1, sizeof(*fs));
	if (fs)
		fs->refs = 1;
	return fs;
}

static void fs_unref(struct stracefs *fs)
{
	if (!fs || --fs->refs)
		return;
	free(fs->cwd);
	free(fs->root);
	free(fs);
}

static struct stracefs *fs_copy(const struct stracefs *from)
{
	struct stracefs *fs = fs_new();
	if (!fs)
		return NULL;
	fs->strange = from->strange;
	fs->cwd = from->cwd ? strdup(from->cwd) : NULL;
	fs->root = from->root ? strdup(from->root) : NULL;
	if ((from->cwd && !fs->cwd) || (from->root && !fs->root)) {
		fs_unref(fs);
		return NULL;
	}
	return fs;
}

static void files_unref(struct stracefiles *f)
{
	if (!f || --f->refs)
		return;
	for (size_t i = 0; i < f->len; i++)
		free(f->fd[i].path);
	free(f->fd);
	free(f);
}

static struct stracefiles *files_new(void)
{
	struct stracefiles *f = calloc(1, sizeof(*f));
	if (f)
		f->refs = 1;
	return f;
}

static struct stracefiles *files_copy(const struct stracefiles *from)
{
	struct stracefiles *f = files_new();
	if (!f)
		return NULL;
	f->loose = from->loose;
	f->fd = from->len ? calloc(from->len, sizeof(*f->fd)) : NULL;
	if (from->len && !f->fd) {
		files_unref(f);
		return NULL;
	}
	f->cap = from->len;
	for (; f->len < from->len; f->len++) {
		struct stracefd *fd = &f->fd[f->len];
		*fd = from->fd[f->len];
		if (!fd->path)
			continue;
		fd->path = strdup(fd->path);
		if (fd->path)
			continue;
		files_unref(f);
		return NULL;
	}
	return f;
}

/* ---- the table ---- */

static struct straceproc **bucket_of(const struct straceprocs *all, pid_t pid)
{
	return (struct straceproc **)&all->bucket[(unsigned)pid % STRACEPROC_BUCKETS];
}

struct straceproc *straceprocs_find(const struct straceprocs *all, pid_t pid)
{
	struct straceproc *p = *bucket_of(all, pid);
	while (p && p->pid != pid)
		p = p->next;
	return p;
}

static void release(struct straceproc *p)
{
	straceproc_end(p);
	buf_free(&p->text);
}

void straceprocs_drop(struct straceprocs *all, struct straceproc *p)
{
	struct straceproc **at = bucket_of(all, p->pid);
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	release(p);
	free(p);
	all->len--;
}

static void drop_if_ended(struct straceprocs *all)
{
	for (size_t i = 0; i < STRACEPROC_BUCKETS; i++)
		for (struct straceproc *p = all->bucket[i], *next; p; p = next) {
			next = p->next;
			if (p->ended)
				straceprocs_drop(all, p);
		}
}

struct straceproc *straceprocs_claim(struct straceprocs *all, pid_t pid)
{
	struct straceproc *p = straceprocs_find(all, pid);
	if (p)
		straceprocs_drop(all, p);
	if (all->len == STRACEPROC_MAX)
		drop_if_ended(all);
	p = all->len == STRACEPROC_MAX ? NULL : calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	p->tgid = pid;
	p->fs = fs_new();
	p->files = files_new();
	if (p->fs)
		p->fs->root = strdup("");
	if (!p->fs || !p->files || !p->fs->root) {
		release(p);
		free(p);
		return NULL;
	}
	p->next = *bucket_of(all, pid);
	*bucket_of(all, pid) = p;
	all->len++;
	return p;
}

void straceprocs_free(struct straceprocs *all)
{
	for (size_t i = 0; i < STRACEPROC_BUCKETS; i++)
		while (all->bucket[i])
			straceprocs_drop(all, all->bucket[i]);
}

struct straceproc *straceprocs_which(const struct straceprocs *all,
				     bool (*is)(const struct straceproc *p), size_t *ret_n)
{
	struct straceproc *first = NULL;
	*ret_n = 0;
	for (size_t i = 0; i < STRACEPROC_BUCKETS && all->len; i++)
		for (struct straceproc *p = all->bucket[i]; p; p = p->next) {
			if (!is(p))
				continue;
			if (!first)
				first = p;
			(*ret_n)++;
		}
	return first;
}

void straceprocs_each(struct straceprocs *all, void (*f)(struct straceproc *p, void *arg),
		      void *arg)
{
	for (size_t i = 0; i < STRACEPROC_BUCKETS; i++)
		for (struct straceproc *p = all->bucket[i]; p; p = p->next)
			f(p, arg);
}

/* ---- one process ---- */

void straceproc_end(struct straceproc *p)
{
	fs_unref(TAKE_PTR(p->fs));
	files_unref(TAKE_PTR(p->files));
	free(TAKE_PTR(p->exe));
	buf_free(&p->text);
	p->begun = false;
	p->ended = true;
}

int straceproc_inherit(struct straceproc *child, const struct straceproc *parent, uint64_t flags)
{
	if (!parent->fs || !parent->files)
		return 0;
	struct stracefs *fs = parent->fs;
	struct stracefiles *files = parent->files;
	char *exe = parent->exe ? strdup(parent->exe) : NULL;
	if (flags & CLONE_FS)
		fs->refs++;
	else
		fs = fs_copy(fs);
	if (flags & CLONE_FILES)
		files->refs++;
	else
		files = files_copy(files);
	if (!fs || !files) {
		fs_unref(fs);
		files_unref(files);
		free(exe);
		return -ENOMEM;
	}
	fs_unref(child->fs);
	files_unref(child->files);
	free(child->exe);
	child->exe = exe;
	child->fs = fs;
	child->files = files;
	child->tgid = flags & CLONE_THREAD ? parent->tgid : child->pid;
	child->parent = parent->tgid;
	child->own_wall = parent->own_wall;
	child->i386 = parent->i386;
	return 0;
}

int straceproc_unshare_fs(struct straceproc *p)
{
	if (p->fs->refs == 1)
		return 0;
	struct stracefs *fs = fs_copy(p->fs);
	if (!fs)
		return -ENOMEM;
	fs_unref(p->fs);
	p->fs = fs;
	return 0;
}

int straceproc_unshare_files(struct straceproc *p)
{
	if (p->files->refs == 1)
		return 0;
	struct stracefiles *f = files_copy(p->files);
	if (!f)
		return -ENOMEM;
	files_unref(p->files);
	p->files = f;
	return 0;
}

void straceproc_chdir(struct straceproc *p, char *cwd)
{
	free(p->fs->cwd);
	p->fs->cwd = cwd;
}

/* ---- descriptors ---- */

/* The place of a descriptor, or where it would be. */
static size_t place_of(const struct stracefiles *f, int fd)
{
	size_t low = 0;
	size_t high = f->len;
	while (low < high) {
		size_t mid = (low + high) / 2;
		if (f->fd[mid].fd < fd)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct stracefd *straceproc_fd(const struct straceproc *p, int fd)
{
	size_t at = place_of(p->files, fd);
	return at < p->files->len && p->files->fd[at].fd == fd ? &p->files->fd[at] : NULL;
}

static struct stracefd *insert(struct stracefiles *f, int fd)
{
	size_t at = place_of(f, fd);
	if (f->len == STRACEPROC_FDS_MAX)
		return NULL;
	if (f->len == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 16;
		struct stracefd *more = realloc(f->fd, cap * sizeof(*more));
		if (!more)
			return NULL;
		f->fd = more;
		f->cap = cap;
	}
	memmove(f->fd + at + 1, f->fd + at, (f->len - at) * sizeof(*f->fd));
	f->len++;
	f->fd[at] = (struct stracefd){.fd = fd};
	return &f->fd[at];
}

void straceproc_open(struct straceproc *p, const struct stracefd *fd)
{
	char *path AUTOFREE = fd->path ? strdup(fd->path) : NULL;
	struct stracefd *at = straceproc_fd(p, fd->fd);
	if (fd->fd < 0 || (fd->path && !path))
		return;
	if (!at)
		at = insert(p->files, fd->fd);
	if (!at)
		return;
	free(at->path);
	*at = *fd;
	at->path = TAKE_PTR(path);
}

void straceproc_close(struct straceproc *p, int fd)
{
	if (fd >= 0)
		straceproc_close_range(p, (uint64_t)fd, (uint64_t)fd, false);
}

void straceproc_close_range(struct straceproc *p, uint64_t first, uint64_t last, bool cloexec_only)
{
	struct stracefiles *f = p->files;
	size_t kept = 0;
	for (size_t i = 0; i < f->len; i++) {
		uint64_t fd = (uint64_t)f->fd[i].fd;
		if (fd >= first && fd <= last && (!cloexec_only || f->fd[i].cloexec))
			free(f->fd[i].path);
		else
			f->fd[kept++] = f->fd[i];
	}
	f->len = kept;
}

int straceproc_exec(struct straceproc *p)
{
	int r = straceproc_unshare_files(p);
	if (r < 0)
		return r;
	straceproc_close_range(p, 0, UINT64_MAX, true);
	return 0;
}
