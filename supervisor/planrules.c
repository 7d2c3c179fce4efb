/*
 * The second half of plan.h: from many denials to few rules. They are sorted so that what lies
 * below a directory stands together, and folded from the leaves up.
 */
#include "supervisor/breadth.h"
#include "supervisor/madenames.h"
#include "supervisor/plan.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

/* A rule while it is being made; path is "" once it became part of a wider one. */
struct rules {
	struct plan_rule *item;
	size_t len;
	const struct denial_list *from;
	const char *home;
	bool as_asked; /* one thing alone is opened as its question would open it */
	size_t *once;  /* places of those whose names come once */
	size_t once_len;
	bool failed;
};

static void rule_release(struct plan_rule *r)
{
	free(r->path);
	*r = (struct plan_rule){0};
}

void plan_rules_release(struct plan_rules *r)
{
	for (size_t i = 0; i < r->len; i++)
		rule_release(&r->item[i]);
	free(r->item);
	free(r->once);
	*r = (struct plan_rules){0};
}

/* '/' comes before every other byte: a directory, then all below it, then its neighbours. */
static int compare_paths(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	unsigned char x = (unsigned char)*a, y = (unsigned char)*b;
	int left = !x ? 0 : x == '/' ? 1 : x + 1;
	int right = !y ? 0 : y == '/' ? 1 : y + 1;
	return left - right;
}

static int by_path(const void *a, const void *b)
{
	const struct plan_rule *x = a, *y = b;
	int order = compare_paths(x->path, y->path);
	return order ? order : (x->first > y->first) - (x->first < y->first);
}

static int by_first(const void *a, const void *b)
{
	const struct plan_rule *x = a, *y = b;
	return (x->first > y->first) - (x->first < y->first);
}

/* ---- gathering ---- */

static bool lies_below(const char *path, const char *dir, size_t n)
{
	return path && !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

/* Something below was denied, or is forbidden: nobody is advised to open all that is around it. */
static bool holds_closed(const struct rules *r, const char *dir, size_t n)
{
	for (size_t i = 0; i < r->from->len; i++) {
		const struct denial *d = &r->from->item[i];
		if ((d->closed || d->forbidden) && denial_stayed(d) &&
		    (lies_below(d->path, dir, n) || lies_below(d->path2, dir, n)))
			return true;
	}
	return false;
}

static bool is_made_up(const struct denial *d, const char *path)
{
	return (d->access & ACCESS_CREATE) && madenames_is(path, d->pid);
}

/* May a rule be about all of the directory that the path is in? */
static bool is_dir_narrow(const char *path, const char *home)
{
	size_t n = (size_t)(strrchr(path, '/') - path);
	return n && !breadth_is_wide(path, n, home) && !breadth_is_volatile(path);
}

/* A new thing whose name was made up for the moment: its directory is meant. */
static void fold_temporary(const struct rules *r, const struct denial *d, struct plan_rule *rule)
{
	char *slash = strrchr(rule->path, '/');
	if (!is_made_up(d, rule->path) || !is_dir_narrow(rule->path, r->home) ||
	    holds_closed(r, rule->path, (size_t)(slash - rule->path)))
		return;
	*slash = 0;
	rule->whole = true;
}

/* Its name will not come again, and its directory is everybody's: no rule is about it. */
static bool comes_once(const struct denial *d, const char *home)
{
	const char *path2 = d->path2_open ? NULL : d->path2;
	return (is_made_up(d, d->path) && !is_dir_narrow(d->path, home)) ||
	       (path2 && is_made_up(d, path2) && !is_dir_narrow(path2, home));
}

/* Nobody makes a directory to leave it empty. */
static bool is_directory_to_be(const struct denial *d, const char *path)
{
	return path == d->path && d->call && !strncmp(d->call, "mkdir", 5);
}

static void gather_one(struct rules *r, const struct denial *d, const char *path, size_t place)
{
	bool one_directory = d->is_dir && path == d->path;
	struct plan_rule rule = {
		.path = strdup(path),
		.kind = one_directory ? SCOPE_EXACT : SCOPE_TREE,
		.whole = is_directory_to_be(d, path),
		.needed = d->access,
		.paths = 1,
		.first = place,
		.part = {{.needed = d->access,
			  .count = d->count,
			  .paths = 1,
			  .argv0 = d->argv0,
			  .exe = d->exe,
			  .first = place}},
		.parts = 1,
	};
	if (rule.path)
		fold_temporary(r, d, &rule);
	r->failed |= !rule.path;
	r->item[r->len++] = rule;
}

static int gather(struct rules *r, const struct denial_list *l)
{
	r->item = calloc(2 * l->len + 1, sizeof(*r->item));
	r->once = calloc(l->len + 1, sizeof(*r->once));
	if (!r->item || !r->once)
		return -ENOMEM;
	for (size_t i = 0; i < l->len; i++) {
		const struct denial *d = &l->item[i];
		if (!denial_stayed(d) || d->forbidden || d->closed || d->nameless || d->moot ||
		    !d->access)
			continue;
		if (r->as_asked && comes_once(d, r->home)) {
			r->once[r->once_len++] = i;
			continue;
		}
		gather_one(r, d, d->path, i);
		if (d->path2 && !d->path2_open)
			gather_one(r, d, d->path2, i);
	}
	return r->failed ? -ENOMEM : 0;
}

static void add_to_part(struct plan_part *into, const struct plan_part *from)
{
	uint32_t needed = into->needed | from->needed;
	uint64_t count = into->count + from->count;
	size_t paths = into->paths + from->paths;
	if (!into->count || from->first < into->first)
		*into = *from;
	into->needed = needed;
	into->count = count;
	into->paths = paths;
}

static int by_first_of_part(const void *a, const void *b)
{
	const struct plan_part *x = a, *y = b;
	return (x->first > y->first) - (x->first < y->first);
}

/* What needed the same becomes one part; the latest beyond PLAN_PARTS_MAX are told as a sum. */
static void absorb_parts(struct plan_rule *into, const struct plan_rule *from)
{
	struct plan_part all[2 * PLAN_PARTS_MAX];
	size_t n = into->parts;
	memcpy(all, into->part, n * sizeof *all);
	for (size_t i = 0; i < from->parts; i++) {
		size_t at = 0;
		while (at < n && all[at].needed != from->part[i].needed)
			at++;
		if (at == n)
			all[n++] = from->part[i];
		else
			add_to_part(&all[at], &from->part[i]);
	}
	qsort(all, n, sizeof *all, by_first_of_part);
	into->parts = n < PLAN_PARTS_MAX ? n : PLAN_PARTS_MAX;
	memcpy(into->part, all, into->parts * sizeof *all);
	for (size_t i = into->parts; i < n; i++)
		add_to_part(&into->rest, &all[i]);
	if (from->rest.count)
		add_to_part(&into->rest, &from->rest);
}

static void absorb(struct plan_rule *into, struct plan_rule *from)
{
	absorb_parts(into, from);
	if (from->first < into->first)
		into->first = from->first;
	into->needed |= from->needed;
	into->paths += from->paths;
	rule_release(from);
}

/* Drop the released ones. */
static void compact(struct rules *r)
{
	size_t kept = 0;
	for (size_t i = 0; i < r->len; i++)
		if (r->item[i].path)
			r->item[kept++] = r->item[i];
	r->len = kept;
}

static void merge_same_path(struct rules *r)
{
	size_t last = 0;
	for (size_t i = 1; i < r->len; i++) {
		struct plan_rule *a = &r->item[last], *b = &r->item[i];
		if (strcmp(a->path, b->path) != 0) {
			last = i;
			continue;
		}
		/* One path twice is one path; a tree covers the directory alone too. */
		a->kind = a->kind == SCOPE_TREE ? a->kind : b->kind;
		a->whole |= b->whole;
		b->paths = 0;
		absorb(a, b);
		for (size_t k = 0; k < a->parts; k++)
			a->part[k].paths = 1;
	}
	compact(r);
}

/* ---- folding ---- */

/* Of [from, to): rules left, and those of them that are the directory or directly in it. */
static size_t count_left(const struct rules *r, size_t from, size_t to, size_t n,
			 size_t *ret_direct)
{
	size_t left = 0;
	*ret_direct = 0;
	for (size_t i = from; i < to; i++) {
		const char *path = r->item[i].path;
		if (!path)
			continue;
		left++;
		*ret_direct += !path[n] || !strchr(path + n + 1, '/');
	}
	return left;
}

static void fold_into(struct rules *r, size_t from, size_t to, size_t n)
{
	struct plan_rule *tree = NULL;
	for (size_t i = from; i < to; i++) {
		if (!r->item[i].path)
			continue;
		if (tree)
			absorb(tree, &r->item[i]);
		else
			tree = &r->item[i];
	}
	tree->path[n] = 0;
	tree->kind = SCOPE_TREE;
	tree->whole = true;
}

/* All of [from, to) are the directory that is the first n bytes of their paths, or below it. */
static void fold(struct rules *r, size_t from, size_t to, size_t n)
{
	const char *dir = r->item[from].path;
	bool wide = breadth_is_wide(dir, n, r->home) || breadth_is_volatile(dir);
	for (size_t i = from, end; i < to; i = end) {
		const char *path = r->item[i].path;
		end = i + 1;
		if (!path[n])
			continue;
		size_t len = n + 1 + strcspn(path + n + 1, "/");
		while (end < to && !strncmp(r->item[end].path, path, len) &&
		       (!r->item[end].path[len] || r->item[end].path[len] == '/'))
			end++;
		if (end - i > 1)
			fold(r, i, end, len);
	}
	size_t direct, left = count_left(r, from, to, n, &direct);
	if (!wide && (direct >= PLAN_SIBLINGS || left >= PLAN_BELOW) && !holds_closed(r, dir, n))
		fold_into(r, from, to, n);
}

/* A tree takes what lies below it where it allows that anyway. */
static void drop_covered(struct rules *r)
{
	size_t tree = SIZE_MAX;
	for (size_t i = 0; i < r->len; i++) {
		struct plan_rule *item = &r->item[i];
		bool below = tree != SIZE_MAX && breadth_is_below(item->path, r->item[tree].path);
		if (below && !(item->access & ~r->item[tree].access)) {
			absorb(&r->item[tree], item);
			continue;
		}
		if (!below && item->kind == SCOPE_TREE)
			tree = i;
	}
	compact(r);
}

/* Who only sets a file's mode or times was not to write it. */
static uint32_t letters_of(uint32_t needed)
{
	uint32_t access = needed;
	if (needed & ACCESS_R)
		access |= ACCESS_R;
	if (needed & ACCESS_W & ~ACCESS_META)
		access |= ACCESS_W;
	return access;
}

/*
 * Somebody said no to it. A literal path would go before their pattern: the rule would help, and
 * undo what they meant. (An answer is forgotten when warder ends; what is saved of it is told by
 * its lifetime.)
 */
static bool is_denied(const struct policy *p, const char *path, uint32_t access)
{
	struct decision now = policy_decide_all(p, path, access, NULL);
	return now.effect == EFFECT_DENY && now.rule && now.rule->source != RULE_ANSWER;
}

static void mark_presets(struct denial_list *l, const struct policy *policy, const char *home)
{
	unsigned looked = 0;
	for (size_t i = 0; i < l->len && looked < PLAN_PRESETS_MAX; i++) {
		struct denial *d = &l->item[i];
		if (!denial_stayed(d) || d->forbidden || d->closed || d->nameless || d->moot ||
		    !comes_once(d, home))
			continue;
		d->preset = plan_preset(d, policy, home);
		looked++;
	}
}

void plan_mark(struct denial_list *l, const struct policy *policy, const char *home)
{
	for (size_t i = 0; i < l->len; i++) {
		struct denial *d = &l->item[i];
		if (!denial_stayed(d) || d->forbidden || d->nameless)
			continue;
		if (d->by == BY_USER && d->lifetime == LIFETIME_ALWAYS)
			d->closed = true;
		else if (d->by == BY_POLICY || d->unwalled)
			d->closed = is_denied(policy, d->path, d->access) ||
				    (d->path2 && is_denied(policy, d->path2, d->access));
	}
	if (home)
		mark_presets(l, policy, home);
}

/*
 * What is written alone is opened as far as it was needed; what is read, as one reads a file. A
 * directory that many share, and that was to be made, is opened by itself alone.
 */
static void set_access(const struct rules *r, struct plan_rule *rule)
{
	if ((r->as_asked && !rule->whole && (rule->needed & ACCESS_W)) ||
	    ((rule->needed & ACCESS_CREATE) &&
	     breadth_is_wide(rule->path, strlen(rule->path), r->home)))
		rule->kind = SCOPE_EXACT;
	rule->access = rule->kind == SCOPE_EXACT ? rule->needed : letters_of(rule->needed);
}

static int make_rules(struct rules *r, struct plan_rules *ret)
{
	int error = gather(r, r->from);
	if (error) {
		plan_rules_release(
			&(struct plan_rules){.item = r->item, .len = r->len, .once = r->once});
		return error;
	}
	qsort(r->item, r->len, sizeof(*r->item), by_path);
	merge_same_path(r);
	if (r->len)
		fold(r, 0, r->len, 0);
	compact(r);
	for (size_t i = 0; i < r->len; i++)
		set_access(r, &r->item[i]);
	drop_covered(r);
	qsort(r->item, r->len, sizeof(*r->item), by_first);
	*ret = (struct plan_rules){
		.item = r->item, .len = r->len, .once = r->once, .once_len = r->once_len};
	return 0;
}

int plan_rules(const struct denial_list *l, const char *home, struct plan_rules *ret)
{
	return make_rules(&(struct rules){.from = l, .home = home}, ret);
}

int plan_hints(const struct denial_list *l, const char *home, struct plan_rules *ret)
{
	return make_rules(&(struct rules){.from = l, .home = home, .as_asked = true}, ret);
}

/* ---- as text ---- */

void plan_add_short(struct buf *out, const char *path, const char *home)
{
	bool below = home && home[0] == '/' && home[1] && breadth_is_below(path, home);
	if (below)
		buf_add_char(out, '~');
	buf_add_str(out, below ? path + strlen(home) : path);
}

static char *format_rule(const struct plan_rule *r, const char *home)
{
	struct buf path = {0}, line = {0};
	plan_add_short(&path, r->path, home);
	struct rule rule = {
		.effect = EFFECT_ALLOW,
		.kind = r->kind == SCOPE_EXACT ? RULE_EXACT : RULE_TREE,
		.access = r->access,
		.path = (char *)buf_str(&path),
	};
	policy_format_rule(&line, &rule);
	char *text = buf_error(&path) ? NULL : buf_take(&line);
	buf_free(&path);
	buf_free(&line);
	return text;
}

/* "use python", where it is not there yet. */
static int add_preset(const char *name, char **list)
{
	struct buf line = {0};
	char **at = list;
	buf_addf(&line, "use %s", name);
	while (*at && strcmp(*at, buf_str(&line)) != 0)
		at++;
	if (!*at && !buf_error(&line))
		*at = buf_take(&line);
	buf_free(&line);
	return *at ? 0 : -ENOMEM;
}

int plan_suggest(const struct denial_list *l, const char *home, char ***ret_rules)
{
	struct plan_rules rules = {0};
	int error = plan_hints(l, home, &rules);
	if (error)
		return error;
	char **list = calloc(rules.len + rules.once_len + 1, sizeof(*list));
	error = list ? 0 : -ENOMEM;
	for (size_t i = 0; i < rules.len && !error; i++) {
		list[i] = format_rule(&rules.item[i], home);
		error = list[i] ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < rules.once_len && !error; i++) {
		const char *preset = l->item[rules.once[i]].preset;
		error = preset ? add_preset(preset, list) : 0;
	}
	plan_rules_release(&rules);
	if (error) {
		plan_free_rules(list);
		return error;
	}
	*ret_rules = list;
	return 0;
}

void plan_free_rules(char **rules)
{
	for (size_t i = 0; rules && rules[i]; i++)
		free(rules[i]);
	free(rules);
}
