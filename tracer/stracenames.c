#include "tracer/stracenames.h"

#include "tracer/util.h"

#include <errno.h>
#include <string.h>

#define WAYS 4
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION /* libFuzzer's: small, so that names are driven    \
						   out */
#define THINGS 32
#define LINKS  8
#define BELOW  256
#else
#define THINGS 8192 /* sets of WAYS names */
#define LINKS  2048
#define BELOW  65536
#endif

/* A cache of `sets` times WAYS names; in a set the one unused for longest gives way. */
struct table {
	struct stracename *name;
	uint32_t sets;
	uint32_t clock;
	size_t len;
	/* How many names lie below each directory, by its hash; several may share a counter. */
	uint32_t *below;
};

struct stracenames {
	struct table things;
	struct table links;
};

#define HASH_START 2166136261u

static uint32_t hash_on(uint32_t h, char c)
{
	return (h ^ (unsigned char)c) * 16777619u;
}

static uint32_t hash_of(const char *path)
{
	uint32_t h = HASH_START;
	for (; *path; path++)
		h = hash_on(h, *path);
	return h ^ (h >> 15);
}

/* One more (or, -1, less) below each directory on the way. */
static void count(struct table *t, const char *path, uint32_t change)
{
	uint32_t h = HASH_START;
	for (; *path; path++) {
		if (*path == '/')
			t->below[(h ^ (h >> 15)) % BELOW] += change;
		h = hash_on(h, *path);
	}
}

static void clear(struct table *t, struct stracename *name)
{
	if (name->path) {
		t->len--;
		count(t, name->path, UINT32_MAX);
	}
	free(name->path);
	free(name->to);
	*name = (struct stracename){0};
}

static struct stracename *find(struct table *t, const char *path)
{
	uint32_t hash = hash_of(path);
	struct stracename *set = t->name + (size_t)(hash % t->sets) * WAYS;
	for (int i = 0; i < WAYS && t->len; i++) {
		if (!set[i].path || set[i].hash != hash || strcmp(set[i].path, path) != 0)
			continue;
		set[i].used = ++t->clock;
		return &set[i];
	}
	return NULL;
}

/* The entry of the path, or a fresh one in its place; NULL: no memory. */
static struct stracename *claim(struct table *t, const char *path)
{
	struct stracename *found = find(t, path);
	if (found)
		return found;
	uint32_t hash = hash_of(path);
	struct stracename *set = t->name + (size_t)(hash % t->sets) * WAYS;
	struct stracename *oldest = set;
	for (int i = 1; i < WAYS; i++)
		if (!set[i].path || (oldest->path && set[i].used < oldest->used))
			oldest = &set[i];
	clear(t, oldest);
	oldest->path = strdup(path);
	if (!oldest->path)
		return NULL;
	oldest->hash = hash;
	oldest->used = ++t->clock;
	t->len++;
	count(t, path, 1);
	return oldest;
}

static void drop(struct table *t, const char *path)
{
	struct stracename *found = find(t, path);
	if (found)
		clear(t, found);
}

static bool is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);
	if (len && dir[len - 1] == '/')
		len--;
	return !strncmp(path, dir, len) && (path[len] == '/' || path[len] == '\0');
}

static void drop_tree(struct table *t, const char *path)
{
	drop(t, path);
	if (strcmp(path, "/") != 0 && !t->below[hash_of(path) % BELOW])
		return;
	for (size_t i = 0; t->len && i < (size_t)t->sets * WAYS; i++)
		if (t->name[i].path && is_below(t->name[i].path, path))
			clear(t, &t->name[i]);
}

static void drop_all(struct table *t)
{
	for (size_t i = 0; t->len && i < (size_t)t->sets * WAYS; i++)
		clear(t, &t->name[i]);
}

static int table_new(struct table *t, uint32_t sets)
{
	t->sets = sets;
	t->name = calloc((size_t)sets * WAYS, sizeof(*t->name));
	t->below = calloc(BELOW, sizeof(*t->below));
	return t->name && t->below ? 0 : -ENOMEM;
}

int stracenames_new(struct stracenames **ret)
{
	struct stracenames *n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	if (table_new(&n->things, THINGS) < 0 || table_new(&n->links, LINKS) < 0) {
		stracenames_free(n);
		return -ENOMEM;
	}
	*ret = n;
	return 0;
}

void stracenames_free(struct stracenames *n)
{
	if (!n)
		return;
	stracenames_forget_all(n);
	free(n->things.name);
	free(n->things.below);
	free(n->links.name);
	free(n->links.below);
	free(n);
}

void stracenames_set(struct stracenames *n, const char *path, enum trace_thing thing)
{
	drop(&n->links, path);
	struct stracename *name = claim(&n->things, path);
	if (name)
		name->thing = thing;
}

static void set_link(struct stracenames *n, const char *path, const char *to, bool resolved)
{
	char *copy AUTOFREE = to ? strdup(to) : NULL;
	drop(&n->things, path);
	struct stracename *name = claim(&n->links, path);
	if (!name)
		return;
	name->thing = TRACE_THING_SYMLINK;
	if (!copy)
		return;
	free(name->to);
	name->to = TAKE_PTR(copy);
	name->resolved = resolved;
}

void stracenames_link(struct stracenames *n, const char *path, const char *to)
{
	set_link(n, path, to, false);
}

void stracenames_resolve(struct stracenames *n, const char *path, const char *real)
{
	set_link(n, path, real, true);
}

void stracenames_forget(struct stracenames *n, const char *path)
{
	drop(&n->links, path);
	drop(&n->things, path);
}

void stracenames_forget_tree(struct stracenames *n, const char *path)
{
	drop_tree(&n->links, path);
	drop_tree(&n->things, path);
}

void stracenames_forget_all(struct stracenames *n)
{
	if (n->things.name)
		drop_all(&n->things);
	if (n->links.name)
		drop_all(&n->links);
}

const struct stracename *stracenames_link_at(struct stracenames *n, const char *path)
{
	return n->links.len ? find(&n->links, path) : NULL;
}

enum trace_thing stracenames_thing(struct stracenames *n, const char *path)
{
	const struct stracename *name = find(&n->things, path);
	if (name)
		return name->thing;
	name = stracenames_link_at(n, path);
	return name && !name->resolved ? TRACE_THING_SYMLINK : TRACE_THING_UNKNOWN;
}
