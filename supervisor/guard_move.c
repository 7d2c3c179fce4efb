#include "supervisor/guard_move.h"

#include "supervisor/dirwalk.h"
#include "supervisor/escape.h"
#include "supervisor/guard_inside.h"
#include "supervisor/place.h"
#include "supervisor/reach.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Accesses of a name in its directory; they do not travel with a thing that is no directory. */
#define OF_NAMES (ACCESS_LIST | ACCESS_CREATE | ACCESS_DELETE | ACCESS_MOVE)

static int refuse(struct policy_error *why, int error, const char *path, const char *reason,
		  const char *other)
{
	struct buf text = {0};

	escape_add_str(&text, path);
	buf_add_char(&text, ' ');
	buf_add_str(&text, reason);
	if (other) {
		buf_add_char(&text, ' ');
		escape_add_str(&text, other);
	}
	if (why)
		snprintf(why->text, sizeof(why->text), "%s", buf_str(&text));
	buf_free(&text);
	return error;
}

/*
 * The source: neither an exception nor above one. One by pattern is its name, and what it may be
 * called is a question of the destination.
 */
static int check_source(const struct guard *g, const struct path_at *at, struct policy_error *why)
{
	const char *of = NULL;

	if (guard_relation_of_inode(g, at->object) != FOLDNAME_FREE)
		return refuse(why, -EACCES, at->real,
			      "is protected by the policy, or something in it is", NULL);
	if (guard_relation_of_literals(g, at->real, &of) != FOLDNAME_FREE)
		return refuse(why, -EACCES, at->real, "is, or is above, the protected", of);
	return 0;
}

/* An exception's own name may be made or replaced only where the policy allows just that. */
static int check_destination(const struct guard *g, const struct path_at *to, bool across,
			     struct policy_error *why)
{
	uint32_t needed =
		ACCESS_CREATE | (to->exists ? ACCESS_DELETE : 0) | (across ? ACCESS_MOVE : 0);
	const char *of = NULL;
	enum foldname_relation r = guard_relation_of_name(g, to->real, &of);

	if (to->exists && guard_relation_of_inode(g, to->object) == FOLDNAME_ABOVE)
		r = FOLDNAME_ABOVE;
	if (r == FOLDNAME_ABOVE || r == FOLDNAME_ALIKE)
		return refuse(why, -EACCES, to->real, "is above, or looks like, the protected",
			      of ? of : "pattern");
	const struct rule *by = NULL;
	int found = guard_find(g, to, needed, &by);
	bool denied = guard_denied(guard_policy(g), to->real, needed);
	/* Met under its own name: of an absent one there the policy alone can say more. */
	if (found < 0 && !denied && by && by->path && reach_covers(by->path, to->real))
		found = 0;
	if (found < 0 || (r == FOLDNAME_AT && denied))
		return refuse(why, -EACCES, to->real, "is protected by the policy", NULL);
	return 0;
}

/* How an access to the thing stands, by path and by inode: the harder of the two. */
static enum effect standing(const struct guard *g, const struct path_at *at, uint32_t bit)
{
	struct decision d = policy_decide(guard_policy(g), at->real, bit);
	const struct rule *rule = NULL;
	int r = guard_find(g, at, bit, &rule);
	enum effect found = r == 0 ? EFFECT_ALLOW : rule ? rule->effect : EFFECT_DENY;

	return found > d.effect ? found : d.effect;
}

static bool is_freer(const struct guard *g, const struct path_at *from, const struct path_at *to)
{
	bool dir = S_ISDIR(from->st.st_mode);
	bool plain = guard_find(g, from, ACCESS_ALL, NULL) == 0;
	uint32_t usable = access_on_kind(from->st.st_mode) & ~(dir ? 0 : (uint32_t)OF_NAMES);

	for (uint32_t bit = 1; bit < ACCESS_ALL; bit <<= 1) {
		if (!(bit & usable))
			continue;
		enum effect now = plain ? policy_decide(guard_policy(g), from->real, bit).effect
					: standing(g, from, bit);
		if (policy_decide(guard_policy(g), to->real, bit).effect < now)
			return true;
	}
	return false;
}

/* The same for the names in a directory, which its own exact rules don't speak of. */
static bool names_are_freer(const struct guard *g, const char *from, const char *to)
{
	for (uint32_t bit = 1; bit < ACCESS_ALL; bit <<= 1)
		if (reach_of_stranger(guard_policy(g), to, bit) <
		    reach_of_stranger(guard_policy(g), from, bit))
			return true;
	return false;
}

/* Nothing may become freer by going from `from` to `to`, and nothing in it. */
static int check_widening(const struct guard *g, const struct path_at *from,
			  const struct path_at *to, int error, struct policy_error *why)
{
	bool dir = S_ISDIR(from->st.st_mode);

	if (is_freer(g, from, to) || (dir && names_are_freer(g, from->real, to->real)))
		return refuse(why, error, from->real, "would be open to more at", to->real);
	if (dir && (reach_names_vary(guard_policy(g), from->real) ||
		    reach_names_vary(guard_policy(g), to->real)))
		return refuse(why, error, from->real,
			      "holds names that the policy might treat otherwise at", to->real);
	return 0;
}

/*
 * The directory that a thing is in, owned. One that was given by descriptor (linkat with
 * AT_EMPTY_PATH, /proc/self/fd/N) is in the one that its own path names, if it still is.
 */
static int open_place(const struct path_at *at)
{
	struct stat st;

	if (at->parent >= 0)
		return fcntl(at->parent, F_DUPFD_CLOEXEC, 3);
	int dir AUTOCLOSE = dirwalk_open_parent(at->real);
	if (dir < 0 || fstatat(dir, strrchr(at->real, '/') + 1, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    st.st_dev != at->st.st_dev || st.st_ino != at->st.st_ino)
		return -ENOENT;
	return TAKE_FD(dir);
}

static int check_one_way(const struct guard *g, const struct path_at *from,
			 const struct path_at *to, struct policy_error *why)
{
	struct place a, b;
	int dir AUTOCLOSE = open_place(from);

	if (dir < 0 || place_of(dir, &a) < 0 || place_of(to->parent, &b) < 0)
		return refuse(why, -EACCES, from->real, "could not be looked at", NULL);
	bool across = a.dev != b.dev || a.ino != b.ino;
	int r = check_source(g, from, why);
	if (r == 0)
		r = check_destination(g, to, across, why);
	if (r == 0)
		r = check_widening(g, from, to, across ? -EXDEV : -EACCES, why);
	return r;
}

static bool is_in_the_open(const struct guard *g, const struct path_at *at)
{
	if (at->parent < 0 || guard_find(g, at, ACCESS_ALL, NULL) < 0)
		return false;
	return !at->exists || (guard_relation_of_inode(g, at->object) == FOLDNAME_FREE &&
			       !guard_hardlink_doubt(g, &at->st));
}

int guard_move_nameless(const struct guard *g, const struct path_at *from, const struct path_at *to)
{
	bool open = from->exists && is_in_the_open(g, from) && is_in_the_open(g, to);

	return open ? 0 : -EACCES;
}

int guard_move_check(const struct guard *g, const struct path_at *from, const struct path_at *to,
		     bool exchange, bool link, struct policy_error *ret_why)
{
	bool there = to->parent >= 0 && to->real && !to->unreachable;
	bool placed = there && from->exists && (from->parent >= 0 || link) && from->real &&
		      !from->unreachable;

	/* A file without a name (O_TMPFILE) is carried from nowhere. */
	if (there && link && from->exists && from->st.st_nlink == 0)
		return check_destination(g, to, false, ret_why);

	if (!placed || (exchange && (link || !to->exists)))
		return refuse(ret_why, -EACCES, from->real ? from->real : from->name,
			      "has no place of its own", NULL);
	int r = check_one_way(g, from, to, ret_why);
	if (r == 0 && exchange)
		r = check_one_way(g, to, from, ret_why);
	return r;
}
