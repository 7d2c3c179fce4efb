#include "supervisor/why.h"

#include "landlock/llmodel.h"
#include "supervisor/shellword.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define ACCEPTED ".accepted" /* supervisor/proposal.h */
/* What a call can need of a name that is not there: to make it, or to give it to what is moved. */
#define OF_ABSENT  (ACCESS_CREATE | ACCESS_WRITE | ACCESS_MOVE)
#define STRUCTURAL (ACCESS_CREATE | ACCESS_DELETE | ACCESS_MOVE)

/* ---- the kernel ---- */

/* O_PATH of the directory that holds it; -1 for the root, and where it can't be opened. */
static int open_parent(const char *path)
{
	char *dir AUTOFREE = strdup(path);
	if (!dir || !path[1])
		return -1;
	char *slash = strrchr(dir, '/');
	slash[slash == dir] = '\0';
	return open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static enum why_wall wall_of(const struct why *w, uint32_t bit)
{
	uint64_t rights = access_rights(bit), granted = 0;
	if (!w->ruleset)
		return WHY_WALL_UNKNOWN;
	rights &= llruleset_handled(w->ruleset);
	if (!rights)
		return WHY_WALL_NO_RIGHT;
	const struct lldomain domain = lldomain_of(w->ruleset);
	int object AUTOCLOSE = w->exists ? open(w->path, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
	int parent AUTOCLOSE = open_parent(w->path);
	if (w->absent && (parent < 0 || !(bit & OF_ABSENT)))
		return WHY_WALL_ABSENT;
	/* New names are made in a directory that is there; it itself is moved and removed above it.
	 */
	bool in_it = w->exists && S_ISDIR(w->st.st_mode) && bit == ACCESS_CREATE;
	bool by_object = w->exists && (in_it || !(bit & STRUCTURAL));
	int err = by_object && (S_ISDIR(w->st.st_mode) || parent < 0)
			  ? llmodel_granted(&domain, object, &granted)
		  : parent >= 0
			  ? llmodel_granted_at(&domain, by_object ? object : -1, parent, &granted)
			  : -ENOENT;
	if (err == -ENOENT)
		return WHY_WALL_CLOSED; /* nothing is there that a Landlock rule could be on */
	if (err)
		return WHY_WALL_UNKNOWN;
	return rights & ~granted ? WHY_WALL_CLOSED : WHY_WALL_OPEN;
}

/* ---- the file's own permissions ---- */

static int may(int dirfd, const char *path, int mode)
{
	return faccessat(dirfd, path, mode, AT_EACCESS) < 0 ? -errno : 0;
}

static int parent_permits(const char *path)
{
	int parent AUTOCLOSE = open_parent(path);
	return parent < 0 ? 0 : may(parent, ".", W_OK | X_OK);
}

static int permits(const struct why *w, uint32_t bit)
{
	if (!w->exists && !w->absent)
		return -EACCES; /* a directory above it keeps us out */
	switch ((enum access_bit)bit) {
	case ACCESS_READ:
	case ACCESS_LIST:
		return w->exists ? may(AT_FDCWD, w->path, R_OK) : 0;
	case ACCESS_EXEC:
		return w->exists && !S_ISDIR(w->st.st_mode) ? may(AT_FDCWD, w->path, X_OK) : 0;
	case ACCESS_WRITE:
		if (w->exists && S_ISDIR(w->st.st_mode))
			return 0; /* it is about what is in it */
		return w->exists ? may(AT_FDCWD, w->path, W_OK) : parent_permits(w->path);
	case ACCESS_CONNECT:
		return w->exists ? may(AT_FDCWD, w->path, W_OK) : 0;
	case ACCESS_CREATE:
		return w->exists && S_ISDIR(w->st.st_mode) ? may(AT_FDCWD, w->path, W_OK | X_OK)
							   : parent_permits(w->path);
	case ACCESS_DELETE:
	case ACCESS_MOVE:
		return parent_permits(w->path);
	case ACCESS_META:
		return w->exists && geteuid() && w->st.st_uid != geteuid() ? -EPERM : 0;
	case ACCESS_IOCTL:
	case ACCESS_ALL:
		break;
	}
	return 0;
}

/* ---- what would have to change ---- */

/* What is asked of a directory itself is opened in it alone, as a run suggests it (plan.h). */
static bool is_of_itself(const struct why *w, uint32_t access)
{
	const uint32_t of_itself = ACCESS_LIST | ACCESS_META | ACCESS_DELETE | ACCESS_MOVE;
	return w->exists && S_ISDIR(w->st.st_mode) && (w->of_call || !(access & ~of_itself));
}

static bool turns_round(const struct why *w, const struct policy *trial, const struct why_answer *a)
{
	bool allows = policy_decide_all(trial, w->path, a->access, NULL).effect == EFFECT_ALLOW;
	if (a->effect == EFFECT_ALLOW)
		return !allows;
	return allows;
}

static bool is_glob(const struct rule *r)
{
	return r->kind == RULE_GLOB || r->kind == RULE_GLOB_EXACT;
}

/* A saved rule of another effect for the same path and kind gives way (store_put_rule); no forbid.
 */
static void drop_replaced(struct policy *p, const struct rule *by)
{
	for (size_t i = policy_len(p); i-- > 0;) {
		const struct rule *r = policy_at(p, i);
		if (r->source == RULE_USER && !r->sensitive && r->kind == by->kind &&
		    r->effect != by->effect && r->effect != EFFECT_FORBID &&
		    !strcmp(r->path, by->path) && !(r->access & ~by->access))
			policy_remove_at(p, i);
	}
}

static int try_rule(const struct why *w, const struct why_answer *a, bool exact, bool *ret)
{
	struct policy *trial;
	struct rule rule = {.effect = a->effect == EFFECT_ALLOW ? EFFECT_DENY : EFFECT_ALLOW,
			    .kind = exact ? RULE_EXACT : RULE_TREE,
			    .source = RULE_USER,
			    .access = a->access,
			    .path = (char *)w->path,
			    .origin = (char *)"why"};
	int err = policy_copy(w->policy, &trial);
	if (err)
		return err;
	drop_replaced(trial, &rule);
	err = policy_add(trial, &rule);
	*ret = !err && turns_round(w, trial, a);
	policy_free(trial);
	return err;
}

/* Without the rule that decides: 0, and whether that is enough. */
static int try_without(const struct why *w, const struct why_answer *a, bool *ret)
{
	struct policy *trial;
	int err = policy_copy(w->policy, &trial);
	if (err)
		return err;
	for (size_t i = policy_len(trial); i-- > 0;)
		if (policy_at(w->policy, i) == a->rule)
			policy_remove_at(trial, i);
	*ret = turns_round(w, trial, a);
	policy_free(trial);
	return 0;
}

static void add_change(const struct why *w, const struct why_answer *a, bool exact, struct buf *b)
{
	buf_addf(b, "warder policy %s ", a->effect == EFFECT_ALLOW ? "deny" : "allow");
	access_format(b, a->access);
	buf_add_char(b, ' ');
	shellword_add_path(b, w->path, w->home);
	buf_add_str(b, exact ? " exact" : "");
}

static void add_forget(const struct why *w, const struct rule *rule, struct buf *b)
{
	bool project = rule->source == RULE_PROJECT;
	buf_addf(b, "warder policy %sforget ", project ? "--project " : "");
	if (is_glob(rule))
		shellword_add_glob(b, rule->path, w->home);
	else
		shellword_add_path(b, rule->path, w->home);
}

static bool is_for_itself(const struct why *w, const struct why_answer *a)
{
	return a->effect != EFFECT_ALLOW && is_of_itself(w, a->access);
}

/* The rule has to go first: no other one can be put above it. */
static int change_by_forgetting(const struct why *w, struct why_answer *a, struct buf *b)
{
	const struct rule *rule = a->rule;
	if (!rule || rule->source == RULE_BUILTIN) {
		a->stuck = "nothing can: these are warder's own files, or its terminal";
		return 0;
	}
	if (rule->source == RULE_PRESET || rule->source == RULE_FILE || rule->source == RULE_LINE ||
	    rule->source == RULE_ANSWER) {
		a->stuck = "take that rule out of where it comes from: no other rule goes above it";
		return 0;
	}
	if (strlen(rule->origin) > strlen(ACCEPTED) &&
	    !strcmp(rule->origin + strlen(rule->origin) - strlen(ACCEPTED), ACCEPTED)) {
		a->stuck = "it was accepted from .warder.policy: change that, then warder policy "
			   "accept";
		return 0;
	}
	bool enough = false;
	int err = try_without(w, a, &enough);
	add_forget(w, rule, b);
	if (!enough) {
		buf_add_str(b, " && ");
		add_change(w, a, is_for_itself(w, a), b);
	}
	return err;
}

/* What procfs shows of one process: no rule for it outlives that, and none is made of it then. */
static bool is_of_one_process(const char *path)
{
	int pid, len = 0;
	return sscanf(path, "/proc/%d%n", &pid, &len) == 1 && (!path[len] || path[len] == '/');
}

static int find_change(const struct why *w, struct why_answer *a)
{
	struct buf b = {0};
	bool works = false, exact = is_for_itself(w, a);
	if (a->permits) {
		a->stuck = "its mode, owner or ACL: no rule changes what the file's own "
			   "permissions refuse";
		return 0;
	}
	if (a->effect == EFFECT_ASK && is_of_one_process(w->path)) {
		a->stuck = "only a rule for all of /proc, from the start, can: what is of one "
			   "process ends with it";
		return 0;
	}
	int err = try_rule(w, a, exact, &works);
	if (!err && !works) {
		exact = !exact;
		err = try_rule(w, a, exact, &works);
	}
	if (!err && works)
		add_change(w, a, exact, &b);
	else if (!err)
		err = change_by_forgetting(w, a, &b);
	if (!err && b.len)
		a->change = buf_take(&b);
	if (!err && b.failed)
		err = -ENOMEM;
	buf_free(&b);
	return err;
}

/* ---- the answer ---- */

/* What is refused by different hands, or changed by different commands, is told apart. */
static bool stands_alike(const struct why *w, const struct why_answer *a,
			 const struct why_answer *b)
{
	return is_for_itself(w, a) == is_for_itself(w, b) && a->effect == b->effect &&
	       a->rule == b->rule && a->sensitive == b->sensitive && a->wall == b->wall &&
	       a->permits == b->permits;
}

static void add_bit(struct why *w, uint32_t bit)
{
	struct decision d = policy_decide(w->policy, w->path, bit);
	struct why_answer a = {.access = bit,
			       .effect = d.effect,
			       .rule = d.rule,
			       .sensitive = policy_sensitive_for(w->policy, w->path, bit),
			       .wall = wall_of(w, bit),
			       .permits = w->permitted ? 0 : permits(w, bit)};
	for (size_t i = 0; i < w->len; i++) {
		if (!stands_alike(w, &w->answer[i], &a))
			continue;
		w->answer[i].access |= bit;
		return;
	}
	w->answer[w->len++] = a;
}

/* What people ask about a thing of this kind. */
static uint32_t usual_accesses(const struct why *w)
{
	uint32_t mask = w->exists ? access_on_kind(w->st.st_mode)
				  : ACCESS_ALL & ~(uint32_t)(ACCESS_CONNECT | ACCESS_IOCTL);
	if (w->exists && S_ISDIR(w->st.st_mode))
		return mask & ~(uint32_t)(ACCESS_CONNECT | ACCESS_IOCTL);
	return w->exists ? mask & ~(uint32_t)ACCESS_LIST : mask;
}

int why_ask(struct why *w, uint32_t mask)
{
	int seen = lstat(w->path, &w->st) == 0 ? 0 : -errno;
	w->exists = !seen;
	w->absent = seen == -ENOENT || seen == -ENOTDIR;
	w->len = 0;
	if (!mask)
		mask = usual_accesses(w);
	for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1)
		if (mask & bit)
			add_bit(w, bit);
	int err = 0;
	for (size_t i = 0; !err && i < w->len; i++)
		err = find_change(w, &w->answer[i]);
	return err;
}

void why_release(struct why *w)
{
	for (size_t i = 0; i < w->len; i++)
		free(w->answer[i].change);
	w->len = 0;
}

bool why_all_allowed(const struct why *w)
{
	for (size_t i = 0; i < w->len; i++)
		if (w->answer[i].effect != EFFECT_ALLOW || w->answer[i].permits)
			return false;
	return true;
}
