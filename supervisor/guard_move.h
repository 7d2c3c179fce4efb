/*
 * guard_move: nothing is carried to where more may be done with it.
 */
#pragma once

#include "supervisor/guard.h"
#include "supervisor/policyfile.h"

/*
 * May `from` be renamed to `to` (exchange: and the other way; link: keep its first name too)? That
 * create, delete and move are allowed there is the caller's to see; here it is about what would be
 * carried into the open. 0, or with a reason (escaped): -EACCES, or -EXDEV where an honest program
 * should copy instead. Refused where
 *   - the source is, or is above, an exception, by inode or by path;
 *   - the destination is above an exception's path, or is one and making or removing it is not
 * allowed, or could be taken for one;
 *   - any access would be freer at the destination than at the source (allow < ask < deny <
 * forbid), for the thing or for any name that could be below it.
 */
int guard_move_check(const struct guard *g, const struct path_at *from, const struct path_at *to,
		     bool exchange, bool link, struct policy_error *ret_why);
/*
 * The same of things some of which have no path that any rule could say (they lie too deep), where
 * the policy is one and the same at both places: what is left to ask is what they are. 0 or
 * -EACCES.
 */
int guard_move_nameless(const struct guard *g, const struct path_at *from,
			const struct path_at *to);
