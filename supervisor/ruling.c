/*
 * What the policy says of a held call, and what the inodes say that a path string can't (guard.h).
 */
#include "supervisor/run.h"

#include "supervisor/breadth.h"
#include "supervisor/guard_move.h"
#include "supervisor/judge.h"
#include "supervisor/listener.h"
#include "supervisor/place.h"
#include "supervisor/proc.h"
#include "supervisor/reach.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* ---- the ruling ---- */

/* The accesses that an answer allows to this very path: to the process, or to all. */
static uint32_t answered_bits(const struct run *r, pid_t pid, const char *path)
{
	uint32_t bits = once_bits(r, pid, path);
	for (uint32_t bit = 1; bit & ACCESS_ALL; bit <<= 1) {
		const struct rule *rule = policy_decide(r->session->policy, path, bit).rule;
		if (rule && rule->source == RULE_ANSWER && rule->kind == RULE_EXACT &&
		    rule->effect == EFFECT_ALLOW)
			bits |= bit;
	}
	return bits;
}

/* The policy on one path, without answers for once. */
static struct decision last_word(struct run *r, const char *path, uint32_t access,
				 uint32_t *ret_asked)
{
	struct last_word *w = &r->last_word;
	size_t n = strlen(path) + 1;
	if (w->version != r->session->policy_version || w->access != access || n > sizeof w->path ||
	    memcmp(w->path, path, n) != 0) {
		w->path[0] = '\0';
		w->decision = judge_path(r->session->policy, path, access, 0, &w->asked);
		w->version = r->session->policy_version;
		w->access = access;
		if (n <= sizeof w->path)
			memcpy(w->path, path, n);
	}
	*ret_asked = w->asked;
	return w->decision;
}

/* The same with them. */
static struct decision decide_path(struct run *r, pid_t pid, const char *path, uint32_t access,
				   uint32_t *ret_asked)
{
	uint32_t once = once_bits(r, pid, path);
	return once ? judge_path(r->session->policy, path, access, once, ret_asked)
		    : last_word(r, path, access, ret_asked);
}

static int cached_guard(struct run *r, const struct guard **ret)
{
	if (!r->guard || r->guard_version != r->session->policy_version) {
		struct guard *g;
		int err = guard_renew(r->session->policy, r->guard, &g);
		if (err)
			return err;
		guard_free(r->guard);
		r->guard = g;
		r->guard_version = r->session->policy_version;
	}
	*ret = r->guard;
	return 0;
}

int ruling_begin(struct run *r)
{
	const struct guard *g;
	return cached_guard(r, &g);
}

static int add_answer(struct policy *p, enum rule_kind kind, const char *path, uint32_t access)
{
	struct rule rule = {.effect = EFFECT_ALLOW,
			    .kind = kind,
			    .source = RULE_ANSWER,
			    .access = access,
			    .path = (char *)path,
			    .origin = (char *)"an answer"};
	return access ? policy_add(p, &rule) : 0;
}

/*
 * A guard of the policy as it is for one process: with its "once" answers. `asked` (or NULL): and
 * as it would be if the question about these bits of the call's paths were answered with yes: an
 * answer gives both paths the same.
 */
static int guard_for(const struct run *r, const struct waiter *w, const uint32_t *asked,
		     struct guard **ret)
{
	struct policy *p;
	int err = policy_copy(r->session->policy, &p);
	for (const struct once *o = r->onces; !err && o; o = o->next)
		if (o->pid == w->pid)
			err = add_answer(p, o->below ? RULE_TREE : RULE_EXACT, o->path, o->access);
	for (unsigned i = 0; !err && asked && i < CALL_PATHS; i++)
		if (asked[i] && w->call->path[i].at.real)
			err = add_answer(p, RULE_EXACT, w->call->path[i].at.real,
					 asked[0] | asked[1]);
	if (!err)
		err = guard_renew(p, r->guard, ret);
	policy_free(p);
	return err;
}

/* The same as it is, remembered for the last process. */
static int own_guard(struct run *r, const struct waiter *w, const struct guard **ret)
{
	struct guard *g;
	if (r->own.stale || r->own.pid != w->pid || r->own.version != r->session->policy_version) {
		int err = guard_for(r, w, NULL, &g);
		if (err)
			return err;
		guard_free(r->own.guard);
		r->own = (struct own_guard){
			.guard = g, .pid = w->pid, .version = r->session->policy_version};
	}
	*ret = r->own.guard;
	return 0;
}

static bool has_onces(const struct run *r, pid_t pid, bool below)
{
	for (const struct once *o = r->onces; o; o = o->next)
		if (o->pid == pid && (o->below || !below))
			return true;
	return false;
}

/*
 * What a second name lets one doubt. Not attributes: whoever may write the file natively by this
 * name has more than that, and tar and cp set them on every hard link.
 */
#define DOUBTFUL (JUDGE_CONTENT & ~ACCESS_META)

static bool makes_a_name(enum call_need need)
{
	return need == CALL_NEED_OPEN || need == CALL_NEED_SYMLINK || need == CALL_NEED_MKNOD ||
	       need == CALL_NEED_BIND;
}

static bool moves(const struct call *c)
{
	return c->path[0].need == CALL_NEED_MOVE_FROM || c->path[0].need == CALL_NEED_LINK_FROM;
}

/* What the rules on a directory, and on what lies in it, give wherever it is moved to. */
static uint64_t carried(const struct run *r, const struct path_at *dir)
{
	uint64_t rights = llruleset_lookup(r->ruleset, dir->st.st_dev, dir->st.st_ino);
	const struct llrule *rule;
	for (size_t i = 0; (rule = llruleset_rule(r->ruleset, i)); i++)
		if (rule->label && reach_covers(dir->real, rule->label))
			rights |= rule->rights;
	if (r->session->pool && pool_is_in(r->session->pool, &dir->st))
		rights |= pool_rights(r->session->pool);
	return rights;
}

/* Rules move with their inodes: a directory that has one may not come to where less is allowed. */
static bool carries_more(const struct run *r, const struct path_at *from, const struct path_at *to)
{
	struct reach there;
	if (!from->exists || !S_ISDIR(from->st.st_mode) || !from->real || !to->real)
		return false;
	reach_of(r->session->policy, to->real, &there);
	return carried(r, from) & ~access_rights(there.allow);
}

/* A move or link: what it would carry, and where to. */
static int guard_move(const struct run *r, const struct guard *g, const struct call *c,
		      struct ruling *out)
{
	struct policy_error why;
	const struct path_at *from = &c->path[0].at, *to = &c->path[1].at;
	bool link = c->path[0].need == CALL_NEED_LINK_FROM;
	bool exchange = !link && (c->at_flags & RENAME_EXCHANGE);
	int err = guard_move_check(g, from, to, exchange, link, &why);
	bool keeps = !err && (carries_more(r, from, to) || (exchange && carries_more(r, to, from)));
	if (!err && !keeps)
		return 0;
	out->effect = EFFECT_DENY;
	out->rule = NULL;
	out->error = keeps ? -EXDEV : out->error;
	out->note = keeps ? "it would keep there what only its old place allows"
			  : "it would carry a protected path into the open";
	return keeps ? -EXDEV : err;
}

/* What is asked about the source where it is and allowed where it would go. */
static uint32_t gained_by_moving(const struct run *r, const struct waiter *w)
{
	const struct call *c = w->call;
	const char *from = c->path[0].at.real, *to = c->path[1].at.real;
	if (!from || !to || ruling_is_unnamed(c, 0))
		return 0;
	return judge_gained(r->session->policy, from, to, c->path[0].at.st.st_mode,
			    once_bits(r, w->pid, from));
}

/*
 * A move that the policy does not refuse. A thing that would be open to more in its new place is
 * asked about with all of that, so that a yes says it. What no yes can allow is not asked: refused,
 * with EXDEV where an honest program copies instead.
 */
static void ask_whole_move(struct run *r, const struct waiter *w, struct ruling *out)
{
	struct guard *g = NULL;
	uint32_t gained = gained_by_moving(r, w);
	if (out->effect != EFFECT_ASK && !gained)
		return;
	struct ruling whole = *out, refused = *out;
	whole.effect = EFFECT_ASK;
	whole.gained = gained;
	whole.asked[0] |= gained | (gained ? w->verdict.need[0].access & ACCESS_MOVE : 0);
	int err = guard_for(r, w, whole.asked, &g);
	if (!err)
		err = guard_move(r, g, w->call, &refused);
	guard_free(g);
	if (!err) {
		*out = whole;
		return;
	}
	refused.effect = EFFECT_DENY;
	refused.error = err == -EXDEV ? err : 0;
	*out = refused;
}

/*
 * Would a non-directory of this name stand where a protected path must be able to come? A symlink
 * or a .git file there would lead the name elsewhere. Compared without case: the file system may
 * be.
 */
static bool would_cover(const struct run *r, const char *path)
{
	size_t n = strlen(path);
	for (size_t i = 0; i < policy_len(r->session->policy); i++) {
		const struct rule *rule = policy_at(r->session->policy, i);
		bool literal = rule->kind == RULE_TREE || rule->kind == RULE_EXACT;
		if (literal && rule->effect != EFFECT_ALLOW && !strncasecmp(rule->path, path, n) &&
		    rule->path[n] == '/')
			return true;
	}
	return false;
}

/* Which directory it is: 0 or -errno. What a descriptor holds stays what it is. */
static int stat_of_parent(const struct path_at *at, struct stat *ret)
{
	if (!at->dir)
		return fstat(at->parent, ret) ? -errno : 0;
	ret->st_dev = at->dir->dev;
	ret->st_ino = at->dir->ino;
	return 0;
}

static bool is_in(const struct open_dir *d, const char *real)
{
	size_t n = strlen(d->path);
	return !strncmp(real, d->path, n) && real[n] == '/' && !strchr(real + n + 1, '/');
}

/*
 * The walk upward costs as much as all the rest of a chmod or an open, and tar, cp and compilers
 * work directory by directory. The last one is remembered by inode and by name: under another name,
 * or moved, it is looked at anew, and a protected place that it was moved into has the policy's
 * word by its path.
 */
static bool lies_in_open_dir(struct run *r, const struct guard *g, const struct path_at *at,
			     uint32_t access)
{
	struct open_dir *d = &r->open_dir;
	const char *slash = at->real ? strrchr(at->real, '/') : NULL;
	struct stat st;
	if (!slash || at->parent < 0 || guard_has(g, &at->st) || stat_of_parent(at, &st))
		return false;
	bool same = d->path && d->version == r->guard_version && d->dev == st.st_dev &&
		    d->ino == st.st_ino && is_in(d, at->real);
	uint32_t known = same ? d->access : 0;
	if (!(access & ~known))
		return true;
	if (!guard_dir_is_open(g, at->parent, access))
		return false;
	char *path = same ? d->path : strndup(at->real, (size_t)(slash - at->real));
	if (!same)
		free(d->path);
	*d = (struct open_dir){.version = r->guard_version,
			       .access = known | access,
			       .dev = st.st_dev,
			       .ino = st.st_ino,
			       .path = path};
	return true;
}

/* One thing: is it, or does it lie in, a protected thing under another name? */
static void guard_thing(struct run *r, const struct guard *g, const struct waiter *w, bool own,
			struct ruling *out)
{
	const struct path_at *at = w->verdict.need[0].at;
	uint32_t access = w->verdict.need[0].access;
	const struct rule *rule = NULL;
	bool known = !own && lies_in_open_dir(r, g, at, access);
	int err = known ? 0 : guard_find(g, at, access, &rule);
	/* Under its own name the policy has spoken already. */
	if (err && !(rule && rule->path && at->real && breadth_is_below(at->real, rule->path))) {
		out->effect = rule ? rule->effect : EFFECT_DENY;
		out->rule = rule;
		out->note = "it is a protected path under another name";
		out->asked[0] = access;
	} else if (!at->exists && makes_a_name(w->call->path[0].need) && at->parent >= 0 &&
		   at->real && would_cover(r, at->real)) {
		out->effect = EFFECT_DENY;
		out->rule = NULL;
		out->note = "a protected path would lie below it";
	} else if (at->exists && (access & DOUBTFUL) && guard_hardlink_doubt(g, &at->st)) {
		out->effect = EFFECT_ASK;
		out->note = "it has other names, and one may be protected";
		out->asked[0] = access;
	}
}

/*
 * Does a rule begin at this name? Rules are resolved when they are read: a symlink put there would
 * open whatever it leads to in the next run. What was answered in this one is not read again by its
 * link.
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

/*
 * A process's answers for single things open these and nothing else: what the guard of all leaves
 * alone its own does, too. Not so of a move, where an answer for the one name counts against the
 * other, nor of a directory's answer, which makes exceptions of what it does not open.
 */
static bool needs_own_guard(struct run *r, const struct waiter *w, const struct guard *of_all)
{
	struct ruling plain = {.effect = EFFECT_ALLOW};
	if (!has_onces(r, w->pid, false))
		return false;
	if (!moves(w->call) && !has_onces(r, w->pid, true))
		guard_thing(r, of_all, w, false, &plain);
	else
		plain.effect = EFFECT_ASK;
	return plain.effect != EFFECT_ALLOW;
}

/* By inode and by name: what a path string can't say (see guard.h). Hardens *out, never softens. */
static int guard_objects(struct run *r, const struct waiter *w, struct ruling *out)
{
	const struct call *c = w->call;
	const struct guard *g;
	int err = cached_guard(r, &g);
	bool own = !err && needs_own_guard(r, w, g);
	if (own)
		err = own_guard(r, w, &g);
	if (err)
		return err;
	if (moves(c))
		guard_move(r, g, c, out);
	else
		guard_thing(r, g, w, own, out);
	if (out->effect == EFFECT_ALLOW && leads_a_rule_away(r, c)) {
		out->effect = EFFECT_DENY;
		out->rule = NULL;
		out->note =
			"a rule begins at this name; a symlink there would open what it leads to";
	}
	if (own)
		out->rule = NULL; /* it may be the guard's own copy's */
	return 0;
}

/*
 * /dev/stdout, /proc/self/fd/N: a file that the process holds open already, by the same access. The
 * name in between is the descriptor's, and gives nothing that it has not.
 */
static bool is_its_own_again(const struct waiter *w)
{
	const struct call *c = w->call;
	const struct path_at *at = &c->path[0].at;
	return c->path[0].need == CALL_NEED_OPEN && at->magic && at->exists &&
	       S_ISREG(at->st.st_mode) &&
	       proc_holds_open(w->who.tid, at->st.st_dev, at->st.st_ino, c->open_flags);
}

static bool is_too_deep(const struct path_at *at)
{
	return at->told && strlen(at->told) >= PATH_MAX;
}

/* What stands for all that lies below the deepest directory above the thing that has a path. */
static void reach_from_above(const struct run *r, const struct path_at *at, struct reach *ret)
{
	*ret = (struct reach){.varies = ACCESS_ALL};
	int fd AUTOCLOSE = at->parent >= 0 ? fcntl(at->parent, F_DUPFD_CLOEXEC, 3) : -1;
	for (unsigned level = 0; fd >= 0 && level < PLACE_LEVELS_MAX; level++) {
		char *dir AUTOFREE = NULL;
		if (!path_of_fd(fd, &dir)) {
			reach_of(r->session->policy, dir, ret);
			return;
		}
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = up;
	}
}

/*
 * Deeper than any path can say (what looks for the limits of getcwd makes such trees): no rule
 * begins there, so what is allowed everywhere above is allowed. Not a program: it is told its path.
 */
static bool is_allowed_from_above(const struct run *r, const struct waiter *w,
				  const struct need *need)
{
	struct reach above;
	if (!is_too_deep(need->at) || moves(w->call) || (need->access & ACCESS_EXEC))
		return false;
	reach_from_above(r, need->at, &above);
	return !(need->access & ~above.allow);
}

/*
 * A move or link, one of whose sides is so deep: where both lie below directories of which the
 * policy says one and the same for all that is in them, nothing changes by it.
 */
static bool is_deep_move_allowed(struct run *r, const struct waiter *w)
{
	struct reach side[CALL_PATHS];
	const struct guard *g;
	for (unsigned i = 0; i < CALL_PATHS; i++) {
		const struct need *need = &w->verdict.need[i];
		if (!need->access || !need->at || need->at->parent < 0)
			return false;
		reach_from_above(r, need->at, &side[i]);
		if (side[i].varies || (need->access & ~side[i].allow))
			return false;
	}
	return side[0].allow == side[1].allow && side[0].deny == side[1].deny &&
	       side[0].forbid == side[1].forbid && !cached_guard(r, &g) &&
	       !guard_move_nameless(g, w->verdict.need[0].at, w->verdict.need[1].at);
}

/* Why can no rule and no answer name it? */
static const char *why_nameless(const struct path_at *at)
{
	if (is_too_deep(at))
		return "its path is longer than any rule can say";
	if (at->exists && !at->st.st_nlink)
		return "it was deleted: no path leads to it any more";
	return "it has no path in the supervisor's view";
}

bool ruling_is_unnamed(const struct call *c, unsigned i)
{
	const struct path_at *at = &c->path[i].at;
	return c->path[i].need == CALL_NEED_LINK_FROM && at->exists && !at->st.st_nlink;
}

/*
 * A file that no name leads to (a pipe, a memfd, O_TMPFILE, what was deleted while it was open):
 * its attributes are the affair of those who hold it.
 */
static bool has_no_name(const struct path_at *at)
{
	struct statfs fs;
	if (!at->unreachable || !at->exists)
		return false;
	if (!at->st.st_nlink)
		return true;
	if (fstatfs(at->object, &fs))
		return false;
	return fs.f_type == PIPEFS_MAGIC || fs.f_type == SOCKFS_MAGIC ||
	       fs.f_type == ANON_INODE_FS_MAGIC;
}

/* What the tree itself made: a terminal's other side, a socket it listens on. */
static bool is_the_trees(const struct run *r, const struct need *need)
{
	return terminals_is_the_trees(r->tracer, need->at) ||
	       (need->access == ACCESS_CONNECT && listener_is_the_trees(r->tracer, &need->at->st));
}

/* Landlock asks nobody about what lies on no mount of anybody's (is_nouser_or_private()). */
static bool is_nobodys(const struct path_at *at)
{
	struct statfs fs;
	if (at->real || !at->exists || at->object < 0 || fstatfs(at->object, &fs))
		return false;
	return fs.f_type == PIPEFS_MAGIC || fs.f_type == SOCKFS_MAGIC ||
	       fs.f_type == ANON_INODE_FS_MAGIC || (fs.f_type == TMPFS_MAGIC && !at->st.st_nlink);
}

bool ruling_needs_none(struct run *r, const struct waiter *w, const struct need *need)
{
	const struct path_at *at = need->at;
	if (is_nobodys(at) || (need->access == ACCESS_META && has_no_name(at)))
		return true;
	if (at->real &&
	    policy_decide_all(r->session->policy, at->real, need->access, NULL).effect !=
		    EFFECT_ASK)
		return false;
	return is_the_trees(r, need) || is_its_own_again(w);
}

struct ruling ruling_of(struct run *r, const struct waiter *w)
{
	struct ruling out = {.effect = EFFECT_ALLOW};
	for (unsigned i = 0; i < CALL_PATHS; i++) {
		const struct need *need = &w->verdict.need[i];
		if (!need->access || !need->at || ruling_is_unnamed(w->call, i))
			continue;
		if (need->access == ACCESS_META && has_no_name(need->at))
			return out;
		if (need->at->unreachable || !need->at->real) {
			if (is_its_own_again(w))
				return out;
			if (is_allowed_from_above(r, w, need))
				continue;
			if (moves(w->call) && is_too_deep(need->at) && is_deep_move_allowed(r, w))
				return (struct ruling){.effect = EFFECT_ALLOW};
			out.effect = EFFECT_FORBID;
			out.note = why_nameless(need->at);
			return out;
		}
		struct decision d =
			decide_path(r, w->pid, need->at->real, need->access, &out.asked[i]);
		if (d.effect == EFFECT_ASK && (is_the_trees(r, need) || is_its_own_again(w))) {
			d.effect = EFFECT_ALLOW;
			out.asked[i] = 0;
		}
		if (i == 0 || judge_is_harder(d.effect, out.effect)) {
			out.effect = d.effect;
			out.rule = d.rule;
		}
	}
	if (moves(w->call) && !judge_is_harder(out.effect, EFFECT_ASK))
		ask_whole_move(r, w, &out);
	if (out.effect != EFFECT_ALLOW)
		return out;
	if (guard_objects(r, w, &out)) {
		out.effect = EFFECT_DENY;
		out.note = "the protected paths could not be looked at";
	}
	const struct path_at *at = w->verdict.need[0].at;
	if (out.effect == EFFECT_ASK && at && !at->real)
		out.effect = EFFECT_FORBID; /* no question can name it */
	/* An answer for this very path has looked at the doubt already. */
	if (out.effect == EFFECT_ASK && !(out.asked[0] & ~answered_bits(r, w->pid, at->real)))
		out.effect = EFFECT_ALLOW;
	return out;
}

struct pool *ruling_pool(struct run *r, const struct waiter *w)
{
	struct pool *pool = r->session->pool;
	const struct path_at *at = &w->call->path[0].at;
	const struct guard *g;
	if (!pool || w->call->path[0].need != CALL_NEED_MKDIR || at->exists || at->parent < 0 ||
	    !at->real || !pool_suits(pool, r->session->policy, at->real, &w->as))
		return NULL;
	char *dir AUTOFREE = strdup(at->real);
	if (!dir || cached_guard(r, &g))
		return NULL;
	char *slash = strrchr(dir, '/');
	slash[slash == dir] = '\0';
	/* By inode and by name it is no other than it seems. */
	bool plain =
		!guard_find(g, at, ACCESS_ALL, NULL) && !guard_name_is_protected(g, dir, at->name);
	return plain ? pool : NULL;
}
