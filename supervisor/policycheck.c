#include "supervisor/policycheck.h"

#include "supervisor/escape.h"
#include "supervisor/glob.h"
#include "supervisor/missing.h"
#include "tracer/util.h"

#include <string.h>
#include <sys/stat.h>

struct check {
	const struct policy *policy;
	const struct policy_vars *vars;
	struct buf *out;
	size_t count;
};

static void begin(struct check *c, const struct rule *r)
{
	escape_add_str(c->out, r->origin);
	buf_addf(c->out, ":%u: warning: ", r->line);
	c->count++;
}

static void add_rule(struct check *c, const struct rule *r)
{
	buf_add_char(c->out, '\'');
	policy_format_rule(c->out, r);
	buf_add_str(c->out, "' (");
	escape_add_str(c->out, r->origin);
	if (r->line)
		buf_addf(c->out, ":%u", r->line);
	buf_add_char(c->out, ')');
}

static bool is_glob(const struct rule *r)
{
	return r->kind == RULE_GLOB || r->kind == RULE_GLOB_EXACT;
}

/* Who decides about a thing that only the most general rules for this path reach. */
static struct decision decide_below(const struct check *c, const struct rule *r, uint32_t bit)
{
	if (r->kind == RULE_EXACT)
		return policy_decide(c->policy, r->path, bit);
	struct buf child = {0};
	buf_addf(&child, "%s/%s", r->path[1] ? r->path : "", "a name that nobody has");
	struct decision d = policy_decide(c->policy, buf_str(&child), bit);
	buf_free(&child);
	return d;
}

static void check_applies(struct check *c, const struct rule *r)
{
	const struct rule *winner = NULL;
	if (is_glob(r))
		return;
	for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1) {
		if (!(r->access & bit))
			continue;
		const struct rule *w = decide_below(c, r, bit).rule;
		bool instead = w && w != r &&
			       (w->effect == EFFECT_FORBID || strcmp(w->path, r->path) == 0);
		if (!instead)
			return;
		winner = w;
	}
	if (!winner)
		return;
	begin(c, r);
	buf_add_str(c->out, "never applies: ");
	add_rule(c, winner);
	buf_add_str(c->out, " decides\n");
}

static void check_exists(struct check *c, const struct rule *r)
{
	struct buf text = {0};
	if (missing_add(&text, r)) {
		begin(c, r);
		buf_addf(c->out, "%s\n", buf_str(&text));
	}
	buf_free(&text);
}

/* The path as written, made absolute without following anything; NULL where that can't be told. */
static char *as_written(const struct check *c, const struct rule *r)
{
	const char *given = r->given;
	struct buf full = {0}, out = {0};
	if (!given || strpbrk(given, "\\\"$") || strstr(given, ".."))
		return NULL;
	if (given[0] == '~')
		buf_addf(&full, "%s%s", c->vars->home ? c->vars->home : "", given + 1);
	else if (given[0] == '/')
		buf_add_str(&full, given);
	else
		buf_addf(&full, "%s/%s", c->vars->project ? c->vars->project : "", given);
	policyfile_add_plain(&out, buf_str(&full));
	buf_free(&full);
	return buf_take(&out);
}

static void check_symlink(struct check *c, const struct rule *r)
{
	char *written AUTOFREE = is_glob(r) ? NULL : as_written(c, r);
	if (!written || !written[1] || strcmp(written, r->path) == 0)
		return;
	begin(c, r);
	escape_add_str(c->out, written);
	buf_add_str(c->out, " leads through a symlink; the rule is about ");
	escape_add_str(c->out, r->path);
	buf_add_str(c->out, ", as the link stands now\n");
}

/* A place above or at the rule's path that may be renamed: cut to it in `path`. */
static bool find_movable(const struct check *c, char *path)
{
	while (path[0] && path[1]) {
		if (policy_decide(c->policy, path, ACCESS_DELETE).effect == EFFECT_ALLOW)
			return true;
		char *slash = strrchr(path, '/');
		*slash = '\0';
	}
	return false;
}

static void check_carried(struct check *c, const struct rule *r)
{
	if (r->effect == EFFECT_ALLOW || (is_glob(r) && (r->access & ACCESS_DELETE)))
		return;
	char *path AUTOFREE = is_glob(r) ? glob_place(r->path) : strdup(r->path);
	if (!path || !find_movable(c, path))
		return;
	begin(c, r);
	escape_add_str(c->out, path);
	buf_add_str(c->out,
		    is_glob(r) ? ": names in it may be changed, and what is renamed no longer "
				 "matches; refuse w as well\n"
			       : " may be renamed, and what is in it then has a name that this "
				 "rule does not cover; refuse w there as well\n");
}

size_t policycheck_rules(const struct policy *p, const char *origin, const struct policy_vars *vars,
			 struct buf *out)
{
	struct check c = {.policy = p, .vars = vars, .out = out};
	for (size_t i = 0; i < policy_len(p); i++) {
		const struct rule *r = policy_at(p, i);
		if (r->sensitive || strcmp(r->origin, origin) != 0)
			continue;
		check_applies(&c, r);
		check_exists(&c, r);
		check_symlink(&c, r);
		check_carried(&c, r);
	}
	return c.count;
}
