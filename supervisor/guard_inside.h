/*
 * guard_inside: what guard_move.c asks guard.c beside the questions of guard.h.
 */
#pragma once

#include "supervisor/foldname.h"
#include "supervisor/guard.h"

/* The guard's copy, a loan. */
const struct policy *guard_policy(const struct guard *g);
/* Those of the accesses that are not allowed there by path. */
uint32_t guard_denied(const struct policy *p, const char *path, uint32_t mask);

/* How the thing stands to the existing exceptions, by inode. Unknown: FOLDNAME_ABOVE. Does I/O. */
enum foldname_relation guard_relation_of_inode(const struct guard *g, int o_path_fd);
/*
 * The strongest relation of a path to any exception that has a plain path, and in *ret (a loan;
 * untouched where there is none) that path.
 */
enum foldname_relation guard_relation_of_literals(const struct guard *g, const char *path,
						  const char **ret);
/*
 * The same with patterns (which set no *ret); what they might match below a directory is not looked
 * at here.
 */
enum foldname_relation guard_relation_of_name(const struct guard *g, const char *path,
					      const char **ret);
