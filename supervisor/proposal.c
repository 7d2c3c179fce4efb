#include "supervisor/proposal.h"

#include "supervisor/escape.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static char *accepted_file(const struct store *s, const struct project *p)
{
	struct buf out = {0};
	buf_addf(&out, "%s/projects/%s.accepted", s->config_dir, p->slug);
	return buf_take(&out);
}

static char *proposal_file(const struct project *p)
{
	struct buf out = {0};
	buf_addf(&out, "%s/%s", p->dir[1] ? p->dir : "", PROPOSAL_NAME);
	return buf_take(&out);
}

int proposal_open(const struct store *s, const struct project *p, struct proposal *ret,
		  struct policy_error *ret_error)
{
	struct proposal o = {.file = proposal_file(p), .accepted_file = accepted_file(s, p)};
	int r = o.file && o.accepted_file ? 0 : -ENOMEM;
	if (r == 0)
		r = policyfile_read(o.accepted_file, POLICYFILE_OURS, &o.old, ret_error);
	o.accepted = r == 0;
	if (r < 0 && r != -ENOENT) {
		proposal_release(&o);
		return r;
	}
	r = policyfile_read(o.file, POLICYFILE_PROPOSED, &o.text, &o.fault);
	o.exists = r != -ENOENT && r != -ENOTDIR;
	if (r == 0)
		r = policyfile_check(o.file, buf_str(&o.text), o.text.len, &o.fault);
	if (r == 0 || !o.exists)
		o.fault.text[0] = '\0';
	*ret = o;
	return 0;
}

void proposal_release(struct proposal *p)
{
	free(p->file);
	free(p->accepted_file);
	buf_free(&p->text);
	buf_free(&p->old);
	*p = (struct proposal){0};
}

bool proposal_is_new(const struct proposal *p)
{
	return p->exists && !p->fault.text[0] &&
	       (!p->accepted || p->text.len != p->old.len ||
		memcmp(buf_str(&p->text), buf_str(&p->old), p->old.len) != 0);
}

/* ---- what it says ---- */

/* A rule that can't open anything, whatever else there is. `ask` can: it softens a deny above. */
static bool takes_away(const struct rule *r)
{
	return !r->sensitive && r->source != RULE_PRESET &&
	       (r->effect == EFFECT_DENY || r->effect == EFFECT_FORBID);
}

/* Nobody has seen them, and every run pays for each: so many, or none and no run. */
static void say_too_many(const struct proposal *p, struct policy_error *e)
{
	struct buf out = {0};
	escape_add_str(&out, p->file);
	buf_addf(&out,
		 ": more than %d rules that nobody accepted; `warder policy accept` accepts "
		 "them, or make it shorter",
		 PROPOSAL_RULES_MAX);
	snprintf(e->text, sizeof(e->text), "%s", buf_str(&out));
	buf_free(&out);
}

/* What becomes of the rules of a text that was not accepted. */
struct waiting {
	size_t left;	/* not used, until it is accepted */
	size_t unknown; /* of these: not in what was accepted either */
	size_t taken;	/* used already, and not in what was accepted */
};

static int add_narrowing(const struct policy *all, const struct policy *accepted,
			 struct policy *policy, struct waiting *ret)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < policy_len(all); i++) {
		const struct rule *rule = policy_at(all, i);
		bool known = policy_has(accepted, rule), takes = takes_away(rule);
		ret->left += !takes;
		ret->unknown += !takes && !known;
		ret->taken += takes && !known;
		if (ret->taken > PROPOSAL_RULES_MAX)
			return -E2BIG;
		if (takes)
			r = policy_add(policy, rule);
	}
	return r;
}

/* Parses both texts, and adds what can't open anything. */
static int weigh(const struct proposal *p, struct policy *policy, const struct policy_vars *vars,
		 struct waiting *ret, struct policy_error *e)
{
	struct policy *all = NULL, *accepted = NULL;
	int r = policy_new(&all);
	if (r == 0)
		r = policy_new(&accepted);
	if (r == 0)
		r = policyfile_parse(accepted, p->accepted_file, buf_str(&p->old), p->old.len,
				     RULE_PROJECT, vars, e);
	if (r == 0)
		r = policyfile_parse(all, p->file, buf_str(&p->text), p->text.len, RULE_PROJECT,
				     vars, e);
	if (r == 0)
		r = add_narrowing(all, accepted, policy, ret);
	if (r == -E2BIG)
		say_too_many(p, e);
	policy_free(accepted);
	policy_free(all);
	return r;
}

static char *sentence(const struct proposal *p, const struct waiting *w)
{
	struct buf out = {0};
	escape_add_str(&out, p->file);
	if (!p->accepted) {
		buf_addf(&out,
			 " proposes a policy, and %zu %s not used; `warder policy accept` shows "
			 "what it says",
			 w->left, w->left == 1 ? "rule of it is" : "rules of it are");
		return buf_take(&out);
	}
	buf_add_str(&out, " has changed since you accepted it: what you accepted still counts");
	if (w->taken)
		buf_add_str(&out, ", and so does what it newly refuses");
	if (w->unknown)
		buf_addf(&out, "; %zu new %s not used", w->unknown,
			 w->unknown == 1 ? "rule of it is" : "rules of it are");
	buf_add_str(&out, "; `warder policy accept` shows what changed");
	return buf_take(&out);
}

static int add_new(const struct proposal *p, struct policy *policy, const struct policy_vars *vars,
		   char **ret_note, struct policy_error *ret_error)
{
	struct policy_error fault;
	struct buf note = {0};
	struct waiting w = {0};
	int r = weigh(p, policy, vars, &w, &fault);
	if (r == -EINVAL) {
		buf_addf(&note, "%s: the project's proposal is not used", fault.text);
		*ret_note = buf_take(&note);
		return *ret_note ? 0 : -ENOMEM;
	}
	if (r < 0)
		*ret_error = fault;
	if (r < 0 || !w.left)
		return r;
	*ret_note = sentence(p, &w);
	return *ret_note ? 0 : -ENOMEM;
}

int proposal_apply(const struct proposal *p, struct policy *policy, const struct policy_vars *vars,
		   char **ret_note, struct policy_error *ret_error)
{
	int r = 0;
	*ret_note = NULL;
	if (p->accepted)
		r = policyfile_parse(policy, p->accepted_file, buf_str(&p->old), p->old.len,
				     RULE_PROJECT, vars, ret_error);
	if (r == 0 && p->fault.text[0]) {
		struct buf note = {0};
		buf_addf(&note, "%s: the project's proposal is not used", p->fault.text);
		*ret_note = buf_take(&note);
		return *ret_note ? 0 : -ENOMEM;
	}
	if (r == 0 && proposal_is_new(p))
		r = add_new(p, policy, vars, ret_note, ret_error);
	return r;
}

int proposal_accept(const struct proposal *p, struct policy_error *ret_error)
{
	return store_replace(p->accepted_file, &p->old, p->exists ? &p->text : NULL, ret_error);
}
