#include "supervisor/missing.h"

#include "supervisor/escape.h"
#include "supervisor/glob.h"
#include "supervisor/nearname.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* Names that are looked through beside the missing one. */
#define NAMES_MAX 4096

struct missing {
	char *path;	 /* owned */
	char *near;	 /* owned: another path, which is there; or NULL */
	bool with_place; /* the directory that it would be in is there */
};

static bool is_absent(const char *path)
{
	struct stat st;
	return lstat(path, &st) && (errno == ENOENT || errno == ENOTDIR);
}

/* What a rule has to find there; owned, or NULL. */
static char *place_of(const struct rule *r)
{
	bool glob = r->kind == RULE_GLOB || r->kind == RULE_GLOB_EXACT;
	return glob ? glob_place(r->path) : strdup(r->path);
}

/* out1 and out2: both are meant. */
static bool differ_in_digits(const char *a, const char *b)
{
	const char digits[] = "0123456789";
	for (; *a || *b; a += *a != 0, b += *b != 0) {
		a += strspn(a, digits);
		b += strspn(b, digits);
		if (*a != *b)
			return false;
	}
	return true;
}

/* The name in dir that is most like `name`; owned, or NULL. */
static char *near_in(const char *dir, const char *name)
{
	struct nearname near = nearname_begin(name);
	char *best = NULL;
	DIR *d = opendir(dir);
	const struct dirent *e;
	for (size_t i = 0; d && i < NAMES_MAX && (e = readdir(d)); i++) {
		const char *before = near.best;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    differ_in_digits(e->d_name, name))
			continue;
		nearname_try(&near, e->d_name);
		if (near.best == before)
			continue;
		free(best);
		best = strdup(e->d_name);
		near.best = best;
	}
	if (d)
		closedir(d);
	return best;
}

/* The first component that is not there is looked for beside it; what is below has to be there. */
static void find_near(struct missing *m)
{
	char *dir AUTOFREE = strdup(m->path);
	char *slash = dir ? strrchr(dir, '/') : NULL;
	const char *rest = "";
	while (slash && slash != dir) {
		*slash = '\0';
		if (!is_absent(dir))
			break;
		*slash = '/';
		rest = m->path + (slash - dir);
		do
			slash--;
		while (*slash != '/');
	}
	if (!slash)
		return;
	const char *name = m->path + (slash - dir) + 1;
	m->with_place = !*rest;
	char *only AUTOFREE = strndup(name, strcspn(name, "/"));
	char *best AUTOFREE = only ? near_in(slash == dir ? "/" : dir, only) : NULL;
	if (best && asprintf(&m->near, "%.*s/%s%s", (int)(slash - dir), m->path, best, rest) < 0)
		m->near = NULL;
	if (m->near && is_absent(m->near))
		free(TAKE_PTR(m->near));
}

static bool find(const struct rule *r, struct missing *ret)
{
	*ret = (struct missing){.path = place_of(r)};
	if (ret->path && ret->path[0] == '/' && ret->path[1] && is_absent(ret->path)) {
		find_near(ret);
		return true;
	}
	free(ret->path);
	return false;
}

static void release(struct missing *m)
{
	free(m->path);
	free(m->near);
}

static void add(struct buf *out, const struct missing *m, const char *whose)
{
	escape_add_str(out, m->path);
	buf_addf(out, "%s does not exist", whose);
	if (!m->near)
		return;
	buf_add_str(out, "; did you mean '");
	escape_add_str(out, m->near);
	buf_add_str(out, "'?");
}

bool missing_add(struct buf *out, const struct rule *rule)
{
	struct missing m;
	if (!find(rule, &m))
		return false;
	add(out, &m, "");
	release(&m);
	return true;
}

/* It has no use before there is something. */
static bool needs_it(const struct rule *r)
{
	return r->effect == EFFECT_ALLOW && !(r->access & ACCESS_CREATE);
}

bool missing_add_likely(struct buf *out, const struct rule *rule, const char *whose)
{
	struct missing m;
	if (rule->sensitive || !find(rule, &m))
		return false;
	bool likely = m.near || !m.with_place || needs_it(rule);
	if (likely)
		add(out, &m, whose);
	release(&m);
	return likely;
}

void missing_add_all(struct buf *lines, const struct policy *p)
{
	for (size_t i = 0; i < policy_len(p); i++) {
		const struct rule *r = policy_at(p, i);
		if (r->source == RULE_LINE &&
		    missing_add_likely(lines, r, ", which a rule of the command line is about,"))
			buf_add_char(lines, '\n');
	}
}
