/*
 * A denied call, from the stop to its end: verdict, decision, question, act.
 */
#include "supervisor/run.h"

#include "landlock/llright.h"
#include "supervisor/breadth.h"
#include "supervisor/presets.h"
#include "supervisor/reach.h"
#include "supervisor/redact.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* The kernel's own "make the call again after the signal" (include/linux/errno.h). */
#define KERNEL_ERESTARTSYS 512

/* How the policy sees a call: the hardest effect of its needs. */
struct ruling {
	enum effect effect;
	const struct rule *rule;
	uint32_t asked[CALL_PATHS]; /* per path: the bits that are not allowed yet */
	const char *note;
};

/* ---- /proc of the one who asks ---- */

static char *proc_link(pid_t pid, const char *what)
{
	char file[64], text[PATH_MAX];
	snprintf(file, sizeof file, "/proc/%d/%s", pid, what);
	ssize_t n = readlink(file, text, sizeof text - 1);
	return strndup(n < 0 ? "" : text, n < 0 ? 0 : (size_t)n);
}

#define CMDLINE_MAX 65536

static char **proc_argv(pid_t pid)
{
	char file[64];
	struct buf text = {.max = CMDLINE_MAX};
	char chunk[4096];
	ssize_t n;
	snprintf(file, sizeof file, "/proc/%d/cmdline", pid);
	int fd AUTOCLOSE = open(file, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && text.len + sizeof chunk < CMDLINE_MAX &&
	       (n = read(fd, chunk, sizeof chunk)) > 0)
		buf_add(&text, chunk, (size_t)n);
	size_t words = 0;
	for (size_t i = 0; i < text.len; i++)
		words += !text.data[i];
	char **raw = calloc(words + 1, sizeof *raw);
	for (size_t i = 0, w = 0; raw && w < words; w++) {
		raw[w] = text.data + i;
		i += strlen(raw[w]) + 1;
	}
	char **argv = raw ? redact_argv(raw) : NULL;
	free(raw);
	buf_free(&text);
	return argv;
}

/* ---- the ruling ---- */

static uint32_t once_bits(const struct run *r, pid_t pid, const char *path)
{
	uint32_t bits = 0;
	for (const struct once *o = r->onces; o; o = o->next)
		if (o->pid == pid && !strcmp(o->path, path))
			bits |= o->access;
	return bits;
}

static bool harder(enum effect a, enum effect b)
{
	static const int rank[] = {
		[EFFECT_ALLOW] = 0, [EFFECT_ASK] = 1, [EFFECT_DENY] = 2, [EFFECT_FORBID] = 3};
	return rank[a] > rank[b];
}

/* The policy on one path; "once" answers overrule everything but forbid. */
static struct decision decide_path(const struct run *r, pid_t pid, const char *path,
				   uint32_t access, uint32_t *ret_asked)
{
	struct decision worst = {.effect = EFFECT_ALLOW};
	uint32_t once = once_bits(r, pid, path);
	*ret_asked = 0;
	for (uint32_t bit = 1; bit & ACCESS_ALL; bit <<= 1) {
		if (!(access & bit))
			continue;
		struct decision d = policy_decide(r->session->policy, path, bit);
		if ((once & bit) && d.effect != EFFECT_FORBID)
			d.effect = EFFECT_ALLOW;
		if (d.effect != EFFECT_ALLOW)
			*ret_asked |= bit;
		if (harder(d.effect, worst.effect) || (d.effect == worst.effect && !worst.rule))
			worst = d;
	}
	return worst;
}

static int cached_guard(struct run *r, const struct guard **ret)
{
	if (!r->guard || r->guard_version != r->session->policy_version) {
		struct guard *g;
		int err = guard_new(r->session->policy, &g);
		if (err)
			return err;
		guard_free(r->guard);
		r->guard = g;
		r->guard_version = r->session->policy_version;
	}
	*ret = r->guard;
	return 0;
}

/* A guard of the policy as it is for one process: with its "once" answers. */
static int own_guard(const struct run *r, pid_t pid, struct guard **ret)
{
	struct policy *p;
	int err = policy_copy(r->session->policy, &p);
	for (const struct once *o = r->onces; !err && o; o = o->next) {
		struct rule rule = {.effect = EFFECT_ALLOW,
				    .kind = RULE_EXACT,
				    .source = RULE_ANSWER,
				    .access = o->access,
				    .path = o->path,
				    .origin = (char *)"an answer"};
		if (o->pid == pid)
			err = policy_add(p, &rule);
	}
	if (!err)
		err = guard_new(p, ret);
	policy_free(p);
	return err;
}

static bool has_onces(const struct run *r, pid_t pid)
{
	for (const struct once *o = r->onces; o; o = o->next)
		if (o->pid == pid)
			return true;
	return false;
}

static bool makes_a_name(enum call_need need)
{
	return need == CALL_NEED_OPEN || need == CALL_NEED_SYMLINK || need == CALL_NEED_MKNOD ||
	       need == CALL_NEED_BIND;
}

/* A move or link: what it would carry, and where to. */
static void guard_move(const struct guard *g, const struct call *c, struct ruling *out)
{
	struct policy_error why;
	bool link = c->path[0].need == CALL_NEED_LINK_FROM;
	bool exchange = !link && (c->at_flags & RENAME_EXCHANGE);
	if (!guard_may_move(g, &c->path[0].at, &c->path[1].at, exchange, link, &why))
		return;
	out->effect = EFFECT_DENY;
	out->rule = NULL;
	out->note = "it would carry a protected path into the open";
}

/*
 * Would a non-directory of this name stand where a protected path must be able to come? A symlink
 * or a .git file there would lead the name elsewhere. Compared without case: the file system may be.
 */
static bool would_cover(const struct run *r, const char *path)
{
	size_t n = strlen(path);
	for (size_t i = 0; i < policy_len(r->session->policy); i++) {
		const struct rule *rule = policy_at(r->session->policy, i);
		bool literal = rule->kind == RULE_TREE || rule->kind == RULE_EXACT;
		if (literal && rule->effect != EFFECT_ALLOW &&
		    !strncasecmp(rule->path, path, n) && rule->path[n] == '/')
			return true;
	}
	return false;
}

/*
 * Does a rule begin at this name? Rules are resolved when they are read: a symlink put there would open
 * whatever it leads to in the next run. What was answered in this one is not read again by its link.
 */
static bool begins_a_rule(const struct run *r, const struct path_at *at)
{
	const uint32_t content = ACCESS_R | ACCESS_WRITE | ACCESS_EXEC | ACCESS_META;
	for (size_t i = 0; at->real && i < policy_len(r->session->policy); i++) {
		const struct rule *rule = policy_at(r->session->policy, i);
		bool literal = rule->kind == RULE_TREE || rule->kind == RULE_EXACT;
		if (literal && rule->effect == EFFECT_ALLOW && !rule->sensitive &&
		    rule->source != RULE_ANSWER && (rule->access & content) &&
		    !strcasecmp(rule->path, at->real))
			return true;
	}
	return false;
}

static bool is_symlink(const struct path_at *at)
{
	return at->exists && S_ISLNK(at->st.st_mode);
}

/* Would a symlink come to stand where a rule begins? */
static bool leads_a_rule_away(const struct run *r, const struct call *c)
{
	const struct path_at *a = &c->path[0].at, *b = &c->path[1].at;
	switch ((int)c->path[0].need) {
	case CALL_NEED_SYMLINK:
		return begins_a_rule(r, a);
	case CALL_NEED_LINK_FROM:
		return is_symlink(a) && begins_a_rule(r, b);
	case CALL_NEED_MOVE_FROM:
		return (is_symlink(a) && begins_a_rule(r, b)) ||
		       ((c->at_flags & RENAME_EXCHANGE) && is_symlink(b) && begins_a_rule(r, a));
	default:
		return false;
	}
}

/* One thing: is it, or does it lie in, a protected thing under another name? */
static void guard_thing(const struct run *r, const struct guard *g, const struct waiter *w,
			struct ruling *out)
{
	const struct path_at *at = w->verdict.need[0].at;
	uint32_t access = w->verdict.need[0].access;
	const struct rule *rule = NULL;
	int err = guard_find(g, at, access, &rule);
	/* Under its own name the policy has spoken already. */
	if (err && !(rule && rule->path && breadth_is_below(at->real, rule->path))) {
		out->effect = rule ? rule->effect : EFFECT_DENY;
		out->rule = rule;
		out->note = "it is a protected path under another name";
		out->asked[0] = access;
	} else if (!at->exists && makes_a_name(w->call->path[0].need) && at->parent >= 0 &&
		   would_cover(r, at->real)) {
		out->effect = EFFECT_DENY;
		out->rule = NULL;
		out->note = "a protected path would lie below it";
	} else if (at->exists && guard_hardlink_doubt(g, &at->st)) {
		out->effect = EFFECT_ASK;
		out->note = "it has other names, and one may be protected";
		out->asked[0] = access;
	}
}

/* By inode and by name: what a path string can't say (see guard.h). Hardens *out, never softens. */
static int guard_objects(struct run *r, const struct waiter *w, struct ruling *out)
{
	const struct call *c = w->call;
	struct guard *own = NULL;
	const struct guard *g = NULL;
	int err = has_onces(r, w->pid) ? own_guard(r, w->pid, &own) : cached_guard(r, &g);
	if (err)
		return err;
	if (own)
		g = own;
	bool moves = c->path[0].need == CALL_NEED_MOVE_FROM || c->path[0].need == CALL_NEED_LINK_FROM;
	if (moves)
		guard_move(g, c, out);
	else
		guard_thing(r, g, w, out);
	if (own)
		out->rule = NULL; /* it may be the guard's own copy's */
	guard_free(own);
	if (out->effect == EFFECT_ALLOW && leads_a_rule_away(r, c)) {
		out->effect = EFFECT_DENY;
		out->rule = NULL;
		out->note = "a rule begins at this name; a symlink there would open what it leads to";
	}
	return 0;
}

static struct ruling rule_on(struct run *r, const struct waiter *w)
{
	struct ruling out = {.effect = EFFECT_ALLOW};
	for (unsigned i = 0; i < CALL_PATHS; i++) {
		const struct need *need = &w->verdict.need[i];
		if (!need->access || !need->at)
			continue;
		if (need->at->unreachable || !need->at->real) {
			out.effect = EFFECT_FORBID;
			out.note = "it has no path in the supervisor's view";
			return out;
		}
		struct decision d = decide_path(r, w->pid, need->at->real, need->access,
						&out.asked[i]);
		if (i == 0 || harder(d.effect, out.effect)) {
			out.effect = d.effect;
			out.rule = d.rule;
		}
	}
	if (out.effect != EFFECT_ALLOW)
		return out;
	if (guard_objects(r, w, &out)) {
		out.effect = EFFECT_DENY;
		out.note = "the protected paths could not be looked at";
	}
	/* An answer for this very path and process has looked at the doubt already. */
	if (out.effect == EFFECT_ASK && !(out.asked[0] & ~once_bits(r, w->pid, w->verdict.need[0].at->real)))
		out.effect = EFFECT_ALLOW;
	return out;
}

/* ---- the record ---- */

static char *rule_place(const struct rule *rule)
{
	struct buf b = {0};
	if (!rule)
		return NULL;
	buf_add_str(&b, rule->origin);
	if (rule->line)
		buf_addf(&b, ":%u", rule->line);
	return buf_take(&b);
}

static void denied_event(struct jsonw *w, const void *arg)
{
	denial_write(w, arg, false);
}

void refusal_record(struct run *r, const struct denial *d)
{
	struct denial *kept = denial_add(&r->out->report.denials, d);
	if (kept && kept->count > 1)
		return;
	int err = audit_decision(&r->session->audit, d);
	if (err && !r->session->audit_failed) {
		r->session->audit_failed = true;
		run_say(r, "the audit can't be written: %s", strerror(-err));
	}
	if (r->protocol)
		protocol_event(r->protocol, d->allowed ? "granted" : "denied", denied_event, d);
}

static uint32_t all_bits(const struct waiter *w, const struct ruling *ruling)
{
	uint32_t asked = 0, needed = 0;
	for (unsigned i = 0; i < CALL_PATHS; i++) {
		asked |= ruling ? ruling->asked[i] : 0;
		needed |= w->verdict.need[i].access;
	}
	return asked ? asked : needed;
}

/* Fill a denial from a held call. Strings are owned by *d; release with denial_release(). */
static void describe(const struct run *r, const struct waiter *w, const struct ruling *ruling,
		     struct denial *d)
{
	const struct call *c = w->call;
	/* Of two paths the one that needs something comes first. */
	unsigned first = ruling && !ruling->asked[0] && ruling->asked[1] ? 1 : 0;
	unsigned second = 1 - first;
	const struct path_at *at =
		w->verdict.need[first].at ? w->verdict.need[first].at : &c->path[first].at;
	const char *given = c->path[first].given;
	*d = (struct denial){.call = c->ent->name,
			     .error = (int)-c->result,
			     .verdict = w->verdict.verdict,
			     .access = all_bits(w, ruling),
			     .by = BY_POLICY,
			     .lifetime = LIFETIME_ONCE,
			     .t_ms = run_now_ms() - r->started_ms,
			     .run = r->number,
			     .count = 1,
			     .pid = w->pid,
			     .exists = at->exists,
			     .is_dir = at->exists && S_ISDIR(at->st.st_mode)};
	d->path = strdup(at->real ? at->real : given ? given : "");
	if (given && d->path && strcmp(given, d->path) != 0)
		d->given = strdup(given);
	if (c->path[second].need != CALL_NEED_NONE) {
		const char *other = c->path[second].at.real, *as_given = c->path[second].given;
		d->path2 = strdup(other ? other : as_given ? as_given : "");
		d->path2_open = ruling && !ruling->asked[second];
	}
	d->exe = proc_link(w->pid, "exe");
	char **argv = proc_argv(w->pid);
	d->argv0 = strdup(argv && argv[0] ? argv[0] : "");
	redact_free(argv);
	d->rule = ruling ? rule_place(ruling->rule) : NULL;
	d->forbidden = ruling && ruling->rule && ruling->rule->effect == EFFECT_FORBID;
	const char *note = ruling && ruling->note ? ruling->note : w->verdict.note;
	d->note = note ? strdup(note) : NULL;
}

static void record(struct run *r, const struct waiter *w, const struct ruling *ruling, bool allowed,
		   enum answered_by by, enum lifetime lifetime)
{
	struct denial d;
	describe(r, w, ruling, &d);
	d.allowed = allowed;
	d.by = by;
	d.lifetime = lifetime;
	refusal_record(r, &d);
	denial_release(&d);
}

/* ---- waiters ---- */

static void waiter_drop(struct run *r, struct waiter *w)
{
	struct waiter **p = &r->waiters;
	while (*p && *p != w)
		p = &(*p)->next;
	BUG(!*p);
	*p = w->next;
	verdict_release(&w->verdict);
	free(w);
	lifecycle_holding(r, r->waiters != NULL);
}

static struct waiter *waiter_of(struct run *r, struct tracee_name who)
{
	for (struct waiter *w = r->waiters; w; w = w->next)
		if (w->who.tid == who.tid && w->who.gen == who.gen)
			return w;
	return NULL;
}

static bool anyone_asks(const struct run *r, uint64_t question)
{
	for (const struct waiter *w = r->waiters; w; w = w->next)
		if (w->question == question)
			return true;
	return false;
}

/* The waiter no longer stands behind its question; the last one takes it away. */
static void leave_question(struct run *r, struct waiter *w, const char *reason)
{
	uint64_t id = w->question;
	w->question = 0;
	if (id && r->ask && !anyone_asks(r, id) && ask_find(r->ask, id))
		ask_cancel(r->ask, id, reason);
}

static void refuse(struct run *r, struct waiter *w)
{
	leave_question(r, w, "covered");
	tracer_deny(r->tracer, w->who);
	waiter_drop(r, w);
}

/* ---- allowed: the broker ---- */

/* What these give depends on who opens them: the supervisor must not, for somebody else. */
static bool depends_on_opener(const struct path_at *at)
{
	struct statfs fs;
	int fd = at->object >= 0 ? at->object : at->parent;
	if (at->exists && S_ISCHR(at->st.st_mode) && at->st.st_rdev == makedev(5, 0))
		return true; /* /dev/tty */
	if (fd < 0 || fstatfs(fd, &fs))
		return true;
	switch ((unsigned long)fs.f_type) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case TRACEFS_MAGIC:
	case DEBUGFS_MAGIC:
	case SECURITYFS_MAGIC:
		return true;
	default:
		return false;
	}
}

static bool can_be_done_in_place(const struct waiter *w)
{
	return broker_can(w->call) && !depends_on_opener(&w->call->path[0].at);
}

/* May a name be made everywhere below the directory of this one? */
static bool is_open_around(const struct run *r, const struct path_at *at)
{
	struct reach below;
	char *dir AUTOFREE = NULL;
	if (at->parent < 0 || path_of_fd(at->parent, &dir))
		return false;
	reach_of(r->session->policy, dir, &below);
	return below.allow & ACCESS_CREATE;
}

static void act(struct run *r, struct waiter *w)
{
	if (!can_be_done_in_place(w)) {
		r->rerun_useful = true;
		refuse(r, w);
		return;
	}
	leave_question(r, w, "covered");
	struct call_view view = {w->who.tid, w->pid};
	bool as_given = is_open_around(r, &w->call->path[0].at);
	int err = broker_submit(r->broker, w->call, view, &w->as, as_given, &w->act);
	if (!err)
		return;
	run_say(r, "%s could not be done in the command's place: %s", w->call->ent->name,
		strerror(-err));
	refuse(r, w);
}

void refusal_act_done(struct run *r, const struct broker_done *done)
{
	struct waiter *w = r->waiters;
	while (w && w->act != done->id)
		w = w->next;
	int fd AUTOCLOSE = done->fd;
	if (!w)
		return; /* the thread died meanwhile */
	w->act = 0;
	if (done->stale) {
		tracer_again(r->tracer, w->who);
	} else if (fd >= 0) {
		r->brokered++;
		bool cloexec = w->call->open_flags & O_CLOEXEC;
		tracer_hand_over(r->tracer, w->who, TAKE_FD(fd), cloexec);
	} else {
		r->brokered += done->result >= 0;
		int64_t result = done->result == -EINTR ? -KERNEL_ERESTARTSYS : done->result;
		tracer_set_result(r->tracer, w->who, result);
	}
	waiter_drop(r, w);
}

/* ---- ask ---- */

static int add_once(struct run *r, pid_t pid, const char *path, uint32_t access)
{
	struct once *o = calloc(1, sizeof *o);
	char *copy = strdup(path);
	if (!o || !copy) {
		free(o);
		free(copy);
		return -ENOMEM;
	}
	*o = (struct once){.next = r->onces, .pid = pid, .access = access, .path = copy};
	r->onces = o;
	return 0;
}

static struct question *question_about(struct run *r, const struct waiter *w, const struct denial *d)
{
	struct question *q = calloc(1, sizeof *q);
	if (!q)
		return NULL;
	q->pid = w->pid;
	clock_gettime(CLOCK_REALTIME, &q->time);
	q->exe = strdup(d->exe);
	q->argv = proc_argv(w->pid);
	q->cwd = proc_link(w->pid, "cwd");
	q->call = d->call;
	q->path = strdup(d->path);
	q->given = d->given ? strdup(d->given) : NULL;
	q->path2 = d->path2 ? strdup(d->path2) : NULL;
	q->access = d->access;
	q->exists = d->exists;
	q->sensitive = policy_sensitive_for(r->session->policy, d->path, d->access) ||
		       (d->path2 && policy_sensitive_for(r->session->policy, d->path2, d->access));
	q->no_saving = !r->session->saving;
	if (!q->exe || !q->argv || !q->cwd || !q->path ||
	    plan_scopes(d, r->session->policy, r->session->home, &q->scopes)) {
		question_free(q);
		return NULL;
	}
	return q;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static uint64_t same_question(const struct run *r, const struct denial *d)
{
	for (const struct question *q = ask_first(r->ask); q; q = ask_next(r->ask, q))
		if (!q->is_rerun && q->access == d->access && same_text(q->path, d->path) &&
		    same_text(q->path2, d->path2))
			return q->id;
	return 0;
}

static void record_denial(struct run *r, struct denial *d, enum answered_by by)
{
	d->by = by;
	d->allowed = false;
	refusal_record(r, d);
}

static void put_question(struct run *r, struct waiter *w, struct denial *d)
{
	w->question = same_question(r, d);
	if (w->question)
		return;
	struct question *q = question_about(r, w, d);
	/* A front whose peer is gone answers at once, before the waiter stands behind the question. */
	if (!q || ask_push(r->ask, q, &w->question) || !ask_find(r->ask, w->question)) {
		w->question = 0;
		record_denial(r, d, BY_NONE);
		refuse(r, w);
	}
}

static bool may_ask_now(const struct run *r)
{
	return r->mode == ENGINE_HOLD && run_has_answerer(r) && r->end == RUN_GOES_ON;
}

/* Nobody is asked now: refused, and remembered for the end in `retry`. */
static void refuse_unasked(struct run *r, struct waiter *w, const struct ruling *ruling)
{
	struct denial d;
	describe(r, w, ruling, &d);
	if (r->mode == ENGINE_RETRY)
		denial_add(&r->unasked, &d);
	else
		record_denial(r, &d, BY_NONE);
	denial_release(&d);
	refuse(r, w);
}

static bool is_sensitive(const struct run *r, const struct waiter *w)
{
	for (unsigned i = 0; i < CALL_PATHS; i++) {
		const struct need *need = &w->verdict.need[i];
		if (need->at && need->at->real &&
		    policy_sensitive_for(r->session->policy, need->at->real, need->access))
			return true;
	}
	return false;
}

/* --yes: "once" to everything that is not sensitive. False: it has to be asked. */
static bool answer_yes(struct run *r, struct waiter *w, const struct ruling *ruling)
{
	if (!r->command->yes || r->end != RUN_GOES_ON || is_sensitive(r, w))
		return false;
	for (unsigned i = 0; i < CALL_PATHS; i++)
		if (ruling->asked[i] &&
		    add_once(r, w->pid, w->verdict.need[i].at->real, ruling->asked[i]))
			return false;
	record(r, w, ruling, true, BY_YES, LIFETIME_ONCE);
	act(r, w);
	return true;
}

static void ask_or_refuse(struct run *r, struct waiter *w, const struct ruling *ruling)
{
	if (answer_yes(r, w, ruling))
		return;
	if (!may_ask_now(r)) {
		refuse_unasked(r, w, ruling);
		return;
	}
	struct denial d;
	describe(r, w, ruling, &d);
	put_question(r, w, &d);
	denial_release(&d);
}

static void settle(struct run *r, struct waiter *w)
{
	struct ruling ruling = rule_on(r, w);
	switch (ruling.effect) {
	case EFFECT_ALLOW:
		act(r, w);
		break;
	case EFFECT_ASK:
		if (!w->question)
			ask_or_refuse(r, w, &ruling);
		break;
	case EFFECT_DENY:
	case EFFECT_FORBID:
		record(r, w, &ruling, false, BY_POLICY, LIFETIME_SESSION);
		refuse(r, w);
		break;
	}
}

/* ---- the answer ---- */

static struct policy_vars vars_of(const struct run *r)
{
	return (struct policy_vars){.home = r->session->home,
				    .project = r->session->project.dir,
				    .tmpdir = r->session->tmpdir,
				    .env = r->env};
}

static int save_rule(struct run *r, const struct rule *rule, const struct question *q)
{
	char *file AUTOFREE = store_project_policy(&r->session->store, &r->session->project);
	struct policy_error why;
	struct buf comment = {0};
	struct tm tm;
	char date[32];
	if (!file)
		return -ENOMEM;
	time_t now = time(NULL);
	gmtime_r(&now, &tm);
	strftime(date, sizeof date, "%Y-%m-%d", &tm);
	buf_addf(&comment, "%s %s %s", date, q->exe, q->call);
	struct policy_vars vars = vars_of(r);
	int err = store_put_rule(file, rule, buf_str(&comment), &vars, NULL, &why);
	buf_free(&comment);
	if (err)
		run_say(r, "the answer was not saved: %s", why.text);
	return err;
}

static int add_answer_rule(struct run *r, const struct question *q, const struct answer *a,
			   enum rule_kind kind, const char *path, uint32_t access)
{
	struct rule rule = {.effect = a->allow ? EFFECT_ALLOW : EFFECT_DENY,
			    .kind = kind,
			    .source = RULE_ANSWER,
			    .access = access,
			    .path = (char *)path,
			    .origin = (char *)"an answer"};
	int err = session_grant(r->session, &rule);
	if (!err && a->lifetime == LIFETIME_ALWAYS && r->session->saving)
		save_rule(r, &rule, q); /* said there; the session's rule holds all the same */
	return err;
}

static int apply_preset(struct run *r, const char *name)
{
	struct policy_error why;
	struct policy_vars vars = vars_of(r);
	int err = preset_add(r->session->policy, name, &vars, &why);
	r->session->policy_version++;
	return err;
}

static void add_grant(struct run *r, const struct scope *scope, const struct answer *a)
{
	struct report *rep = &r->out->report;
	struct report_grant *list = realloc(rep->grants, (rep->grants_len + 1) * sizeof *list);
	char *path = strdup(scope->path);
	if (list)
		rep->grants = list;
	if (!list || !path) {
		free(path);
		return;
	}
	rep->grants[rep->grants_len++] = (struct report_grant){.path = path,
							       .access = scope->access,
							       .kind = scope->kind,
							       .lifetime = a->lifetime,
							       .by = a->by};
}

int refusal_apply(struct run *r, const struct question *q, const struct answer *a, pid_t pid)
{
	const struct scope *scope = &q->scopes.item[a->allow ? a->scope : 0];
	if (!a->allow && a->by != BY_USER)
		return 0; /* silence is not remembered as a word */
	if (a->allow && a->lifetime == LIFETIME_ONCE && pid) {
		int err = add_once(r, pid, q->path, scope->access);
		if (!err && scope->path2)
			err = add_once(r, pid, scope->path2, scope->access);
		return err;
	}
	if (scope->kind == SCOPE_PRESET)
		return apply_preset(r, scope->path);
	enum rule_kind kind = scope->kind == SCOPE_EXACT ? RULE_EXACT : RULE_TREE;
	int err = add_answer_rule(r, q, a, kind, scope->path, scope->access);
	if (!err && scope->path2)
		err = add_answer_rule(r, q, a, kind, scope->path2, scope->access);
	return err;
}

/*
 * Several may wait behind one question. "Once" is said of the process that it named, and no other gets
 * it: that one may be another program altogether. It is asked about in its own name.
 */
static bool is_answered(const struct waiter *w, const struct question *q, const struct answer *a)
{
	bool once = a->allow && a->lifetime == LIFETIME_ONCE;
	return w->question == q->id && (!once || w->pid == q->pid);
}

/* The asked waiters' denials with what was answered. */
static void record_answer(struct run *r, const struct question *q, const struct answer *a)
{
	bool first = true;
	for (struct waiter *w = r->waiters; w; w = w->next) {
		if (!is_answered(w, q, a))
			continue;
		struct ruling ruling = rule_on(r, w);
		record(r, w, &ruling, a->allow, a->by, a->lifetime);
		first = false;
	}
	if (!first && a->allow)
		add_grant(r, &q->scopes.item[a->scope], a);
}

/*
 * Everything that waits for an answer is decided anew: the rules have changed. The list may change
 * under every step, so it is searched from the start each time.
 */
static void settle_after(struct run *r, uint64_t question, bool allowed)
{
	for (struct waiter *w = r->waiters; w; w = w->next)
		w->again = w->question != 0 && !w->act;
	for (struct waiter *w = r->waiters; w;) {
		if (!w->again) {
			w = w->next;
			continue;
		}
		w->again = false;
		bool own = w->question == question;
		if (own)
			w->question = 0;
		if (own && !allowed)
			refuse(r, w);
		else
			settle(r, w);
		w = r->waiters;
	}
}

void refusal_answered(void *run, const struct question *q, const struct answer *a)
{
	struct run *r = run;
	if (q->is_rerun || r->asked_about) {
		rerun_answered(r, q, a);
		return;
	}
	if (!anyone_asks(r, q->id))
		return;
	uint64_t id = q->id;
	record_answer(r, q, a);
	for (struct waiter *w = r->waiters; w; w = w->next)
		if (is_answered(w, q, a) && refusal_apply(r, q, a, w->pid))
			run_say(r, "no memory to remember an answer");
	settle_after(r, id, a->allow);
}

/* ---- from outside ---- */

void refusal_begin(struct run *r, const struct tracer_event *ev)
{
	struct waiter *w = calloc(1, sizeof *w);
	if (!w) {
		tracer_deny(r->tracer, ev->who);
		return;
	}
	*w = (struct waiter){.who = ev->who,
			     .pid = ev->pid,
			     .call = ev->call,
			     .since_ms = run_now_ms()};
	path_init(&w->verdict.refused);
	w->next = r->waiters;
	r->waiters = w;
	lifecycle_holding(r, true);
	struct call_view view = {ev->who.tid, ev->pid};
	int err = call_resolve(ev->call, view);
	if (!err)
		err = identity_of(ev->who.tid, &w->as);
	struct verdict_input in = {.call = ev->call,
				   .view = view,
				   .as = &w->as,
				   .self = &r->self,
				   .ruleset = r->ruleset};
	if (!err)
		err = verdict_of(&in, &w->verdict);
	if (err) {
		/* -ESRCH: gone. Anything else: unknown is refused. */
		if (err != -ESRCH)
			run_say(r, "a refused %s could not be looked at: %s", ev->call->ent->name,
				strerror(-err));
		refuse(r, w);
		return;
	}
	if (w->verdict.verdict != VERDICT_SANDBOX) {
		record(r, w, NULL, false, BY_NONE, LIFETIME_ONCE);
		refuse(r, w);
		return;
	}
	settle(r, w);
}

void refusal_gone(struct run *r, struct tracee_name who)
{
	struct waiter *w = waiter_of(r, who);
	if (!w)
		return;
	if (w->act)
		broker_cancel(r->broker, w->act);
	leave_question(r, w, "exited");
	waiter_drop(r, w);
}

void refusal_give_up(struct run *r)
{
	for (struct waiter *w = r->waiters; w;) {
		if (w->act) {
			w = w->next;
			continue;
		}
		leave_question(r, w, "exited");
		refuse(r, w);
		w = r->waiters;
	}
}

void refusal_execed(struct run *r, pid_t pid)
{
	for (struct once **p = &r->onces; *p;) {
		struct once *o = *p;
		if (o->pid != pid) {
			p = &o->next;
			continue;
		}
		*p = o->next;
		free(o->path);
		free(o);
	}
}

/* ---- signals that wait behind a held call ---- */

/* The signals in the hexadecimal mask of one status line. */
static uint64_t mask_of(const char *status, const char *key)
{
	uint64_t mask = 0;
	const char *line = strstr(status, key);
	if (line)
		sscanf(line + strlen(key), ":%" SCNx64, &mask);
	return mask;
}

#define BIT(sig) (1ULL << ((sig) - 1))

/* Those whose default action ends a process. */
static const uint64_t ending_signals = BIT(SIGHUP) | BIT(SIGINT) | BIT(SIGQUIT) | BIT(SIGTERM) |
				       BIT(SIGALRM) | BIT(SIGUSR1) | BIT(SIGUSR2) | BIT(SIGPIPE) |
				       BIT(SIGVTALRM) | BIT(SIGPROF) | BIT(SIGXCPU);

/* *ret_ends: one that will end the process; returns: any that will be delivered. */
static bool deliverable(pid_t tid, bool *ret_ends)
{
	char file[64], text[8192];
	snprintf(file, sizeof file, "/proc/%d/status", tid);
	int fd AUTOCLOSE = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	*ret_ends = false;
	if (n <= 0)
		return false;
	text[n] = '\0';
	uint64_t pending = mask_of(text, "SigPnd") | mask_of(text, "ShdPnd");
	uint64_t open = pending & ~mask_of(text, "SigBlk") & ~mask_of(text, "SigIgn");
	uint64_t caught = mask_of(text, "SigCgt");
	*ret_ends = open & ~caught & ending_signals;
	return open & (caught | ending_signals);
}

void refusal_check_signals(struct run *r)
{
	for (struct waiter *w = r->waiters, *next; w; w = next) {
		next = w->next;
		bool ends;
		bool any = deliverable(w->who.tid, &ends);
		if (w->act && any) {
			broker_cancel(r->broker, w->act); /* as a blocking open would be */
		} else if (!w->act && ends) {
			leave_question(r, w, "exited");
			tracer_set_result(r->tracer, w->who, -KERNEL_ERESTARTSYS);
			waiter_drop(r, w);
		}
	}
}

void refusal_release(struct run *r)
{
	while (r->waiters) {
		struct waiter *w = r->waiters;
		r->waiters = w->next;
		verdict_release(&w->verdict);
		free(w);
	}
	while (r->onces)
		refusal_execed(r, r->onces->pid);
}
