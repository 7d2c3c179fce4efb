#include "supervisor/llimport.h"

#include "landlock/llright.h"
#include "supervisor/escape.h"
#include "supervisor/plan.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

/* Nobody but root can make them, and root's tree can't either (CAP_MKNOD is taken from it). */
#define DEVICE_NODES (LLR_MAKE_CHAR | LLR_MAKE_BLOCK)

/*
 * All of an access's rights, of those that the file's ABI refuses at all. What it does not handle
 * is free there: no reason to give less here.
 */
static uint32_t access_of(const struct landlockconfig *c, uint64_t rights, uint64_t *ret_left)
{
	uint32_t access = 0;
	*ret_left = rights & ~(uint64_t)DEVICE_NODES;
	for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1) {
		uint64_t all = access_rights(bit) & ~(uint64_t)DEVICE_NODES;
		uint64_t needed = all & c->handled;
		if (!(all & rights) || (needed & ~rights))
			continue;
		access |= bit;
		*ret_left &= ~all;
	}
	/* Landlock leaves attributes free everywhere; here they go with all the rest of w. */
	const uint32_t rest = ACCESS_W & ~(uint32_t)ACCESS_META;
	if ((access & rest) == rest)
		access |= ACCESS_META;
	return access;
}

static char *absolute(const char *path, const char *cwd)
{
	struct buf full = {0}, out = {0};
	if (path[0] != '/')
		buf_addf(&full, "%s/", cwd);
	buf_add_str(&full, path);
	policyfile_add_plain(&out, buf_str(&full));
	buf_free(&full);
	return buf_take(&out);
}

static int add_line(const struct llimport_how *how, const char *path, uint32_t access,
		    struct buf *out)
{
	struct buf shown = {0};
	plan_add_short(&shown, path, how->home);
	struct rule rule = {.effect = EFFECT_ALLOW,
			    .kind = RULE_TREE,
			    .access = access,
			    .path = (char *)buf_str(&shown)};
	policy_format_rule(out, &rule);
	buf_addf(out, "  # %s\n", how->comment);
	int r = buf_error(&shown);
	buf_free(&shown);
	return r;
}

static int import_rule(const struct landlockconfig *c, const struct llimport_how *how,
		       const struct landlockconfig_rule *r, struct buf *out, struct buf *unsaid)
{
	uint64_t left;
	uint32_t access = access_of(c, r->rights, &left);
	char *path AUTOFREE = absolute(r->path, how->cwd);
	if (!path)
		return -ENOMEM;
	if (left) {
		char names[512];
		llright_format(left, names, sizeof names);
		escape_add_str(unsaid, path);
		buf_addf(unsaid, ": %s alone: no access here is just that\n", names);
	}
	return access ? add_line(how, path, access, out) : 0;
}

int llimport(const struct landlockconfig *c, const struct llimport_how *how, struct buf *out,
	     struct buf *unsaid)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < c->len; i++)
		r = import_rule(c, how, &c->rule[i], out, unsaid);
	uint64_t free_there = landlockconfig_rights() & ~c->handled;
	if (free_there && c->len) {
		char names[512];
		llright_format(free_there, names, sizeof names);
		buf_addf(unsaid,
			 "%s: that file leaves it free everywhere; here it is asked about\n",
			 names);
	}
	if (c->net)
		buf_add_str(unsaid, "rules on ports: warder does not restrict the network\n");
	if (r == 0)
		r = buf_error(out);
	return r < 0 ? r : buf_error(unsaid);
}
