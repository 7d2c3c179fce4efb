/*
 * store: our files. Configuration under ${XDG_CONFIG_HOME:-~/.config}/warder, state under
 * ${XDG_STATE_HOME:-~/.local/state}/warder; 0600 in 0700 directories, of the effective user's home.
 */
#pragma once

#include "supervisor/policyfile.h"
#include "supervisor/project.h"

struct store {
	char *home;       /* owned, from the password database (HOME only where it belongs to us) */
	char *config_dir; /* owned, absolute, resolved; exists after store_open where possible */
	char *state_dir;
};

/*
 * Find and make the directories. env is the environment to read (XDG_*, HOME). 0 or -errno with a
 * sentence in *ret_error. A relative or foreign-owned directory is refused.
 */
int store_open(char *const *env, struct store *ret, struct policy_error *ret_error);
void store_release(struct store *s);
/* Owned paths: user policy; project policy. */
char *store_user_policy(const struct store *s);
char *store_project_policy(const struct store *s, const struct project *p);
/*
 * Append one rule line with its comment (already escaped by this function), atomically under a lock: written
 * to a temporary file in the same directory, fsynced, renamed. An unreadable or syntactically broken
 * file is left as it is (-EINVAL with the error). Symlinks are not followed.
 */
int store_append_rule(const char *file, const struct rule *rule, const char *comment,
		      struct policy_error *ret_error);
/* Remove every line whose rule is about exactly this path (and any of these accesses). */
int store_forget(const char *file, const char *path, uint32_t access,
		 const struct policy_vars *vars, size_t *ret_removed,
		 struct policy_error *ret_error);
/* The builtin forbid rules that keep config and state out of every tracee's reach. */
int store_protect(const struct store *s, struct policy *p);
