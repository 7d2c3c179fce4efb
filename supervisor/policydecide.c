/* The decision: which of a policy's rules comes first for a path. */
#include "supervisor/policy_inside.h"

#include <stddef.h>

static bool is_exact(const struct rule *r)
{
	return r->kind == RULE_EXACT || r->kind == RULE_GLOB_EXACT;
}

/* What was found about one access. */
struct found {
	const struct entry *best, *forbid;
	int depth; /* of best */
	/* Which globs these are: of those that are alike the first one decides. */
	uint32_t best_glob, forbid_glob;
};

struct probe {
	uint32_t mask;	/* rules about any of these accesses, each by itself */
	bool sensitive; /* look among the sensitive marks instead of the rules */
	bool inherited; /* as a child of the path sees it: exact rules do not count */
	struct found of[ACCESS_COUNT];
};

static int kind_rank(enum rule_kind kind)
{
	static const int rank[] = {
		[RULE_GLOB] = 0, [RULE_GLOB_EXACT] = 1, [RULE_TREE] = 2, [RULE_EXACT] = 3};
	return rank[kind];
}

/*
 * deny > ask > allow, but an ask yields to the allow that answers it: a session's answer settles
 * any ask, and whatever the user wrote settles a preset's.
 */
static int effect_rank(const struct rule *r)
{
	bool preset = r->source == RULE_PRESET || r->source == RULE_BUILTIN;
	switch (r->effect) {
	case EFFECT_FORBID:
		return 6;
	case EFFECT_DENY:
		return 5;
	case EFFECT_ASK:
		return preset ? 1 : 3;
	case EFFECT_ALLOW:
		return r->source == RULE_ANSWER ? 4 : preset ? 0 : 2;
	}
	return 6;
}

/* Does b at depth db come before a at depth da? */
static bool comes_before(const struct rule *b, int db, const struct rule *a, int da)
{
	if (db != da)
		return db > da;
	int kind = kind_rank(b->kind) - kind_rank(a->kind);
	if (kind)
		return kind > 0;
	return effect_rank(b) > effect_rank(a);
}

static bool is_wanted(const struct probe *pr, const struct entry *e)
{
	return e->rule.sensitive == pr->sensitive && (e->rule.access & pr->mask);
}

/* glob: the how manieth glob it is, from 1 on; 0: none. */
static bool is_better(const struct found *f, const struct entry *e, int depth, uint32_t glob)
{
	if (!f->best || comes_before(&e->rule, depth, &f->best->rule, f->depth))
		return true;
	return glob < f->best_glob && !comes_before(&f->best->rule, f->depth, &e->rule, depth);
}

static void consider(struct probe *pr, const struct entry *e, int depth, uint32_t bits,
		     uint32_t glob)
{
	for (; bits; bits &= bits - 1) {
		struct found *f = &pr->of[__builtin_ctz(bits)];
		if (e->rule.effect == EFFECT_FORBID && (!f->forbid || glob < f->forbid_glob)) {
			f->forbid = e;
			f->forbid_glob = glob;
		}
		if (!is_better(f, e, depth, glob))
			continue;
		f->best = e;
		f->depth = depth;
		f->best_glob = glob;
	}
}

static void probe_literal(const struct policy *p, struct probe *pr, uint64_t hash, const char *path,
			  size_t n, int depth, bool last)
{
	for (uint32_t i = policy_first(&p->by_path, hash); i; i = p->slot[i - 1].next) {
		const struct entry *e = p->slot[i - 1].entry;
		if (e->hash != hash || e->glob || !is_wanted(pr, e))
			continue;
		if (is_exact(&e->rule) && (!last || pr->inherited))
			continue;
		if (memcmp(e->rule.path, path, n) == 0 && e->rule.path[n] == '\0')
			consider(pr, e, depth, e->rule.access & pr->mask, 0);
	}
}

/*
 * A glob opens nothing inside a literal tree that closes it, unless its own fixed part (what comes
 * before the first wildcard) reaches into that tree: "allow r **" is no word about "deny r secret",
 * "allow r secret/key-?" is. The accesses of which that is so.
 */
static uint32_t defeated(const struct entry *e, const struct found literal[ACCESS_COUNT],
			 uint32_t bits)
{
	uint32_t out = 0;
	if (e->rule.effect != EFFECT_ALLOW)
		return 0;
	for (; bits; bits &= bits - 1) {
		const struct found *f = &literal[__builtin_ctz(bits)];
		if (f->best && f->best->rule.effect != EFFECT_ALLOW && e->fixed_depth < f->depth)
			out |= bits & -bits;
	}
	return out;
}

#define HASHES 32

struct path {
	const char *text;
	int depth;	       /* components */
	uint64_t components;   /* their set */
	uint64_t hash[HASHES]; /* of the text up to the end of each of the first so many */
	const char *hashed;    /* the end of the last of these */
};

/* The globs about the directory of this hash, which the path is or lies in. */
static void probe_place(const struct policy *p, struct probe *pr, const struct path *path,
			const struct found *literal, uint64_t hash)
{
	for (uint32_t i = policy_first(&p->by_place, hash); i; i = p->glob[i - 1].next) {
		const struct entry *e = p->glob[i - 1].entry;
		if (e->below != hash || !is_wanted(pr, e))
			continue;
		int covered = glob_match(e->glob, path->text, path->components);
		if (covered < 0)
			continue;
		if (is_exact(&e->rule) && (covered != path->depth || pr->inherited))
			continue;
		uint32_t bits = e->rule.access & pr->mask;
		if (!pr->sensitive)
			bits &= ~defeated(e, literal, bits);
		consider(pr, e, covered, bits, i);
	}
}

static void probe_globs(const struct policy *p, struct probe *pr, const struct path *path)
{
	struct found literal[ACCESS_COUNT];
	uint64_t hash = POLICY_HASH_START;
	if (!p->globs)
		return;
	memcpy(literal, pr->of, sizeof(literal));
	probe_place(p, pr, path, literal, hash);
	for (int i = 0; i < path->depth && i < HASHES; i++) {
		hash = path->hash[i];
		probe_place(p, pr, path, literal, hash);
	}
	for (const char *at = path->hashed; at[0] == '/' && at[1];) {
		size_t n = 1 + strcspn(at + 1, "/");
		hash = policy_hash(hash, at, n);
		at += n;
		probe_place(p, pr, path, literal, hash);
	}
}

/*
 * The next component, behind the slash at `at`: into the path and the hash of all up to its end,
 * which is returned. NULL: it is none. Every byte once: this is most of what a decision takes.
 */
static const char *take_component(struct path *path, const char *at, uint64_t *hash)
{
	const char *name = at + 1, *end = name;
	uint64_t h = policy_hash_add(*hash, '/');
	uint32_t component = GLOB_COMPONENT;
	for (; *end && *end != '/'; end++) {
		h = policy_hash_add(h, *end);
		component = glob_component_add(component, *end);
	}
	if (end == name || policy_is_dots(name, (size_t)(end - name)))
		return NULL;
	path->components |= glob_component_bit(component);
	if (path->depth < HASHES) {
		path->hash[path->depth] = h;
		path->hashed = end;
	}
	path->depth++;
	*hash = h;
	return end;
}

/* False: no resolved absolute path. */
static bool probe_path(const struct policy *p, struct probe *pr, const char *path)
{
	struct path whole;
	if (!path || path[0] != '/')
		return false;
	if (p->len == 0)
		return true;
	uint64_t hash = POLICY_HASH_START;
	const char *at = path;
	whole.text = whole.hashed = path;
	whole.depth = 0;
	whole.components = 0;
	probe_literal(p, pr, hash, path, 1, 0, path[1] == '\0');
	while (*at && (at[1] || whole.depth)) {
		at = take_component(&whole, at, &hash);
		if (!at)
			return false;
		probe_literal(p, pr, hash, path, (size_t)(at - path), whole.depth, *at == '\0');
	}
	probe_globs(p, pr, &whole);
	return true;
}

/* NULL: none; about no access (0) there is none either. */
static const struct entry *decider(const struct probe *pr, uint32_t bit)
{
	const struct found *f = bit ? &pr->of[__builtin_ctz(bit)] : NULL;
	return !f ? NULL : f->forbid ? f->forbid : f->best;
}

struct decision policy_decide(const struct policy *p, const char *path, uint32_t bit)
{
	struct probe pr = {.mask = bit};
	if (!probe_path(p, &pr, path))
		return (struct decision){EFFECT_DENY, NULL};
	const struct entry *e = decider(&pr, bit);
	return e ? (struct decision){e->rule.effect, &e->rule}
		 : (struct decision){EFFECT_ASK, NULL};
}

static struct standing stand(const struct policy *p, const char *path, uint32_t mask,
			     bool inherited)
{
	struct standing out = {0};
	struct probe pr = {.mask = mask, .inherited = inherited};
	if (!probe_path(p, &pr, path)) {
		out.by[EFFECT_DENY] = mask;
		return out;
	}
	for (uint32_t left = mask; left; left &= left - 1) {
		uint32_t bit = left & -left;
		const struct entry *e = decider(&pr, bit);
		out.by[e ? e->rule.effect : EFFECT_ASK] |= bit;
		out.named |= e ? bit : 0;
	}
	return out;
}

struct standing policy_standing(const struct policy *p, const char *path, uint32_t mask)
{
	return stand(p, path, mask, false);
}

struct decision policy_decide_all(const struct policy *p, const char *path, uint32_t mask,
				  uint32_t *ret_asked)
{
	struct decision hardest = {EFFECT_ALLOW, NULL};
	uint32_t asked = 0;
	for (uint32_t bit = 1; bit <= mask && bit; bit <<= 1) {
		if (!(mask & bit))
			continue;
		struct decision d = policy_decide(p, path, bit);
		if (asked && d.effect < hardest.effect)
			continue;
		if (!asked || d.effect > hardest.effect) {
			hardest = d;
			asked = 0;
		}
		asked |= bit;
	}
	if (ret_asked)
		*ret_asked = asked;
	return hardest;
}

static bool is_strictly_below(const char *path, const char *dir, size_t n)
{
	if (n == 1)
		return path[1] != '\0';
	return strncmp(path, dir, n) == 0 && path[n] == '/';
}

static bool excepts(const struct entry *e, uint32_t mask)
{
	return e->rule.effect != EFFECT_ALLOW && !e->rule.sensitive && (e->rule.access & mask);
}

bool policy_glob_reaches(const struct rule *glob, const char *dir)
{
	const struct entry *e =
		(const struct entry *)((const char *)glob - offsetof(struct entry, rule));
	return glob_reaches_below(e->glob, dir);
}

static uint32_t globs_below(const struct policy *p, const char *dir, uint32_t mask)
{
	uint32_t out = 0;
	for (size_t i = 0; i < p->globs; i++)
		if (excepts(p->glob[i].entry, mask & ~out) &&
		    glob_reaches_below(p->glob[i].entry->glob, dir))
			out |= p->glob[i].entry->rule.access & mask;
	return out;
}

bool policy_exception_below(const struct policy *p, const char *dir, uint32_t bit)
{
	size_t n = strlen(dir);
	for (size_t i = 0; i < p->len; i++) {
		const struct entry *e = p->slot[i].entry;
		if (!e->glob && excepts(e, bit) && is_strictly_below(e->rule.path, dir, n))
			return true;
	}
	return globs_below(p, dir, bit);
}

uint32_t policy_open_tree(const struct policy *p, const char *dir, uint32_t mask)
{
	uint32_t open = stand(p, dir, mask, false).by[EFFECT_ALLOW];
	return open ? stand(p, dir, open, true).by[EFFECT_ALLOW] : 0;
}

bool policy_uniform(const struct policy *p, const char *dir, uint32_t bit)
{
	return policy_open_tree(p, dir, bit) && !policy_exception_below(p, dir, bit);
}

bool policy_sensitive_for(const struct policy *p, const char *path, uint32_t mask)
{
	struct probe pr = {.mask = mask, .sensitive = true};
	if (!probe_path(p, &pr, path))
		return true;
	for (size_t i = 0; i < ACCESS_COUNT; i++)
		if (pr.of[i].best)
			return true;
	return false;
}

bool policy_sensitive(const struct policy *p, const char *path)
{
	return policy_sensitive_for(p, path, ACCESS_ALL);
}
