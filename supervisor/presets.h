/*
 * presets: the shipped rule sets, compiled in from presets/NAME.policy.
 */
#pragma once

#include "supervisor/policyfile.h"

struct preset_text {
	const char *name;
	const char *text;
};

/* Generated at build time; ends with {NULL, NULL}. */
extern const struct preset_text preset_texts[];

const struct preset_text *preset_find(const char *name);
/* The rules of one preset. -ENOENT: no such preset (error text lists the names). */
int preset_add(struct policy *p, const char *name, const struct policy_vars *vars,
	       struct policy_error *ret_error);
