/*
 * policycheck: what is odd about rules that parse.
 */
#pragma once

#include "supervisor/policyfile.h"

/*
 * One line a warning ("FILE:LINE: warning: ...", escaped) for the rules of `p` whose origin is
 * `origin`, seen within all of p: rules that never decide, paths that do not exist, rules on
 * symlinks, refusals that a rename could carry away. Looks at the file system. Number of warnings.
 */
size_t policycheck_rules(const struct policy *p, const char *origin, const struct policy_vars *vars,
			 struct buf *out);
