/*
 * presets: the shipped rule sets, compiled in from presets/NAME.policy.
 */
#pragma once

#include "supervisor/policyfile.h"
#include "supervisor/project.h"

struct preset_text {
	const char *name;
	const char *text;
	const char *sha256; /* of the text, in hexadecimal */
};

/* Generated at build time; ends with one of NULLs. */
extern const struct preset_text preset_texts[];

const struct preset_text *preset_find(const char *name);
/* Is there such a preset? 0; -ENOENT: no (error text lists the names). */
int preset_check(const char *name, struct policy_error *ret_error);
/* The rules of one preset. -ENOENT: no such preset (error text lists the names). */
int preset_add(struct policy *p, const char *name, const struct policy_vars *vars,
	       struct policy_error *ret_error);
/*
 * The project preset: `allow rwx .`, the git directory of a worktree or submodule that lies outside
 * of it (its hooks may run), and for each git directory that exists now: hooks, config, what the
 * config names as hooks or includes, and what leads git to another directory's (.git files,
 * commondir), `ask w` and sensitive. Opens nothing where the project is too wide. *ret_note:
 * an owned sentence for the user, or NULL. 0 or -errno with *ret_error.
 */
int preset_add_project(struct policy *p, const struct project *project,
		       const struct policy_vars *vars, char **ret_note,
		       struct policy_error *ret_error);
