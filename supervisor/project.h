/*
 * project: which directory is the project, and the slug its saved policy has.
 *
 * Found without running git and ignoring GIT_*: the nearest ancestor of cwd that holds .git. A
 * .git *file* (worktree, submodule) is believed only where the repository's own
 * worktrees/NAME/gitdir (or the superproject) points back; else the directory counts as a project
 * of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct project {
	char *dir;  /* owned; absolute, resolved; the top level, else the cwd */
	char *slug; /* owned; file name without ".policy": readable part + hash of the identity */
	char *git_dir;	/* owned; the repository's directory (common dir of a worktree) or NULL */
	char *work_git; /* owned; the worktree's own git dir where it is elsewhere, else NULL */
	bool too_wide;	/* "/", a home directory, or an ancestor of one: the preset opens nothing */
};

/*
 * 0 or -errno. `forced` (--project DIR) may be NULL. homes: NULL-terminated list of home
 * directories (the caller's own at least); the home of the directory's owner and /home are too wide
 * without it. A .git above cwd counts only where it belongs to us or to the owner of cwd. Blocks on
 * the file system.
 */
int project_find(const char *cwd, const char *forced, const char *const *homes,
		 struct project *ret);
void project_release(struct project *p);
/*
 * Every git directory, and every .git file, at or below dir at this moment (bounded; *ret_truncated
 * says when the bound was hit): owned NULL-terminated list in *ret, freed with project_free_list().
 */
int project_git_dirs(const struct project *p, char ***ret, bool *ret_truncated);
void project_free_list(char **list);
