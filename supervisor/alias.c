#include "supervisor/alias.h"

#include "supervisor/dirwalk.h"
#include "supervisor/pool.h"
#include "supervisor/reach.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

/* What can be done with a file itself; the rest is about the names in a directory. */
#define CONTENT                                                                                    \
	(ACCESS_READ | ACCESS_LIST | ACCESS_EXEC | ACCESS_WRITE | ACCESS_CONNECT | ACCESS_IOCTL)

struct protected_file {
	dev_t dev;
	ino_t ino;
	uint64_t links;	 /* not yet seen */
	uint32_t access; /* withheld */
};

struct name {
	char *path; /* owned */
	dev_t dev;
	ino_t ino;
};

struct alias_set {
	const struct policy *p; /* a loan while searching */
	struct protected_file *file;
	size_t files, files_cap;
	struct name *name;
	size_t names, names_cap;
	bool collected_all, scanned_all;
};

static int grow(void **array, size_t len, size_t *cap, size_t size)
{
	if (len < *cap)
		return 0;
	size_t more = *cap ? *cap * 2 : 16;
	void *bigger = reallocarray(*array, more, size);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	*cap = more;
	return 0;
}

static struct protected_file *find_file(const struct alias_set *a, dev_t dev, ino_t ino)
{
	for (size_t i = 0; i < a->files; i++)
		if (a->file[i].ino == ino && a->file[i].dev == dev)
			return &a->file[i];
	return NULL;
}

static bool has_name(const struct alias_set *a, const char *path)
{
	for (size_t i = 0; i < a->names; i++)
		if (strcmp(a->name[i].path, path) == 0)
			return true;
	return false;
}

static int add_name(struct alias_set *a, const char *path, struct protected_file *f)
{
	if (has_name(a, path))
		return 0;
	if (grow((void **)&a->name, a->names, &a->names_cap, sizeof(*a->name)) < 0)
		return -ENOMEM;
	char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	a->name[a->names++] = (struct name){copy, f->dev, f->ino};
	if (f->links)
		f->links--;
	return 0;
}

/* What a rule (not silence) withholds from this path. */
static uint32_t withheld(const struct policy *p, const char *path)
{
	struct standing here = policy_standing(p, path, CONTENT);

	return here.named & ~here.by[EFFECT_ALLOW];
}

/* First: the files with several links that an exception protects. */
static int collect(void *arg, struct dirwalk *w, int fd, const struct stat *st)
{
	struct alias_set *a = arg;

	if (S_ISDIR(st->st_mode))
		return dirwalk_children(w, fd, st, collect, a);
	if (st->st_nlink < 2)
		return 0;
	uint32_t mask = withheld(a->p, w->path);
	if (!mask)
		return 0;
	struct protected_file *f = find_file(a, st->st_dev, st->st_ino);
	if (!f) {
		if (a->files == ALIAS_FILES_MAX) {
			w->cut = true;
			return 0;
		}
		if (grow((void **)&a->file, a->files, &a->files_cap, sizeof(*a->file)) < 0)
			return -ENOMEM;
		f = &a->file[a->files++];
		*f = (struct protected_file){st->st_dev, st->st_ino, st->st_nlink, 0};
	}
	f->access |= mask;
	return add_name(a, w->path, f);
}

static bool all_seen(const struct alias_set *a)
{
	for (size_t i = 0; i < a->files; i++)
		if (a->file[i].links)
			return false;
	return true;
}

/* Then: their other names in what is allowed. */
static int scan(void *arg, struct dirwalk *w, int fd, const struct stat *st)
{
	struct alias_set *a = arg;

	if (S_ISDIR(st->st_mode))
		return dirwalk_children(w, fd, st, scan, a);
	struct protected_file *f = st->st_nlink > 1 ? find_file(a, st->st_dev, st->st_ino) : NULL;
	if (!f)
		return 0;
	int r = add_name(a, w->path, f);
	return r < 0 ? r : all_seen(a);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_our_own(const struct policy *p, const char *path)
{
	for (size_t i = 0; i < policy_len(p); i++) {
		const struct rule *r = policy_at(p, i);
		if (r->source == RULE_BUILTIN && r->effect == EFFECT_FORBID &&
		    strcmp(r->path, path) == 0)
			return true;
	}
	return false;
}

/* Our spare directories: a dozen at each start, and no file has a name in them. */
static bool is_pool(void *arg, const struct dirwalk *w)
{
	(void)arg;
	return w->depth == 1 && pool_is_name(strrchr(w->path, '/') + 1);
}

/* Walk below each root that lies below no other one, with one bound for all. 1: fn had enough. */
static int walk_roots(char **root, size_t n, dirwalk_fn *fn, struct alias_set *a, bool *ret_all)
{
	uint64_t left = ALIAS_WALK_MAX;
	const char *last = NULL;
	struct dirwalk w;
	struct stat st;
	int r = 0;

	*ret_all = true;
	qsort(root, n, sizeof(*root), by_text);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (last && reach_covers(last, root[i]))
			continue;
		last = root[i];
		int fd AUTOCLOSE = dirwalk_open(root[i], &st);
		if (fd < 0 || dirwalk_init(&w, root[i], left) < 0)
			continue;
		w.by_name = true;
		w.skips = is_our_own(a->p, root[i]) ? is_pool : NULL;
		r = fn(a, &w, fd, &st);
		left = w.left;
		*ret_all = *ret_all && !w.cut;
	}
	return r;
}

static bool is_source(const struct rule *r, bool exception)
{
	return (r->access & CONTENT) && exception;
}

static bool is_allowed_place(const struct rule *r, bool exception)
{
	(void)exception;
	return !r->sensitive && r->effect == EFFECT_ALLOW && (r->access & CONTENT);
}

typedef bool wanted_fn(const struct rule *r, bool exception);

static int walk_rules(struct alias_set *a, wanted_fn *wanted, dirwalk_fn *fn, bool *ret_all)
{
	size_t n = 0;
	char buf[PATH_MAX];
	int r = 0;
	bool *exception AUTOFREE = NULL;
	char **root AUTOFREE = calloc(policy_len(a->p) + 1, sizeof(*root));

	if (!root || reach_exceptions(a->p, &exception) < 0)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < policy_len(a->p); i++) {
		const struct rule *rule = policy_at(a->p, i);
		if (!wanted(rule, exception[i]) || reach_root(rule, buf, sizeof(buf)) < 0)
			continue;
		root[n] = strdup(buf);
		r = root[n] ? 0 : -ENOMEM;
		n += r == 0;
	}
	if (r == 0)
		r = walk_roots(root, n, fn, a, ret_all);
	for (size_t i = 0; i < n; i++)
		free(root[i]);
	return r;
}

int alias_find(const struct policy *p, struct alias_set **ret)
{
	struct alias_set *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->p = p;
	a->scanned_all = true;
	int r = walk_rules(a, is_source, collect, &a->collected_all);
	if (r == 0 && !all_seen(a))
		r = walk_rules(a, is_allowed_place, scan, &a->scanned_all);
	if (r < 0) {
		alias_free(a);
		return r;
	}
	if (r > 0)
		a->scanned_all = true;
	a->p = NULL;
	*ret = a;
	return 0;
}

void alias_free(struct alias_set *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->names; i++)
		free(a->name[i].path);
	free(a->name);
	free(a->file);
	free(a);
}

uint32_t alias_of(const struct alias_set *a, const struct stat *st)
{
	const struct protected_file *f = find_file(a, st->st_dev, st->st_ino);

	return f ? f->access : 0;
}

uint32_t alias_below(const struct alias_set *a, const char *dir, const struct stat *st)
{
	uint32_t mask = 0;

	for (size_t i = 0; i < a->names; i++)
		if (reach_covers(dir, a->name[i].path))
			mask |= find_file(a, a->name[i].dev, a->name[i].ino)->access;
	for (size_t i = 0; !a->scanned_all && i < a->files; i++)
		if (a->file[i].links && a->file[i].dev == st->st_dev)
			mask |= a->file[i].access;
	return mask;
}

bool alias_cut(const struct alias_set *a)
{
	return !a->collected_all || !a->scanned_all;
}
