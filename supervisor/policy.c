#include "supervisor/policy.h"

#include "supervisor/glob.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

#define HASH_START UINT64_C(14695981039346656037)
#define HASH_PRIME UINT64_C(1099511628211)

struct entry {
	struct rule rule;
	struct glob *glob;  /* owned; NULL for literal rules */
	uint64_t hash;	    /* of the path, or of a glob's text */
	struct entry *next; /* in the same bucket */
};

struct policy {
	struct entry **entry; /* in order of addition */
	size_t len, cap;
	struct entry **bucket; /* all rules by the hash of their path; a power of two */
	size_t buckets;
	struct entry **glob; /* loans of `entry` */
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

static void entry_free(struct entry *e)
{
	if (!e)
		return;
	glob_free(e->glob);
	free(e->rule.path);
	free(e->rule.links);
	free(e->rule.given);
	free(e->rule.origin);
	free(e);
}

void policy_free(struct policy *p)
{
	if (!p)
		return;
	policy_truncate(p, 0);
	free(p->entry);
	free(p->bucket);
	free(p->glob);
	free(p);
}

int policy_copy(const struct policy *p, struct policy **ret)
{
	struct policy *copy;
	int r = policy_new(&copy);
	for (size_t i = 0; r == 0 && i < p->len; i++)
		r = policy_add(copy, &p->entry[i]->rule);
	if (r < 0) {
		policy_free(copy);
		return r;
	}
	*ret = copy;
	return 0;
}

static bool is_dots(const char *s, size_t n)
{
	return n <= 2 && memcmp("..", s, n) == 0;
}

/* A copy without double and trailing slashes. NULL with *ret_error. */
static char *normalise(const char *path, bool glob, int *ret_error)
{
	struct buf out = {0};
	*ret_error = -EINVAL;
	if (!path || path[0] != '/')
		return NULL;
	for (const char *at = path; *at;) {
		at += strspn(at, "/");
		size_t n = strcspn(at, "/");
		if (n == 0)
			break;
		if (!glob && is_dots(at, n)) {
			buf_free(&out);
			return NULL;
		}
		buf_add_char(&out, '/');
		buf_add(&out, at, n);
		at += n;
	}
	if (out.len == 0)
		buf_add_char(&out, '/');
	char *text = buf_take(&out);
	if (!text)
		*ret_error = -ENOMEM;
	return text;
}

static int entry_new(const struct rule *rule, struct entry **ret)
{
	if (!rule->origin)
		return -EINVAL;
	int r = 0;
	char *path = normalise(rule->path, is_glob(rule), &r);
	if (!path)
		return r;
	struct entry *e = calloc(1, sizeof(*e));
	if (!e) {
		free(path);
		return -ENOMEM;
	}
	e->rule = *rule;
	e->rule.path = path;
	e->rule.given = rule->given ? strdup(rule->given) : NULL;
	e->rule.links = rule->links ? malloc(rule->links_len + 1) : NULL;
	if (e->rule.links)
		memcpy(e->rule.links, rule->links, rule->links_len);
	e->rule.origin = strdup(rule->origin);
	e->hash = hash_path(path, strlen(path));
	r = !e->rule.origin || (rule->given && !e->rule.given) || (rule->links && !e->rule.links)
		    ? -ENOMEM
		    : 0;
	if (r == 0 && is_glob(rule))
		r = glob_new(path, rule->kind == RULE_GLOB, &e->glob);
	if (r < 0) {
		entry_free(e);
		return r;
	}
	*ret = e;
	return 0;
}

static int grow(struct entry ***array, size_t len, size_t *cap)
{
	if (len < *cap)
		return 0;
	size_t more = *cap ? *cap * 2 : 64;
	struct entry **bigger = reallocarray(*array, more, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	*cap = more;
	return 0;
}

static void link_entry(struct policy *p, struct entry *e)
{
	if (e->glob)
		p->glob[p->globs++] = e;
	struct entry **head = &p->bucket[bucket_of(p, e->hash)];
	e->next = *head;
	*head = e;
}

/* Everything again from the entries; needs no memory. */
static void relink(struct policy *p)
{
	if (p->buckets)
		memset(p->bucket, 0, p->buckets * sizeof(*p->bucket));
	p->globs = 0;
	for (size_t i = 0; i < p->len; i++)
		link_entry(p, p->entry[i]);
}

static int grow_buckets(struct policy *p)
{
	if (p->len * 2 < p->buckets)
		return 0;
	size_t n = p->buckets ? p->buckets * 4 : 64;
	struct entry **bucket = calloc(n, sizeof(struct entry *));
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
	int r = grow(&p->entry, p->len, &p->cap);
	if (r == 0)
		r = grow(&p->glob, p->globs, &p->globs_cap);
	if (r == 0)
		r = grow_buckets(p);
	struct entry *e;
	if (r == 0)
		r = entry_new(rule, &e);
	if (r < 0)
		return r;
	p->entry[p->len++] = e;
	link_entry(p, e);
	return 0;
}

void policy_truncate(struct policy *p, size_t n)
{
	if (n >= p->len)
		return;
	for (size_t i = n; i < p->len; i++)
		entry_free(p->entry[i]);
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
		if (!is_same_answer(&p->entry[i]->rule, rule))
			p->entry[kept++] = p->entry[i];
		else if (p->entry[i]->rule.path == rule->path)
			lender = p->entry[i];
		else
			entry_free(p->entry[i]);
	}
	if (lender)
		entry_free(lender);
	p->len = kept;
	if (kept < before)
		relink(p);
	return before - kept;
}

bool policy_has(const struct policy *p, const struct rule *r)
{
	uint64_t hash = hash_path(r->path, strlen(r->path));
	for (const struct entry *e = p->len ? p->bucket[bucket_of(p, hash)] : NULL; e;
	     e = e->next) {
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
	entry_free(p->entry[at]);
	p->len--;
	memmove(&p->entry[at], &p->entry[at + 1], (p->len - at) * sizeof(struct entry *));
	relink(p);
}

size_t policy_len(const struct policy *p)
{
	return p->len;
}

const struct rule *policy_at(const struct policy *p, size_t i)
{
	return i < p->len ? &p->entry[i]->rule : NULL;
}

/* ---- the decision ---- */

struct probe {
	uint32_t mask;	/* rules about any of these accesses */
	bool sensitive; /* look among the sensitive marks instead of the rules */
	bool inherited; /* as a child of the path sees it: exact rules do not count */
	const struct entry *best, *forbid;
	int best_depth;
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

static void consider(struct probe *pr, const struct entry *e, int depth)
{
	if (e->rule.effect == EFFECT_FORBID && !pr->forbid)
		pr->forbid = e;
	if (pr->best && !comes_before(&e->rule, depth, &pr->best->rule, pr->best_depth))
		return;
	pr->best = e;
	pr->best_depth = depth;
}

static void probe_literal(const struct policy *p, struct probe *pr, uint64_t hash, const char *path,
			  size_t n, int depth, bool last)
{
	for (const struct entry *e = p->bucket[bucket_of(p, hash)]; e; e = e->next) {
		if (e->hash != hash || e->glob || !is_wanted(pr, e))
			continue;
		if (is_exact(&e->rule) && (!last || pr->inherited))
			continue;
		if (memcmp(e->rule.path, path, n) == 0 && e->rule.path[n] == '\0')
			consider(pr, e, depth);
	}
}

/*
 * A glob opens nothing inside a literal tree that closes it, unless its own fixed part (what comes
 * before the first wildcard) reaches into that tree: "allow r **" is no word about "deny r secret",
 * "allow r secret/key-?" is.
 */
static bool is_defeated(const struct entry *e, const struct entry *literal, int literal_depth)
{
	if (!literal || e->rule.effect != EFFECT_ALLOW || literal->rule.effect == EFFECT_ALLOW)
		return false;
	size_t fixed = glob_first_wild(e->rule.path, strlen(e->rule.path));
	int depth = 0;
	for (size_t i = 1; i < fixed; i++)
		depth += e->rule.path[i] == '/';
	return depth < literal_depth;
}

static void probe_globs(const struct policy *p, struct probe *pr, const char *path, int depth,
			uint64_t components)
{
	const struct entry *literal = pr->sensitive ? NULL : pr->best;
	int literal_depth = pr->best_depth;
	for (size_t i = 0; i < p->globs; i++) {
		const struct entry *e = p->glob[i];
		if (!is_wanted(pr, e))
			continue;
		int covered = glob_match(e->glob, path, components);
		if (covered < 0)
			continue;
		if (is_exact(&e->rule) && (covered != depth || pr->inherited))
			continue;
		if (is_defeated(e, literal, literal_depth))
			continue;
		consider(pr, e, covered);
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

static struct decision decide(const struct policy *p, const char *path, uint32_t bit,
			      bool inherited)
{
	struct probe pr = {.mask = bit, .inherited = inherited};
	if (!probe_path(p, &pr, path))
		return (struct decision){EFFECT_DENY, NULL};
	const struct entry *e = pr.forbid ? pr.forbid : pr.best;
	return e ? (struct decision){e->rule.effect, &e->rule}
		 : (struct decision){EFFECT_ASK, NULL};
}

struct decision policy_decide(const struct policy *p, const char *path, uint32_t bit)
{
	return decide(p, path, bit, false);
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

bool policy_exception_below(const struct policy *p, const char *dir, uint32_t bit)
{
	size_t n = strlen(dir);
	for (size_t i = 0; i < p->len; i++) {
		const struct entry *e = p->entry[i];
		if (e->rule.effect == EFFECT_ALLOW || e->rule.sensitive || !(e->rule.access & bit))
			continue;
		if (e->glob ? glob_reaches_below(e->glob, dir)
			    : is_strictly_below(e->rule.path, dir, n))
			return true;
	}
	return false;
}

bool policy_uniform(const struct policy *p, const char *dir, uint32_t bit)
{
	return decide(p, dir, bit, false).effect == EFFECT_ALLOW &&
	       decide(p, dir, bit, true).effect == EFFECT_ALLOW &&
	       !policy_exception_below(p, dir, bit);
}

bool policy_sensitive_for(const struct policy *p, const char *path, uint32_t mask)
{
	struct probe pr = {.mask = mask, .sensitive = true};
	return !probe_path(p, &pr, path) || pr.best;
}

bool policy_sensitive(const struct policy *p, const char *path)
{
	return policy_sensitive_for(p, path, ACCESS_ALL);
}
