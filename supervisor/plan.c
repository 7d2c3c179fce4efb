#include "supervisor/plan.h"

#include "supervisor/breadth.h"
#include "supervisor/madenames.h"
#include "supervisor/presets.h"
#include "supervisor/surplus.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

#define PATH_SCOPES_MAX (PLAN_SCOPES_MAX - 1) /* one place is a preset's */

/* The second path, where it needs a grant too. */
static const char *asked2(const struct denial *d)
{
	return d->path2_open ? NULL : d->path2;
}

const char *scope_kind_name(enum scope_kind k)
{
	static const char *const name[] = {
		[SCOPE_EXACT] = "exact", [SCOPE_TREE] = "tree", [SCOPE_PRESET] = "preset"};
	BUG((size_t)k >= ARRAY_LEN(name));
	return name[k];
}

struct planner {
	const struct denial *d;
	const char *asked;	     /* the path that a question is about; of `d`, or below it */
	const struct policy *policy; /* may be NULL */
	struct policy *trial;	     /* owned: the policy's copy, or an empty one */
	const char *home;
	bool elsewhere; /* no file of this machine is looked at */
	struct scope_list *list;
};

static void scope_release(struct scope *s)
{
	free(s->path);
	free(s->path2);
	free(s->rule);
}

void plan_scopes_release(struct scope_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		scope_release(&l->item[i]);
	*l = (struct scope_list){0};
}

/* r, rw, rx, rwx: what people mean when they say yes to a part of it. */
static uint32_t whole_letters(uint32_t needed)
{
	uint32_t whole = needed;
	if (needed & (ACCESS_R | ACCESS_W | ACCESS_X))
		whole |= ACCESS_R;
	if (needed & ACCESS_W)
		whole |= ACCESS_W;
	return whole;
}

static struct rule rule_of(const struct scope *s, const char *path)
{
	return (struct rule){
		.effect = EFFECT_ALLOW,
		.kind = s->kind == SCOPE_EXACT ? RULE_EXACT : RULE_TREE,
		.source = RULE_ANSWER,
		.access = s->access,
		.path = (char *)path,
		.origin = (char *)"answer",
	};
}

static char *rule_text(const struct scope *s)
{
	struct buf b = {0};
	const char *path[] = {s->path, s->path2};
	for (size_t i = 0; i < ARRAY_LEN(path) && path[i]; i++) {
		struct rule rule = rule_of(s, path[i]);
		if (i)
			buf_add_char(&b, '\n');
		policy_format_rule(&b, &rule);
	}
	char *text = buf_take(&b);
	buf_free(&b);
	return text;
}

/* ---- does a scope help, and what else does it open ---- */

static bool trial_allows(const struct planner *p)
{
	const struct denial *d = p->d;
	if (policy_decide_all(p->trial, d->path, d->access, NULL).effect != EFFECT_ALLOW)
		return false;
	return !asked2(d) ||
	       policy_decide_all(p->trial, asked2(d), d->access, NULL).effect == EFFECT_ALLOW;
}

/* A more specific rule of the policy may keep closed what was asked for. */
static int scope_helps(const struct planner *p, const struct scope *s, bool *ret)
{
	size_t before = policy_len(p->trial);
	const char *path[] = {s->path, s->path2};
	int error = 0;
	for (size_t i = 0; i < ARRAY_LEN(path) && path[i] && !error; i++) {
		struct rule rule = rule_of(s, path[i]);
		error = policy_add(p->trial, &rule);
	}
	*ret = !error && trial_allows(p);
	policy_truncate(p->trial, before);
	return error == -ENOMEM ? error : 0;
}

/* Named on the sensitive list, though it may not exist (yet). */
static bool names_sensitive_below(const struct policy *policy, const char *dir, uint32_t access)
{
	for (size_t i = 0; i < policy_len(policy); i++) {
		const struct rule *r = policy_at(policy, i);
		if (r->sensitive && (r->access & access) && breadth_is_below(r->path, dir))
			return true;
	}
	return false;
}

static void mark_sensitive(const struct planner *p, struct scope *s)
{
	if (!p->policy)
		return;
	s->sensitive |=
		policy_sensitive_for(p->policy, s->path, s->access) ||
		(s->path2 && policy_sensitive_for(p->policy, s->path2, s->access)) ||
		(s->kind == SCOPE_TREE && names_sensitive_below(p->policy, s->path, s->access));
}

static void count_surplus(struct planner *p, struct scope *s)
{
	struct surplus_ask ask = {
		.path = s->path,
		.asked = {p->asked, asked2(p->d)},
		.policy = p->policy,
		.access = s->access,
		.max = PLAN_WALK_MAX,
	};
	struct surplus surplus = {0};
	s->surplus_unknown = p->elsewhere && s->kind == SCOPE_TREE;
	if (s->kind == SCOPE_TREE && !p->elsewhere)
		surplus_add(&ask, &surplus);
	s->surplus = surplus.count;
	s->surplus_more = surplus.more;
	s->sensitive |= surplus.sensitive;
}

/* ---- the path and its parents ---- */

static bool is_there(const struct planner *p, enum scope_kind kind, const char *path,
		     uint32_t access)
{
	for (size_t i = 0; i < p->list->len; i++) {
		const struct scope *s = &p->list->item[i];
		if (s->kind == kind && s->access == access && !strcmp(s->path, path))
			return true;
	}
	return false;
}

/* Takes the scope over, also on failure. */
static int take_scope(struct planner *p, struct scope *s)
{
	bool helps = false;
	int error = s->path && s->rule ? 0 : -ENOMEM;
	if (!error && s->kind != SCOPE_PRESET)
		error = scope_helps(p, s, &helps);
	/* The first is there in any case: a question has something to say yes to. */
	if (error || (!helps && p->list->len && s->kind != SCOPE_PRESET)) {
		scope_release(s);
		return error;
	}
	p->list->item[p->list->len++] = *s;
	return 0;
}

static int add_scope(struct planner *p, enum scope_kind kind, const char *path, uint32_t access)
{
	if (p->list->len == PATH_SCOPES_MAX || is_there(p, kind, path, access))
		return 0;
	struct scope s = {.kind = kind, .access = access, .path = strdup(path)};
	if (kind == SCOPE_EXACT && asked2(p->d)) {
		s.path2 = strdup(asked2(p->d));
		if (!s.path2) {
			scope_release(&s);
			return -ENOMEM;
		}
	}
	if (s.path) {
		s.rule = rule_text(&s);
		mark_sensitive(p, &s);
		count_surplus(p, &s);
	}
	return take_scope(p, &s);
}

static int add_tree(struct planner *p, const char *path, uint32_t access)
{
	if (breadth_is_closed(path, strlen(path), p->home) || breadth_is_volatile(path))
		return 0;
	return add_scope(p, SCOPE_TREE, path, access);
}

/* An owned copy of the directory that holds path, and path2 where there is one. */
static char *holder_of(const struct denial *d)
{
	char *dir = strdup(d->path);
	char *slash;
	while (dir && (slash = strrchr(dir, '/'))) {
		*slash = 0;
		if (!*dir || !asked2(d) ||
		    (breadth_is_below(asked2(d), dir) && strcmp(asked2(d), dir) != 0))
			break;
	}
	return dir;
}

static int add_parents(struct planner *p, bool both)
{
	char *dir AUTOFREE = holder_of(p->d);
	uint32_t needed = p->d->access, whole = whole_letters(needed);
	int error = dir ? 0 : -ENOMEM;
	while (!error && *dir && !breadth_is_closed(dir, strlen(dir), p->home)) {
		error = add_tree(p, dir, needed);
		if (!error && both)
			error = add_tree(p, dir, whole);
		both = false;
		*strrchr(dir, '/') = 0;
	}
	return error;
}

static bool is_directory_to_be(const struct denial *d)
{
	return d->is_dir || (d->call && !strncmp(d->call, "mkdir", 5));
}

static int add_paths(struct planner *p)
{
	const struct denial *d = p->d;
	uint32_t whole = whole_letters(d->access);
	bool directory = is_directory_to_be(d) && !asked2(d);
	/* `list` says nothing about a file. */
	bool differs = (whole & ~d->access & ~(uint32_t)ACCESS_LIST) != 0;
	/* Nor has anybody a use for more of a name that will not come again. */
	differs &= d->exists || !(d->access & ACCESS_CREATE) || !madenames_is(d->path, d->pid);
	int error = add_scope(p, SCOPE_EXACT, d->path, d->access);
	if (!error && !directory && differs)
		error = add_scope(p, SCOPE_EXACT, d->path, whole);
	if (!error && directory)
		error = add_tree(p, d->path, d->access);
	if (!error && directory)
		error = add_tree(p, d->path, whole);
	return error ? error : add_parents(p, !directory);
}

/* ---- presets ---- */

static void count_preset(const struct planner *p, size_t from, struct scope *s)
{
	struct surplus surplus = {0};
	for (size_t i = from; i < policy_len(p->trial) && surplus.count < PLAN_WALK_MAX; i++) {
		const struct rule *r = policy_at(p->trial, i);
		if (r->effect != EFFECT_ALLOW || r->sensitive || r->kind != RULE_TREE)
			continue;
		surplus_add(&(struct surplus_ask){.path = r->path,
						  .asked = {p->asked, asked2(p->d)},
						  .policy = p->policy,
						  .access = r->access,
						  .max = PLAN_WALK_MAX - surplus.count},
			    &surplus);
	}
	s->surplus = surplus.count;
	s->surplus_more = surplus.more;
	s->sensitive = surplus.sensitive;
	mark_sensitive(p, s);
}

/* A directory that the preset itself reads, all of it. */
static bool is_its_own(const struct planner *p)
{
	struct decision d = policy_decide(p->trial, p->d->path, ACCESS_READ);
	return d.effect == EFFECT_ALLOW && d.rule && d.rule->kind == RULE_TREE &&
	       strcmp(d.rule->path, p->d->path) == 0;
}

/*
 * Presets let the way to their directories be made and looked at (exact rules that open no
 * content): of ~/.cache that says nothing of who makes it.
 */
static bool is_only_the_way(const struct planner *p)
{
	const uint32_t of_a_way = ACCESS_CREATE | ACCESS_LIST | ACCESS_META;
	if ((p->d->access & ~of_a_way) || is_its_own(p))
		return false;
	struct decision d = policy_decide(p->trial, p->d->path, p->d->access & -p->d->access);
	return d.rule && d.rule->kind == RULE_EXACT && !(d.rule->access & ~of_a_way);
}

/* The preset with the fewest rules that opens what was asked for; NULL: none does. */
static const char *find_preset(const struct planner *p, const struct policy_vars *vars)
{
	const char *best = NULL;
	size_t before = policy_len(p->trial), fewest = 0;
	for (const struct preset_text *t = preset_texts; t->name; t++) {
		struct policy_error ignored; /* a preset that can't be used here is not offered */
		bool fits = !preset_add(p->trial, t->name, vars, &ignored) && trial_allows(p) &&
			    !is_only_the_way(p);
		size_t rules = policy_len(p->trial) - before;
		policy_truncate(p->trial, before);
		if (fits && (!best || rules < fewest)) {
			best = t->name;
			fewest = rules;
		}
	}
	return best;
}

const char *plan_preset(const struct denial *d, const struct policy *policy, const char *home)
{
	struct planner p = {.d = d, .policy = policy, .home = home};
	struct policy_vars vars = {.home = home};
	if (policy_copy(policy, &p.trial))
		return NULL;
	const char *name = find_preset(&p, &vars);
	policy_free(p.trial);
	return name;
}

static int add_preset(struct planner *p)
{
	struct policy_vars vars = {.home = p->home};
	const char *name = p->home ? find_preset(p, &vars) : NULL;
	if (!name)
		return 0;
	struct scope s = {.kind = SCOPE_PRESET, .access = p->d->access, .path = strdup(name)};
	struct buf rule = {0};
	buf_addf(&rule, "use %s", name);
	s.rule = buf_take(&rule);
	buf_free(&rule);
	size_t before = policy_len(p->trial);
	struct policy_error ignored;
	if (!preset_add(p->trial, name, &vars, &ignored))
		count_preset(p, before, &s);
	policy_truncate(p->trial, before);
	return take_scope(p, &s);
}

static int make_scopes(struct planner *p, struct scope_list *ret)
{
	struct scope_list list = {0};
	p->list = &list;
	int error = p->policy ? policy_copy(p->policy, &p->trial) : policy_new(&p->trial);
	if (!error)
		error = add_paths(p);
	if (!error && !p->elsewhere)
		error = add_preset(p);
	policy_free(p->trial);
	if (error) {
		plan_scopes_release(&list);
		return error;
	}
	*ret = list;
	return 0;
}

int plan_scopes(const struct denial *d, const struct policy *policy, const char *home,
		struct scope_list *ret)
{
	struct planner p = {.d = d, .asked = d->path, .policy = policy, .home = home};
	return make_scopes(&p, ret);
}

int plan_scopes_elsewhere(const struct denial *d, const struct policy *policy, const char *home,
			  struct scope_list *ret)
{
	struct planner p = {
		.d = d, .asked = d->path, .policy = policy, .home = home, .elsewhere = true};
	return make_scopes(&p, ret);
}

/* Not the path alone, nor what a rule keeps closed (the first scope stands whatever it does). */
static void drop_exact(struct scope_list *l)
{
	size_t kept = 0;
	for (size_t i = 0; i < l->len; i++) {
		if (l->item[i].kind == SCOPE_EXACT)
			scope_release(&l->item[i]);
		else
			l->item[kept++] = l->item[i];
	}
	l->len = kept;
}

/* The first of one before all of the other; the widest goes where there is no room. */
static void put_first(struct scope_list *l, struct scope *first)
{
	if (l->len == PLAN_SCOPES_MAX)
		scope_release(&l->item[--l->len]);
	memmove(l->item + 1, l->item, l->len * sizeof(*l->item));
	l->item[0] = *first;
	l->len++;
	*first = (struct scope){0};
}

int plan_scopes_below(const struct denial *d, const char *dir, const struct policy *policy,
		      const char *home, struct scope_list *ret)
{
	struct denial whole = {.path = (char *)dir,
			       .call = d->call,
			       .access = d->access,
			       .exists = true,
			       .is_dir = true};
	struct planner p = {.d = &whole, .asked = d->path, .policy = policy, .home = home};
	struct scope_list narrow, wide;
	int error = make_scopes(&p, &wide);
	if (error)
		return error;
	drop_exact(&wide);
	error = wide.len && wide.item[0].kind == SCOPE_TREE ? plan_scopes(d, policy, home, &narrow)
							    : -ENOENT;
	if (error) {
		plan_scopes_release(&wide);
		return error;
	}
	put_first(&wide, &narrow.item[0]);
	plan_scopes_release(&narrow);
	*ret = wide;
	return 0;
}
