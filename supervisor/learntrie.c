#include "supervisor/learntrie.h"

#include "supervisor/breadth.h"
#include "tracer/buf.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

#define NONE	  UINT32_MAX
#define WORDS_MAX 4096 /* programs and calls; further ones are "others" */

struct words {
	char *word[WORDS_MAX + 1]; /* owned; from 1 */
	size_t len;
};

struct node {
	char *name;		      /* owned; "" of the root */
	uint32_t parent, first, next; /* first child, next sibling */
	uint32_t fan;		      /* children */
	uint32_t chain;		      /* in the same bucket */
	struct learntrie_leaf leaf;   /* count 0: only on the way */
};

struct learntrie {
	const char *home; /* a loan */
	struct node *node;
	size_t len, cap;
	uint32_t *bucket;
	size_t buckets; /* a power of two */
	uint32_t fan_max;
	uint64_t dropped;
	struct words *words; /* owned where `own_words` */
	bool own_words;
};

static void free_nodes(struct learntrie *t)
{
	for (size_t i = 0; i < t->len; i++)
		free(t->node[i].name);
	free(t->node);
	free(t->bucket);
	t->node = NULL;
	t->bucket = NULL;
	t->len = t->cap = 0;
}

void learntrie_free(struct learntrie *t)
{
	if (!t)
		return;
	free_nodes(t);
	for (size_t i = 1; t->own_words && i <= t->words->len; i++)
		free(t->words->word[i]);
	if (t->own_words)
		free(t->words);
	free(t);
}

static uint64_t hash_of(uint32_t parent, const char *name, size_t n)
{
	uint64_t h = UINT64_C(14695981039346656037) ^ parent;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
	return h ^ h >> 32;
}

static int make_root(struct learntrie *t)
{
	t->buckets = 1u << 16;
	t->bucket = malloc(t->buckets * sizeof(*t->bucket));
	t->cap = 1024;
	t->node = calloc(t->cap, sizeof(*t->node));
	char *name = strdup("");
	if (!t->bucket || !t->node || !name) {
		free(name);
		return -ENOMEM;
	}
	memset(t->bucket, 0xff, t->buckets * sizeof(*t->bucket));
	t->node[t->len++] =
		(struct node){.name = name, .parent = NONE, .first = NONE, .next = NONE};
	return 0;
}

int learntrie_new(const char *home, const struct learntrie *words_of, struct learntrie **ret)
{
	struct learntrie *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->home = home;
	t->fan_max = LEARNTRIE_FAN_MAX;
	t->words = words_of ? words_of->words : calloc(1, sizeof(*t->words));
	t->own_words = t->words && !words_of;
	if (!t->words || make_root(t)) {
		learntrie_free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

/* ---- words ---- */

static int intern(struct words *w, const char *word, uint16_t *ret)
{
	if (!word || !*word)
		word = "?";
	for (size_t i = 1; i <= w->len; i++)
		if (strcmp(w->word[i], word) == 0) {
			*ret = (uint16_t)i;
			return 0;
		}
	/* The last place is for all that there was no place for. */
	if (w->len == WORDS_MAX) {
		*ret = WORDS_MAX;
		return 0;
	}
	char *copy = strdup(w->len == WORDS_MAX - 1 ? "others" : word);
	if (!copy)
		return -ENOMEM;
	w->word[++w->len] = copy;
	*ret = (uint16_t)w->len;
	return 0;
}

const char *learntrie_word(const struct learntrie *t, uint16_t word)
{
	return word && word <= t->words->len ? t->words->word[word] : "?";
}

static void add_word(uint16_t list[LEARNTRIE_WHO_MAX], bool *more, uint16_t word)
{
	for (size_t i = 0; i < LEARNTRIE_WHO_MAX; i++) {
		if (list[i] == word)
			return;
		if (!list[i]) {
			list[i] = word;
			return;
		}
	}
	*more = true;
}

void learntrie_join(struct learntrie_leaf *into, const struct learntrie_leaf *a)
{
	if (!a->count)
		return;
	into->is_dir = a->is_dir && (into->is_dir || !into->count);
	into->needed |= a->needed;
	into->count += a->count;
	into->names += a->names;
	into->whole |= a->whole;
	if (a->traces > into->traces)
		into->traces = a->traces;
	if (a->last_trace > into->last_trace)
		into->last_trace = a->last_trace;
	for (size_t i = 0; i < LEARNTRIE_WHO_MAX; i++) {
		if (a->who[i])
			add_word(into->who, &into->more_who, a->who[i]);
		if (a->call[i])
			add_word(into->call, &into->more_call, a->call[i]);
	}
	into->more_who |= a->more_who;
	into->more_call |= a->more_call;
}

/* ---- nodes ---- */

static uint32_t find(const struct learntrie *t, uint32_t parent, const char *name, size_t n)
{
	uint32_t at = t->bucket[hash_of(parent, name, n) & (t->buckets - 1)];
	while (at != NONE) {
		const struct node *c = &t->node[at];
		if (c->parent == parent && strlen(c->name) == n && !memcmp(c->name, name, n))
			return at;
		at = c->chain;
	}
	return NONE;
}

/* *ret: NONE where there is no room for more. */
static int make_node(struct learntrie *t, uint32_t parent, const char *name, size_t n,
		     uint32_t *ret)
{
	*ret = NONE;
	if (t->len >= LEARNTRIE_NODES_MAX)
		return 0;
	if (t->len == t->cap) {
		struct node *more = reallocarray(t->node, t->cap * 2, sizeof(*more));
		if (!more)
			return -ENOMEM;
		t->node = more;
		t->cap *= 2;
	}
	char *copy = strndup(name, n);
	if (!copy)
		return -ENOMEM;
	uint32_t *head = &t->bucket[hash_of(parent, name, n) & (t->buckets - 1)];
	t->node[t->len] = (struct node){.name = copy,
					.parent = parent,
					.first = NONE,
					.next = t->node[parent].first,
					.chain = *head};
	*head = (uint32_t)t->len;
	t->node[parent].first = (uint32_t)t->len;
	t->node[parent].fan++;
	*ret = (uint32_t)t->len++;
	return 0;
}

/* All that is below joins the node itself; the nodes stay, and are never met again. */
static void make_whole(struct learntrie *t, uint32_t top)
{
	uint32_t at = t->node[top].first;
	while (at != NONE) {
		learntrie_join(&t->node[top].leaf, &t->node[at].leaf);
		t->node[at].leaf.count = 0;
		if (t->node[at].first != NONE) {
			at = t->node[at].first;
			continue;
		}
		while (at != top && t->node[at].next == NONE)
			at = t->node[at].parent;
		at = at == top ? NONE : t->node[at].next;
	}
	t->node[top].leaf.whole = true;
	t->node[top].leaf.is_dir = false;
	t->node[top].first = NONE;
}

/* The node of a path, or of the directory that stands for it; NONE: there is no room. */
static int reach(struct learntrie *t, const char *path, uint32_t *ret)
{
	uint32_t at = 0;
	int r = 0;
	for (const char *p = path; *p && !t->node[at].leaf.whole;) {
		p += strspn(p, "/");
		size_t n = strcspn(p, "/");
		if (!n)
			break;
		uint32_t child = find(t, at, p, n);
		size_t len = (size_t)(p - path) - 1; /* of the directory */
		if (child == NONE && t->node[at].fan >= t->fan_max && len &&
		    !breadth_is_wide(path, len, t->home) && !breadth_is_volatile(path)) {
			make_whole(t, at);
			break;
		}
		if (child == NONE)
			r = make_node(t, at, p, n, &child);
		if (r || child == NONE) {
			*ret = NONE;
			return r;
		}
		at = child;
		p += n;
	}
	*ret = at;
	return 0;
}

/* ---- less room ---- */

int learntrie_put(struct learntrie *t, const char *path, const struct learntrie_leaf *leaf)
{
	uint32_t at;
	int r = reach(t, path, &at);
	if (r)
		return r;
	if (at == NONE) {
		t->dropped += leaf->count;
		return 0;
	}
	bool itself = t->node[at].leaf.whole;
	learntrie_join(&t->node[at].leaf, leaf);
	if (itself)
		t->node[at].leaf.is_dir = false;
	return 0;
}

static int keep(void *arg, const char *path, const struct learntrie_leaf *leaf)
{
	return learntrie_put(arg, path, leaf);
}

/* Everything again, with fewer names a directory. False: it can't be made any smaller. */
static int shrink(struct learntrie *t, bool *ret_smaller)
{
	struct learntrie old = *t;
	*ret_smaller = false;
	if (t->fan_max <= 4)
		return 0;
	t->fan_max /= 4;
	t->node = NULL;
	t->bucket = NULL;
	t->len = t->cap = 0;
	int r = make_root(t);
	if (!r)
		r = learntrie_walk(&old, keep, t);
	*ret_smaller = t->len < old.len / 4 * 3;
	struct learntrie spent = {.node = old.node, .bucket = old.bucket, .len = old.len};
	free_nodes(&spent);
	return r;
}

int learntrie_add(struct learntrie *t, const struct learntrie_seen *seen)
{
	uint32_t at = NONE;
	uint16_t who, call;
	int r = intern(t->words, seen->who, &who);
	if (!r)
		r = intern(t->words, seen->call, &call);
	if (!r)
		r = reach(t, seen->path, &at);
	for (bool smaller = true; !r && at == NONE && smaller;) {
		r = shrink(t, &smaller);
		if (!r)
			r = reach(t, seen->path, &at);
	}
	if (r)
		return r;
	if (at == NONE) {
		t->dropped++;
		return 0;
	}
	struct learntrie_leaf *leaf = &t->node[at].leaf;
	bool whole = leaf->whole, fresh = !leaf->count;
	leaf->is_dir = !whole && seen->is_dir && (leaf->is_dir || fresh);
	leaf->needed |= seen->access;
	leaf->count++;
	leaf->names += fresh;
	leaf->traces += leaf->last_trace != seen->trace;
	leaf->last_trace = seen->trace;
	add_word(leaf->who, &leaf->more_who, who);
	add_word(leaf->call, &leaf->more_call, call);
	return 0;
}

uint64_t learntrie_dropped(const struct learntrie *t)
{
	return t->dropped;
}

size_t learntrie_nodes(const struct learntrie *t)
{
	return t->len;
}

/* ---- walking ---- */

struct walk {
	const struct learntrie *t;
	struct buf path;
	int (*each)(void *arg, const char *path, const struct learntrie_leaf *leaf);
	void *arg;
};

static int by_name(const void *a, const void *b, void *arg)
{
	const struct learntrie *t = arg;
	return strcmp(t->node[*(const uint32_t *)a].name, t->node[*(const uint32_t *)b].name);
}

static int walk_node(struct walk *w, uint32_t at);

static int walk_children(struct walk *w, uint32_t at)
{
	size_t n = 0, len = w->path.len;
	uint32_t *order AUTOFREE = calloc(w->t->node[at].fan + 1, sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (uint32_t c = w->t->node[at].first; c != NONE; c = w->t->node[c].next)
		order[n++] = c;
	qsort_r(order, n, sizeof(*order), by_name, (void *)(uintptr_t)w->t);
	int r = 0;
	for (size_t i = 0; !r && i < n; i++) {
		buf_add_char(&w->path, '/');
		buf_add_str(&w->path, w->t->node[order[i]].name);
		r = buf_error(&w->path);
		if (!r)
			r = walk_node(w, order[i]);
		if (!r) {
			w->path.len = len;
			w->path.data[len] = '\0';
		}
	}
	return r;
}

/* As deep as paths are: PATH_MAX / 2 at most, and such a path has only itself below. */
static int walk_node(struct walk *w, uint32_t at)
{
	const struct node *n = &w->t->node[at];
	int r = n->leaf.count ? w->each(w->arg, w->path.len ? buf_str(&w->path) : "/", &n->leaf)
			      : 0;
	return r || n->first == NONE ? r : walk_children(w, at);
}

int learntrie_walk(const struct learntrie *t,
		   int (*each)(void *arg, const char *path, const struct learntrie_leaf *leaf),
		   void *arg)
{
	struct walk w = {.t = t, .each = each, .arg = arg};
	buf_add_str(&w.path, "");
	int r = walk_node(&w, 0);
	buf_free(&w.path);
	return r;
}
