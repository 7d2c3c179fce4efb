#include "supervisor/learn.h"

#include "supervisor/breadth.h"
#include "supervisor/learn_inside.h"
#include "supervisor/presets.h"
#include "supervisor/progname.h"
#include "supervisor/traceneeds.h"
#include "supervisor/tracepolicy.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/utsname.h>

static const char *const always_on[] = {"system", "tmp"};

/* ---- making ---- */

static void maps_release(struct learn *l)
{
	for (size_t i = 0; i < l->maps; i++) {
		free(l->map[i].from);
		free(l->map[i].to);
	}
	l->maps = 0;
}

void learn_free(struct learn *l)
{
	if (!l)
		return;
	learnrules_release(l);
	for (size_t i = LEARN_FATES; i-- > 0;)
		learntrie_free(l->seen[i]); /* the first has the words of all */
	maps_release(l);
	madenames_release(&l->made);
	policy_free(l->base);
	policy_free(l->final);
	free(l->verdict.first_missed);
	free(l->verdict.first_wider);
	free(l->home);
	free(l->project);
	buf_free(&l->text);
	free(l);
}

static struct policy_vars vars_of(const struct learn *l)
{
	return (struct policy_vars){.home = l->home, .project = l->project, .as_written = true};
}

/* The project preset, as far as it can be told from afar: hooks and config by their usual names. */
static const char project_preset[] = "allow rwx .\n"
				     "ask w **/.git/hooks\n"
				     "ask w **/.git/config\n"
				     "sensitive w **/.git/hooks\n"
				     "sensitive w **/.git/config\n";

static int add_project(struct learn *l, const char *dir, struct policy_error *e)
{
	l->project = strdup(dir);
	if (!l->project)
		return -ENOMEM;
	if (breadth_is_closed(dir, strlen(dir), l->home))
		return 0; /* too wide: a run opens nothing of it either */
	struct policy_vars vars = vars_of(l);
	return policyfile_parse(l->base, "preset project", project_preset, strlen(project_preset),
				RULE_PRESET, &vars, e);
}

static int make_base(struct learn *l, const struct learn_options *o, struct policy_error *e)
{
	struct policy_vars vars = vars_of(l);
	int r = policy_new(&l->base);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(always_on); i++)
		r = preset_add(l->base, always_on[i], &vars, e);
	if (r == 0 && o->project)
		r = add_project(l, o->project, e);
	if (r == 0 && o->old) {
		vars = vars_of(l);
		r = policyfile_parse(l->base, o->old_name, o->old, strlen(o->old), RULE_FILE, &vars,
				     e);
	}
	return r;
}

int learn_new(const struct learn_options *o, struct learn **ret, struct policy_error *ret_error)
{
	struct learn *l = calloc(1, sizeof(*l));
	int r = l ? 0 : -ENOMEM;
	ret_error->text[0] = '\0';
	if (r == 0) {
		l->here = true;
		l->home = strdup(o->home);
		r = l->home ? make_base(l, o, ret_error) : -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < LEARN_FATES; i++)
		r = learntrie_new(l->home, i ? l->seen[0] : NULL, &l->seen[i]);
	if (r < 0) {
		learn_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

/* ---- a trace ---- */

static int add_map(struct learn *l, const char *from, const char *to)
{
	if (!from || !to || from[0] != '/' || !from[1] || !strcmp(from, to))
		return 0;
	l->map[l->maps] = (struct learn_map){strdup(from), strdup(to)};
	l->maps++;
	return l->map[l->maps - 1].from && l->map[l->maps - 1].to ? 0 : -ENOMEM;
}

/* The path as it is called here; a loan until the next one. */
static const char *mapped(struct learn *l, const char *path)
{
	for (size_t i = 0; i < l->maps; i++) {
		if (!breadth_is_below(path, l->map[i].from))
			continue;
		buf_reset(&l->text);
		buf_add_str(&l->text, l->map[i].to[1] ? l->map[i].to : "");
		buf_add_str(&l->text, path + strlen(l->map[i].from));
		if (l->text.failed)
			return NULL;
		return l->text.len ? buf_str(&l->text) : "/";
	}
	return path;
}

static bool is_there(const struct policy *p, const struct rule *r)
{
	for (size_t i = 0; i < policy_len(p); i++) {
		const struct rule *x = policy_at(p, i);
		if (x->effect == r->effect && x->kind == r->kind && x->access == r->access &&
		    x->sensitive == r->sensitive && !strcmp(x->path, r->path))
			return true;
	}
	return false;
}

/* What was always on there, with that machine's symlinks gone; its own answers are not ours. */
static bool is_always_on(const struct rule *r)
{
	return r->source == RULE_BUILTIN || !strcmp(r->origin, "preset system") ||
	       !strcmp(r->origin, "preset tmp") || !strcmp(r->origin, "preset project");
}

static int add_its_base(struct learn *l, const char *json, struct policy_error *e)
{
	struct policy *its;
	int r = policy_new(&its);
	if (r == 0)
		r = tracepolicy_read(json, its, e);
	for (size_t i = 0; r == 0 && i < policy_len(its); i++) {
		struct rule rule = *policy_at(its, i);
		if (!is_always_on(&rule))
			continue;
		rule.path = (char *)(uintptr_t)mapped(l, rule.path);
		rule.given = rule.links = NULL;
		rule.links_len = 0;
		if (!rule.path)
			r = -ENOMEM;
		else if (!is_there(l->base, &rule))
			r = policy_add(l->base, &rule);
	}
	policy_free(its);
	return r;
}

static bool is_this_machine(const struct trace_header *h)
{
	struct utsname u;
	return h->host && !uname(&u) && !strcmp(u.nodename, h->host);
}

int learn_begin(struct learn *l, const struct trace_header *h, struct policy_error *ret_error)
{
	const char *project = h->project ? h->project : h->cwd;
	int r = 0;
	maps_release(l);
	l->traces++;
	l->here &= is_this_machine(h) && (!h->home || !strcmp(h->home, l->home));
	/* The project first: it may lie in the home directory. */
	if (l->project)
		r = add_map(l, project, l->project);
	if (r == 0)
		r = add_map(l, h->home, l->home);
	if (r == 0 && !l->project && project) {
		const char *here = mapped(l, project);
		r = here ? add_project(l, here, ret_error) : -ENOMEM;
	}
	return r == 0 && h->policy ? add_its_base(l, h->policy, ret_error) : r;
}

/* ---- an event ---- */

enum learn_fate learn_fate(const struct policy *p, const char *path, uint32_t access,
			   uint32_t *ret_closed)
{
	uint32_t closed = 0;
	bool refused = false, asked = false;
	for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1) {
		if (!(access & bit))
			continue;
		struct decision d = policy_decide(p, path, bit);
		if (d.effect == EFFECT_ALLOW)
			continue;
		closed |= bit;
		refused |= d.effect == EFFECT_DENY || d.effect == EFFECT_FORBID;
		asked |= d.effect == EFFECT_ASK && d.rule;
	}
	*ret_closed = closed;
	if (!closed)
		return LEARN_COVERED;
	if (refused)
		return LEARN_REFUSED;
	/* Shared memory is no device, and what a preset opens of it is told by the preset. */
	bool shm = breadth_is_below(path, "/dev/shm");
	if (!shm && (asked || policy_sensitive_for(p, path, closed)))
		return LEARN_SENSITIVE;
	return breadth_is_volatile(path) ? LEARN_VOLATILE : LEARN_WANTED;
}

static bool is(const char *word, const char *what)
{
	return word && !strcmp(word, what);
}

/* A person or a rule of theirs said no to it when it was recorded. */
static bool was_refused(const struct trace_event *ev)
{
	return is(ev->verdict, "sandbox") && is(ev->answer, "deny") &&
	       (is(ev->by, "user") || is(ev->by, "policy"));
}

/*
 * Did the program get it, or was it only the sandbox that kept it from it? What fails by itself
 * (a name that is not there, a file's own permissions) needs no rule.
 */
static bool counts(const struct trace_event *ev)
{
	if (ev->kind != TRACE_CALL || ev->anyway)
		return false;
	if (is(ev->verdict, "sandbox"))
		return true;
	return ev->returned && (ev->ret >= 0 || ev->ret == -EINPROGRESS);
}

typedef int take_fn(struct learn *l, const struct trace_event *ev, const char *path,
		    uint32_t access, bool is_dir);

/* Of what an open may have made, strace does not tell whether it was there; no device is made. */
static bool may_make(const struct trace_event *ev, const struct trace_path *p)
{
	bool device = p->real && !strncmp(p->real, "/dev/", 5) && strncmp(p->real, "/dev/shm/", 9);
	return !p->access && p->thing == TRACE_THING_UNKNOWN && !device && ev->ent &&
	       ev->ent->need[0] == CALL_NEED_OPEN && (ev->flags & O_CREAT) && !(ev->flags & O_PATH);
}

static int each_need(struct learn *l, const struct trace_event *ev, take_fn *take)
{
	uint32_t access[TRACE_PATHS];
	int r = 0;
	if (!traceneeds_of(ev, access))
		return 0;
	for (unsigned i = 0; r == 0 && i < ev->paths; i++) {
		const struct trace_path *p = &ev->path[i];
		if (!access[i])
			continue;
		/* No path is longer, and what is made of one may go as deep as it has components.
		 */
		if (!p->real || p->real[0] != '/' || strlen(p->real) >= PATH_MAX) {
			l->nameless++;
			continue;
		}
		const char *path = mapped(l, p->real);
		if (may_make(ev, p))
			access[i] |= ACCESS_CREATE;
		r = path ? take(l, ev, path, access[i], p->thing == TRACE_THING_DIR) : -ENOMEM;
	}
	return r;
}

static int take_seen(struct learn *l, const struct trace_event *ev, const char *path,
		     uint32_t access, bool is_dir)
{
	uint32_t closed;
	enum learn_fate fate = learn_fate(l->base, path, access, &closed);
	if (fate == LEARN_COVERED) {
		l->covered++;
		return 0;
	}
	if (fate == LEARN_WANTED && was_refused(ev))
		fate = LEARN_REFUSED;
	/* Names that were drawn by lot, and that no preset knows: the directory is told, once. */
	if (fate == LEARN_WANTED && (access & ACCESS_CREATE) &&
	    madenames_add(&l->made, path, ev->pid))
		return -ENOMEM;
	const char *dir = fate == LEARN_WANTED ? madenames_dir(&l->made, path) : NULL;
	if (dir && strcmp(dir, "/dev/shm") != 0) {
		fate = LEARN_TEMPORARY;
		path = dir;
	}
	return learntrie_add(l->seen[fate],
			     &(struct learntrie_seen){.path = path,
						      .access = closed,
						      .is_dir = is_dir,
						      .who = progname_of(ev->argv0, ev->exe),
						      .call = ev->call,
						      .trace = l->traces});
}

int learn_event(struct learn *l, const struct trace_event *ev)
{
	if (!counts(ev))
		return 0;
	l->calls++;
	if (ev->unsure_len) {
		l->unsure++;
		return 0;
	}
	return each_need(l, ev, take_seen);
}

int learn_write(struct learn *l, struct buf *out, size_t *ret_rules)
{
	int r = learnrules(l);
	if (r == 0)
		r = learntext(l, out);
	*ret_rules = l->rules + l->presets;
	return r;
}

/* ---- checking ---- */

int learn_check_begin(struct learn *l, const char *text, size_t n, struct policy_error *ret_error)
{
	struct policy_vars vars = vars_of(l);
	int r = policy_copy(l->base, &l->final);
	l->traces = 0;
	return r ? r
		 : policyfile_parse(l->final, "the policy", text, n, RULE_USER, &vars, ret_error);
}

static char *miss(const char *path, uint32_t access)
{
	struct buf b = {0};
	access_format(&b, access);
	buf_add_char(&b, ' ');
	policy_format_path(&b, path, false);
	return buf_take(&b);
}

static void note_first(char **first, const char *path, uint32_t access)
{
	if (!*first)
		*first = miss(path, access);
}

static int check_seen(struct learn *l, const struct trace_event *ev, const char *path,
		      uint32_t access, bool is_dir)
{
	uint32_t closed, still;
	enum learn_fate before = learn_fate(l->with, path, access, &closed);
	bool open = learn_fate(l->final, path, access, &still) == LEARN_COVERED;
	(void)is_dir;
	if (open && before != LEARN_COVERED && before != LEARN_WANTED) {
		l->verdict.wider++; /* it was to be left out */
		note_first(&l->verdict.first_wider, path, closed);
	} else if (open) {
		l->verdict.allowed++;
	} else if (before != LEARN_WANTED || was_refused(ev) || madenames_dir(&l->made, path)) {
		l->verdict.left_out++;
	} else {
		l->verdict.missed++;
		note_first(&l->verdict.first_missed, path, still);
	}
	return 0;
}

int learn_check(struct learn *l, const struct trace_event *ev)
{
	return counts(ev) && !ev->unsure_len ? each_need(l, ev, check_seen) : 0;
}

/* Its comment says that it opens all below, or names of a kind. */
static bool says_wide(const struct learn_rule *r)
{
	return r->glob || r->leaf.whole || r->paths > 1;
}

static bool is_said(const struct learn *l, const char *path)
{
	for (size_t i = 0; i < l->rules; i++) {
		const struct learn_rule *r = &l->rule[i];
		if (says_wide(r) && (r->glob || breadth_is_below(path, r->path)))
			return true;
	}
	return false;
}

/*
 * A name that nobody has, beside what a narrow rule is about: is it open now, and was not before,
 * and no other rule says so?
 */
static bool opens_beside(const struct learn *l, const struct learn_rule *r)
{
	struct buf beside = {0};
	uint32_t closed;
	const char *slash = strrchr(r->path, '/');
	buf_add(&beside, r->path, (size_t)(slash - r->path));
	buf_add_str(&beside, "/a name that nobody has");
	bool now = learn_fate(l->final, buf_str(&beside), r->access, &closed) == LEARN_COVERED;
	bool before = learn_fate(l->with, buf_str(&beside), r->access, &closed) == LEARN_COVERED;
	bool wider = now && !before && !is_said(l, buf_str(&beside));
	buf_free(&beside);
	return wider;
}

int learn_check_end(struct learn *l, struct learn_verdict *ret)
{
	for (size_t i = 0; i < l->rules; i++) {
		if (says_wide(&l->rule[i]) || !opens_beside(l, &l->rule[i]))
			continue;
		l->verdict.wider++;
		note_first(&l->verdict.first_wider, l->rule[i].path, l->rule[i].access);
	}
	*ret = l->verdict;
	l->verdict = (struct learn_verdict){0};
	return 0;
}
