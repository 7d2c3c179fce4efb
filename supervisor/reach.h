/*
 * reach: what a policy's rules could still say below a directory. Pure; errs on the side of
 * "could".
 */
#pragma once

#include "supervisor/policy.h"

/*
 * What holds for every name strictly below a directory, there or not yet. A bit is in `varies`
 * where that differs from name to name (or might); else in `allow`, `deny` or `forbid`, or in none
 * of them (ask).
 */
struct reach {
	uint32_t varies;
	uint32_t allow;
	uint32_t deny;
	uint32_t forbid;
};

void reach_of(const struct policy *p, const char *dir, struct reach *ret);
/* How an access stands for a name directly below dir that no rule spells out; the hardest. */
enum effect reach_of_stranger(const struct policy *p, const char *dir, uint32_t bit);
/*
 * The accesses that may stand otherwise for some name strictly below dir than for a stranger there.
 * What exact rules say of dir itself is not asked: it is no name below.
 */
uint32_t reach_names_vary(const struct policy *p, const char *dir);
/* Is `path` dir itself or below it? */
bool reach_covers(const char *dir, const char *path);
/* Could the rule match something strictly below dir? */
bool reach_rule_below(const struct rule *r, const char *dir);
/* Could it match path itself, by name (not as something above it)? */
bool reach_rule_at(const struct rule *r, const char *path);
/* Could it speak of path itself (also as something above it), or of anything below it? */
bool reach_rule_concerns(const struct rule *r, const char *path);
/* Could one of these accesses be allowed to something strictly below dir, by a rule at or above dir
 * or by a glob? */
uint32_t reach_allowed_below(const struct policy *p, const char *dir, uint32_t mask);
/* The first half of it: to something directly below that no rule spells out. */
uint32_t reach_allowed_to_strangers(const struct policy *p, const char *dir, uint32_t mask);
/*
 * Does the rule take something out of what other rules allow: it is a forbid, or refuses or asks
 * inside an allowed tree or glob?
 */
bool reach_is_exception(const struct policy *p, const struct rule *r);
/*
 * The same of every rule: *ret[i], the caller's to free, is of policy_at(p, i). 0 or -ENOMEM.
 * Asking for each by itself takes the square of the rules; here a pattern is compared with the
 * allows that begin as it does.
 */
int reach_exceptions(const struct policy *p, bool **ret);
/*
 * What is on the sensitive list (the marks among these rules) that the pattern or tree opens, by
 * the accesses that it has; NULL: nothing. That a tree holds what a mark's pattern matches is not
 * told: nearly every one does. The first of *ret_count.
 */
const struct rule *reach_sensitive(const struct policy *marks, const struct rule *r,
				   size_t *ret_count);
/* The directory at or below which everything lies that the rule can match. 0; -ENAMETOOLONG. */
int reach_root(const struct rule *r, char *ret, size_t size);
