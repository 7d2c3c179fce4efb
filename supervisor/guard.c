#include "supervisor/guard.h"

#include "supervisor/covers.h"
#include "supervisor/dirwalk.h"
#include "supervisor/guard_inside.h"
#include "supervisor/place.h"
#include "supervisor/reach.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* One existing path that rules name, or one that would be. */
struct node {
	char *path;		      /* owned */
	bool exception;		      /* an exception in force begins here */
	uint32_t at, at_denied;	      /* accesses that rules here speak of, for the thing itself */
	uint32_t below, below_denied; /* the same for what is in it */
	int fd;			      /* O_PATH; -1: does not exist */
	int parent; /* O_PATH, where it lies, of what has no way up by "..", else -1 */
	dev_t dev;
	ino_t ino;
};

struct guard {
	struct policy *p;  /* our copy */
	struct node *node; /* sorted by path; the ones that exist are also in by_inode */
	size_t nodes;
	struct node **by_inode; /* sorted by (dev, ino) */
	size_t existing;
	bool has_glob; /* exceptions by glob are in force somewhere */
	bool has_exception;
};

/* ---- making one ---- */

static bool is_glob(const struct rule *r)
{
	return r->kind == RULE_GLOB || r->kind == RULE_GLOB_EXACT;
}

uint32_t guard_denied(const struct policy *p, const char *path, uint32_t mask)
{
	return mask & ~policy_standing(p, path, mask).by[EFFECT_ALLOW];
}

/* A name that no rule spells out stands for whatever is below path. */
static void stranger_below(const char *path, char ret[PATH_MAX + 2])
{
	size_t n = strlen(path);

	memcpy(ret, path, n);
	if (n > 1)
		ret[n++] = '/';
	ret[n++] = '\001';
	ret[n] = '\0';
}

/* An exception, or what opens a part of one again, or the exception itself. */
static bool is_guarded(const struct rule *r, bool exception, const struct covers *c)
{
	if (is_glob(r) || r->sensitive || strlen(r->path) >= PATH_MAX)
		return false;
	return exception || covers_any(c, r->path, r->access);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct node *)a)->path, ((const struct node *)b)->path);
}

static int compare_inodes(const struct node *a, dev_t dev, ino_t ino)
{
	if (a->dev != dev)
		return a->dev < dev ? -1 : 1;
	if (a->ino != ino)
		return a->ino < ino ? -1 : 1;
	return 0;
}

static int by_inode(const void *a, const void *b)
{
	const struct node *n = *(struct node *const *)b;

	return compare_inodes(*(struct node *const *)a, n->dev, n->ino);
}

static void join(struct node *to, struct node *from)
{
	to->exception |= from->exception;
	to->at |= from->at;
	to->below |= from->below;
	free(from->path);
}

static void merge_nodes(struct guard *g)
{
	size_t kept = 0;

	qsort(g->node, g->nodes, sizeof(*g->node), by_path);
	for (size_t i = 0; i < g->nodes; i++) {
		if (kept && strcmp(g->node[kept - 1].path, g->node[i].path) == 0)
			join(&g->node[kept - 1], &g->node[i]);
		else
			g->node[kept++] = g->node[i];
	}
	g->nodes = kept;
}

static int add_node(struct guard *g, const struct rule *r, bool exception)
{
	char *path = strdup(r->path);

	if (!path)
		return -ENOMEM;
	g->node[g->nodes++] = (struct node){
		.path = path,
		.exception = exception,
		.at = r->access,
		.below = r->kind == RULE_TREE ? r->access : 0,
		.fd = -1,
		.parent = -1,
	};
	return 0;
}

static int collect(struct guard *g, size_t more)
{
	size_t n = policy_len(g->p);
	bool *exception AUTOFREE = NULL;
	struct covers covers = {0};
	int r = reach_exceptions(g->p, &exception);

	for (size_t i = 0; r == 0 && i < n; i++)
		if (exception[i] && !is_glob(policy_at(g->p, i)))
			r = covers_add(&covers, policy_at(g->p, i)->path,
				       policy_at(g->p, i)->access);
	covers_settle(&covers);
	g->node = calloc(n + more + 1, sizeof(*g->node));
	g->by_inode = calloc(n + more + 1, sizeof(struct node *));
	if (r < 0 || !g->node || !g->by_inode) {
		covers_release(&covers);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		g->has_glob |= exception[i] && is_glob(policy_at(g->p, i));
	for (size_t i = 0; r == 0 && i < n; i++)
		if (is_guarded(policy_at(g->p, i), exception[i], &covers))
			r = add_node(g, policy_at(g->p, i), exception[i]);
	covers_release(&covers);
	merge_nodes(g);
	return r;
}

/* Weigh the rules that meet here; an exception that another rule takes back is none. */
static void settle(const struct guard *g, struct node *n)
{
	char below[PATH_MAX + 2];

	stranger_below(n->path, below);
	n->at_denied = guard_denied(g->p, n->path, n->at);
	n->below_denied = guard_denied(g->p, below, n->below);
	n->exception = n->exception && (n->at_denied || n->below_denied);
}

static bool is_fatal(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

/*
 * No directory, or one that we may not search: its ".." is closed to us. Such a one stays where it
 * is: to give it another parent it must be written to.
 */
static bool has_no_way_up(int fd, const struct stat *st)
{
	int up AUTOCLOSE =
		S_ISDIR(st->st_mode) ? openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	return up < 0;
}

/* What does not exist, or can't be reached by us, is guarded by its path alone. */
static int hold(struct guard *g, struct node *n)
{
	struct stat st;
	int fd AUTOCLOSE = dirwalk_open(n->path, &st);

	if (fd < 0)
		return is_fatal(fd) ? fd : 0;
	if (has_no_way_up(fd, &st)) {
		n->parent = dirwalk_open_parent(n->path);
		if (n->parent < 0)
			return is_fatal(n->parent) ? n->parent : 0;
	}
	if (!S_ISDIR(st.st_mode)) /* nothing is below it */
		n->exception = n->exception && n->at_denied;
	n->fd = TAKE_FD(fd);
	n->dev = st.st_dev;
	n->ino = st.st_ino;
	g->by_inode[g->existing++] = n;
	return 0;
}

static int copy_fd(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* `now` is what the policy says of the path, `was` what lay there. */
static int add_former(struct guard *g, const struct node *now, const struct node *was, bool dir)
{
	struct node *n = &g->node[g->nodes];

	*n = *now;
	n->path = strdup(now->path);
	bool held = now->exception || was->exception;
	n->exception = held && (now->at_denied || (dir && now->below_denied));
	n->fd = copy_fd(was->fd);
	n->parent = copy_fd(was->parent);
	n->dev = was->dev;
	n->ino = was->ino;
	g->nodes++;
	if (!n->path)
		return -ENOMEM;
	if (n->fd < 0 || (n->parent < 0 && was->parent >= 0))
		return -EMFILE;
	g->by_inode[g->existing++] = n;
	return 0;
}

/* What an older guard held, and another thing or nothing has the name of. Not what is deleted. */
static int keep_former(struct guard *g, const struct guard *before)
{
	size_t named = g->nodes;
	int r = 0;

	for (size_t i = 0; before && r == 0 && i < before->nodes; i++) {
		const struct node *was = &before->node[i];
		struct stat st;
		if (was->fd < 0 || fstat(was->fd, &st) < 0 || st.st_nlink == 0)
			continue;
		const struct node *now = bsearch(was, g->node, named, sizeof(*now), by_path);
		bool same = now && now->fd >= 0 && now->dev == was->dev && now->ino == was->ino;
		if (now && !same)
			r = add_former(g, now, was, S_ISDIR(st.st_mode));
	}
	return r;
}

static int guard_fill(struct guard *g, const struct guard *before)
{
	int r = collect(g, before ? before->nodes : 0);

	g->has_exception = g->has_glob;
	for (size_t i = 0; r == 0 && i < g->nodes; i++) {
		settle(g, &g->node[i]);
		r = hold(g, &g->node[i]);
		g->has_exception |= g->node[i].exception;
	}
	if (r == 0)
		r = keep_former(g, before);
	if (r == 0 && g->existing)
		qsort(g->by_inode, g->existing, sizeof(struct node *), by_inode);
	return r;
}

int guard_new(const struct policy *p, struct guard **ret)
{
	return guard_renew(p, NULL, ret);
}

int guard_renew(const struct policy *p, const struct guard *before, struct guard **ret)
{
	struct guard *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	int r = policy_copy(p, &g->p);
	if (r == 0)
		r = guard_fill(g, before);
	if (r < 0) {
		guard_free(g);
		return r;
	}
	*ret = g;
	return 0;
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->nodes; i++) {
		free(g->node[i].path);
		util_close(&g->node[i].fd);
		util_close(&g->node[i].parent);
	}
	free(g->node);
	free(g->by_inode);
	policy_free(g->p);
	free(g);
}

const struct policy *guard_policy(const struct guard *g)
{
	return g->p;
}

/* ---- by inode ---- */

/* The first of the nodes with this inode (several paths may share one). */
static size_t first_of(const struct guard *g, dev_t dev, ino_t ino)
{
	size_t lo = 0, hi = g->existing;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (compare_inodes(g->by_inode[mid], dev, ino) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static const struct node *node_at(const struct guard *g, size_t i, dev_t dev, ino_t ino)
{
	if (i >= g->existing || compare_inodes(g->by_inode[i], dev, ino) != 0)
		return NULL;
	return g->by_inode[i];
}

/* What nodes with this inode say; *left loses the accesses that are decided here. */
static const struct node *judge(const struct guard *g, dev_t dev, ino_t ino, bool itself,
				uint32_t *left, uint32_t *ret_denied)
{
	const struct node *n, *by = NULL;
	uint32_t spoken = 0;

	for (size_t i = first_of(g, dev, ino); (n = node_at(g, i, dev, ino)); i++) {
		uint32_t no = *left & (itself ? n->at_denied : n->below_denied);
		spoken |= itself ? n->at : n->below;
		if (no && !by) {
			by = n;
			*ret_denied = no;
		}
	}
	*left &= ~spoken;
	return by;
}

static const struct rule *rule_of(const struct guard *g, const struct node *n, bool itself,
				  uint32_t mask)
{
	char below[PATH_MAX + 2];

	stranger_below(n->path, below);
	return policy_decide(g->p, itself ? n->path : below, mask & -mask).rule;
}

/* Where the walk upward from a thing begins: a descriptor (owned) of the directory it lies in, or
 * -errno. */
static int directory_of(const struct path_at *at)
{
	int fd = -ENOENT;

	if (at->parent >= 0) {
		fd = fcntl(at->parent, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? -errno : fd;
	}
	if (at->object >= 0 && S_ISDIR(at->st.st_mode)) {
		fd = openat(at->object, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		/* Its owner may have shut it, and wants to open it again: by its name, then. */
		if (fd >= 0 || errno != EACCES)
			return fd < 0 ? -errno : fd;
	}
	return at->real ? dirwalk_open_parent(at->real) : -ENOENT;
}

/* The thing's own inode is asked as such, what it lies in as that. */
int guard_find(const struct guard *g, const struct path_at *at, uint32_t bits,
	       const struct rule **ret)
{
	uint32_t left = bits, no = 0;
	bool itself = at->object >= 0;
	const struct node *by = NULL;
	struct place place;

	if (!g->existing)
		return 0;
	if (itself)
		by = judge(g, at->st.st_dev, at->st.st_ino, true, &left, &no);
	int fd AUTOCLOSE = by ? -1 : directory_of(at);
	int r = by ? 0 : fd < 0 ? fd : place_of(fd, &place);
	for (unsigned level = 0; r == 0 && !by && left; level++) {
		itself = false;
		by = judge(g, place.dev, place.ino, false, &left, &no);
		if (!by)
			r = level < PLACE_LEVELS_MAX ? place_climb(&fd, &place) : -ELOOP;
	}
	if (by && ret)
		*ret = rule_of(g, by, itself, no);
	return by ? -EACCES : r < 0 ? r : 0;
}

bool guard_has(const struct guard *g, const struct stat *st)
{
	return node_at(g, first_of(g, st->st_dev, st->st_ino), st->st_dev, st->st_ino) != NULL;
}

bool guard_dir_is_open(const struct guard *g, int dir, uint32_t bits)
{
	struct path_at in = {.object = -1, .parent = dir};

	return guard_find(g, &in, bits, NULL) == 0;
}

/* Does the node lie below this place? 1 yes, 0 no, -errno. */
static int lies_in(const struct node *n, const struct place *dir)
{
	struct place place;
	int fd AUTOCLOSE = fcntl(n->parent >= 0 ? n->parent : n->fd, F_DUPFD_CLOEXEC, 3);
	int r = fd < 0 ? -errno : place_of(fd, &place);

	for (unsigned level = 0; r == 0; level++) {
		if (place.dev == dir->dev && place.ino == dir->ino)
			return 1;
		r = level < PLACE_LEVELS_MAX ? place_climb(&fd, &place) : -ELOOP;
	}
	return r < 0 ? r : 0;
}

enum foldname_relation guard_relation_of_inode(const struct guard *g, int o_path_fd)
{
	struct place place;
	struct stat st;
	const struct node *n;

	if (!g->existing)
		return FOLDNAME_FREE;
	if (fstat(o_path_fd, &st) < 0 || place_of(o_path_fd, &place) < 0)
		return FOLDNAME_ABOVE;
	for (size_t i = first_of(g, st.st_dev, st.st_ino);
	     (n = node_at(g, i, st.st_dev, st.st_ino)); i++)
		if (n->exception)
			return FOLDNAME_AT;
	for (size_t i = 0; S_ISDIR(st.st_mode) && i < g->existing; i++)
		if (g->by_inode[i]->exception && lies_in(g->by_inode[i], &place))
			return FOLDNAME_ABOVE;
	return FOLDNAME_FREE;
}

bool guard_is_ancestor(const struct guard *g, int o_path_fd)
{
	return guard_relation_of_inode(g, o_path_fd) != FOLDNAME_FREE;
}

bool guard_hardlink_doubt(const struct guard *g, const struct stat *st)
{
	const struct node *n;

	if (S_ISDIR(st->st_mode))
		return false;
	if (g->has_exception && st->st_nlink > 1)
		return true;
	for (size_t i = first_of(g, st->st_dev, st->st_ino);
	     (n = node_at(g, i, st->st_dev, st->st_ino)); i++)
		if (n->exception)
			return true;
	return false;
}

/* ---- by name ---- */

/* Is it a rule that begins at path and not further up? */
static bool glob_begins_at(const struct guard *g, const char *path)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t n = (size_t)(slash - path);

	if (n >= sizeof(parent))
		return true;
	memcpy(parent, n ? path : "/", n ? n : 1);
	parent[n ? n : 1] = '\0';
	for (uint32_t bit = 1; bit < ACCESS_ALL; bit <<= 1) {
		struct decision d = policy_decide(g->p, path, bit);
		if (d.effect != EFFECT_ALLOW && d.rule && is_glob(d.rule) &&
		    policy_decide(g->p, parent, bit).rule != d.rule)
			return true;
	}
	return false;
}

static enum foldname_relation relation_of_globs(const struct guard *g, const char *path)
{
	char lower[PATH_MAX];
	size_t n = strlen(path);

	if (!g->has_glob)
		return FOLDNAME_FREE;
	if (glob_begins_at(g, path))
		return FOLDNAME_AT;
	if (n >= sizeof(lower))
		return FOLDNAME_ALIKE;
	for (size_t i = 0; i <= n; i++)
		lower[i] = (char)(path[i] >= 'A' && path[i] <= 'Z' ? path[i] | 0x20 : path[i]);
	memcpy(lower, path, (size_t)(strrchr(path, '/') - path));
	return glob_begins_at(g, lower) ? FOLDNAME_ALIKE : FOLDNAME_FREE;
}

enum foldname_relation guard_relation_of_literals(const struct guard *g, const char *path,
						  const char **ret)
{
	enum foldname_relation found = FOLDNAME_FREE;

	for (size_t i = 0; i < g->nodes && found != FOLDNAME_ABOVE; i++) {
		if (!g->node[i].exception)
			continue;
		enum foldname_relation r = foldname_relation(path, g->node[i].path);
		if (r > found) {
			found = r;
			*ret = g->node[i].path;
		}
	}
	return found;
}

enum foldname_relation guard_relation_of_name(const struct guard *g, const char *path,
					      const char **ret)
{
	enum foldname_relation literal = guard_relation_of_literals(g, path, ret);
	enum foldname_relation glob =
		literal == FOLDNAME_ABOVE ? FOLDNAME_FREE : relation_of_globs(g, path);

	return glob > literal ? glob : literal;
}

bool guard_name_is_protected(const struct guard *g, const char *parent_real, const char *name)
{
	char path[PATH_MAX];
	const char *of = NULL;
	int n = snprintf(path, sizeof(path), "%s/%s", parent_real[1] ? parent_real : "", name);

	if (n < 0 || (size_t)n >= sizeof(path))
		return true;
	return guard_relation_of_name(g, path, &of) != FOLDNAME_FREE;
}
