/*
 * store: our files. Configuration under ${XDG_CONFIG_HOME:-~/.config}/warder, state under
 * ${XDG_STATE_HOME:-~/.local/state}/warder; 0600 in 0700 directories, of the effective user's home.
 */
#pragma once

#include "supervisor/policyfile.h"
#include "supervisor/project.h"

struct store {
	char *home;	  /* owned, from the password database (HOME only where it belongs to us) */
	char *config_dir; /* owned, absolute, resolved; exists after store_open where possible */
	char *state_dir;
	struct buf links; /* the symlinks on the way to both, each with its NUL */
	int state_error;  /* -errno: why it could not be made, 0 */
};

/*
 * Find and make the directories. env is the environment to read (XDG_*, HOME). 0 or -errno with a
 * sentence in *ret_error. A relative or foreign-owned directory is refused.
 */
int store_open(char *const *env, struct store *ret, struct policy_error *ret_error);
void store_release(struct store *s);
/* The effective user's home directory, owned; NULL: none. */
char *store_home(char *const *env);
/* Every directory of the path that is not there yet, 0700. 0, or -errno: why the first can't be. */
int store_make_path(const char *path);
/* Owned paths: user policy; project policy. */
char *store_user_policy(const struct store *s);
char *store_project_policy(const struct store *s, const struct project *p);
/*
 * Append one rule line with its comment (escaped here; may be NULL), atomically under a lock:
 * written to a temporary file in the same directory, fsynced, renamed. A line that says the same
 * already is left as it is. An unreadable or syntactically broken file is left as it is (-EINVAL
 * with the error). Symlinks are not followed. Blocks while another process holds the lock.
 */
int store_append_rule(const char *file, const struct rule *rule, const char *comment,
		      struct policy_error *ret_error);
/* The same with a line `use PRESET`. */
int store_append_use(const char *file, const char *preset, const char *comment,
		     struct policy_error *ret_error);
/*
 * As store_append_rule(), and what the file's rules for the same path and kind say otherwise about
 * these accesses is taken out of it, so that the new rule counts. `vars` as for reading the file.
 * *ret_changed (may be NULL): lines removed or narrowed. -EPERM with the error: one of them is a
 * forbid, and the new rule is none; nothing is changed.
 */
int store_put_rule(const char *file, const struct rule *rule, const char *comment,
		   const struct policy_vars *vars, size_t *ret_changed,
		   struct policy_error *ret_error);
/*
 * Remove every line whose rule is about exactly this path (resolved, or as written in the file) and
 * about any of these accesses. No file: nothing removed.
 */
int store_forget(const char *file, const char *path, uint32_t access,
		 const struct policy_vars *vars, size_t *ret_removed,
		 struct policy_error *ret_error);
/*
 * A whole new text in the file's place, where it still is `old` (empty: not there, or empty); NULL
 * removes the file. As atomic as the others. -EBUSY with the error: somebody changed it meanwhile.
 * The text is the caller's to have checked.
 */
int store_replace(const char *file, const struct buf *old, const struct buf *text,
		  struct policy_error *ret_error);
/*
 * The builtin forbid rules that keep config and state out of every tracee's reach, and what leads
 * there in its place: who could change a symlink on the way would choose the next run's policy.
 */
int store_protect(const struct store *s, struct policy *p);
