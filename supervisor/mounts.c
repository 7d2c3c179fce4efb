#include "supervisor/mounts.h"

#include "supervisor/reach.h"
#include "tracer/util.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct mount {
	char *dev;   /* MAJOR:MINOR */
	char *root;  /* the part of its file system that it shows */
	char *point; /* where it shows it */
};

struct mounts {
	char *text; /* owned; what the strings lie in */
	struct mount *item;
	size_t len;
	size_t added;
};

/* ---- the table ---- */

static bool is_octal(const char *p)
{
	for (int i = 0; i < 3; i++)
		if (p[i] < '0' || p[i] > '7')
			return false;
	return true;
}

/* Blanks, newlines and backslashes stand as \OOO (fs/proc_namespace.c, mangle()). */
static void unescape(char *text)
{
	char *to = text;

	for (const char *p = text; *p; to++) {
		if (*p == '\\' && is_octal(p + 1)) {
			*to = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
			p += 4;
		} else {
			*to = *p++;
		}
	}
	*to = '\0';
}

/* ID PARENT MAJOR:MINOR ROOT POINT ... (proc_pid_mountinfo(5)) */
static bool parse_line(char *line, struct mount *ret)
{
	char *field[5], *rest = line;

	for (size_t i = 0; i < ARRAY_LEN(field); i++) {
		field[i] = strsep(&rest, " ");
		if (!field[i])
			return false;
	}
	*ret = (struct mount){field[2], field[3], field[4]};
	unescape(ret->root);
	unescape(ret->point);
	return ret->root[0] == '/' && ret->point[0] == '/';
}

static int parse(struct mounts *m, const char *mountinfo)
{
	size_t lines = 1;

	m->text = strdup(mountinfo);
	for (const char *p = mountinfo; *p; p++)
		lines += *p == '\n';
	m->item = calloc(lines, sizeof(*m->item));
	if (!m->text || !m->item)
		return -ENOMEM;
	for (char *rest = m->text, *line; (line = strsep(&rest, "\n"));)
		m->len += parse_line(line, &m->item[m->len]);
	return 0;
}

/* The mount that a path is on: of the deepest the last, which lies on top. */
static const struct mount *mount_of(const struct mounts *m, const char *path)
{
	const struct mount *found = NULL;

	for (size_t i = 0; i < m->len; i++)
		if (reach_covers(m->item[i].point, path) &&
		    (!found || strlen(m->item[i].point) >= strlen(found->point)))
			found = &m->item[i];
	return found;
}

/* ---- the names ---- */

/* `path`, which dir covers, as it is called below `as`. 0 or -ENAMETOOLONG. */
static int moved(const char *path, const char *dir, const char *as, char ret[PATH_MAX])
{
	const char *rest = path + (dir[1] ? strlen(dir) : 0);
	int n = snprintf(ret, PATH_MAX, "%s%s", as[1] ? as : "", rest);

	if (n < 0 || n >= PATH_MAX)
		return -ENAMETOOLONG;
	if (n > 1 && ret[n - 1] == '/')
		ret[n - 1] = '\0';
	if (!ret[0])
		strcpy(ret, "/");
	return 0;
}

/* `inside`: the thing's path in its file system. True: *ret is its name by this mount. */
static bool shown_as(const struct mount *by, const struct rule *r, const char *inside,
		     char ret[PATH_MAX])
{
	if (reach_covers(by->root, inside))
		return moved(inside, by->root, by->point, ret) == 0;
	if (r->effect != EFFECT_FORBID || r->kind == RULE_EXACT || !reach_covers(inside, by->root))
		return false;
	return snprintf(ret, PATH_MAX, "%s", by->point) < PATH_MAX;
}

static int say_again(struct mounts *m, struct policy *p, const struct rule *r, char *path)
{
	struct rule again = *r;

	if (m->added++ == MOUNTS_RULES_MAX)
		return -E2BIG;
	again.path = path;
	again.given = NULL;
	again.links = NULL;
	again.links_len = 0;
	return policy_add(p, &again);
}

static int add_names(struct mounts *m, struct policy *p, const struct rule *r)
{
	char inside[PATH_MAX], path[PATH_MAX];
	const struct mount *on = mount_of(m, r->path);
	int err = 0;

	if (!on || moved(r->path, on->point, on->root, inside) < 0)
		return 0;
	for (size_t i = 0; err == 0 && i < m->len; i++) {
		const struct mount *by = &m->item[i];
		if (by != on && strcmp(by->dev, on->dev) == 0 && shown_as(by, r, inside, path) &&
		    strcmp(path, r->path) != 0)
			err = say_again(m, p, r, path);
	}
	return err;
}

static bool refuses(const struct rule *r)
{
	return r->effect != EFFECT_ALLOW && !r->sensitive &&
	       (r->kind == RULE_TREE || r->kind == RULE_EXACT);
}

int mounts_add_rules(struct policy *p, const char *mountinfo)
{
	struct mounts m = {0};
	size_t rules = policy_len(p);
	int err = parse(&m, mountinfo);

	for (size_t i = 0; err == 0 && i < rules; i++)
		if (refuses(policy_at(p, i)))
			err = add_names(&m, p, policy_at(p, i));
	free(m.text);
	free(m.item);
	return err;
}
