/*
 * How why.h's answers are told: to people, and as JSON.
 */
#include "supervisor/denial.h"
#include "supervisor/escape.h"
#include "supervisor/rulehistory.h"
#include "supervisor/shellword.h"
#include "supervisor/why.h"
#include "tracer/json.h"
#include "tracer/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const char *kind_name(const struct why *w)
{
	mode_t mode = w->st.st_mode;
	return w->absent	? "does not exist"
	       : !w->exists	? "can't be looked at"
	       : S_ISDIR(mode)	? "a directory"
	       : S_ISREG(mode)	? "a file"
	       : S_ISLNK(mode)	? "a symlink"
	       : S_ISSOCK(mode) ? "a socket"
	       : S_ISFIFO(mode) ? "a pipe"
				: "a device";
}

/* Of a path that is not there the run is told so, whatever the policy says. */
static const char *absent_words(enum effect e)
{
	static const char *const words[] = {[EFFECT_ALLOW] = "fails anyway, and would be allowed",
					    [EFFECT_ASK] = "fails anyway, and nothing is asked",
					    [EFFECT_DENY] = "fails anyway, and would be refused",
					    [EFFECT_FORBID] =
						    "fails anyway, and would be forbidden"};
	return words[e];
}

static const char *effect_words(enum effect e)
{
	static const char *const words[] = {[EFFECT_ALLOW] = "allowed",
					    [EFFECT_ASK] = "asked about",
					    [EFFECT_DENY] = "refused",
					    [EFFECT_FORBID] = "forbidden: no answer opens it"};
	return words[e];
}

static void add_place(struct buf *out, const struct rule *r)
{
	struct rulehistory_days days = {0};
	const char *since = rulehistory_since(&days, r);
	escape_add_str(out, r->origin);
	if (r->line)
		buf_addf(out, ":%u", r->line);
	if (since[0])
		buf_addf(out, ", since %s", since);
	rulehistory_days_release(&days);
}

static void add_rule(struct buf *out, const struct rule *r)
{
	buf_add_str(out, "  rule    ");
	if (!r) {
		buf_add_str(out, "none names it\n");
		return;
	}
	policy_format_rule(out, r);
	buf_add_str(out, "  (");
	add_place(out, r);
	buf_add_str(out, ")\n");
}

static const char *wall_words(const struct why_answer *a)
{
	bool allows = a->effect == EFFECT_ALLOW;
	switch (a->wall) {
	case WHY_WALL_OPEN:
		return "lets it through by itself";
	case WHY_WALL_CLOSED:
		return allows ? "refuses it, and warder does it in the command's place"
		       : a->effect == EFFECT_ASK
			       ? "refuses it; warder asks, and after a yes does it in place"
			       : "refuses it (EACCES)";
	case WHY_WALL_NO_RIGHT:
		return allows ? "has no right for it: warder does the call in the command's place"
		       : a->effect == EFFECT_ASK
			       ? "has no right for it: warder holds the call and asks"
			       : "has no right for it: warder refuses the call";
	case WHY_WALL_ABSENT:
		return "finds nothing there, and says so before any rule counts";
	case WHY_WALL_UNKNOWN:
		break;
	}
	return "can't be asked from here";
}

/* The file's own permissions come first: the policy's word counts after theirs. */
static void add_not_permitted(struct buf *out, const struct why *w, const struct why_answer *a)
{
	char room[16];
	buf_addf(out,
		 ": refused by the file's own permissions, whatever a rule says\n"
		 "  file    does not let uid %u (%s): see ls -ld ",
		 (unsigned)geteuid(), denial_errno_name(-a->permits, room));
	shellword_add(out, w->path);
	buf_addf(out, "\n  policy  if it did, this would be %s%s\n", effect_words(a->effect),
		 a->sensitive ? "; on the sensitive list" : "");
	add_rule(out, a->rule);
}

static void add_answer(struct buf *out, const struct why *w, const struct why_answer *a)
{
	access_format(out, a->access);
	if (a->permits) {
		add_not_permitted(out, w, a);
		return;
	}
	bool absent = a->wall == WHY_WALL_ABSENT;
	buf_addf(out, ": %s%s\n", absent ? absent_words(a->effect) : effect_words(a->effect),
		 a->sensitive ? "; on the sensitive list" : "");
	add_rule(out, a->rule);
	buf_addf(out, "  kernel  %s\n", wall_words(a));
	if (a->effect == EFFECT_ALLOW)
		return;
	buf_addf(out, "  change  %s\n", a->change ? a->change : a->stuck);
}

void why_format(const struct why *w, struct buf *out)
{
	escape_add_str(out, w->path);
	buf_addf(out, " (%s)\n", kind_name(w));
	for (size_t i = 0; i < w->len; i++)
		add_answer(out, w, &w->answer[i]);
}

/* ---- JSON ---- */

static void write_rule(struct jsonw *w, const struct rule *r)
{
	struct rulehistory_days days = {0};
	struct buf line = {0};
	jsonw_key(w, "rule");
	if (!r) {
		jsonw_null(w);
		return;
	}
	policy_format_rule(&line, r);
	jsonw_begin_object(w);
	jsonw_kstr(w, "text", buf_str(&line));
	jsonw_kpath(w, "origin", r->origin);
	jsonw_kint(w, "line", r->line);
	const char *since = rulehistory_since(&days, r);
	jsonw_kstr(w, "since", since[0] ? since : NULL);
	jsonw_end_object(w);
	rulehistory_days_release(&days);
	buf_free(&line);
}

static void write_answer(struct jsonw *w, const struct why_answer *a)
{
	static const char *const walls[] = {[WHY_WALL_UNKNOWN] = "unknown",
					    [WHY_WALL_OPEN] = "grants",
					    [WHY_WALL_CLOSED] = "refuses",
					    [WHY_WALL_ABSENT] = "absent",
					    [WHY_WALL_NO_RIGHT] = "no right"};
	char room[16];
	jsonw_begin_object(w);
	access_write(w, "access", a->access);
	jsonw_kstr(w, "effect", effect_name(a->effect));
	write_rule(w, a->rule);
	jsonw_kbool(w, "sensitive", a->sensitive);
	jsonw_kstr(w, "landlock", walls[a->wall]);
	jsonw_kstr(w, "permissions", a->permits ? denial_errno_name(-a->permits, room) : NULL);
	jsonw_kstr(w, "change", a->change);
	jsonw_kstr(w, "stuck", a->stuck);
	jsonw_end_object(w);
}

void why_write(const struct why *w, struct jsonw *out)
{
	jsonw_kpath(out, "path", w->path);
	jsonw_kbool(out, "exists", w->exists);
	jsonw_key(out, "answers");
	jsonw_begin_array(out);
	for (size_t i = 0; i < w->len; i++)
		write_answer(out, &w->answer[i]);
	jsonw_end_array(out);
}
