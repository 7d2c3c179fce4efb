/*
 * missing: rules about what is not there: a slip of the pen, or what is still to come.
 */
#pragma once

#include "supervisor/policy.h"
#include "tracer/buf.h"

#include <stdbool.h>

/*
 * Does the rule's path (of a pattern: the directory that it begins with) not exist? Then append
 * that sentence, escaped, with a name beside it that may have been meant. Looks at the file system.
 */
bool missing_add(struct buf *out, const struct rule *rule);
/*
 * The same, `whose` behind the path, where that is likely to be a slip. Not of a rule that opens
 * what is to be made, or that refuses what may come: of those only where the directory is not there
 * either, or a name in it is much like it.
 */
bool missing_add_likely(struct buf *out, const struct rule *rule, const char *whose);
/* A line for each such rule of the command line. */
void missing_add_all(struct buf *lines, const struct policy *p);
