/*
 * The learned policy as text: a rule a line, behind it who needed it; at the end what was left out.
 */
#include "supervisor/breadth.h"
#include "supervisor/escape.h"
#include "supervisor/learn_inside.h"
#include "supervisor/presets.h"
#include "supervisor/redact.h"
#include "supervisor/surplus.h"
#include "tracer/util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define COMMENT_COLUMN 40
#define SURPLUS_MAX    10000
#define LEFT_OUT_MAX   200 /* lines of each kind */

/* As somebody would write it: ~/ and, below the project, relative. */
static char *short_path(const struct learn *l, const char *path)
{
	struct buf b = {0};
	bool in_project = l->project && l->project[1] && breadth_is_below(path, l->project);
	if (in_project) {
		const char *rest = path + strlen(l->project);
		buf_addf(&b, ".%s", rest);
	} else {
		plan_add_short(&b, path, l->home);
	}
	return buf_take(&b);
}

static void add_line(const struct learn *l, const char *path, const struct learn_rule *kind,
		     uint32_t access, struct buf *out)
{
	char *shown AUTOFREE = short_path(l, path);
	bool glob = kind && kind->glob, exact = kind && kind->exact;
	struct rule rule = {.effect = EFFECT_ALLOW,
			    .kind = glob ? (exact ? RULE_GLOB_EXACT : RULE_GLOB)
					 : (exact ? RULE_EXACT : RULE_TREE),
			    .access = access,
			    .path = shown};
	if (shown)
		policy_format_rule(out, &rule);
	else
		out->failed = true;
}

void learntext_rule(const struct learn *l, const struct learn_rule *r, struct buf *out)
{
	add_line(l, r->path, r, r->access, out);
}

static void add_words(const struct learntrie *t, const uint16_t list[LEARNTRIE_WHO_MAX], bool more,
		      struct buf *out)
{
	for (size_t i = 0; i < LEARNTRIE_WHO_MAX && list[i]; i++) {
		struct buf word = {0};
		redact_add(&word, learntrie_word(t, list[i]));
		buf_add_str(out, i ? ", " : "");
		escape_add_str(out, buf_str(&word));
		buf_free(&word);
	}
	buf_add_str(out, more ? ", ..." : "");
}

/* "git, ssh (openat), 3×, in 1 of 2 traces" */
static void add_who(const struct learn *l, const struct learntrie *t,
		    const struct learntrie_leaf *leaf, size_t paths, struct buf *out)
{
	add_words(t, leaf->who, leaf->more_who, out);
	buf_add_str(out, " (");
	add_words(t, leaf->call, leaf->more_call, out);
	buf_addf(out, "), %" PRIu64 "×", leaf->count);
	bool at_least = (leaf->whole || paths > 1) && leaf->traces < l->traces;
	if (l->traces > 1)
		buf_addf(out, ", in %s%u of %u traces", at_least ? "at least " : "", leaf->traces,
			 l->traces);
}

static void pad(struct buf *out, size_t start)
{
	while (out->len < start + COMMENT_COLUMN && !out->failed)
		buf_add_char(out, ' ');
	buf_add_str(out, "  # ");
}

/* ---- what else a rule opens ---- */

static void add_surplus_names(const struct learn *l, const struct learn_rule *r, struct buf *out)
{
	struct surplus_ask ask = {.path = r->path, .access = r->access, .max = SURPLUS_MAX};
	struct surplus surplus = {0};
	uint64_t used = r->leaf.names;
	if (r->glob) {
		buf_addf(out, "; a pattern for %zu names: others of its kind, too", r->paths);
		return;
	}
	buf_addf(out, "; all below, of which %s%" PRIu64 " %s seen", r->leaf.whole ? "over " : "",
		 used, used == 1 ? "path was" : "paths were");
	if (l->here)
		surplus_add(&ask, &surplus);
	if (surplus.count)
		buf_addf(out, " (there now: %s%" PRIu64 ")", surplus.more ? "over " : "",
			 surplus.count);
}

static void add_surplus(const struct learn *l, const struct learn_rule *r, struct buf *out)
{
	bool many = r->paths > 1 || r->leaf.whole || r->glob;
	uint32_t more = r->access & ~r->leaf.needed;
	if (!many && !r->leaf.is_dir)
		more &= ~(uint32_t)ACCESS_LIST; /* of a file it says nothing */
	if (more) {
		buf_add_str(out, "; opens also ");
		access_format(out, more);
	}
	if (many)
		add_surplus_names(l, r, out);
	if (r->runs_later)
		buf_add_str(out, "; a repository's hooks or config are in it, which git runs "
				 "outside of the wall later");
}

static void add_rule(const struct learn *l, const struct learn_rule *r, struct buf *out)
{
	size_t start = out->len;
	learntext_rule(l, r, out);
	pad(out, start);
	add_who(l, l->seen[LEARN_WANTED], &r->leaf, r->paths, out);
	add_surplus(l, r, out);
	buf_add_char(out, '\n');
}

/* ---- presets ---- */

struct preset_use {
	const struct learn *l;
	const struct policy *preset;
	struct learntrie_leaf all;
	size_t paths, rules, used; /* rules of it; those that decided something */
	bool *is_used;		   /* by the rule's place */
};

static size_t place_of(const struct policy *p, const struct rule *rule)
{
	size_t i = 0;
	while (i < policy_len(p) && policy_at(p, i) != rule)
		i++;
	return i;
}

static int count_use(void *arg, const char *path, const struct learntrie_leaf *leaf)
{
	struct preset_use *u = arg;
	if (policy_decide_all(u->l->base, path, leaf->needed, NULL).effect == EFFECT_ALLOW)
		return 0;
	bool counted = false;
	for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1) {
		if (!(leaf->needed & bit))
			continue;
		struct decision d = policy_decide(u->preset, path, bit);
		if (d.effect != EFFECT_ALLOW || !d.rule)
			continue;
		u->is_used[place_of(u->preset, d.rule)] = true;
		counted = true;
	}
	if (counted) {
		learntrie_join(&u->all, leaf);
		u->paths++;
	}
	return 0;
}

static void count_rules(struct preset_use *u)
{
	for (size_t i = 0; i < policy_len(u->preset); i++) {
		const struct rule *r = policy_at(u->preset, i);
		if (r->sensitive || r->effect != EFFECT_ALLOW)
			continue;
		u->rules++;
		u->used += u->is_used[i];
	}
}

static int add_preset(const struct learn *l, const char *name, struct buf *out)
{
	struct policy *preset;
	struct policy_error ignored;
	struct policy_vars vars = {.home = l->home, .project = l->project, .as_written = true};
	int r = policy_new(&preset);
	if (r)
		return r;
	r = preset_add(preset, name, &vars, &ignored);
	struct preset_use u = {.l = l, .preset = preset};
	u.is_used = calloc(policy_len(preset) + 1, sizeof(*u.is_used));
	if (r == 0 && u.is_used)
		r = learntrie_walk(l->seen[LEARN_WANTED], count_use, &u);
	if (r == 0 && u.is_used) {
		size_t start = out->len;
		count_rules(&u);
		buf_addf(out, "use %s", name);
		pad(out, start);
		add_who(l, l->seen[LEARN_WANTED], &u.all, u.paths, out);
		buf_addf(out, "; %zu paths, by %zu of the %zu rules it has", u.paths, u.used,
			 u.rules);
		buf_add_char(out, '\n');
	}
	r = u.is_used ? r : -ENOMEM;
	free(u.is_used);
	policy_free(preset);
	return r;
}

/* ---- what was left out ---- */

struct left {
	const struct learn *l;
	const struct learntrie *t;
	struct buf *out;
	size_t lines;
	const char *why;
	bool directory; /* names in it are meant */
};

static int add_left(void *arg, const char *path, const struct learntrie_leaf *leaf)
{
	struct left *f = arg;
	if (!f->lines)
		buf_addf(f->out, "\n# Left out: %s\n", f->why);
	if (++f->lines > LEFT_OUT_MAX)
		return 0;
	size_t start = f->out->len;
	const struct learn_rule kind = {.exact = leaf->is_dir};
	buf_add_str(f->out, "#   ");
	if (f->directory) { /* no rule to be taken as it is: it would open the directory */
		access_format(f->out, leaf->needed);
		buf_add_str(f->out, " of names in ");
		policy_format_path(f->out, path, false);
	} else {
		add_line(f->l, path, &kind, leaf->needed, f->out);
	}
	pad(f->out, start);
	add_who(f->l, f->t, leaf, 1, f->out);
	buf_add_char(f->out, '\n');
	return buf_error(f->out);
}

static int add_left_out(const struct learn *l, struct buf *out)
{
	static const char *const why[LEARN_FATES] = {
		[LEARN_SENSITIVE] = "on the sensitive list, or asked about each time; take the # "
				    "away where it is meant.",
		[LEARN_REFUSED] = "refused by a preset or by who was asked; programs may go on "
				  "without.",
		[LEARN_VOLATILE] = "names that come and go: no rule can be about them alone.",
		[LEARN_TEMPORARY] = "made up for the moment in a shared directory; a run has a "
				    "TMPDIR of its own.",
	};
	int r = 0;
	for (size_t i = LEARN_WANTED + 1; r == 0 && i < LEARN_FATES; i++) {
		struct left f = {.l = l,
				 .t = l->seen[i],
				 .out = out,
				 .why = why[i],
				 .directory = i == LEARN_TEMPORARY};
		r = learntrie_walk(l->seen[i], add_left, &f);
		if (f.lines > LEFT_OUT_MAX)
			buf_addf(out, "#   and %zu more\n", f.lines - LEFT_OUT_MAX);
	}
	return r;
}

static void add_head(const struct learn *l, struct buf *out)
{
	buf_addf(out,
		 "# Learned from %u trace%s, %" PRIu64
		 " calls. For runs with the presets system, tmp "
		 "and project,\n# which open %" PRIu64 " of the accesses seen.\n",
		 l->traces, l->traces == 1 ? "" : "s", l->calls, l->covered);
	if (l->project) {
		buf_add_str(out, "# The project is ");
		escape_add_str(out, l->project);
		buf_add_str(out, "; relative paths start there.\n");
	}
	if (l->unsure)
		buf_addf(out,
			 "# Not learned from: %" PRIu64 " calls that the trace is unsure about.\n",
			 l->unsure);
	if (l->nameless)
		buf_addf(out, "# Not learned from: %" PRIu64 " paths that have no name.\n",
			 l->nameless);
	uint64_t dropped = learntrie_dropped(l->seen[LEARN_WANTED]);
	if (dropped)
		buf_addf(out,
			 "# Not learned from: %" PRIu64 " accesses, of too many different names.\n",
			 dropped);
}

int learntext(struct learn *l, struct buf *out)
{
	int r = 0;
	add_head(l, out);
	if (l->presets + l->rules)
		buf_add_char(out, '\n');
	for (size_t i = 0; r == 0 && i < l->presets; i++)
		r = add_preset(l, l->preset[i], out);
	for (size_t i = 0; i < l->rules; i++)
		add_rule(l, &l->rule[i], out);
	if (r == 0)
		r = add_left_out(l, out);
	return r ? r : buf_error(out);
}
