#include "supervisor/presets.h"

#include "supervisor/escape.h"
#include "supervisor/gitconfig.h"
#include "supervisor/nearname.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const struct preset_text *preset_find(const char *name)
{
	for (const struct preset_text *t = preset_texts; t->name; t++)
		if (strcmp(t->name, name) == 0)
			return t;
	return NULL;
}

static int no_preset(const char *name, struct policy_error *ret_error)
{
	struct buf text = {0};
	struct nearname near = nearname_begin(name);
	buf_add_str(&text, "expected a preset (");
	for (const struct preset_text *t = preset_texts; t->name; t++) {
		nearname_try(&near, t->name);
		buf_addf(&text, "%s%s", t == preset_texts ? "" : " ", t->name);
	}
	buf_add_str(&text, "), not '");
	escape_add_str(&text, name);
	buf_add_char(&text, '\'');
	nearname_add(&text, &near, "");
	snprintf(ret_error->text, sizeof(ret_error->text), "%s", buf_str(&text));
	buf_free(&text);
	return -ENOENT;
}

int preset_check(const char *name, struct policy_error *ret_error)
{
	return preset_find(name) ? 0 : no_preset(name, ret_error);
}

int preset_add(struct policy *p, const char *name, const struct policy_vars *vars,
	       struct policy_error *ret_error)
{
	const struct preset_text *t = preset_find(name);
	if (!t)
		return no_preset(name, ret_error);
	char origin[64];
	snprintf(origin, sizeof(origin), "preset %s", t->name);
	return policyfile_parse(p, origin, t->text, strlen(t->text), RULE_PRESET, vars, ret_error);
}

/* ---- the project's git directories ---- */

#define ORIGIN_PROJECT "preset project"
#define WORKTREES_MAX  256

static int add_rule(struct policy *p, enum effect effect, uint32_t access, const char *path,
		    bool sensitive)
{
	char *real AUTOFREE = NULL;
	int r = policyfile_canonical(path, &real);
	if (r == -ENOMEM)
		return r;
	struct rule rule = {.effect = effect,
			    .kind = RULE_TREE,
			    .source = RULE_PRESET,
			    .access = access,
			    .path = real ? real : (char *)path,
			    .given = real && strcmp(real, path) != 0 ? (char *)path : NULL,
			    .origin = ORIGIN_PROJECT,
			    .sensitive = sensitive};
	return policy_add(p, &rule);
}

static int protect(struct policy *p, const char *path)
{
	int r = add_rule(p, EFFECT_ASK, ACCESS_W, path, false);
	return r < 0 ? r : add_rule(p, EFFECT_ASK, ACCESS_W, path, true);
}

static int protect_in(struct policy *p, const char *dir, const char *name)
{
	struct buf path = {0};
	if (name[0] != '/')
		buf_addf(&path, "%s/", dir);
	buf_add_str(&path, name);
	int r = buf_error(&path);
	if (r == 0)
		r = protect(p, buf_str(&path));
	buf_free(&path);
	return r;
}

struct git {
	struct policy *policy;
	const char *dir;  /* the git directory */
	const char *tree; /* where hooks run, and relative hook paths start */
	const char *home;
};

/* A path that a config names: ~/ is the home directory, relative ones start at `from`. */
static int protect_named(const struct git *g, const char *from, const char *value)
{
	if (!value[0])
		return 0;
	if (strncmp(value, "~/", 2) == 0)
		return g->home ? protect_in(g->policy, g->home, value + 2) : 0;
	return protect_in(g->policy, from, value);
}

static int protect_value(const char *section, const char *subsection, const char *key,
			 const char *value, void *arg)
{
	const struct git *g = arg;
	if (strcmp(section, "core") == 0 && !subsection[0] && strcmp(key, "hookspath") == 0)
		return protect_named(g, g->tree, value);
	bool include = strcmp(section, "include") == 0 || strcmp(section, "includeif") == 0;
	return include && strcmp(key, "path") == 0 ? protect_named(g, g->dir, value) : 0;
}

static int protect_config(const struct git *g, const char *name)
{
	struct buf file = {0};
	buf_addf(&file, "%s/%s", g->dir, name);
	int r = buf_error(&file);
	if (r == 0)
		r = gitconfig_read(buf_str(&file), protect_value, (void *)g);
	buf_free(&file);
	/* A config that can't be read names nothing; the file itself is protected all the same. */
	return r == -ENOMEM ? r : 0;
}

static int take_worktree(const char *section, const char *subsection, const char *key,
			 const char *value, void *arg)
{
	struct buf *worktree = arg;
	if (strcmp(section, "core") != 0 || subsection[0] || strcmp(key, "worktree") != 0)
		return 0;
	buf_reset(worktree); /* the last one counts */
	buf_add_str(worktree, value);
	return 0;
}

/* Where the hooks of a git directory run: core.worktree, else the directory around .git. */
static char *work_tree(const char *dir)
{
	struct buf file = {0}, worktree = {0}, out = {0};
	const char *slash = strrchr(dir, '/');
	bool plain = strcmp(slash, "/.git") == 0 && slash != dir;
	buf_addf(&file, "%s/config", dir);
	if (buf_error(&file) == 0)
		gitconfig_read(buf_str(&file), take_worktree, &worktree);
	if (buf_str(&worktree)[0] != '/')
		buf_add(&out, dir,
			worktree.len == 0 && plain ? (size_t)(slash - dir) : strlen(dir));
	if (worktree.len && worktree.data[0] != '/')
		buf_add_char(&out, '/');
	buf_add_str(&out, buf_str(&worktree));
	buf_free(&file);
	buf_free(&worktree);
	return buf_take(&out);
}

/*
 * Of every worktree that exists: where its git looks for the repository, and its own config. Who
 * works there runs git outside of this wall.
 */
static int protect_worktrees(struct policy *p, const char *dir)
{
	struct buf path = {0};
	buf_addf(&path, "%s/worktrees", dir);
	DIR *d = buf_error(&path) ? NULL : opendir(buf_str(&path));
	int r = buf_error(&path);
	struct dirent *e;
	for (size_t n = 0; r == 0 && d && n < WORKTREES_MAX && (e = readdir(d)); n++) {
		if (e->d_name[0] == '.')
			continue;
		buf_reset(&path);
		buf_addf(&path, "%s/worktrees/%s", dir, e->d_name);
		r = buf_error(&path);
		if (r == 0)
			r = protect_in(p, buf_str(&path), "commondir");
		if (r == 0)
			r = protect_in(p, buf_str(&path), "config.worktree");
	}
	if (d)
		closedir(d);
	buf_free(&path);
	return r;
}

/* A file "commondir" leads git to another directory's config and hooks, worktree or not. */
static int protect_git(struct policy *p, const char *dir, const char *tree, const char *home)
{
	static const char *const names[] = {"hooks", "config", "config.worktree", "commondir"};
	struct git g = {.policy = p, .dir = dir, .tree = tree, .home = home};
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(names); i++)
		r = protect_in(p, dir, names[i]);
	if (r == 0)
		r = protect_worktrees(p, dir);
	if (r == 0)
		r = protect_config(&g, "config");
	return r == 0 ? protect_config(&g, "config.worktree") : r;
}

static int protect_each(struct policy *p, const struct project *project, const char *dir,
			const char *home)
{
	struct stat st;
	if (lstat(dir, &st) == 0 && S_ISREG(st.st_mode))
		return protect(p, dir); /* a .git file: it says where the git directory is */
	char *tree AUTOFREE = work_tree(dir);
	if (!tree)
		return -ENOMEM;
	int r = protect_git(p, dir, tree, home);
	/* A worktree shares the repository's config, but runs the hooks from its own top. */
	if (r == 0 && project->work_git && strcmp(dir, project->git_dir) == 0)
		r = protect_git(p, dir, project->dir, home);
	return r;
}

static bool is_inside(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static int open_outside(struct policy *p, const struct project *project, const char *git)
{
	if (!git || is_inside(git, project->dir))
		return 0;
	struct buf hooks = {0};
	buf_addf(&hooks, "%s/hooks", git);
	int r = buf_error(&hooks);
	if (r == 0)
		r = add_rule(p, EFFECT_ALLOW, ACCESS_R | ACCESS_W, git, false);
	if (r == 0)
		r = add_rule(p, EFFECT_ALLOW, ACCESS_R | ACCESS_X, buf_str(&hooks), false);
	buf_free(&hooks);
	return r;
}

static int add_git_dirs(struct policy *p, const struct project *project, const char *home,
			bool *ret_truncated)
{
	char **dirs = NULL;
	int r = project_git_dirs(project, &dirs, ret_truncated);
	for (char **at = dirs; r == 0 && *at; at++)
		r = protect_each(p, project, *at, home);
	project_free_list(dirs);
	if (r == 0)
		r = open_outside(p, project, project->git_dir);
	return r == 0 ? open_outside(p, project, project->work_git) : r;
}

static int note(char **ret_note, const char *before, const char *path, const char *after)
{
	struct buf text = {0};
	buf_add_str(&text, before);
	escape_add_str(&text, path);
	buf_add_str(&text, after);
	*ret_note = buf_take(&text);
	return *ret_note ? 0 : -ENOMEM;
}

int preset_add_project(struct policy *p, const struct project *project,
		       const struct policy_vars *vars, char **ret_note,
		       struct policy_error *ret_error)
{
	*ret_note = NULL;
	if (project->too_wide)
		return note(ret_note, "the project would be ", project->dir,
			    ", which is too wide: nothing of it is opened; go into a project, or "
			    "give --project DIR");
	struct policy_vars here = *vars;
	here.project = project->dir;
	size_t before = policy_len(p);
	bool truncated = false;
	int r = preset_add(p, "project", &here, ret_error);
	if (r < 0)
		return r;
	r = add_git_dirs(p, project, vars->home, &truncated);
	if (r == 0 && truncated)
		r = note(ret_note, "not every directory below ", project->dir,
			 " was looked into for git repositories: hooks further down are open");
	if (r < 0) {
		policy_truncate(p, before);
		snprintf(ret_error->text, sizeof(ret_error->text), "project: %s", strerror(-r));
	}
	return r;
}
