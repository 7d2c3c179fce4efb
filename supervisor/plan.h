/*
 * plan: from a denied (path, access) to the scopes a question offers, and from many denials to the
 * narrowest sensible rules (`suggested`, the last lines on stderr, the questions of `retry`).
 */
#pragma once

#include "supervisor/denial.h"
#include "supervisor/policy.h"

enum scope_kind { SCOPE_EXACT, SCOPE_TREE, SCOPE_PRESET };

/* "exact", "tree", "preset". */
const char *scope_kind_name(enum scope_kind k);

/* One thing a grant may cover. */
struct scope {
	enum scope_kind kind;
	char *path;  /* owned; a preset's name for SCOPE_PRESET */
	char *path2; /* owned; the second path of a rename or link, exact scope only, else NULL */
	uint32_t access;
	uint64_t surplus;  /* existing things it opens beside what was asked */
	bool surplus_more; /* counting stopped at a bound: "at least" */
	bool sensitive;	   /* it covers, now or by name, something on the sensitive list */
	char *rule; /* owned; the policy line that would be written; with path2 two, '\n' between */
	bool surplus_unknown; /* the files are another machine's: nothing was counted */
};

#define PLAN_SCOPES_MAX 6

struct scope_list {
	struct scope item[PLAN_SCOPES_MAX];
	size_t len;
};

/*
 * The scopes for one denial, narrowest first, no two the same, never none: the path alone with what
 * was needed; the path alone with the whole letter (r, rw, rx, rwx); for a directory it and below;
 * the parent and below, then its parents up to, and never including, the home directory, its
 * ancestors, other homes, "/" and its direct children (/etc, /usr, /home...); a preset that covers
 * it. For a rename or link: both paths alone, then what holds both. Names under /proc come and go:
 * they are offered alone only.
 * A scope that the policy's own rules would keep closed is not offered.
 *
 * policy (a loan; may be NULL: nothing is sensitive, no rule is in the way) is not changed. home
 * may be NULL. Walks what it counts (bounded by PLAN_WALK_MAX entries a scope, within one file
 * system): does I/O. 0 or -ENOMEM.
 */
#define PLAN_WALK_MAX 20000
int plan_scopes(const struct denial *d, const struct policy *policy, const char *home,
		struct scope_list *ret);
void plan_scopes_release(struct scope_list *l);
/* The same for a denial of another machine: no file of this one is looked at, no preset offered. */
int plan_scopes_elsewhere(const struct denial *d, const struct policy *policy, const char *home,
			  struct scope_list *ret);
/*
 * The narrowest scope of this denial, and then those for all such ones below a directory of its
 * path: of the directory and up. -ENOENT: no such scope would help.
 */
int plan_scopes_below(const struct denial *d, const char *dir, const struct policy *policy,
		      const char *home, struct scope_list *ret);

/* Of a rule's denials those that needed one and the same access. */
struct plan_part {
	uint32_t needed;
	uint64_t count;	   /* refusals */
	size_t paths;	   /* distinct ones */
	const char *argv0; /* who was refused first: loans of the denials */
	const char *exe;
	size_t first; /* place of its first denial */
};

/* What a rule tells apart; of more it tells the sum. */
#define PLAN_PARTS_MAX 3

/* A rule that would have allowed some denials. */
struct plan_rule {
	char *path;	      /* owned, absolute */
	enum scope_kind kind; /* plan_rules(): SCOPE_EXACT only for a directory that exists */
	bool whole;	      /* several things became it, or it is a directory to be */
	uint32_t needed;      /* what was asked for */
	uint32_t access;      /* what the rule allows: needed; of a tree in whole letters */
	size_t paths;	      /* distinct ones it stands for */
	size_t first;	      /* place of its first denial */
	/* In the denials' order; `rest` is the sum of those beyond, its count is 0 without. */
	struct plan_part part[PLAN_PARTS_MAX], rest;
	size_t parts;
};

struct plan_rules {
	struct plan_rule *item; /* in the denials' order */
	size_t len;
	size_t *once; /* plan_hints(): denials without a rule, for their names come once */
	size_t once_len;
};

/*
 * Sets `closed` where a rule denies it: no rule is suggested there. With a home (NULL: of another
 * machine) `preset`, too, of the first PLAN_PRESETS_MAX whose names come once: does I/O. policy is
 * a loan.
 */
#define PLAN_PRESETS_MAX 16
void plan_mark(struct denial_list *l, const struct policy *policy, const char *home);

/*
 * Rules that would have allowed all `sandbox` denials that stayed refused, except what a `forbid`
 * rule decided, is `closed` or `moot`. A new name that was made up for the moment (madenames.h) is
 * its directory; PLAN_SIBLINGS or more of one directory, or PLAN_BELOW or more at any
 * depth below it, become one tree rule; never a wide one (a home, /etc, /usr/share, ~/.config,
 * ~/.ssh), nor one around what is `closed`. No I/O. 0 or -ENOMEM.
 */
#define PLAN_SIBLINGS 4
#define PLAN_BELOW    16
int plan_rules(const struct denial_list *l, const char *home, struct plan_rules *ret);
/*
 * The same as advice after a run: one thing that was to be written stays that one thing, with the
 * accesses that were needed, as the question's first scope has it; and what comes once, in a
 * directory that is wide, gets no rule.
 */
int plan_hints(const struct denial_list *l, const char *home, struct plan_rules *ret);
void plan_rules_release(struct plan_rules *r);
/* A path with home as ~, for people and policy lines. */
void plan_add_short(struct buf *out, const char *path, const char *home);

/* The preset ("python") that opens it, as a question offers it; NULL: none. Does I/O. */
const char *plan_preset(const struct denial *d, const struct policy *policy, const char *home);

/* Of plan_hints(), as policy lines ("use python","allow r ~/.ssh/config"): owned strings,
 * NULL-terminated. */
int plan_suggest(const struct denial_list *l, const char *home, char ***ret_rules);
void plan_free_rules(char **rules);
