#include "supervisor/replay.h"

#include "supervisor/judge.h"
#include "supervisor/traceneeds.h"
#include "supervisor/tracewords.h"
#include "supervisor/walk.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

struct replay {
	struct replay_options o;
	struct replay_result out;
	struct walks walks;
	/* Of the trace that is read: */
	struct denial_list denials;
	uint64_t *when; /* of each of them: when it came about */
	size_t when_cap;
	const struct policy *policy;
	const struct policy *recorded;
	bool permissive, retry;
	pid_t main;
	unsigned run;
	uint64_t now_ns;
	struct denial_list unasked; /* retry: until they are answered at the run's end */
	char *mapped[2 * TRACE_PATHS + 2];
	unsigned mapped_len;
	bool no_memory;
};

/* ---- what is kept ---- */

static void add(struct replay *rp, const struct denial *d)
{
	struct denial_list *l = &rp->denials;
	size_t before = l->len;
	if (l->len == rp->when_cap) {
		size_t cap = rp->when_cap ? 2 * rp->when_cap : 64;
		uint64_t *when = reallocarray(rp->when, cap, sizeof *when);
		if (!when) {
			rp->no_memory = true;
			return;
		}
		rp->when = when;
		rp->when_cap = cap;
	}
	uint64_t dropped = l->dropped;
	struct denial *kept = denial_add(l, d);
	rp->no_memory |= !kept && l->dropped == dropped;
	if (l->len > before)
		rp->when[before] = rp->now_ns;
	else if (kept && rp->now_ns < rp->when[kept - l->item])
		rp->when[kept - l->item] = rp->now_ns;
}

/* In `retry` they are kept until they are answered; a walk along PATH until its end. */
static void keep(void *arg, const struct denial *d)
{
	struct replay *rp = arg;
	if (!rp->policy && rp->retry && d->verdict == VERDICT_SANDBOX && d->by == BY_NONE)
		denial_add(&rp->unasked, d);
	else
		add(rp, d);
}

static bool is_exec(const struct trace_event *ev)
{
	return ev->ent && ev->ent->need[0] == CALL_NEED_EXEC;
}

/* As the program said it. */
static const char *given_of(const struct trace_event *ev, unsigned i)
{
	const struct trace_path *p = &ev->path[i];
	return p->given ? p->given : p->real ? p->real : p->told;
}

static void refused(struct replay *rp, const struct trace_event *ev, const struct denial *d)
{
	if (is_exec(ev) && d->error == EACCES) {
		walk_refused(&rp->walks, (uint64_t)ev->tid, ev->pid, given_of(ev, 0), d);
		return;
	}
	walk_over(&rp->walks, (uint64_t)ev->tid);
	keep(rp, d);
}

/* ---- a denial of an event ---- */

static const char *name_of(const struct trace_path *p)
{
	return p->real ? p->real : p->told ? p->told : p->given ? p->given : "";
}

/* rename and link have two paths of their own; the further ones of an exec are its files. */
static bool has_second(const struct trace_event *ev)
{
	return ev->ent && ev->ent->need[1] != CALL_NEED_NONE && ev->paths > 1;
}

/* All is lent from the event; none of it is freed. */
static void describe(const struct trace_event *ev, const uint32_t asked[TRACE_PATHS],
		     struct denial *d)
{
	unsigned first = 0, count = ev->paths < TRACE_PATHS ? ev->paths : TRACE_PATHS;
	uint32_t access = 0;
	for (unsigned i = count; i-- > 0;) {
		first = asked[i] ? i : first;
		access |= asked[i];
	}
	const struct trace_path *p = &ev->path[first];
	const char *given = given_of(ev, is_exec(ev) ? 0 : first);
	*d = (struct denial){.path = (char *)(uintptr_t)name_of(p),
			     .access = access,
			     .call = ev->ent ? ev->ent->name : "",
			     .count = 1,
			     .t_ms = (int64_t)(ev->t_ns / 1000000),
			     .run = ev->run ? ev->run : 1,
			     .pid = ev->pid,
			     .exe = (char *)(uintptr_t)ev->exe,
			     .argv0 = (char *)(uintptr_t)ev->argv0,
			     .exists = p->thing > TRACE_THING_ABSENT,
			     .is_dir = p->thing == TRACE_THING_DIR,
			     .nameless = !p->real};
	if (given && strcmp(given, d->path) != 0)
		d->given = (char *)(uintptr_t)given;
	if (has_second(ev)) {
		d->path2 = (char *)(uintptr_t)name_of(&ev->path[1 - first]);
		d->nameless |= !ev->path[1 - first].real;
		d->path2_open = !asked[1 - first];
	}
}

static void mark_by_rule(struct denial *d, const struct rule *rule)
{
	d->forbidden = rule && rule->effect == EFFECT_FORBID;
	d->moot = judge_is_moot(rule);
}

/* The rule that stands at this place. */
static const struct rule *rule_at(const struct policy *p, const char *place)
{
	const struct rule *found = NULL;
	for (size_t i = 0; p && place && !found && i < policy_len(p); i++) {
		struct buf b = {0};
		policy_format_place(&b, policy_at(p, i));
		if (!strcmp(buf_str(&b), place))
			found = policy_at(p, i);
		buf_free(&b);
	}
	return found;
}

/* ---- as recorded ---- */

static void as_recorded(struct replay *rp, const struct trace_event *ev)
{
	struct denial d;
	uint32_t asked[TRACE_PATHS];
	enum verdict verdict;
	if (!tracewords_parse_verdict(ev->verdict, &verdict))
		return;
	for (unsigned i = 0; i < TRACE_PATHS; i++)
		asked[i] = tracewords_access(ev->path[i].refused);
	describe(ev, asked, &d);
	d.verdict = verdict;
	d.error = -ev->wall;
	d.allowed = ev->answer && !strcmp(ev->answer, "allow");
	d.unwalled = rp->permissive && d.allowed;
	tracewords_parse_by(ev->by, &d.by);
	tracewords_parse_lifetime(ev->lifetime, &d.lifetime);
	d.rule = (char *)(uintptr_t)ev->rule;
	d.note = (char *)(uintptr_t)ev->note;
	/* More than the call needed is refused of a move that would gain it. */
	d.gained = has_second(ev) ? asked[0] & ~tracewords_access(ev->path[0].access) : 0;
	mark_by_rule(&d, rule_at(rp->recorded, ev->rule));
	bool told_at_once = d.allowed || (d.by != BY_NONE && d.by != BY_POLICY) ||
			    (ev->ent && ev->ent->group == SYS_GROUP_MOUNT);
	if (told_at_once)
		add(rp, &d);
	else
		refused(rp, ev, &d);
}

/* What was answered when a run was over. */
static void answered(struct replay *rp, const struct trace_event *ev)
{
	struct denial key = {.path = (char *)(uintptr_t)name_of(&ev->path[0]),
			     .access = tracewords_access(ev->path[0].refused)};
	if (ev->paths > 1)
		key.path2 = (char *)(uintptr_t)name_of(&ev->path[1]);
	tracewords_parse_verdict(ev->verdict, &key.verdict);
	const struct denial *was = denial_find(&rp->unasked, &key);
	if (!was || !was->count)
		return;
	struct denial d = *was;
	d.allowed = ev->answer && !strcmp(ev->answer, "allow");
	tracewords_parse_by(ev->by, &d.by);
	tracewords_parse_lifetime(ev->lifetime, &d.lifetime);
	add(rp, &d);
	rp->unasked.item[was - rp->unasked.item].count = 0;
}

static void end_of_run(struct replay *rp)
{
	walk_ended(&rp->walks, 0);
	for (size_t i = 0; i < rp->unasked.len; i++)
		if (rp->unasked.item[i].count)
			add(rp, &rp->unasked.item[i]);
	denial_list_release(&rp->unasked);
}

/* ---- what another policy would have refused ---- */

/* Does the policy come to speak at all? Not where the call failed before any wall was asked. */
static bool comes_to_the_wall(const struct trace_event *ev)
{
	/* Its own wall may have been asked before, and says the same. */
	bool walled = ev->own_wall && (ev->ret == -EACCES || ev->ret == -EXDEV);
	return ev->verdict || ev->anyway || walled || !ev->returned ||
	       judge_meets_the_wall(ev->ret);
}

struct word {
	enum effect effect;
	const struct rule *rule;
	uint32_t asked[TRACE_PATHS];
	uint32_t gained; /* of asked[0]: as judge_gained() */
	const char *note;
};

/* Of an exec's files the kernel opens one after the other: the first that may not be run counts. */
static void judge(const struct replay *rp, const struct trace_event *ev,
		  const uint32_t access[TRACE_PATHS], struct word *w)
{
	*w = (struct word){.effect = EFFECT_ALLOW};
	for (unsigned i = 0; i < ev->paths; i++) {
		if (!access[i])
			continue;
		if (!ev->path[i].real) {
			*w = (struct word){.effect = EFFECT_FORBID,
					   .note = "no path leads to it that a rule could say"};
			w->asked[i] = access[i];
			return;
		}
		struct decision d =
			judge_path(rp->policy, ev->path[i].real, access[i], 0, &w->asked[i]);
		if (i == 0 || judge_is_harder(d.effect, w->effect)) {
			w->effect = d.effect;
			w->rule = d.rule;
		}
		if (is_exec(ev) && w->effect != EFFECT_ALLOW)
			return;
	}
}

/* What would be open to more in its new place is asked about with all of that. */
static void add_gained(const struct replay *rp, const struct trace_event *ev, struct word *w)
{
	const struct trace_path *from = &ev->path[0], *to = &ev->path[1];
	if (!has_second(ev) || judge_is_harder(w->effect, EFFECT_ASK) || !from->real || !to->real)
		return;
	uint32_t gained =
		judge_gained(rp->policy, from->real, to->real, traceneeds_mode(from->thing), 0);
	if (!gained)
		return;
	w->effect = EFFECT_ASK;
	w->gained = gained;
	w->asked[0] |= gained | (tracewords_access(from->access) & ACCESS_MOVE);
}

static void add_unsure(struct replay *rp, const struct trace_event *ev,
		       const uint32_t access[TRACE_PATHS], const char *why)
{
	struct denial d;
	describe(ev, access, &d);
	d.verdict = VERDICT_OTHER;
	d.note = (char *)(uintptr_t)why;
	denial_add(&rp->out.unsure, &d);
}

static void refuse(struct replay *rp, const struct trace_event *ev, const struct word *w)
{
	struct denial d;
	struct buf place = {0};
	describe(ev, w->asked, &d);
	bool moved = has_second(ev) && ((w->asked[0] | w->asked[1]) & ACCESS_MOVE);
	bool decided = w->effect == EFFECT_DENY || w->effect == EFFECT_FORBID;
	d.verdict = VERDICT_SANDBOX;
	d.error = ev->wall ? -ev->wall : moved ? EXDEV : EACCES;
	d.by = decided ? BY_POLICY : BY_NONE;
	d.lifetime = decided ? LIFETIME_SESSION : LIFETIME_ONCE;
	d.note = (char *)(uintptr_t)w->note;
	d.gained = w->gained;
	if (w->rule) {
		policy_format_place(&place, w->rule);
		d.rule = place.data;
	}
	mark_by_rule(&d, w->rule);
	refused(rp, ev, &d);
	buf_free(&place);
}

/* No policy decides on it: mounts, guard calls, what the file's own permissions refused. */
static bool is_beyond_policies(const struct trace_event *ev)
{
	enum verdict verdict;
	bool told = tracewords_parse_verdict(ev->verdict, &verdict);
	return (told && verdict != VERDICT_SANDBOX) || !ev->ent ||
	       (ev->ent->group != SYS_GROUP_WALL && ev->ent->group != SYS_GROUP_META &&
		ev->ent->group != SYS_GROUP_CONNECT);
}

static void what_if(struct replay *rp, const struct trace_event *ev)
{
	uint32_t access[TRACE_PATHS];
	struct word w;
	if (is_beyond_policies(ev)) {
		as_recorded(rp, ev);
		return;
	}
	if (!traceneeds_of(ev, access) || !comes_to_the_wall(ev))
		return;
	for (unsigned i = 0; i < ev->unsure_len; i++)
		add_unsure(rp, ev, access, ev->unsure[i]);
	bool known = true;
	for (unsigned i = 0; i < ev->paths; i++)
		known &= !access[i] || ev->path[i].real || !ev->unsure_len;
	if (!known)
		return;
	judge(rp, ev, access, &w);
	add_gained(rp, ev, &w);
	/* What fails anyway is refused by a rule, and by none asked about. */
	bool anyway = ev->anyway && (w.effect == EFFECT_ASK || !w.rule);
	bool decided = judge_is_harder(w.effect, EFFECT_ASK);
	/* Then it was refused for what it is, not for its name: that a trace does not tell. */
	if (ev->verdict && ev->note && !ev->rule && !decided)
		add_unsure(rp, ev, access, ev->note);
	else if (w.effect != EFFECT_ALLOW && !anyway)
		refuse(rp, ev, &w);
}

/* ---- events ---- */

static void exited(struct replay *rp, const struct trace_event *ev)
{
	walk_ended(&rp->walks, ev->pid);
	denial_ended(&rp->denials, ev->pid, ev->status);
	denial_ended(&rp->unasked, ev->pid, ev->status);
	if (ev->pid != rp->main || rp->out.traces)
		return;
	rp->out.ended = true;
	rp->out.status = ev->status;
}

static void call(struct replay *rp, const struct trace_event *ev)
{
	unsigned run = ev->run ? ev->run : 1;
	if (run > rp->run) {
		end_of_run(rp);
		rp->run = run;
	}
	if (rp->policy)
		what_if(rp, ev);
	else if (ev->verdict)
		as_recorded(rp, ev);
	if (is_exec(ev) && ev->returned && ev->ret == 0)
		walk_execed(&rp->walks, (uint64_t)ev->tid, given_of(ev, 0));
}

static const char *map_one(struct replay *rp, const char *path)
{
	char *to = path ? replay_mapped(rp->o.maps, rp->o.maps_len, path) : NULL;
	if (!to)
		return path;
	rp->mapped[rp->mapped_len++] = to;
	return to;
}

static void map_paths(struct replay *rp, struct trace_event *ev)
{
	while (rp->mapped_len)
		free(rp->mapped[--rp->mapped_len]);
	if (!rp->o.maps_len)
		return;
	for (unsigned i = 0; i < ev->paths; i++) {
		ev->path[i].real = map_one(rp, ev->path[i].real);
		ev->path[i].told = map_one(rp, ev->path[i].told);
	}
	ev->exe = map_one(rp, ev->exe);
}

static void take(struct replay *rp, struct trace_event *ev)
{
	map_paths(rp, ev);
	rp->now_ns = ev->t_ns;
	if (!rp->main && ev->pid)
		rp->main = ev->pid;
	switch (ev->kind) {
	case TRACE_CALL:
		call(rp, ev);
		break;
	case TRACE_EXIT:
		exited(rp, ev);
		break;
	case TRACE_ANSWER:
		if (!rp->policy)
			answered(rp, ev);
		break;
	case TRACE_FORK:
	case TRACE_EXEC:
	case TRACE_END:
		break;
	}
	if (ev->kind == TRACE_END)
		return;
	rp->out.events++;
	if (!rp->out.traces && ev->t_ns > rp->out.last_ns)
		rp->out.last_ns = ev->t_ns;
}

struct placed {
	uint64_t when;
	size_t at;
};

static int compare_placed(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	if (x->when != y->when)
		return x->when < y->when ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/*
 * Calls are told when they are over; what was decided about them may have been before. Into what
 * all traces had: a process of the same number in another trace is another one.
 */
static void put_in_order(struct replay *rp)
{
	struct denial_list *l = &rp->denials, *all = &rp->out.denials;
	struct placed *order = calloc(l->len + 1, sizeof *order);
	rp->no_memory |= !order;
	for (size_t i = 0; order && i < l->len; i++)
		order[i] = (struct placed){rp->when[i], i};
	if (order)
		qsort(order, l->len, sizeof *order, compare_placed);
	for (size_t i = 0; order && i < l->len; i++) {
		uint64_t dropped = all->dropped;
		bool kept = denial_add(all, &l->item[order[i].at]) != NULL;
		rp->no_memory |= !kept && all->dropped == dropped;
	}
	all->dropped += l->dropped;
	free(order);
	denial_list_release(l);
}

static int add_trace(struct replay *rp, const struct trace_reader *t, uint64_t events)
{
	struct replay_trace *more =
		reallocarray(rp->out.trace, rp->out.traces + 1, sizeof *rp->out.trace);
	if (more)
		rp->out.trace = more;
	char *file = strdup(trace_name(t));
	if (!more || !file) {
		free(file);
		return -ENOMEM;
	}
	more[rp->out.traces++] = (struct replay_trace){.file = file,
						       .events = events,
						       .faults = trace_faults(t),
						       .complete = trace_is_complete(t)};
	return 0;
}

int replay_read(struct replay *rp, struct trace_reader *t, const struct policy *policy,
		const struct policy *recorded, struct trace_error *ret_error)
{
	struct trace_event ev;
	const char *mode = trace_header(t)->mode;
	uint64_t before = rp->out.events;
	int got;
	rp->policy = policy;
	rp->recorded = recorded;
	rp->permissive = mode && !strcmp(mode, "permissive");
	rp->retry = mode && !strcmp(mode, "retry");
	rp->main = 0;
	rp->run = 1;
	while ((got = trace_next(t, &ev, ret_error)) > 0 && !rp->no_memory)
		take(rp, &ev);
	end_of_run(rp);
	if (!rp->out.traces)
		rp->out.runs = rp->run;
	put_in_order(rp);
	if (!got && !rp->no_memory)
		got = add_trace(rp, t, rp->out.events - before);
	return got > 0 || rp->no_memory ? -ENOMEM : got;
}

/* ---- the whole ---- */

int replay_new(const struct replay_options *o, struct replay **ret)
{
	struct replay *rp = calloc(1, sizeof *rp);
	if (!rp)
		return -ENOMEM;
	rp->o = *o;
	rp->walks = (struct walks){.arg = rp, .tell = keep};
	*ret = rp;
	return 0;
}

void replay_free(struct replay *rp)
{
	if (!rp)
		return;
	walk_ended(&rp->walks, 0);
	while (rp->mapped_len)
		free(rp->mapped[--rp->mapped_len]);
	for (size_t i = 0; i < rp->out.traces; i++)
		free(rp->out.trace[i].file);
	free(rp->out.trace);
	denial_list_release(&rp->out.denials);
	denial_list_release(&rp->out.unsure);
	denial_list_release(&rp->denials);
	denial_list_release(&rp->unasked);
	free(rp->when);
	free(rp);
}

struct replay_result *replay_done(struct replay *rp)
{
	rp->out.exited = rp->out.ended && WIFEXITED(rp->out.status);
	return &rp->out;
}

/* ---- names of another machine ---- */

char *replay_mapped(const struct replay_map *maps, size_t n, const char *path)
{
	const struct replay_map *best = NULL;
	size_t best_len = 0;
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(maps[i].from);
		bool covers = !strncmp(path, maps[i].from, len) && (path[len] == '/' || !path[len]);
		if (covers && (!best || len > best_len)) {
			best = &maps[i];
			best_len = len;
		}
	}
	struct buf b = {0};
	if (!best)
		return NULL;
	buf_add_str(&b, best->to);
	buf_add_str(&b, path + best_len);
	return buf_take(&b);
}

int replay_map_policy(const struct replay_map *maps, size_t n, const struct policy *p,
		      struct policy **ret)
{
	struct policy *copy;
	int err = policy_new(&copy);
	for (size_t i = 0; !err && i < policy_len(p); i++) {
		struct rule rule = *policy_at(p, i);
		char *to AUTOFREE = replay_mapped(maps, n, rule.path);
		if (to)
			rule.path = to;
		err = policy_add(copy, &rule);
	}
	if (err)
		policy_free(copy);
	else
		*ret = copy;
	return err;
}
