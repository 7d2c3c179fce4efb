/*
 * From what was seen to rules: which presets open it, what the planner makes of the rest, and where
 * names that differ in a number alone become a pattern.
 */
#include "supervisor/breadth.h"
#include "supervisor/learn_inside.h"
#include "supervisor/presets.h"
#include "supervisor/reach.h"
#include "tracer/util.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* A preset is for a kind of program: one path alone is better named itself. */
#define PRESET_PATHS_MIN 2
#define PRESETS_MAX	 16

struct seen {
	char *path; /* owned */
	struct learntrie_leaf leaf;
	uint32_t presets; /* which of them open it */
	bool done;	  /* open without a rule by now */
};

struct planning {
	struct learn *l;
	struct seen *seen; /* owned */
	size_t len, cap;
};

void learnrules_release(struct learn *l)
{
	for (size_t i = 0; i < l->rules; i++)
		free(l->rule[i].path);
	free(l->rule);
	policy_free(l->with);
	l->rule = NULL;
	l->rules = 0;
	l->with = NULL;
}

static void planning_release(struct planning *p)
{
	for (size_t i = 0; i < p->len; i++)
		free(p->seen[i].path);
	free(p->seen);
}

static int gather(void *arg, const char *path, const struct learntrie_leaf *leaf)
{
	struct planning *p = arg;
	if (p->len == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 256;
		struct seen *more = reallocarray(p->seen, cap, sizeof(*more));
		if (!more)
			return -ENOMEM;
		p->seen = more;
		p->cap = cap;
	}
	p->seen[p->len] = (struct seen){.path = strdup(path), .leaf = *leaf};
	return p->seen[p->len].path ? (p->len++, 0) : -ENOMEM;
}

/* ---- presets ---- */

static bool opens(const struct policy *p, const struct seen *s)
{
	return policy_decide_all(p, s->path, s->leaf.needed, NULL).effect == EFFECT_ALLOW;
}

/* Presets let the way to their directories be made: that says nothing of whose it is. */
static bool is_only_the_way(const struct policy *p, const struct seen *s)
{
	const uint32_t of_a_way = ACCESS_CREATE | ACCESS_LIST | ACCESS_META;
	struct decision d = policy_decide(p, s->path, s->leaf.needed & -s->leaf.needed);
	return !(s->leaf.needed & ~of_a_way) && d.rule && d.rule->kind == RULE_EXACT;
}

static int mark_preset(struct planning *p, size_t number, const char *name)
{
	struct policy *trial;
	struct policy_error ignored; /* one that can't be used here opens nothing */
	struct policy_vars vars = {.home = p->l->home, .as_written = true};
	int r = policy_new(&trial);
	if (r == 0 && preset_add(trial, name, &vars, &ignored) == 0)
		for (size_t i = 0; i < p->len; i++)
			if (opens(trial, &p->seen[i]) && !is_only_the_way(trial, &p->seen[i]))
				p->seen[i].presets |= 1u << number;
	policy_free(trial);
	return r == -ENOMEM ? r : 0;
}

static size_t count_open(const struct planning *p, size_t number)
{
	size_t n = 0;
	for (size_t i = 0; i < p->len; i++)
		n += !p->seen[i].done && (p->seen[i].presets & 1u << number);
	return n;
}

static int use_preset(struct planning *p, const char *name)
{
	struct policy_error ignored;
	struct policy_vars vars = {
		.home = p->l->home, .project = p->l->project, .as_written = true};
	int r = preset_add(p->l->with, name, &vars, &ignored);
	p->l->preset[p->l->presets++] = name;
	for (size_t i = 0; i < p->len; i++)
		p->seen[i].done |= opens(p->l->with, &p->seen[i]);
	return r == -ENOMEM ? r : 0;
}

/* The one that opens most of what is left, as long as one opens enough. */
static int choose_presets(struct planning *p)
{
	size_t known = 0;
	int r = 0;
	for (; !r && known < PRESETS_MAX && preset_texts[known].name; known++)
		r = mark_preset(p, known, preset_texts[known].name);
	while (!r && p->l->presets < known) {
		size_t best = 0, most = 0;
		for (size_t i = 0; i < known; i++) {
			size_t n = count_open(p, i);
			if (n > most) {
				best = i;
				most = n;
			}
		}
		if (most < PRESET_PATHS_MIN)
			break;
		r = use_preset(p, preset_texts[best].name);
	}
	return r;
}

/* ---- the planner ---- */

/* As the planner takes refusals: one for each path that is left. Strings are loans. */
static int plan_left(struct planning *p, struct plan_rules *ret)
{
	struct denial_list list = {.item = calloc(p->len + 1, sizeof(*list.item))};
	if (!list.item)
		return -ENOMEM;
	for (size_t i = 0; i < p->len; i++) {
		const struct seen *s = &p->seen[i];
		if (!s->done)
			list.item[list.len++] = (struct denial){.path = s->path,
								.access = s->leaf.needed,
								.verdict = VERDICT_SANDBOX,
								.is_dir = s->leaf.is_dir,
								.exists = true,
								.count = s->leaf.count};
	}
	int r = plan_rules(&list, p->l->home, ret);
	free(list.item);
	return r;
}

static int add_rule(struct learn *l, const struct plan_rule *from)
{
	struct learn_rule r = {.path = strdup(from->path),
			       .exact = from->kind == SCOPE_EXACT,
			       .access = from->access};
	if (!r.path)
		return -ENOMEM;
	l->rule[l->rules++] = r;
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct learn_rule *x = a, *y = b;
	int order = strcmp(x->path, y->path);
	return order ? order : (int)x->access - (int)y->access;
}

/* ---- names that differ in a number alone ---- */

/*
 * The name with each run that begins and ends with a digit, and has only digits, dots and dashes
 * between, as a *. False: there is none, or too little is left to tell what it is.
 */
static bool generalise(const char *name, struct buf *out)
{
	size_t fixed = 0, stars = 0;
	while (*name) {
		size_t n = 0, end = 0;
		for (; isdigit((unsigned char)name[n]) || (n && strchr(".-", name[n]) && name[n]);
		     n++)
			if (isdigit((unsigned char)name[n]))
				end = n + 1;
		if (end) {
			buf_add_char(out, '*');
			stars++;
			name += end;
			continue;
		}
		if (strchr("*?\\", *name))
			buf_add_char(out, '\\');
		buf_add_char(out, *name++);
		fixed++;
	}
	return stars && fixed >= 3;
}

/* The rule's path with its last name generalised, as a pattern; NULL: it stays as it is. */
static char *pattern_of(const struct learn *l, const struct learn_rule *r)
{
	const char *slash = strrchr(r->path, '/');
	struct buf out = {0};
	/* In a directory that is not wide the planner joins names by itself. */
	if (r->exact || !breadth_is_wide(r->path, (size_t)(slash - r->path), l->home))
		return NULL;
	for (const char *s = r->path; s <= slash; s++) {
		if (strchr("*?\\", *s))
			buf_add_char(&out, '\\');
		buf_add_char(&out, *s);
	}
	char *pattern AUTOFREE = generalise(slash + 1, &out) && !out.failed ? buf_take(&out) : NULL;
	buf_free(&out);
	/* Names that nobody saw come with a pattern, and they may be what nobody should open. */
	const struct rule rule = {
		.effect = EFFECT_ALLOW, .kind = RULE_GLOB, .access = r->access, .path = pattern};
	size_t count;
	return pattern && !reach_sensitive(l->base, &rule, &count) ? TAKE_PTR(pattern) : NULL;
}

/* Two or more with one pattern and the same accesses become that. */
static int fold_numbers(struct learn *l)
{
	char **pattern AUTOFREE = calloc(l->rules + 1, sizeof(char *));
	if (!pattern)
		return -ENOMEM;
	for (size_t i = 0; i < l->rules; i++)
		pattern[i] = pattern_of(l, &l->rule[i]);
	for (size_t i = 0; i < l->rules; i++) {
		bool folded = false;
		for (size_t k = i + 1; pattern[i] && k < l->rules; k++) {
			if (!pattern[k] || strcmp(pattern[i], pattern[k]) != 0 ||
			    l->rule[i].access != l->rule[k].access)
				continue;
			folded = true;
			l->rule[k].access = 0; /* gone */
			free(pattern[k]);
			pattern[k] = NULL;
		}
		if (folded) {
			free(l->rule[i].path);
			l->rule[i].path = pattern[i];
			l->rule[i].glob = true;
		} else {
			free(pattern[i]);
		}
	}
	size_t kept = 0;
	for (size_t i = 0; i < l->rules; i++) {
		if (l->rule[i].access)
			l->rule[kept++] = l->rule[i];
		else
			free(l->rule[i].path);
	}
	l->rules = kept;
	return 0;
}

/* ---- who needed it ---- */

static int add_to(struct policy *p, struct learn_rule *r, size_t number)
{
	struct rule rule = {.effect = EFFECT_ALLOW,
			    .kind = r->glob    ? (r->exact ? RULE_GLOB_EXACT : RULE_GLOB)
				    : r->exact ? RULE_EXACT
					       : RULE_TREE,
			    .source = RULE_USER,
			    .access = r->access,
			    .path = r->path,
			    .origin = (char *)(uintptr_t) "learn",
			    .line = (unsigned)number};
	return policy_add(p, &rule);
}

/* What git runs, outside of any wall, when somebody works there. */
static bool runs_later(const struct seen *s)
{
	const char *git = strstr(s->path, "/.git/");
	return git && (s->leaf.needed & ACCESS_W) &&
	       (!strncmp(git, "/.git/hooks", 11) || !strcmp(git, "/.git/config"));
}

/* Each path's sight is told by the rules that open it. */
static int attribute(struct planning *p)
{
	struct learn *l = p->l;
	struct policy *own;
	int r = policy_new(&own);
	for (size_t i = 0; r == 0 && i < l->rules; i++)
		r = add_to(own, &l->rule[i], i);
	for (size_t i = 0; r == 0 && i < p->len; i++) {
		const struct seen *s = &p->seen[i];
		size_t last = SIZE_MAX;
		for (uint32_t bit = 1; !s->done && bit <= ACCESS_ALL; bit <<= 1) {
			const struct rule *by =
				s->leaf.needed & bit ? policy_decide(own, s->path, bit).rule : NULL;
			if (!by || by->line == last)
				continue;
			last = by->line;
			l->rule[last].paths++;
			l->rule[last].runs_later |= runs_later(s);
			learntrie_join(&l->rule[last].leaf, &s->leaf);
		}
	}
	policy_free(own);
	return r;
}

/* What no preset knows of shared memory and the like comes with another name the next time. */
static int leave_temporary(struct planning *p)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < p->len; i++) {
		struct seen *s = &p->seen[i];
		const char *dir = s->done ? NULL : madenames_dir(&p->l->made, s->path);
		if (!dir)
			continue;
		s->done = true;
		s->leaf.whole = true;
		r = learntrie_put(p->l->seen[LEARN_TEMPORARY], dir, &s->leaf);
	}
	return r;
}

static int make_rules(struct planning *p)
{
	struct plan_rules plan = {0};
	struct learn *l = p->l;
	int r = plan_left(p, &plan);
	if (r)
		return r;
	l->rule = calloc(plan.len + 1, sizeof(*l->rule));
	r = l->rule ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < plan.len; i++)
		r = add_rule(l, &plan.item[i]);
	plan_rules_release(&plan);
	if (r == 0 && l->rules)
		qsort(l->rule, l->rules, sizeof(*l->rule), by_path);
	if (r == 0)
		r = fold_numbers(l);
	return r ? r : attribute(p);
}

int learnrules(struct learn *l)
{
	struct planning p = {.l = l};
	int r = policy_copy(l->base, &l->with);
	if (r == 0)
		r = learntrie_walk(l->seen[LEARN_WANTED], gather, &p);
	/* A later trace's header may have opened what an earlier one needed. */
	for (size_t i = 0; r == 0 && i < p.len; i++)
		p.seen[i].done = opens(l->base, &p.seen[i]);
	if (r == 0)
		r = choose_presets(&p);
	if (r == 0)
		r = leave_temporary(&p);
	if (r == 0)
		r = make_rules(&p);
	planning_release(&p);
	return r;
}
