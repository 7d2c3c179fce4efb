#include "oracle.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NAME_DEPTH 6

bool oracle_say(char *to, size_t n, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(to, n, fmt, ap);
	va_end(ap);
	return len >= 0 && (size_t)len < n;
}

uint64_t oracle_draw(struct oracle_world *w)
{
	uint64_t z = (w->random += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

int oracle_below(struct oracle_world *w, int n)
{
	return (int)(oracle_draw(w) % (uint64_t)n);
}

static int is_name(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static void scan(struct oracle_world *w, const char *path, uint64_t mount_of_parent, int depth)
{
	struct oracle_node *node = &w->nodes[w->count];
	struct dirent **entries;
	struct statx sx;
	int n;

	if (w->count == ORACLE_NODES_MAX || !oracle_say(node->path, sizeof(node->path), "%s", path))
		return;
	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_MNT_ID, &sx) < 0)
		return;
	node->mode = sx.stx_mode;
	node->mount = depth > 0 && sx.stx_mnt_id != mount_of_parent;
	/* A bound directory that is gone can't be created in: ENOENT comes first. */
	if (sx.stx_ino == w->bound_ino && sx.stx_mnt_id == mount_of_parent)
		node->mount = true;
	w->count++;
	n = S_ISDIR(sx.stx_mode) ? scandir(path, &entries, is_name, alphasort) : -1;
	for (int i = 0; i < n; i++) {
		char child[ORACLE_PATH_BYTES];

		/* An overlay's own files are the kernel's to change. */
		if (oracle_say(child, sizeof(child), "%s/%s", path, entries[i]->d_name) &&
		    strcmp(entries[i]->d_name, "layers") != 0)
			scan(w, child, sx.stx_mnt_id, depth + 1);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

void oracle_remember(struct oracle_world *w, const char *path)
{
	struct oracle_node *node = &w->nodes[w->count];
	struct stat st;

	if (w->count == ORACLE_NODES_MAX || lstat(path, &st) < 0)
		return;
	*node = (struct oracle_node){.mode = st.st_mode};
	w->count += oracle_say(node->path, sizeof(node->path), "%s", path);
}

void oracle_rescan(struct oracle_world *w)
{
	w->count = 0;
	scan(w, w->root, 0, 0);
}

const struct oracle_node *oracle_pick(struct oracle_world *w,
				      bool (*fits)(const struct oracle_node *))
{
	for (int tries = 0; tries < 200; tries++) {
		struct oracle_node *node = &w->nodes[oracle_below(w, w->count)];

		if (fits(node) && strncmp(node->path, w->focus, strlen(w->focus)) == 0)
			return node;
	}
	return NULL;
}

bool oracle_is_any(const struct oracle_node *n)
{
	return n->path[0] == '/';
}

static bool is_dir(const struct oracle_node *n)
{
	return S_ISDIR(n->mode);
}

static int depth_of(const char *path)
{
	int n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

bool oracle_new_name(struct oracle_world *w, const char *dir, char path[ORACLE_PATH_BYTES])
{
	if (depth_of(dir) > NAME_DEPTH)
		dir = w->root;
	return oracle_say(path, ORACLE_PATH_BYTES, "%s/n%d", dir, w->serial++);
}

/* What can't be made (the tree is full, only root may make a device) is simply not there. */
static void make_one(struct oracle_world *w, mode_t kind, const char *path)
{
	const struct oracle_node *other;

	if (kind == S_IFDIR) {
		(void)!mkdir(path, 0777);
	} else if (kind == S_IFLNK) {
		other = oracle_pick(w, oracle_is_any);
		(void)!symlink(other ? other->path : "nowhere", path);
	} else if (kind == 0) {
		other = oracle_pick(w, oracle_is_any);
		(void)!(other && link(other->path, path));
	} else {
		(void)!mknod(path, kind | 0777, makedev(1, 3));
	}
}

void oracle_grow(struct oracle_world *w)
{
	/* 0 is one more name of something. */
	static const mode_t kinds[] = {S_IFDIR, S_IFDIR, S_IFDIR, S_IFDIR, S_IFREG, S_IFREG,
				       S_IFREG, S_IFREG, S_IFIFO, S_IFCHR, S_IFLNK, 0};

	oracle_rescan(w);
	for (int i = 0; i < 30; i++) {
		mode_t kind = kinds[oracle_below(w, 12)];
		const struct oracle_node *dir = oracle_pick(w, is_dir);
		char path[ORACLE_PATH_BYTES];

		if (!dir || !oracle_new_name(w, dir->path, path))
			continue;
		make_one(w, kind, path);
		oracle_remember(w, path);
	}
}

void oracle_clear(struct oracle_world *w)
{
	oracle_rescan(w);
	for (int i = w->count; i > 1; i--)
		if (!w->nodes[i - 1].mount)
			remove(w->nodes[i - 1].path);
}

static int make_dirs(const struct oracle_world *w, const char *const *names)
{
	char path[ORACLE_PATH_BYTES];

	for (; *names; names++) {
		oracle_say(path, sizeof(path), "%s/%s", w->root, *names);
		if (mkdir(path, 0777) < 0)
			return -1;
	}
	return 0;
}

/* A kernel without overlayfs, or a filesystem that can't be a layer, leaves it out. */
static int mount_overlay(struct oracle_world *w, const char *at)
{
	static const char *const dirs[] = {"tmpfs/layers",	 "tmpfs/layers/low",
					   "tmpfs/layers/up",	 "tmpfs/layers/work",
					   "tmpfs/layers/low/l", NULL};
	char options[5 * ORACLE_PATH_BYTES], file[ORACLE_PATH_BYTES];

	if (make_dirs(w, dirs))
		return -1;
	oracle_say(file, sizeof(file), "%s/tmpfs/layers/low/l/f", w->root);
	if (mknod(file, S_IFREG | 0777, 0))
		return -1;
	oracle_say(options, sizeof(options),
		   "lowerdir=%s/tmpfs/layers/low,upperdir=%s/tmpfs/layers/up,"
		   "workdir=%s/tmpfs/layers/work,redirect_dir=on",
		   w->root, w->root, w->root);
	w->overlay = mount("warder-test", at, "overlay", 0, options) == 0;
	return 0;
}

int oracle_mount_inside(struct oracle_world *w)
{
	static const char *const before[] = {"tmpfs", "bind", "merged", "part", "part/deep", NULL};
	static const char *const after[] = {"tmpfs/a", "tmpfs/b", NULL};
	char path[ORACLE_PATH_BYTES], deep[ORACLE_PATH_BYTES];
	struct stat st;

	if (make_dirs(w, before))
		return -1;
	oracle_say(path, sizeof(path), "%s/tmpfs", w->root);
	if (mount("warder-test", path, "tmpfs", 0, "size=4m,mode=777") || make_dirs(w, after))
		return -1;
	oracle_say(path, sizeof(path), "%s/bind", w->root);
	oracle_say(deep, sizeof(deep), "%s/part/deep", w->root);
	if (mount(deep, path, NULL, MS_BIND, NULL) || stat(deep, &st))
		return -1;
	w->bound_ino = st.st_ino;
	oracle_say(path, sizeof(path), "%s/merged", w->root);
	return mount_overlay(w, path);
}
