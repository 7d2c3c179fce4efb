#include "supervisor/project.h"

#include "supervisor/gitconfig.h"
#include "supervisor/sha256.h"
#include "tracer/buf.h"
#include "tracer/util.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PROJECT_SLUG_WORD  40 /* bytes of the readable part */
#define PROJECT_PASSWD_MAX 16384

void project_release(struct project *p)
{
	free(p->dir);
	free(p->slug);
	free(p->git_dir);
	free(p->work_git);
	*p = (struct project){0};
}

static char *join(const char *dir, const char *name)
{
	struct buf out = {0};
	buf_add_str(&out, name[0] == '/' || !dir[1] ? "" : dir);
	if (name[0] != '/')
		buf_add_char(&out, '/');
	buf_add_str(&out, name);
	return buf_take(&out);
}

/* realpath of name as seen from dir; NULL where there is none. */
static char *real_from(const char *dir, const char *name)
{
	char *path AUTOFREE = join(dir, name);
	return path ? realpath(path, NULL) : NULL;
}

static char *dirname_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

static const char *basename_of(const char *path)
{
	return strrchr(path, '/') + 1;
}

/* First line of a small regular file, without the newline; NULL where there is none. */
static char *first_line(const char *dir, const char *name)
{
	char *path AUTOFREE = join(dir, name);
	if (!path)
		return NULL;
	int fd AUTOCLOSE = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	char text[PATH_MAX + 16];
	ssize_t n = read(fd, text, sizeof(text) - 1);
	if (n <= 0 || n == sizeof(text) - 1)
		return NULL;
	text[n] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	return strdup(text);
}

static bool has(const char *dir, const char *name, mode_t type)
{
	char *path AUTOFREE = join(dir, name);
	struct stat st;
	if (!path || stat(path, &st) < 0)
		return false;
	return type == 0 || (st.st_mode & S_IFMT) == type;
}

static bool is_git_dir(const char *dir)
{
	return has(dir, "HEAD", 0) && has(dir, "objects", S_IFDIR) && has(dir, "refs", S_IFDIR);
}

/*
 * Does dir hold a repository, for somebody who started in a directory of that owner? A stranger's
 * .git in a shared directory above us must not make that directory our project.
 */
static bool holds_git(const char *dir, uid_t owner)
{
	char *git AUTOFREE = join(dir, ".git");
	struct stat st;
	if (!git || lstat(git, &st) < 0 || (st.st_uid != owner && st.st_uid != geteuid()))
		return false;
	if (S_ISREG(st.st_mode)) {
		char *line AUTOFREE = first_line(dir, ".git");
		return line && strncmp(line, "gitdir: ", 8) == 0;
	}
	return is_git_dir(git);
}

static char *find_top(const char *start)
{
	struct stat st;
	if (stat(start, &st) < 0)
		return NULL;
	char *dir = strdup(start);
	while (dir && !holds_git(dir, st.st_uid)) {
		char *up = dir[1] ? dirname_of(dir) : strdup(start);
		bool end = !dir[1];
		free(dir);
		dir = up;
		if (end)
			break;
	}
	return dir;
}

/* ---- .git files ---- */

/* Does the repository's own record of this worktree name our .git file? */
static bool points_back(const char *git, const char *dir)
{
	char *line AUTOFREE = first_line(git, "gitdir");
	if (!line || !strrchr(line, '/') || strcmp(basename_of(line), ".git") != 0)
		return false;
	*strrchr(line, '/') = '\0';
	char *back AUTOFREE = real_from(git, line[0] ? line : "/");
	return back && strcmp(back, dir) == 0;
}

/* git is .../worktrees/NAME of a repository that knows dir: its common directory, else NULL. */
static char *worktree_common(const char *git, const char *dir)
{
	char *line AUTOFREE = first_line(git, "commondir");
	char *common AUTOFREE = line ? real_from(git, line) : NULL;
	char *above AUTOFREE = dirname_of(git);
	char *worktrees AUTOFREE = common ? join(common, "worktrees") : NULL;
	if (!worktrees || !above || strcmp(worktrees, above) != 0)
		return NULL;
	if (!is_git_dir(common) || !points_back(git, dir))
		return NULL;
	return TAKE_PTR(common);
}

static int take_worktree(const char *section, const char *subsection, const char *key,
			 const char *value, void *arg)
{
	char **worktree = arg;
	if (strcmp(section, "core") != 0 || subsection[0] || strcmp(key, "worktree") != 0)
		return 0;
	free(*worktree);
	*worktree = strdup(value);
	return *worktree ? 0 : -ENOMEM;
}

/* git lies in .git/modules of a directory above dir, and its config names dir. */
static bool is_submodule(const char *git, const char *dir)
{
	const char *modules = strstr(git, "/.git/modules/");
	size_t above = modules ? (size_t)(modules - git) : 0;
	if (!modules || strncmp(git, dir, above) != 0 || dir[above] != '/' || !is_git_dir(git))
		return false;
	char *config AUTOFREE = join(git, "config");
	char *value AUTOFREE = NULL;
	if (!config || gitconfig_read(config, take_worktree, &value) < 0 || !value)
		return false;
	char *back AUTOFREE = real_from(git, value);
	return back && strcmp(back, dir) == 0;
}

/*
 * Fill git_dir and work_git as far as they are believed; *ret_identity is what the slug is of: the
 * repository's top level for a worktree, the directory itself otherwise.
 */
static int identify(struct project *p, char **ret_identity)
{
	char *dot AUTOFREE = join(p->dir, ".git");
	struct stat st = {0};
	*ret_identity = NULL;
	if (!dot)
		return -ENOMEM;
	if (lstat(dot, &st) == 0 && S_ISDIR(st.st_mode) && is_git_dir(dot)) {
		p->git_dir = TAKE_PTR(dot);
	} else if (S_ISREG(st.st_mode)) {
		char *line AUTOFREE = first_line(p->dir, ".git");
		bool link = line && strncmp(line, "gitdir: ", 8) == 0;
		char *git AUTOFREE = link ? real_from(p->dir, line + 8) : NULL;
		char *common AUTOFREE = git ? worktree_common(git, p->dir) : NULL;
		if (common) {
			bool plain = strcmp(basename_of(common), ".git") == 0;
			*ret_identity = plain ? dirname_of(common) : strdup(common);
			p->git_dir = TAKE_PTR(common);
			p->work_git = TAKE_PTR(git);
		} else if (git && is_submodule(git, p->dir)) {
			p->git_dir = TAKE_PTR(git);
		}
	}
	if (!*ret_identity)
		*ret_identity = strdup(p->dir);
	return *ret_identity ? 0 : -ENOMEM;
}

static char *make_slug(const char *identity)
{
	char hash[65];
	struct buf out = {0};
	sha256_hex(identity, strlen(identity), hash);
	const char *word = basename_of(identity);
	for (size_t i = 0; word[i] && i < PROJECT_SLUG_WORD; i++) {
		bool plain = isascii((unsigned char)word[i]) &&
			     (isalnum((unsigned char)word[i]) || strchr("-_.", word[i]));
		buf_add_char(&out, plain && (i || word[i] != '.') ? word[i] : '_');
	}
	buf_addf(&out, "-%.16s", hash);
	return buf_take(&out);
}

static bool is_at_or_above(const char *dir, const char *path)
{
	size_t n = strlen(dir);
	return strncmp(dir, path, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* The home of whoever owns it: root, too, may stand in another user's home directory. */
static bool is_owners_home(const char *dir)
{
	struct stat st;
	struct passwd entry, *found = NULL;
	char block[PROJECT_PASSWD_MAX];
	if (stat(dir, &st) < 0)
		return false;
	getpwuid_r(st.st_uid, &entry, block, sizeof(block), &found);
	char *home AUTOFREE = found ? realpath(found->pw_dir, NULL) : NULL;
	return home && strcmp(home, dir) == 0;
}

static bool is_too_wide(const char *dir, const char *const *homes)
{
	if (!dir[1] || strcmp(dir, "/home") == 0 || is_owners_home(dir))
		return true;
	for (; homes && *homes; homes++) {
		char *real AUTOFREE = realpath(*homes, NULL);
		if (is_at_or_above(dir, real ? real : *homes))
			return true;
	}
	return false;
}

static int find_dir(const char *cwd, const char *forced, char **ret)
{
	char *start AUTOFREE = forced && forced[0] != '/' ? real_from(cwd, forced)
							  : realpath(forced ? forced : cwd, NULL);
	if (!start)
		return errno ? -errno : -ENOENT;
	struct stat st;
	if (stat(start, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	*ret = forced ? TAKE_PTR(start) : find_top(start);
	return *ret ? 0 : -ENOMEM;
}

int project_find(const char *cwd, const char *forced, const char *const *homes, struct project *ret)
{
	struct project p = {0};
	char *identity AUTOFREE = NULL;
	int r = find_dir(cwd, forced, &p.dir);
	if (r == 0)
		r = identify(&p, &identity);
	if (r == 0) {
		p.too_wide = is_too_wide(p.dir, homes);
		p.slug = make_slug(identity);
		r = p.slug ? 0 : -ENOMEM;
	}
	if (r < 0) {
		project_release(&p);
		return r;
	}
	*ret = p;
	return 0;
}
