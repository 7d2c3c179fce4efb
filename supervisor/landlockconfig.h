/*
 * landlockconfig: rules on paths in the JSON of landlock-lsm's landlockconfig, read and written.
 *
 * Reading knows its schema (of ABI 6: "abi", "variable", "ruleset", "pathBeneath", "netPort") and
 * the older one's names ("v5.read_write"); every member and word that the schema does not have is
 * an error that names its place. Pure: no path is looked at.
 */
#pragma once

#include "supervisor/policyfile.h"

#include <stdint.h>

struct landlockconfig_rule {
	char *path;	 /* owned; bytes as given, variables filled in; may be relative */
	uint64_t rights; /* LLR_* */
};

struct landlockconfig {
	int abi;	  /* 0: not given */
	uint64_t handled; /* LLR_*: what is refused where no rule allows it */
	bool net, scoped; /* it also speaks of ports; of signals or abstract sockets */
	struct landlockconfig_rule *rule; /* owned; in the order of the file */
	size_t len;
};

/* Rules after the variables were filled in; a file that makes more is refused. */
#define LANDLOCKCONFIG_RULES_MAX 10000

/*
 * 0; -EINVAL with "NAME:LINE:COL: ..." or "NAME: PLACE: ..."; -ENOMEM. name is said as it is
 * (escaped).
 */
int landlockconfig_parse(const char *name, const char *text, size_t n, struct landlockconfig *ret,
			 struct policy_error *ret_error);
void landlockconfig_release(struct landlockconfig *c);
/* Does the text look like it (rather than like policy lines)? */
bool landlockconfig_is(const char *text, size_t n);

/*
 * Every right that the schema can name is handled, rules with the same rights stand together; the
 * scopes are those of every run. Rules sorted by path give the same text again. Rights that the
 * schema has no word for must not be set (LANDLOCKCONFIG_RIGHTS); paths are UTF-8.
 */
void landlockconfig_write(const struct landlockconfig_rule *rule, size_t n, struct buf *out);

/* The rights that it has words for. */
uint64_t landlockconfig_rights(void);
