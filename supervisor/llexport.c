#include "supervisor/llexport.h"

#include "supervisor/breadth.h"
#include "supervisor/escape.h"
#include "supervisor/reach.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define STRUCTURAL (ACCESS_CREATE | ACCESS_DELETE | ACCESS_MOVE)
#define OF_FILES   (ACCESS_READ | ACCESS_EXEC | ACCESS_WRITE | ACCESS_IOCTL)

struct exporter {
	const struct policy *policy;
	struct llexport *out;
	size_t cap;
	size_t walked;
	bool truncated;
	/* of the rule at hand */
	uint32_t left_out; /* what its directory as a whole can't get */
	size_t children;   /* names that were given rules in its place */
};

void llexport_unsaid(struct llexport *e, const struct rule *r, const char *what)
{
	policy_format_rule(&e->unsaid, r);
	buf_add_str(&e->unsaid, " (");
	escape_add_str(&e->unsaid, r->origin);
	if (r->line)
		buf_addf(&e->unsaid, ":%u", r->line);
	buf_addf(&e->unsaid, "): %s\n", what);
}

static int add_entry(struct exporter *x, const char *path, uint32_t access, bool exists,
		     bool is_dir)
{
	struct llexport *o = x->out;
	if (!access)
		return 0;
	if (o->len == x->cap) {
		size_t cap = x->cap ? x->cap * 2 : 64;
		struct llexport_entry *more = reallocarray(o->entry, cap, sizeof(*more));
		if (!more)
			return -ENOMEM;
		o->entry = more;
		x->cap = cap;
	}
	o->entry[o->len] = (struct llexport_entry){
		.path = strdup(path), .access = access, .exists = exists, .is_dir = is_dir};
	return o->entry[o->len].path ? (o->len++, 0) : -ENOMEM;
}

/* ---- directories ---- */

/* Of `mask`, what the policy gives to dir and to all that is or could be below it. */
static uint32_t whole_of(const struct policy *p, const char *dir, uint32_t mask)
{
	uint32_t whole = 0, structural = mask & STRUCTURAL;
	struct reach below;
	for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1)
		if ((mask & bit) && policy_uniform(p, dir, bit))
			whole |= bit;
	if (!structural)
		return whole;
	/* Names may only be moved about where all of them stand alike, in whatever is enforced. */
	reach_of(p, dir, &below);
	if (below.varies & LLEXPORT_ACCESS)
		whole &= ~(uint32_t)STRUCTURAL;
	return whole;
}

static int export_path(struct exporter *x, const char *path, uint32_t mask, bool top);

static int export_child(struct exporter *x, const char *dir, const char *name, uint32_t mask)
{
	struct buf path = {0};
	buf_addf(&path, "%s/%s", dir[1] ? dir : "", name);
	int r = buf_error(&path);
	if (r == 0)
		r = export_path(x, buf_str(&path), mask, false);
	buf_free(&path);
	return r;
}

/* Symlinks are not followed: what they lead to has its own name. */
static int export_children(struct exporter *x, const char *path, uint32_t mask)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int r = 0;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		x->truncated = true;
		return 0;
	}
	for (const struct dirent *e; r == 0 && (e = readdir(dir));) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (x->walked++ >= LLEXPORT_WALK_MAX) {
			x->truncated = true;
			break;
		}
		r = export_child(x, path, e->d_name, mask);
	}
	closedir(dir);
	return r;
}

static uint32_t allowed_at(const struct policy *p, const char *path, uint32_t mask)
{
	uint32_t allowed = 0;
	for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1)
		if ((mask & bit) && policy_decide(p, path, bit).effect == EFFECT_ALLOW)
			allowed |= bit;
	return allowed;
}

static int export_dir(struct exporter *x, const char *path, uint32_t mask, bool exists, bool top)
{
	uint32_t whole = whole_of(x->policy, path, mask), rest = mask & ~whole;
	int r = add_entry(x, path, whole, exists, true);
	if (top)
		x->left_out = rest;
	else if (whole)
		x->children++;
	/* What has nothing allowed at it or below is closed, and stays so. */
	rest &= allowed_at(x->policy, path, rest) | reach_allowed_below(x->policy, path, rest);
	if (r == 0 && rest && exists && !breadth_is_volatile(path))
		r = export_children(x, path, rest);
	return r;
}

static int export_path(struct exporter *x, const char *path, uint32_t mask, bool top)
{
	struct stat st;
	bool exists = lstat(path, &st) == 0;
	if (exists && S_ISLNK(st.st_mode))
		return 0;
	if (!exists || S_ISDIR(st.st_mode))
		return export_dir(x, path, mask, exists, top);
	uint32_t access = allowed_at(x->policy, path, mask & OF_FILES & access_on_kind(st.st_mode));
	if (top)
		x->left_out = mask & ~access & access_on_kind(st.st_mode) & ~(uint32_t)ACCESS_LIST;
	else if (access)
		x->children++;
	return add_entry(x, path, access, true, false);
}

/* ---- rules ---- */

static void say_left_out(struct exporter *x, const struct rule *r, bool is_dir)
{
	struct buf what = {0};
	access_format(&what, x->left_out);
	if (!is_dir)
		buf_add_str(&what,
			    " of this name: Landlock gives them to a directory's names alone");
	else
		buf_addf(&what,
			 " can't be given to all of it, for what is refused in it; %zu things that "
			 "are in it now have rules of their own, what comes later has none",
			 x->children);
	llexport_unsaid(x->out, r, buf_str(&what));
	buf_free(&what);
}

static bool exists_as_file(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

static int export_rule(struct exporter *x, const struct rule *r)
{
	uint32_t mask = r->access & LLEXPORT_ACCESS;
	bool is_file = exists_as_file(r->path);
	if (!mask)
		return 0; /* meta and connect: said once, for all */
	if (r->kind == RULE_GLOB || r->kind == RULE_GLOB_EXACT) {
		llexport_unsaid(x->out, r, "a pattern can't be said");
		return 0;
	}
	if (r->kind == RULE_EXACT && !is_file) {
		llexport_unsaid(x->out, r,
				"a directory without what is in it, or a name that is not there, "
				"can't be said");
		return 0;
	}
	x->left_out = 0;
	x->children = 0;
	x->truncated = false;
	int err = export_path(x, r->path, mask, true);
	if (!err && x->left_out)
		say_left_out(x, r, !is_file);
	if (!err && x->truncated)
		llexport_unsaid(x->out, r, "not all of it could be looked at");
	return err;
}

/* Inside of what is allowed: there it was left out. */
static void say_refusals(struct exporter *x)
{
	for (size_t i = 0; i < policy_len(x->policy); i++) {
		const struct rule *r = policy_at(x->policy, i);
		if (r->sensitive || r->effect == EFFECT_ALLOW || r->source == RULE_BUILTIN ||
		    !(r->access & LLEXPORT_ACCESS))
			continue;
		llexport_unsaid(
			x->out, r,
			r->effect == EFFECT_ASK
				? "nobody is asked there: it is refused"
				: "it is refused by having no rule; another rule could open it");
	}
}

/* ---- the list ---- */

/* '/' before every other byte: a directory, then all that is below it, then its neighbours. */
static int by_path(const void *a, const void *b)
{
	const char *x = ((const struct llexport_entry *)a)->path;
	const char *y = ((const struct llexport_entry *)b)->path;
	while (*x && *x == *y) {
		x++;
		y++;
	}
	int left = !*x ? 0 : *x == '/' ? 1 : (unsigned char)*x + 1;
	int right = !*y ? 0 : *y == '/' ? 1 : (unsigned char)*y + 1;
	return left - right;
}

static void join_same(struct llexport *o)
{
	size_t kept = 0;
	for (size_t i = 0; i < o->len; i++) {
		struct llexport_entry *e = &o->entry[i];
		if (kept && !strcmp(o->entry[kept - 1].path, e->path)) {
			o->entry[kept - 1].access |= e->access;
			free(e->path);
		} else {
			o->entry[kept++] = *e;
		}
	}
	o->len = kept;
}

/* The nearest entry above the one at `at` that covers it; SIZE_MAX: none. */
static size_t above(const struct llexport *o, const size_t *parent, size_t at)
{
	size_t i = at ? at - 1 : SIZE_MAX;
	while (i != SIZE_MAX && !reach_covers(o->entry[i].path, o->entry[at].path))
		i = parent[i];
	return i;
}

/* Tells each what its directories have already, and drops those that add nothing to it. */
static int tidy(struct llexport *o)
{
	if (o->len)
		qsort(o->entry, o->len, sizeof(*o->entry), by_path);
	join_same(o);
	size_t *parent AUTOFREE = calloc(o->len + 1, sizeof(*parent));
	if (!parent)
		return -ENOMEM;
	for (size_t i = 0; i < o->len; i++) {
		parent[i] = above(o, parent, i);
		if (parent[i] != SIZE_MAX)
			o->entry[i].covered =
				o->entry[parent[i]].covered | o->entry[parent[i]].access;
	}
	size_t kept = 0;
	for (size_t i = 0; i < o->len; i++) {
		if (o->entry[i].access & ~o->entry[i].covered)
			o->entry[kept++] = o->entry[i];
		else
			free(o->entry[i].path);
	}
	o->len = kept;
	return 0;
}

int llexport(const struct policy *p, struct llexport *ret)
{
	*ret = (struct llexport){0};
	struct exporter x = {.policy = p, .out = ret};
	int r = 0;
	for (size_t i = 0; r == 0 && i < policy_len(p); i++) {
		const struct rule *rule = policy_at(p, i);
		if (!rule->sensitive && rule->effect == EFFECT_ALLOW)
			r = export_rule(&x, rule);
	}
	if (r == 0) {
		say_refusals(&x);
		r = tidy(ret);
	}
	if (r == 0)
		r = buf_error(&ret->unsaid);
	return r;
}

void llexport_release(struct llexport *e)
{
	for (size_t i = 0; i < e->len; i++)
		free(e->entry[i].path);
	free(e->entry);
	buf_free(&e->unsaid);
	*e = (struct llexport){0};
}
