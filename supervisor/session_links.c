/*
 * Paths are resolved when they are read. What an earlier run could put in their way says nothing
 * about what the user meant: such a rule opens nothing, and such a file is not written.
 */
#include "supervisor/escape.h"
#include "supervisor/session.h"
#include "tracer/outfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A symlink on the rule's way lies where the command may make names: it can be its work. */
static const char *doubtful_link(const struct policy *p, const struct rule *rule)
{
	for (size_t at = 0; at < rule->links_len; at += strlen(rule->links + at) + 1)
		if (policy_decide(p, rule->links + at, ACCESS_CREATE).effect == EFFECT_ALLOW)
			return rule->links + at;
	return NULL;
}

/* So many are told; a wide rule of the user's can make every symlink of the system one. */
#define LEFT_OUT_TOLD 3

static int leave_out(struct session *s, size_t at, const char *link, size_t before)
{
	if (before >= LEFT_OUT_TOLD) {
		policy_remove_at(s->policy, at);
		return 0;
	}
	struct buf b = {0};
	const struct rule *rule = policy_at(s->policy, at);
	buf_add_str(&b, "left out, since the symlink on its way can be the command's own: allow ");
	access_format(&b, rule->access);
	buf_add_str(&b, " ");
	escape_add_str(&b, rule->given ? rule->given : link);
	buf_add_str(&b, "; it leads to ");
	escape_add_str(&b, rule->path);
	int err = session_note(s, buf_take(&b));
	policy_remove_at(s->policy, at);
	return err;
}

bool session_doubts(const struct session *s, const struct rule *rule)
{
	return rule->effect == EFFECT_ALLOW && !rule->sensitive && doubtful_link(s->policy, rule);
}

/* Not a device. *ret_link: a loan, or NULL. The rule's path is the file's real one. */
static int judge_file(const struct session *s, const char *file, const char *full,
		      struct rule *rule, const char **ret_link)
{
	struct stat st;
	int err = policyfile_canonical_links(full, &rule->path, &rule->links, &rule->links_len);
	*ret_link = err ? NULL : doubtful_link(s->policy, rule);
	if (!lstat(full, &st) && S_ISLNK(st.st_mode))
		*ret_link = file;
	return *ret_link ? 0 : err;
}

int session_doubts_file(const struct session *s, const char *file, char **ret_real, char **ret_link)
{
	struct rule rule = {.effect = EFFECT_ALLOW};
	char *full AUTOFREE = NULL;
	const char *link = NULL;
	*ret_real = *ret_link = NULL;
	if (outfile_is_device(file))
		return outfile_resolve(file, ret_real);
	if (asprintf(&full, "%s%s%s", file[0] == '/' ? "" : s->cwd, file[0] == '/' ? "" : "/",
		     file) < 0)
		return -ENOMEM;
	int err = judge_file(s, file, full, &rule, &link);
	if (!err && link)
		err = (*ret_link = strdup(link)) ? -ELOOP : -ENOMEM;
	if (!err)
		*ret_real = TAKE_PTR(rule.path);
	free(rule.path);
	free(rule.links);
	return err;
}

int session_drop_doubtful(struct session *s)
{
	int err = 0;
	size_t left_out = 0;
	for (size_t i = 0; !err && i < policy_len(s->policy);) {
		const struct rule *rule = policy_at(s->policy, i);
		const char *link = session_doubts(s, rule) ? doubtful_link(s->policy, rule) : NULL;
		if (link)
			err = leave_out(s, i, link, left_out++);
		else
			i++;
	}
	if (!err && left_out > LEFT_OUT_TOLD) {
		struct buf b = {0};
		buf_addf(&b, "and %zu more rules left out likewise", left_out - LEFT_OUT_TOLD);
		err = session_note(s, buf_take(&b));
	}
	return err;
}
