/*
 * policy: one set of rules, wherever they came from; and the decision.
 *
 * Deciding is pure: no I/O, no clock. Paths are absolute, already resolved through symlinks,
 * without
 * "." or ".." or double slashes; bytes, not text.
 *
 * The order of sources does not matter. Each access is decided by itself: `forbid` first; then the
 * rule that matches deepest: a rule's depth is the number of components of the decided path that
 * it covers (a tree on /a/b covers two of /a/b/c/d; exact covers all of them; a glob covers as
 * many as its pattern matched). At the same depth exact beats tree beats glob, then deny beats ask
 * beats allow. So "deny r **\/.env" holds inside `allow rw .`, and `allow r sub/.env` takes one
 * back. What no rule names is ask. A glob opens nothing inside a literal tree that closes it,
 * unless its fixed part reaches into that tree: `allow r **\/x.c` is no word about `deny r secret`.
 *
 * Ask means "unless it was answered": at the same depth and kind an allow that answers an ask beats
 * it (a session's answer beats any ask; a rule of the user's beats a preset's ask). Otherwise no
 * answer for the very directory of an ask rule could ever be remembered.
 */
#pragma once

#include "supervisor/access.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum effect { EFFECT_ALLOW, EFFECT_ASK, EFFECT_DENY, EFFECT_FORBID };

enum rule_kind {
	RULE_TREE,  /* the path and everything below it */
	RULE_EXACT, /* the path alone */
	RULE_GLOB,  /* a pattern; what it matches and everything below that */
	RULE_GLOB_EXACT,
};

enum rule_source {
	RULE_BUILTIN, /* our own files: forbid, always */
	RULE_PRESET,
	RULE_USER,    /* the saved policy */
	RULE_PROJECT, /* the project's saved policy */
	RULE_FILE,    /* --policy FILE */
	RULE_LINE,    /* the command line: -r -w -x --rule --deny */
	RULE_ANSWER,  /* given in this session */
};

struct rule {
	enum effect effect;
	enum rule_kind kind;
	enum rule_source source;
	uint32_t access; /* ACCESS_* bits */
	char *path;  /* owned; absolute and resolved; globs: see supervisor/glob.h (\\ escapes) */
	char *given; /* owned; as written, where that differs (a symlink, ~), else NULL */
	char *links; /* owned; the symlinks that the path led through, each with its NUL; or NULL */
	size_t links_len; /* bytes of them all */
	char *origin;	  /* owned; file name, "preset system", "command line"; never NULL */
	unsigned line;	  /* in origin; 0: none */
	bool sensitive;	  /* marks a sensitive path for these accesses and decides nothing */
};

struct policy;

int policy_new(struct policy **ret);
void policy_free(struct policy *p);
/* A copy (a session's policy = base + answers); rules are shared, which nobody can tell. */
int policy_copy(const struct policy *p, struct policy **ret);
/*
 * Takes copies of the strings. Normalises path (no trailing slash, no "//"). 0, -ENOMEM, or -EINVAL
 * (relative, "." or "..", no origin, too long a glob). Rules keep their address until they are
 * removed, so a loan from policy_at() or a decision survives later additions.
 */
int policy_add(struct policy *p, const struct rule *rule);
/* Drop every rule after the first n: takes back what was added since policy_len() was n. */
void policy_truncate(struct policy *p, size_t n);
/* Remove every RULE_ANSWER rule that equals (effect, kind, access, path). Number removed. */
size_t policy_remove(struct policy *p, const struct rule *rule);
/* Any rule, by its place. */
void policy_remove_at(struct policy *p, size_t at);
/* Is there a rule that says the same (effect, kind, access, path), wherever it is from? */
bool policy_has(const struct policy *p, const struct rule *rule);
size_t policy_len(const struct policy *p);
const struct rule *policy_at(const struct policy *p, size_t i);

struct decision {
	enum effect effect;
	const struct rule *rule; /* the rule that decided; NULL: none names it */
};

/*
 * One access bit on one path. A path that is no resolved one (NULL, relative, "//", "..", a
 * trailing slash) is denied without a rule.
 */
struct decision policy_decide(const struct policy *p, const char *path, uint32_t bit);
/*
 * Several bits at once: the hardest effect of them (forbid > deny > ask > allow), its rule, and in
 * *ret_asked (may be NULL) the bits that have that effect.
 */
struct decision policy_decide_all(const struct policy *p, const char *path, uint32_t mask,
				  uint32_t *ret_asked);
/* How several accesses stand on one path, each by itself, for the price of one decision. */
struct standing {
	uint32_t by[EFFECT_FORBID + 1]; /* by effect: those that have it */
	uint32_t named;			/* for these a rule decided */
};

struct standing policy_standing(const struct policy *p, const char *path, uint32_t mask);
/*
 * Is the decision for `bit` the same (== allow) for `dir` and for everything that is or ever could
 * be below it? False where a rule about the bit with another effect lies below, or a glob of
 * another effect could match a name below.
 */
bool policy_uniform(const struct policy *p, const char *dir, uint32_t bit);
/* Could any rule with an effect other than allow for `bit` match something strictly below dir? */
bool policy_exception_below(const struct policy *p, const char *dir, uint32_t bit);
/* Of policy_uniform(), what no rule about something below plays a part in: which of the accesses
 * are allowed to dir and to a child of it. */
uint32_t policy_open_tree(const struct policy *p, const char *dir, uint32_t mask);
/* Could the pattern (a rule of a policy's own, policy_at) match a name strictly below dir? */
bool policy_glob_reaches(const struct rule *glob, const char *dir);
/* On the sensitive list (presets' `sensitive` lines): never answered by --yes, shown in questions.
 */
bool policy_sensitive(const struct policy *p, const char *path);
/* The same for some accesses only: reading ~/.bashrc is harmless where writing it is not. */
bool policy_sensitive_for(const struct policy *p, const char *path, uint32_t mask);

/* A path as a policy line has it: quoted and escaped where needed, any bytes; glob: wildcards stay.
 */
void policy_format_path(struct buf *out, const char *path, bool glob);
/* Where the rule stands: its origin, and ":LINE" where it has one; of the command line's the rule.
 */
void policy_format_place(struct buf *out, const struct rule *rule);
/* "allow", "ask", "deny", "forbid". */
const char *effect_name(enum effect e);
/* The rule as a policy line ("allow read /x exact"), quoted where needed, without newline. */
void policy_format_rule(struct buf *out, const struct rule *rule);
