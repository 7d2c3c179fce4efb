#include "supervisor/compile.h"

#include "landlock/llright.h"
#include "supervisor/alias.h"
#include "supervisor/covers.h"
#include "supervisor/dirwalk.h"
#include "supervisor/reachindex.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define STRUCTURE (ACCESS_CREATE | ACCESS_DELETE | ACCESS_MOVE)
#define CONTENT                                                                                    \
	(ACCESS_READ | ACCESS_LIST | ACCESS_EXEC | ACCESS_WRITE | ACCESS_CONNECT | ACCESS_IOCTL)

/* How all accesses stand below a directory where they are the same for every name. */
struct class
{
	uint32_t allow, deny, forbid;
};

#define CLASSES_MAX 32 /* further ones get no REFER */

struct compile {
	const struct policy *p;
	struct reachindex *index;
	struct llruleset *rs;
	struct alias_set *aliases;
	struct covers starts; /* where allow rules begin, and what is still to be looked at there */
	struct covers trees;  /* those of them that are rules about trees */
	uint32_t unseen;      /* accesses that no right of this ABI stands for */
	struct class refer[CLASSES_MAX]; /* between these the kernel may move things */
	size_t refers;
	bool short_of_descriptors;
	/* While the children of a directory are looked at: */
	uint32_t descend;	  /* for these accesses; and the patterns that could allow */
	const struct rule **glob; /* one of them anything there: a loan; and the literal rules */
	size_t globs;
	struct reachindex_range literals; /* below that directory */
};

/* ---- where to begin ---- */

static bool may_allow(const struct rule *r)
{
	return r->effect == EFFECT_ALLOW && !r->sensitive && (r->access & (CONTENT | STRUCTURE));
}

static int add_start(struct compile *c, const struct rule *r)
{
	char root[PATH_MAX];
	uint32_t access = r->access & (CONTENT | STRUCTURE);
	int err = 0;

	if (reach_root(r, root, sizeof(root)) < 0)
		return 0;
	err = covers_add(&c->starts, root, access);
	if (err == 0 && r->kind == RULE_TREE)
		err = covers_add(&c->trees, root, access);
	return err;
}

static int find_starts(struct compile *c)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < policy_len(c->p); i++)
		if (may_allow(policy_at(c->p, i)))
			err = add_start(c, policy_at(c->p, i));
	covers_settle(&c->starts);
	covers_settle(&c->trees);
	return err;
}

/* What is to be looked at in path because a rule begins there; not again later. */
static uint32_t take_start(struct compile *c, const char *path)
{
	struct cover *start = covers_at(&c->starts, path);
	uint32_t access = start ? start->access : 0;

	if (start)
		start->access = 0;
	return access;
}

/* A rule on dir has these accesses for all that is below: no need to look there. */
static void settle_below(struct compile *c, const char *dir, uint32_t access)
{
	char prefix[PATH_MAX + 1];
	size_t n = strlen(dir);

	if (!access)
		return;
	memcpy(prefix, dir, n);
	if (n > 1)
		prefix[n++] = '/';
	for (size_t i = covers_from(&c->starts, prefix, n); i < c->starts.n; i++) {
		struct cover *start = &c->starts.item[i];
		if (strncmp(start->path, prefix, n) != 0)
			break;
		start->access &= ~access;
	}
}

/* ---- what a directory gets ---- */

static uint64_t file_rights(const struct compile *c, struct class class)
{
	return access_rights(class.allow) & llright_for_file() & llruleset_handled(c->rs);
}

/*
 * May a thing go from one such directory to another? Where that would give it a right, the kernel
 * refuses by itself; but it knows only its own rights. Nothing else would keep a move from carrying
 * a thing from where chmod is refused to where it is allowed, or from a forbidden or denied place
 * to one where the user is merely asked.
 */
static bool is_safe(const struct compile *c, struct class from, struct class to)
{
	uint32_t freer = (to.allow & ~from.allow & c->unseen) | (from.forbid & ~to.forbid) |
			 (from.deny & ~(to.deny | to.forbid));

	return !freer || (file_rights(c, to) & ~file_rights(c, from));
}

/* REFER is for directories that agree with all others that have it. */
static bool may_refer(struct compile *c, struct class class)
{
	for (size_t i = 0; i < c->refers; i++) {
		struct class other = c->refer[i];
		if (other.allow == class.allow && other.deny == class.deny &&
		    other.forbid == class.forbid)
			return true;
		if (!is_safe(c, class, other) || !is_safe(c, other, class))
			return false;
	}
	if (c->refers == CLASSES_MAX)
		return false;
	c->refer[c->refers++] = class;
	return true;
}

/* The class of most of what is below: that of a name which no rule spells out. */
static struct class class_below(const struct compile *c, const char *dir)
{
	char child[PATH_MAX + 2];
	size_t n = strlen(dir);

	memcpy(child, dir, n);
	strcpy(child + n, n > 1 ? "/\001" : "\001");
	struct standing there = policy_standing(c->p, child, ACCESS_ALL);
	return (struct class){.allow = there.by[EFFECT_ALLOW],
			      .deny = there.by[EFFECT_DENY],
			      .forbid = there.by[EFFECT_FORBID]};
}

/* Where they disagree the places come first in which most is allowed. */
static int choose_classes(struct compile *c)
{
	struct class *class AUTOFREE = calloc(c->starts.n + 1, sizeof(*class));
	size_t n = 0;

	if (!class)
		return -ENOMEM;
	for (size_t i = 0; i < c->starts.n; i++)
		if (c->starts.item[i].access & ACCESS_MOVE)
			class[n++] = class_below(c, c->starts.item[i].path);
	for (int most = ACCESS_COUNT; most > 0; most--)
		for (size_t i = 0; i < n; i++)
			if (__builtin_popcount(class[i].allow) == most &&
			    (class[i].allow & ACCESS_MOVE))
				may_refer(c, class[i]);
	return 0;
}

/*
 * The structural rights of a directory below which every access is the same for every name; with
 * them the content rights, so that the kernel's comparison at a move sees all that the policy
 * allows there.
 */
static uint64_t structure_rights(struct compile *c, const struct reach *reach)
{
	struct class class = {reach->allow, reach->deny, reach->forbid};
	uint32_t both = ACCESS_READ | ACCESS_WRITE;
	uint64_t rights = access_rights(reach->allow & STRUCTURE);

	if ((reach->allow & both) != both)
		rights &= ~(uint64_t)LLR_MAKE_REG;
	if ((rights & LLR_REFER) && !may_refer(c, class))
		rights &= ~(uint64_t)LLR_REFER;
	return rights ? rights | access_rights(reach->allow & CONTENT) : 0;
}

static uint32_t uniform(const struct compile *c, const char *dir, const struct reach *reach,
			uint32_t bits)
{
	return (bits & reach->allow) | reachindex_uniform(c->index, dir, bits & reach->varies);
}

/* A rule that can't be had is one less; the run goes on and is told. */
static int allow(struct compile *c, int fd, const struct stat *st, uint64_t rights,
		 const char *path)
{
	int r = rights ? llruleset_allow_known(c->rs, fd, st, rights, path) : 0;

	/* Things that Landlock never restricts need no rule. */
	if (r == -EBADFD)
		return 0;
	if (r == -EMFILE || r == -ENFILE)
		c->short_of_descriptors = true;
	return r == -EMFILE || r == -ENFILE ? 0 : r;
}

/* ---- the walk ---- */

static int visit(void *arg, struct dirwalk *w, int fd, const struct stat *st);

/* A directory with thousands of names (/tmp) may be one where few rules speak of fewer. */
static bool is_out_of_reach(void *arg, const struct dirwalk *w)
{
	const struct compile *c = arg;

	for (size_t i = 0; i < c->globs; i++)
		if (reach_rule_concerns(c->glob[i], w->path))
			return false;
	return !reachindex_allows_inside(c->index, c->literals, w->path, CONTENT | STRUCTURE);
}

/*
 * Where everybody makes names (/tmp) there may be thousands. A pattern for single ones means those
 * to come; one that is there already is the broker's. What a literal rule names begins by itself.
 */
static bool is_left_to_broker(const struct compile *c, const struct stat *dir)
{
	if ((dir->st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH))
		return false;
	for (size_t i = 0; i < c->globs; i++)
		if (c->glob[i]->kind != RULE_GLOB_EXACT)
			return false;
	return true;
}

static int visit_children(struct compile *c, struct dirwalk *w, int fd, const struct stat *st,
			  uint32_t bits)
{
	struct compile before = *c;
	dirwalk_skip_fn *skips = w->skips;
	bool only = w->only_directories;
	const struct rule **glob AUTOFREE = NULL;
	int err =
		reachindex_allowing_globs(c->index, w->path, CONTENT | STRUCTURE, &glob, &c->globs);

	if (err < 0)
		return err;
	c->descend = bits;
	c->glob = glob;
	c->literals = reachindex_below(c->index, w->path);
	/* A rule of a tree that it is or lies in speaks of every name in it. */
	w->skips = covers_any(&c->trees, w->path, UINT32_MAX) ? NULL : is_out_of_reach;
	w->only_directories = !(bits & CONTENT);
	err = w->skips && is_left_to_broker(c, st) ? 0 : dirwalk_children(w, fd, st, visit, c);
	w->skips = skips;
	w->only_directories = only;
	c->descend = before.descend;
	c->glob = before.glob;
	c->globs = before.globs;
	c->literals = before.literals;
	return err;
}

static int visit_directory(struct compile *c, struct dirwalk *w, int fd, const struct stat *st,
			   uint32_t bits)
{
	uint32_t hidden = alias_below(c->aliases, w->path, st);
	struct reach reach;

	reachindex_of(c->index, w->path, &reach);
	uint32_t whole = uniform(c, w->path, &reach, bits & CONTENT & ~hidden);
	uint64_t rights = access_rights(whole);
	if ((bits & STRUCTURE) && !reach.varies && !hidden) {
		rights |= structure_rights(c, &reach);
		whole |= STRUCTURE;
	}
	int r = allow(c, fd, st, rights, w->path);
	if (r < 0)
		return r;
	settle_below(c, w->path, whole);
	uint32_t rest = reachindex_allowed_below(c->index, w->path, bits & ~whole);
	if (!rest)
		return 0;
	return visit_children(c, w, fd, st, rest);
}

static int visit_file(struct compile *c, int fd, const char *path, const struct stat *st,
		      uint32_t bits)
{
	bits &= CONTENT & ~alias_of(c->aliases, st);
	if (!bits)
		return 0;
	struct standing here = policy_standing(c->p, path, bits);
	return allow(c, fd, st, access_rights(here.by[EFFECT_ALLOW]), path);
}

static int visit(void *arg, struct dirwalk *w, int fd, const struct stat *st)
{
	struct compile *c = arg;
	uint32_t bits = c->descend | take_start(c, w->path);

	if (S_ISDIR(st->st_mode))
		return visit_directory(c, w, fd, st, bits);
	return visit_file(c, fd, w->path, st, bits);
}

static int walk(struct compile *c, struct compile_stats *stats)
{
	struct dirwalk w = {.left = COMPILE_WALK_MAX};
	struct stat st;
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->starts.n; i++) {
		const struct cover *start = &c->starts.item[i];
		if (!start->access)
			continue;
		int fd AUTOCLOSE = dirwalk_open(start->path, &st);
		if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
			return fd;
		if (fd < 0)
			continue;
		if (dirwalk_init(&w, start->path, COMPILE_WALK_MAX - stats->walked) < 0)
			continue;
		c->descend = 0;
		r = visit(c, &w, fd, &st);
		stats->walked += w.walked;
		stats->truncated |= w.cut;
	}
	return r;
}

/* ---- directories to come ---- */

/* The path of a child of dir that no rule spells out. False: too long. */
static bool stranger_in(const char *dir, char ret[PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s/\001", dir[1] ? dir : "");

	return n > 0 && n < PATH_MAX;
}

static int rule_spares(struct compile *c, struct compile_spares *s)
{
	char child[PATH_MAX];
	struct stat st;

	s->ruled = false;
	if (!s->len || !stranger_in(s->like, child))
		return 0;
	reachindex_of(c->index, child, &s->class);
	uint64_t rights = s->class.varies ? 0 : structure_rights(c, &s->class);
	if (!(rights & LLR_MAKE_DIR))
		return 0;
	s->ruled = true;
	int r = 0;
	for (size_t i = 0; r == 0 && i < s->len; i++)
		r = fstat(s->fd[i], &st) < 0 ? -errno : allow(c, s->fd[i], &st, rights, child);
	s->ruled = r == 0 && !c->short_of_descriptors;
	return r;
}

static uint32_t unseen_accesses(const struct llruleset *rs)
{
	uint32_t mask = 0;

	for (uint32_t bit = 1; bit < ACCESS_ALL; bit <<= 1)
		if (!(access_rights(bit) & llruleset_handled(rs)))
			mask |= bit;
	return mask;
}

static int compile(struct compile *c, struct compile_spares *spares, struct compile_stats *stats)
{
	int r = find_starts(c);

	if (r == 0)
		r = reachindex_new(c->p, &c->index);
	if (r == 0)
		r = alias_find(c->p, &c->aliases);
	if (r < 0)
		return r;
	c->unseen = unseen_accesses(c->rs);
	r = choose_classes(c);
	if (r == 0)
		r = walk(c, stats);
	if (r == 0 && spares)
		r = rule_spares(c, spares);
	stats->rules = llruleset_count(c->rs);
	stats->truncated |= alias_cut(c->aliases) || c->short_of_descriptors;
	return r;
}

int compile_into(const struct policy *p, struct llruleset *rs, struct compile_spares *spares,
		 struct compile_stats *ret_stats)
{
	struct compile_stats stats = {0};
	struct compile c = {.p = p, .rs = rs};
	int r = compile(&c, spares, &stats);

	covers_release(&c.starts);
	covers_release(&c.trees);
	alias_free(c.aliases);
	reachindex_free(c.index);
	if (r == 0 && ret_stats)
		*ret_stats = stats;
	return r;
}

int compile_policy(const struct policy *p, const struct llabi *abi, uint32_t scopes,
		   struct llruleset **ret, struct compile_stats *ret_stats)
{
	struct llruleset *rs;
	int r = llruleset_new(abi, scopes, &rs);

	if (r < 0)
		return r;
	r = compile_into(p, rs, NULL, ret_stats);
	if (r < 0)
		llruleset_free(rs);
	else
		*ret = rs;
	return r;
}
