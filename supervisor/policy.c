#include "supervisor/policy.h"

#include "supervisor/glob.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

#define HASH_START UINT64_C(14695981039346656037)
#define HASH_PRIME UINT64_C(1099511628211)

/* A rule and what is worked out of it; never changed, so that copies of a policy share it. */
struct entry {
	struct rule rule;
	struct glob *glob; /* owned; NULL for literal rules */
	int fixed_depth;   /* of a glob: the components before its first wild one */
	uint64_t hash;	   /* of the path, or of a glob's text */
	size_t holders;	   /* policies that have it; atomic, since copies go to other threads */
	char text[];	   /* the rule's strings */
};

struct slot {
	struct entry *entry; /* held */
	uint32_t next;	     /* in the same bucket: a slot's number + 1; 0: the last */
};

struct policy {
	struct slot *slot; /* in order of addition */
	size_t len, cap;
	uint32_t *bucket; /* all rules by the hash of their path; a power of two */
	size_t buckets;
	struct entry **glob; /* loans of `slot` */
	size_t globs, globs_cap;
};

static bool is_glob(const struct rule *r)
{
	return r->kind == RULE_GLOB || r->kind == RULE_GLOB_EXACT;
}

static bool is_exact(const struct rule *r)
{
	return r->kind == RULE_EXACT || r->kind == RULE_GLOB_EXACT;
}

static uint64_t hash_more(uint64_t h, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * HASH_PRIME;
	return h;
}

/* The root is the empty string to the hash, so that "/a" continues it. */
static uint64_t hash_path(const char *path, size_t n)
{
	return n == 1 ? HASH_START : hash_more(HASH_START, path, n);
}

static size_t bucket_of(const struct policy *p, uint64_t hash)
{
	return (size_t)(hash ^ hash >> 32) & (p->buckets - 1);
}

int policy_new(struct policy **ret)
{
	struct policy *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*ret = p;
	return 0;
}

static void entry_drop(struct entry *e)
{
	if (!e || __atomic_sub_fetch(&e->holders, 1, __ATOMIC_ACQ_REL))
		return;
	glob_free(e->glob);
	free(e);
}

static struct entry *entry_hold(struct entry *e)
{
	__atomic_add_fetch(&e->holders, 1, __ATOMIC_RELAXED);
	return e;
}

void policy_free(struct policy *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->len; i++)
		entry_drop(p->slot[i].entry);
	free(p->slot);
	free(p->bucket);
	free(p->glob);
	free(p);
}

/* A copy of n things, with room for one more. */
static void *copy_of(const void *from, size_t n, size_t size)
{
	void *to = calloc(n + 1, size);
	if (to && n)
		memcpy(to, from, n * size);
	return to;
}

int policy_copy(const struct policy *p, struct policy **ret)
{
	struct policy *copy;
	int r = policy_new(&copy);
	if (r < 0)
		return r;
	copy->slot = copy_of(p->slot, p->len, sizeof(*p->slot));
	copy->bucket = copy_of(p->bucket, p->buckets, sizeof(*p->bucket));
	copy->glob = copy_of(p->glob, p->globs, sizeof(struct entry *));
	if (!copy->slot || !copy->bucket || !copy->glob) {
		policy_free(copy);
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->len; i++)
		entry_hold(copy->slot[i].entry);
	copy->len = copy->cap = p->len;
	copy->buckets = p->buckets;
	copy->globs = copy->globs_cap = p->globs;
	*ret = copy;
	return 0;
}

static bool is_dots(const char *s, size_t n)
{
	return n <= 2 && memcmp("..", s, n) == 0;
}

/* Without double and trailing slashes; `to` has room for strlen(path) + 2. False: no path. */
static bool normalise(char *to, const char *path, bool glob)
{
	size_t len = 0;
	if (path[0] != '/')
		return false;
	for (const char *at = path; *at;) {
		at += strspn(at, "/");
		size_t n = strcspn(at, "/");
		if (n == 0)
			break;
		if (!glob && is_dots(at, n))
			return false;
		to[len++] = '/';
		memcpy(to + len, at, n);
		len += n;
		at += n;
	}
	if (len == 0)
		to[len++] = '/';
	to[len] = '\0';
	return true;
}

static int depth_of_fixed(const char *pattern)
{
	size_t fixed = glob_first_wild(pattern, strlen(pattern));
	int depth = 0;
	for (size_t i = 1; i < fixed; i++)
		depth += pattern[i] == '/';
	return depth;
}

/* The strings behind each other: path, origin, given, links. */
static bool add_texts(struct entry *e, const struct rule *rule, size_t room)
{
	if (!normalise(e->text, rule->path, is_glob(rule)))
		return false;
	char *at = e->text + room;
	e->rule = *rule;
	e->rule.path = e->text;
	e->rule.origin = at;
	at = stpcpy(at, rule->origin) + 1;
	e->rule.given = rule->given ? at : NULL;
	if (rule->given)
		at = stpcpy(at, rule->given) + 1;
	e->rule.links = rule->links ? at : NULL;
	if (rule->links)
		memcpy(at, rule->links, rule->links_len);
	return true;
}

static int entry_new(const struct rule *rule, struct entry **ret)
{
	if (!rule->origin || !rule->path)
		return -EINVAL;
	size_t room = strlen(rule->path) + 2;
	struct entry *e = calloc(1, sizeof(*e) + room + strlen(rule->origin) + 1 +
					    (rule->given ? strlen(rule->given) + 1 : 0) +
					    (rule->links ? rule->links_len : 0));
	if (!e)
		return -ENOMEM;
	e->holders = 1;
	int r = add_texts(e, rule, room) ? 0 : -EINVAL;
	if (r == 0 && is_glob(rule))
		r = glob_new(e->text, rule->kind == RULE_GLOB, &e->glob);
	if (r < 0) {
		entry_drop(e);
		return r;
	}
	e->hash = hash_path(e->text, strlen(e->text));
	e->fixed_depth = e->glob ? depth_of_fixed(e->text) : 0;
	*ret = e;
	return 0;
}

/* Room for one more of that size. */
static int grow(void **array, size_t size, size_t len, size_t *cap)
{
	if (len < *cap)
		return 0;
	size_t more = *cap ? *cap * 2 : 64;
	void *bigger = reallocarray(*array, more, size);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	*cap = more;
	return 0;
}

static void link_slot(struct policy *p, size_t i)
{
	struct entry *e = p->slot[i].entry;
	if (e->glob)
		p->glob[p->globs++] = e;
	uint32_t *head = &p->bucket[bucket_of(p, e->hash)];
	p->slot[i].next = *head;
	*head = (uint32_t)i + 1;
}

/* Everything again from the entries; needs no memory. */
static void relink(struct policy *p)
{
	if (p->buckets)
		memset(p->bucket, 0, p->buckets * sizeof(*p->bucket));
	p->globs = 0;
	for (size_t i = 0; i < p->len; i++)
		link_slot(p, i);
}

static int grow_buckets(struct policy *p)
{
	if (p->len * 2 < p->buckets)
		return 0;
	size_t n = p->buckets ? p->buckets * 4 : 64;
	uint32_t *bucket = calloc(n, sizeof(*bucket));
	if (!bucket)
		return -ENOMEM;
	free(p->bucket);
	p->bucket = bucket;
	p->buckets = n;
	relink(p);
	return 0;
}

int policy_add(struct policy *p, const struct rule *rule)
{
	int r = p->len < UINT32_MAX ? 0 : -ENOMEM;
	if (r == 0)
		r = grow((void **)&p->slot, sizeof(*p->slot), p->len, &p->cap);
	if (r == 0)
		r = grow((void **)&p->glob, sizeof(*p->glob), p->globs, &p->globs_cap);
	if (r == 0)
		r = grow_buckets(p);
	struct entry *e;
	if (r == 0)
		r = entry_new(rule, &e);
	if (r < 0)
		return r;
	p->slot[p->len++] = (struct slot){.entry = e};
	link_slot(p, p->len - 1);
	return 0;
}

void policy_truncate(struct policy *p, size_t n)
{
	if (n >= p->len)
		return;
	for (size_t i = n; i < p->len; i++)
		entry_drop(p->slot[i].entry);
	p->len = n;
	relink(p);
}

static bool is_same_answer(const struct rule *a, const struct rule *b)
{
	return a->source == RULE_ANSWER && a->effect == b->effect && a->kind == b->kind &&
	       a->access == b->access && strcmp(a->path, b->path) == 0;
}

size_t policy_remove(struct policy *p, const struct rule *rule)
{
	size_t kept = 0, before = p->len;
	struct entry *lender = NULL; /* the rule may borrow its path from one of ours */
	for (size_t i = 0; i < before; i++) {
		struct entry *e = p->slot[i].entry;
		if (!is_same_answer(&e->rule, rule))
			p->slot[kept++].entry = e;
		else if (e->rule.path == rule->path)
			lender = e;
		else
			entry_drop(e);
	}
	entry_drop(lender);
	p->len = kept;
	if (kept < before)
		relink(p);
	return before - kept;
}

bool policy_has(const struct policy *p, const struct rule *r)
{
	uint64_t hash = hash_path(r->path, strlen(r->path));
	uint32_t i = p->len ? p->bucket[bucket_of(p, hash)] : 0;
	for (; i; i = p->slot[i - 1].next) {
		const struct entry *e = p->slot[i - 1].entry;
		const struct rule *o = &e->rule;
		if (e->hash == hash && o->effect == r->effect && o->kind == r->kind &&
		    o->access == r->access && o->sensitive == r->sensitive &&
		    !strcmp(o->path, r->path))
			return true;
	}
	return false;
}

void policy_remove_at(struct policy *p, size_t at)
{
	BUG(at >= p->len);
	entry_drop(p->slot[at].entry);
	p->len--;
	memmove(&p->slot[at], &p->slot[at + 1], (p->len - at) * sizeof(*p->slot));
	relink(p);
}

size_t policy_len(const struct policy *p)
{
	return p->len;
}

const struct rule *policy_at(const struct policy *p, size_t i)
{
	return i < p->len ? &p->slot[i].entry->rule : NULL;
}

/* ---- the decision ---- */

/* What was found about one access. */
struct found {
	const struct entry *best, *forbid;
	int depth; /* of best */
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

static void consider(struct probe *pr, const struct entry *e, int depth, uint32_t bits)
{
	for (; bits; bits &= bits - 1) {
		struct found *f = &pr->of[__builtin_ctz(bits)];
		if (e->rule.effect == EFFECT_FORBID && !f->forbid)
			f->forbid = e;
		if (f->best && !comes_before(&e->rule, depth, &f->best->rule, f->depth))
			continue;
		f->best = e;
		f->depth = depth;
	}
}

static void probe_literal(const struct policy *p, struct probe *pr, uint64_t hash, const char *path,
			  size_t n, int depth, bool last)
{
	for (uint32_t i = p->bucket[bucket_of(p, hash)]; i; i = p->slot[i - 1].next) {
		const struct entry *e = p->slot[i - 1].entry;
		if (e->hash != hash || e->glob || !is_wanted(pr, e))
			continue;
		if (is_exact(&e->rule) && (!last || pr->inherited))
			continue;
		if (memcmp(e->rule.path, path, n) == 0 && e->rule.path[n] == '\0')
			consider(pr, e, depth, e->rule.access & pr->mask);
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

static void probe_globs(const struct policy *p, struct probe *pr, const char *path, int depth,
			uint64_t components)
{
	struct found literal[ACCESS_COUNT];
	memcpy(literal, pr->of, sizeof(literal));
	for (size_t i = 0; i < p->globs; i++) {
		const struct entry *e = p->glob[i];
		if (!is_wanted(pr, e))
			continue;
		int covered = glob_match(e->glob, path, components);
		if (covered < 0)
			continue;
		if (is_exact(&e->rule) && (covered != depth || pr->inherited))
			continue;
		uint32_t bits = e->rule.access & pr->mask;
		if (!pr->sensitive)
			bits &= ~defeated(e, literal, bits);
		consider(pr, e, covered, bits);
	}
}

/* False: no resolved absolute path. */
static bool probe_path(const struct policy *p, struct probe *pr, const char *path)
{
	if (!path || path[0] != '/')
		return false;
	if (p->len == 0)
		return true;
	uint64_t hash = HASH_START, components = 0;
	int depth = 0;
	const char *at = path;
	probe_literal(p, pr, hash, path, 1, 0, path[1] == '\0');
	while (at[1] || depth) {
		const char *name = at + 1;
		size_t n = strcspn(name, "/");
		if (n == 0 || is_dots(name, n))
			return false;
		hash = hash_more(hash, at, n + 1);
		components |= glob_component_bit(name, n);
		at = name + n;
		depth++;
		probe_literal(p, pr, hash, path, (size_t)(at - path), depth, *at == '\0');
		if (*at == '\0')
			break;
	}
	probe_globs(p, pr, path, depth, components);
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

uint32_t policy_globs_below(const struct policy *p, const char *dir, uint32_t mask)
{
	uint32_t out = 0;
	for (size_t i = 0; i < p->globs; i++)
		if (excepts(p->glob[i], mask & ~out) && glob_reaches_below(p->glob[i]->glob, dir))
			out |= p->glob[i]->rule.access & mask;
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
	return policy_globs_below(p, dir, bit);
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
