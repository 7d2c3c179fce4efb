/*
 * plan: from a denied (path, access) to the scopes a question offers, and from many denials to the
 * narrowest sensible rules (`suggested`, the last lines on stderr, the questions of `retry`).
 */
#pragma once

#include "supervisor/denial.h"
#include "supervisor/policy.h"

enum scope_kind { SCOPE_EXACT, SCOPE_TREE, SCOPE_PRESET };

/* One thing a grant may cover. */
struct scope {
	enum scope_kind kind;
	char *path;       /* owned; a preset's name for SCOPE_PRESET */
	char *path2;      /* owned; the second path of a rename or link, exact scope only */
	uint32_t access;
	uint64_t surplus; /* existing things it opens beside what was asked */
	bool surplus_more; /* counting stopped at the bound: "at least" */
	bool sensitive;
	char *rule;       /* owned; the policy line that would be written */
};

#define PLAN_SCOPES_MAX 8

struct scope_list {
	struct scope item[PLAN_SCOPES_MAX];
	size_t len;
};

/*
 * The scopes for one denial, narrowest first: the path alone with what was needed; the path alone
 * with the whole letter; for a directory it and below; the parent and below, then its parents up to,
 * and never including, the home directory, "/" and its direct children (/etc, /usr, /home...); a preset that covers it.
 * Counts the surplus by walking (bounded by PLAN_WALK_MAX entries: does I/O).
 */
#define PLAN_WALK_MAX 20000
int plan_scopes(const struct denial *d, const char *home, struct scope_list *ret);
void plan_scopes_release(struct scope_list *l);

/* Owned strings, NULL-terminated: rules that would have allowed all `sandbox` denials that stayed
 * refused: many files of one directory become one tree rule (>= 4), never a wide tree. */
int plan_suggest(const struct denial_list *l, const char *home, char ***ret_rules);
void plan_free_rules(char **rules);
