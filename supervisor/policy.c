#include "supervisor/policy_inside.h"

#include "tracer/util.h"

#include <errno.h>
#include <string.h>

static bool is_glob(const struct rule *r)
{
	return r->kind == RULE_GLOB || r->kind == RULE_GLOB_EXACT;
}

/* The root is the empty string to the hash, so that "/a" continues it. */
static uint64_t hash_path(const char *path, size_t n)
{
	return n == 1 ? POLICY_HASH_START : policy_hash(POLICY_HASH_START, path, n);
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
	free(p->by_path.bucket);
	free(p->glob);
	free(p->by_place.bucket);
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

static bool copy_table(struct table *to, const struct table *from)
{
	to->bucket = copy_of(from->bucket, from->n, sizeof(*from->bucket));
	to->n = from->n;
	return to->bucket;
}

int policy_copy(const struct policy *p, struct policy **ret)
{
	struct policy *copy;
	int r = policy_new(&copy);
	if (r < 0)
		return r;
	copy->slot = copy_of(p->slot, p->len, sizeof(*p->slot));
	copy->glob = copy_of(p->glob, p->globs, sizeof(*p->glob));
	if (!copy->slot || !copy->glob || !copy_table(&copy->by_path, &p->by_path) ||
	    !copy_table(&copy->by_place, &p->by_place)) {
		policy_free(copy);
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->len; i++)
		entry_hold(copy->slot[i].entry);
	copy->len = copy->cap = p->len;
	copy->globs = copy->globs_cap = p->globs;
	*ret = copy;
	return 0;
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
		if (!glob && policy_is_dots(at, n))
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

/* The directory at or below which all lies that the pattern matches; an escape ends it, too. */
static uint64_t hash_of_place(const char *pattern)
{
	size_t n = strcspn(pattern, "*?\\");
	while (n > 1 && pattern[n - 1] != '/')
		n--;
	return hash_path(pattern, n > 1 ? n - 1 : 1);
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
	e->below = e->glob ? hash_of_place(e->text) : 0;
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

static void link_one(const struct table *t, uint64_t hash, struct slot *slot, size_t i)
{
	uint32_t *head = policy_bucket(t, hash);
	slot[i].next = *head;
	*head = (uint32_t)i + 1;
}

static void link_slot(struct policy *p, size_t i)
{
	struct entry *e = p->slot[i].entry;
	link_one(&p->by_path, e->hash, p->slot, i);
	if (!e->glob)
		return;
	p->glob[p->globs] = (struct slot){.entry = e};
	link_one(&p->by_place, e->below, p->glob, p->globs++);
}

static void empty_table(struct table *t)
{
	if (t->n)
		memset(t->bucket, 0, t->n * sizeof(*t->bucket));
}

/* Everything again from the entries; needs no memory. */
static void relink(struct policy *p)
{
	empty_table(&p->by_path);
	empty_table(&p->by_place);
	p->globs = 0;
	for (size_t i = 0; i < p->len; i++)
		link_slot(p, i);
}

/* For one more than `len`; *ret_grown: its chains are to be made anew. */
static int grow_table(struct table *t, size_t len, bool *ret_grown)
{
	if (len * 2 < t->n)
		return 0;
	size_t n = t->n ? t->n * 4 : 64;
	uint32_t *bucket = calloc(n, sizeof(*bucket));
	if (!bucket)
		return -ENOMEM;
	free(t->bucket);
	*t = (struct table){bucket, n};
	*ret_grown = true;
	return 0;
}

static int grow_tables(struct policy *p)
{
	bool grown = false;
	int r = grow_table(&p->by_path, p->len, &grown);
	if (r == 0)
		r = grow_table(&p->by_place, p->globs, &grown);
	if (grown)
		relink(p);
	return r;
}

int policy_add(struct policy *p, const struct rule *rule)
{
	int r = p->len < UINT32_MAX ? 0 : -ENOMEM;
	if (r == 0)
		r = grow((void **)&p->slot, sizeof(*p->slot), p->len, &p->cap);
	if (r == 0)
		r = grow((void **)&p->glob, sizeof(*p->glob), p->globs, &p->globs_cap);
	if (r == 0)
		r = grow_tables(p);
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
	for (uint32_t i = policy_first(&p->by_path, hash); i; i = p->slot[i - 1].next) {
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
