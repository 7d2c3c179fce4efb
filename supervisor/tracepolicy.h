/*
 * tracepolicy: a policy as a trace's header carries it: every rule as a line, its path resolved on
 * the machine that it was recorded on, so that another machine decides by it without its files.
 */
#pragma once

#include "supervisor/policyfile.h"

/* One JSON value, appended. 0 or an error of buf_error(). */
int tracepolicy_write(const struct policy *p, struct buf *out);
/*
 * Add its rules to p, with their sources and places. Looks at no file. 0, -EINVAL with a sentence
 * (behind the file's name, which is the caller's to say), -ENOMEM.
 */
int tracepolicy_read(const char *json, struct policy *p, struct policy_error *ret_error);
