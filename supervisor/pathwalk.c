#include "supervisor/pathwalk.h"

#include "supervisor/fsmagic.h"
#include "tracer/path.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LOOKS_MAX 100	/* at one name that changes meanwhile */
#define LIST_SIZE 16384 /* bytes of entries: some 500 */

#define HASH_START UINT32_C(2166136261)
#define HASH_PRIME UINT32_C(16777619)

/* ---- what was looked at before ---- */

/* PLAIN: there, and no symlink. LISTED: there, what it is isn't known. */
enum state { UNKNOWN, PLAIN, MISSING, LISTED };

struct pathwalk_known {
	uint32_t hash;
	uint32_t name : 30; /* in names: PATHWALK_KNOWN paths are some MiB */
	uint32_t state : 2;
};

/* Of `path`, from its byte `from` on, where those before are in h already. */
static uint32_t hash_on(uint32_t h, const char *path, size_t from)
{
	for (path += from; *path; path++)
		h = (h ^ (unsigned char)*path) * HASH_PRIME;
	return h;
}

/* Where what w->out names is, or belongs. */
static struct pathwalk_known *find(const struct pathwalk *w)
{
	for (size_t i = w->hash ^ w->hash >> 16;; i++) {
		struct pathwalk_known *k = &w->known[i & (PATHWALK_KNOWN - 1)];
		if (k->state == UNKNOWN ||
		    (k->hash == w->hash && strcmp(w->names.data + k->name, w->out.data) == 0))
			return k;
	}
}

static enum state recall(const struct pathwalk *w)
{
	return w->known ? (enum state)find(w)->state : UNKNOWN;
}

static void forget(struct pathwalk *w)
{
	free(w->known);
	w->known = NULL;
	w->known_len = 0;
	w->listed_len = 0;
	buf_reset(&w->names);
}

/* What there is no room to note is looked at again: false. */
static bool note(struct pathwalk *w, enum state state)
{
	if (w->once)
		return false;
	if (w->known_len == PATHWALK_KNOWN / 2)
		forget(w);
	if (!w->known && !(w->known = calloc(PATHWALK_KNOWN, sizeof(*w->known))))
		return false;
	struct pathwalk_known *k = find(w);
	size_t name = w->names.len;
	buf_add(&w->names, w->out.data, w->out.len + 1);
	if (buf_error(&w->names)) {
		forget(w);
		return false;
	}
	w->known_len += k->state == UNKNOWN;
	*k = (struct pathwalk_known){w->hash, (uint32_t)name, state};
	return true;
}

/* Is all that is in the directory known, whose path are the first len bytes of out? */
static bool is_listed(const struct pathwalk *w, size_t len)
{
	for (size_t i = 0; i < w->listed_len; i++) {
		const char *dir = w->names.data + w->listed[i];
		if (strncmp(w->out.data, dir, len) == 0 && dir[len] == '\0')
			return true;
	}
	return false;
}

/* ---- the walk ---- */

static void shorten(struct pathwalk *w, size_t len)
{
	w->out.len = len;
	if (w->out.data)
		w->out.data[len] = '\0';
	w->hash = hash_on(HASH_START, buf_str(&w->out), 0);
}

static void pop(struct pathwalk *w)
{
	size_t len = w->out.len;
	while (len && w->out.data[len - 1] != '/')
		len--;
	shorten(w, len ? len - 1 : 0);
	w->missing = false;
}

/* out names a symlink: replace it by its target. -EAGAIN: it is none any more. */
static int follow(struct pathwalk *w, size_t parent_len)
{
	char target[PATH_MAX];
	ssize_t n = readlink(buf_str(&w->out), target, sizeof(target));
	if (n < 0)
		return errno == EINVAL || errno == ENOENT ? -EAGAIN : -errno;
	if (n == sizeof(target))
		return -ENAMETOOLONG;
	if (++w->followed > PATH_LINKS_MAX)
		return -ELOOP;
	buf_add(&w->links, w->out.data, w->out.len + 1);
	buf_reset(&w->spare);
	buf_add(&w->spare, target, (size_t)n);
	buf_add_char(&w->spare, '/');
	buf_add(&w->spare, w->rest.data + w->at, w->rest.len - w->at);
	struct buf spent = w->rest;
	w->rest = w->spare;
	w->spare = spent;
	w->at = 0;
	shorten(w, n && target[0] == '/' ? 0 : parent_len);
	return buf_error(&w->rest);
}

static bool is_self(const char *path)
{
	return strcmp(path, "/proc/self") == 0 || strcmp(path, "/proc/thread-self") == 0;
}

static int look_at(struct pathwalk *w, size_t parent_len)
{
	struct stat st;
	if (lstat(w->out.data, &st) < 0) {
		/* What can't be looked at from here can't be resolved by anybody below us either.
		 */
		w->missing = true;
		if (errno == ENAMETOOLONG)
			return -ENAMETOOLONG;
		note(w, MISSING);
		return 0;
	}
	if (S_ISLNK(st.st_mode))
		return follow(w, parent_len);
	note(w, PLAIN);
	return 0;
}

/* A run that goes on meanwhile may put another thing by that name, over and over. */
static int look_again(struct pathwalk *w, size_t parent_len)
{
	int r = -EAGAIN;
	for (int i = 0; r == -EAGAIN && i < LOOKS_MAX; i++)
		r = look_at(w, parent_len);
	return r == -EAGAIN ? -ELOOP : r;
}

static int enter(struct pathwalk *w, const char *name, size_t n)
{
	size_t parent_len = w->out.len;
	buf_add_char(&w->out, '/');
	buf_add(&w->out, name, n);
	if (buf_error(&w->out) < 0)
		return buf_error(&w->out);
	if (w->missing || w->as_written)
		return 0;
	if (is_self(w->out.data))
		return -EOPNOTSUPP;
	w->hash = hash_on(w->hash, w->out.data, parent_len);
	enum state state = recall(w);
	if (state == UNKNOWN && is_listed(w, parent_len))
		state = MISSING;
	w->missing = state == MISSING;
	return state == UNKNOWN || state == LISTED ? look_again(w, parent_len) : 0;
}

static int walk_all(struct pathwalk *w)
{
	int r = 0;
	while (r == 0 && w->at < w->rest.len) {
		const char *name = w->rest.data + w->at;
		size_t n = (size_t)(strchrnul(name, '/') - name);
		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		w->at += n + (name[n] == '/');
		if (n == 2 && memcmp(name, "..", 2) == 0)
			pop(w);
		else if (n > 1 || (n == 1 && name[0] != '.'))
			r = enter(w, name, n);
	}
	return r;
}

int pathwalk_resolve(struct pathwalk *w, const char *absolute, bool as_written)
{
	if (absolute[0] != '/')
		return -EINVAL;
	buf_reset(&w->out);
	buf_reset(&w->links);
	buf_reset(&w->rest);
	buf_add_str(&w->rest, absolute);
	w->at = 0;
	w->hash = HASH_START;
	w->followed = 0;
	w->as_written = as_written;
	w->missing = false;
	int r = buf_error(&w->rest);
	if (r == 0)
		r = walk_all(w);
	if (r == 0 && w->out.len == 0)
		buf_add_char(&w->out, '/');
	if (r == 0)
		r = buf_error(&w->out);
	return r == 0 ? buf_error(&w->links) : r;
}

/* ---- whole directories ---- */

/* On some file systems there are things that no list has, or that have names by the thousand. */
static bool lists_all(int dir)
{
	struct statfs fs;
	if (fstatfs(dir, &fs))
		return false;
	switch ((uint32_t)fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
		return true;
	default:
		return false;
	}
}

/* The entries, as getdents64(2) gives them. -E2BIG: they are more than that. */
static ssize_t read_entries(int dir, char entries[LIST_SIZE])
{
	char more[sizeof(struct dirent64)];
	ssize_t n = getdents64(dir, entries, LIST_SIZE);
	ssize_t rest = n > 0 ? getdents64(dir, more, sizeof(more)) : 0;
	return n < 0 || rest < 0 ? -errno : rest ? -E2BIG : n;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static enum state state_of(const struct dirent64 *e)
{
	return e->d_type == DT_LNK || e->d_type == DT_UNKNOWN ? LISTED : PLAIN;
}

/* out is the directory's path, and is so again. False: not all of them could be. */
static bool note_entries(struct pathwalk *w, const char *entries, ssize_t n)
{
	size_t len = w->out.len;
	uint32_t hash = w->hash;
	const struct dirent64 *e;
	bool all = true;
	for (ssize_t at = 0; all && at < n; at += e->d_reclen) {
		e = (const void *)(entries + at);
		if (is_dots(e->d_name))
			continue;
		buf_add_char(&w->out, '/');
		buf_add_str(&w->out, e->d_name);
		w->hash = hash_on(hash, buf_str(&w->out), len);
		all = !buf_error(&w->out) && (recall(w) != UNKNOWN || note(w, state_of(e)));
		w->out.len = len;
	}
	shorten(w, len);
	return all;
}

static size_t count(const char *entries, ssize_t n)
{
	size_t found = 0;
	for (ssize_t at = 0; at < n; found++)
		at += ((const struct dirent64 *)(const void *)(entries + at))->d_reclen;
	return found;
}

/*
 * Does the directory take letters for one another (a casefold directory, an old XFS)? Asked by a
 * listed name in the other case. True where that can't be told.
 */
static bool folds(int dir, const char *entries, ssize_t n)
{
	char name[NAME_MAX + 1];
	struct stat st;
	const struct dirent64 *e;
	for (ssize_t at = 0; at < n; at += e->d_reclen) {
		e = (const void *)(entries + at);
		size_t letter = strcspn(e->d_name, "abcdefghijklmnopqrstuvwxyz");
		if (!e->d_name[letter])
			continue;
		strcpy(name, e->d_name);
		name[letter] = (char)(name[letter] - 'a' + 'A');
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
			return errno != ENOENT;
	}
	return true;
}

void pathwalk_list(struct pathwalk *w, const char *absolute)
{
	char entries[LIST_SIZE];
	if (w->listed_len == PATHWALK_LISTED || pathwalk_resolve(w, absolute, false) ||
	    w->missing || w->out.len < 2)
		return;
	int dir AUTOCLOSE = open(w->out.data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || !lists_all(dir))
		return;
	ssize_t n = read_entries(dir, entries);
	if (n < 0 || w->known_len + count(entries, n) >= PATHWALK_KNOWN / 2 ||
	    folds(dir, entries, n))
		return;
	size_t name = w->names.len;
	buf_add(&w->names, w->out.data, w->out.len + 1);
	if (note_entries(w, entries, n) && !buf_error(&w->names))
		w->listed[w->listed_len++] = name;
}

void pathwalk_release(struct pathwalk *w)
{
	forget(w);
	buf_free(&w->out);
	buf_free(&w->links);
	buf_free(&w->rest);
	buf_free(&w->spare);
	buf_free(&w->names);
}
