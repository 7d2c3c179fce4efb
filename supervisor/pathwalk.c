#include "supervisor/pathwalk.h"

#include "tracer/path.h"
#include "tracer/util.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOKS_MAX 100 /* at one name that changes meanwhile */

#define HASH_START UINT32_C(2166136261)
#define HASH_PRIME UINT32_C(16777619)

/* ---- what was looked at before ---- */

/* PLAIN: there, and no symlink. */
enum state { UNKNOWN, PLAIN, MISSING };

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
	buf_reset(&w->names);
}

/* What there is no room to note is looked at again. */
static void note(struct pathwalk *w, enum state state)
{
	if (w->once)
		return;
	if (w->known_len == PATHWALK_KNOWN / 2)
		forget(w);
	if (!w->known && !(w->known = calloc(PATHWALK_KNOWN, sizeof(*w->known))))
		return;
	struct pathwalk_known *k = find(w);
	size_t name = w->names.len;
	buf_add(&w->names, w->out.data, w->out.len + 1);
	if (buf_error(&w->names)) {
		forget(w);
		return;
	}
	w->known_len += k->state == UNKNOWN;
	*k = (struct pathwalk_known){w->hash, (uint32_t)name, state};
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
	w->missing = state == MISSING;
	return state == UNKNOWN ? look_again(w, parent_len) : 0;
}

static int walk_all(struct pathwalk *w)
{
	int r = 0;
	while (r == 0 && w->at < w->rest.len) {
		const char *name = w->rest.data + w->at;
		size_t n = strcspn(name, "/");
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

void pathwalk_release(struct pathwalk *w)
{
	forget(w);
	buf_free(&w->out);
	buf_free(&w->links);
	buf_free(&w->rest);
	buf_free(&w->spare);
	buf_free(&w->names);
}
