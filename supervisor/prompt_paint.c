#include "supervisor/prompt_paint.h"

#include "supervisor/escape.h"
#include "supervisor/promptkeys.h"
#include "supervisor/promptline.h"
#include "supervisor/prose.h"
#include "supervisor/stack.h"
#include "tracer/util.h"

#include <string.h>

#define ROOM_MIN 5 /* lines between head and keys; below that both are made short */

/* ---- the parts of a question ---- */

static void paint_head(struct buf *out, const struct question *q, const struct prompt_view *v)
{
	struct buf text = {0};
	promptline_bold(out, v, "warder:");
	buf_add_char(out, ' ');
	escape_add_fit(&text, promptline_program(q), 24);
	if (q->is_rerun) {
		buf_add_str(&text, ": run it again?");
	} else {
		buf_add_str(&text, " asks to ");
		promptline_add_access(&text, q->access);
	}
	if (v->waiting > 1)
		buf_addf(&text, "  (%zu questions wait)", v->waiting);
	prose_add(out, buf_str(&text), strlen("warder: "), promptline_width(v));
	buf_free(&text);
}

static void paint_command(struct buf *out, const struct question *q, const struct prompt_view *v)
{
	struct buf raw = {0};
	for (char **arg = q->argv; arg && *arg; arg++) {
		if (raw.len)
			buf_add_char(&raw, ' ');
		promptline_add_argument(&raw, *arg);
	}
	if (raw.len)
		promptline_add_field(out, "command", buf_str(&raw), v);
	buf_free(&raw);
}

static void paint_who(struct buf *out, const struct question *q, const struct prompt_view *v)
{
	struct buf raw = {0};
	if (q->exe)
		promptline_add_path(&raw, q->exe, v);
	if (q->pid > 0)
		buf_addf(&raw, "%s(pid %d)", raw.len ? " " : "", (int)q->pid);
	promptline_add_field(out, "program", buf_str(&raw), v);
	buf_free(&raw);
	paint_command(out, q, v);
	if (v->details && q->cwd)
		promptline_add_path_field(out, "in", q->cwd, v);
}

static void paint_call(struct buf *out, const struct question *q, const struct prompt_view *v)
{
	struct buf raw = {0};
	buf_addf(&raw, "%s, %s", q->call, q->exists ? "exists" : "does not exist yet");
	promptline_add_field(out, "call", buf_str(&raw), v);
	buf_free(&raw);
}

static void paint_path(struct buf *out, const struct question *q, const struct prompt_view *v)
{
	promptline_add_path_field(out, "path", q->path, v);
	if (q->path2)
		promptline_add_path_field(out, "and path", q->path2, v);
}

/* On a low screen the paths are on every page: a line each, or two for one where there is room. */
static void paint_path_short(struct buf *out, const struct question *q, size_t room,
			     const struct prompt_view *v)
{
	const char *const paths[] = {q->path, q->path2};
	const size_t lines = !q->path2 && room >= ROOM_MIN ? 2 : 1, width = promptline_width(v) - 2;
	for (size_t i = 0; i < ARRAY_LEN(paths) && paths[i]; i++) {
		struct buf raw = {0}, text = {0};
		promptline_add_path(&raw, paths[i], v);
		escape_add_fit(&text, buf_str(&raw), width * lines);
		buf_add_str(out, "  ");
		promptline_add_wrapped(out, buf_str(&text), 2, promptline_width(v));
		buf_free(&raw);
		buf_free(&text);
	}
}

/* All that is to be known of what is asked for, beside its path. */
static void paint_what(struct buf *out, const struct question *q, const struct prompt_view *v)
{
	if (q->below) {
		struct buf all = {0};
		promptline_add_path(&all, q->below, v);
		buf_add_str(&all, " and below: asked about often; a no is for all of it");
		promptline_add_field(out, "and", buf_str(&all), v);
		buf_free(&all);
	}
	if (q->given && (v->details || !q->path2))
		promptline_add_field(out, "given as", q->given, v);
	if (q->note) {
		struct buf text = {0};
		escape_add_str(&text, q->note);
		promptline_add_label(out, "because");
		prose_add(out, buf_str(&text), 2 + PROMPTLINE_LABEL, promptline_width(v));
		buf_free(&text);
	}
	if (q->sensitive) {
		buf_add_str(out, "  ");
		promptline_warn(out, v, "sensitive:");
		prose_add(out, " secrets or settings are kept here", 2 + strlen("sensitive:"),
			  promptline_width(v));
	}
}

/* The innermost first, each called by the next. */
static void paint_stack(struct buf *out, const struct prompt_view *v)
{
	const struct unwind_stack *s = v->stack;
	if (!v->details)
		return;
	if (!s) {
		promptline_add_field(out, "from", "not known", v);
		return;
	}
	size_t shown = s->len < STACK_FRAMES_SHOWN ? s->len : STACK_FRAMES_SHOWN;
	for (size_t i = 0; i < shown; i++) {
		struct buf raw = {0};
		buf_add_str(&raw, i ? "← " : "");
		stack_add_frame(&raw, &s->frame[i]);
		promptline_add_field(out, i ? "" : "from", buf_str(&raw), v);
		buf_free(&raw);
	}
	const char *end = stack_end_words(shown < s->len ? UNWIND_MORE : s->end);
	if (!end)
		return;
	struct buf text = {0};
	buf_addf(&text, "← %s", end);
	promptline_add_label(out, "");
	prose_add(out, buf_str(&text), 2 + PROMPTLINE_LABEL, promptline_width(v));
	buf_free(&text);
}

static void add_scope_words(struct buf *raw, const struct question *q, const struct scope *s,
			    const struct prompt_view *v)
{
	switch (s->kind) {
	case SCOPE_EXACT:
		buf_add_str(raw, s->path2 ? "these two paths only" : "this path only");
		return;
	case SCOPE_TREE:
		if (!q->path || strcmp(s->path, q->path))
			promptline_add_path(raw, s->path, v);
		else
			buf_add_str(raw, "this directory");
		buf_add_str(raw, " and below");
		return;
	case SCOPE_PRESET:
		buf_add_str(raw, "the preset ");
		buf_add_str(raw, s->path);
		return;
	}
}

static void add_surplus(struct buf *out, const struct scope *s)
{
	if (s->surplus_unknown)
		buf_add_str(out, "what else is there is not known here");
	else if (!s->surplus)
		buf_add_str(out, "opens no other file");
	else
		buf_addf(out, "opens %s%ju other file%s", s->surplus_more ? "at least " : "",
			 (uintmax_t)s->surplus, s->surplus == 1 ? "" : "s");
}

static void paint_scope(struct buf *out, const struct question *q, unsigned i,
			const struct prompt_view *v)
{
	const struct scope *s = &q->scopes.item[i];
	const size_t col = 6;
	struct buf raw = {0}, text = {0};
	buf_addf(out, "  %c %u ", i == v->scope ? '>' : ' ', i + 1);
	add_scope_words(&raw, q, s, v);
	if (v->details)
		escape_add_str(&text, buf_str(&raw));
	else
		escape_add_fit(&text, buf_str(&raw), (promptline_width(v) - col) * 2);
	buf_add_str(&text, ": ");
	promptline_add_access(&text, s->access);
	buf_add_str(&text, "; ");
	add_surplus(&text, s);
	if (s->sensitive)
		buf_add_str(&text, ", sensitive");
	prose_add(out, buf_str(&text), col, promptline_width(v));
	buf_free(&raw);
	buf_free(&text);
}

/*
 * What "once" is about where scope i is marked: never more than was asked for, and of what was
 * asked about often the directory (answer_scope()).
 */
static unsigned once_scope(const struct question *q, unsigned i)
{
	if (q->scopes.item[i].kind == SCOPE_EXACT)
		return i;
	return q->below && i >= q->marked ? q->marked : 0;
}

/* Said while the mark stands on more than that, before anybody answers. */
static void paint_once(struct buf *out, const struct question *q, const struct prompt_view *v)
{
	unsigned once = once_scope(q, v->scope);
	struct buf raw = {0}, text = {0};
	if (once == v->scope)
		return;
	if (q->scopes.item[once].kind == SCOPE_EXACT)
		buf_add_str(&raw, q->path2 ? "these two paths only" : "this path only");
	else
		add_scope_words(&raw, q, &q->scopes.item[once], v);
	escape_add_fit(&text, buf_str(&raw), promptline_width(v));
	buf_addf(&text, "; what is marked is for session%s", q->no_saving ? "" : " and always");
	promptline_add_label(out, "once");
	prose_add(out, buf_str(&text), 2 + PROMPTLINE_LABEL, promptline_width(v));
	buf_free(&raw);
	buf_free(&text);
}

/* A scope of two paths has a rule for each, one a line. */
static void paint_rule(struct buf *out, const char *rule, const struct prompt_view *v)
{
	const char *label = "rule";
	while (rule && *rule) {
		size_t n = strcspn(rule, "\n");
		AUTOFREE
		char *one = strndup(rule, n);
		promptline_add_field(out, label, one ? one : "", v);
		rule += n + (rule[n] == '\n');
		label = "";
	}
}

static void paint_scopes(struct buf *out, const struct question *q, const struct prompt_view *v)
{
	for (unsigned i = 0; i < q->scopes.len; i++)
		paint_scope(out, q, i, v);
	if (v->scope >= q->scopes.len)
		return;
	paint_rule(out, q->scopes.item[v->scope].rule, v);
	paint_once(out, q, v);
}

/* What a rerun would meet, one thing a line. */
static void paint_text(struct buf *out, const struct question *q, const struct prompt_view *v)
{
	const char *line = q->text ? q->text : "";
	size_t shown = 0;
	while (*line && (v->details || shown < 10)) {
		size_t n = strcspn(line, "\n");
		AUTOFREE
		char *one = strndup(line, n);
		buf_add_str(out, "  ");
		promptline_add_value(out, one ? one : "", 2, v);
		line += n + (line[n] == '\n');
		shown++;
	}
	if (*line)
		buf_add_str(out, "  ... more: d\n");
}

static void paint_others(struct buf *out, const struct prompt_view *v)
{
	size_t shown = 0;
	for (; shown < PROMPT_OTHERS_SHOWN && v->others[shown]; shown++) {
		const struct question *q = v->others[shown];
		struct buf raw = {0}, text = {0};
		escape_add_fit(&text, promptline_program(q), 16);
		buf_add_str(&text, q->is_rerun ? ": run again" : ": ");
		promptline_add_access(&text, q->access);
		buf_add_char(&text, ' ');
		if (q->path)
			promptline_add_path(&raw, q->path, v);
		size_t col = 2 + PROMPTLINE_LABEL, used = col + escape_width(buf_str(&text));
		size_t room = promptline_width(v) > used + 8 ? promptline_width(v) - used
							     : promptline_width(v) - col;
		escape_add_fit(&text, buf_str(&raw), room);
		promptline_add_label(out, shown ? "" : v->group ? "and" : "waiting");
		promptline_add_wrapped(out, buf_str(&text), col, promptline_width(v));
		buf_free(&raw);
		buf_free(&text);
	}
	if (v->waiting > shown + 1)
		buf_addf(out, "  %*sand %zu more question%s\n", PROMPTLINE_LABEL, "",
			 v->waiting - shown - 1, v->waiting - shown == 2 ? "" : "s");
}

#define HELP_KEYS_WIDTH 20

static void paint_help(struct buf *out, const struct prompt_view *v)
{
	static const char *const rows[][2] = {
#define PROMPT_ROW(keys, words) {keys, words},
#include "supervisor/prompt_help.def"
#undef PROMPT_ROW
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t pad = HELP_KEYS_WIDTH - escape_width(rows[i][0]);
		buf_addf(out, "  %s%*s", rows[i][0], (int)pad, "");
		prose_add(out, rows[i][1], 2 + HELP_KEYS_WIDTH, promptline_width(v));
	}
}

static void paint_body(struct buf *out, const struct question *q, const struct prompt_view *v)
{
	if (v->help) {
		if (!q->is_rerun)
			paint_path(out, q, v);
		paint_help(out, v);
		return;
	}
	paint_who(out, q, v);
	if (q->is_rerun) {
		paint_text(out, q, v);
	} else {
		paint_call(out, q, v);
		paint_path(out, q, v);
		paint_what(out, q, v);
		paint_stack(out, v);
		paint_scopes(out, q, v);
	}
	paint_others(out, v);
}

/* In pages the first one has to do for an answer: what it is about, and what a yes opens. */
static void paint_in_pages(struct buf *out, const struct question *q, const struct prompt_view *v,
			   bool low)
{
	if (low && v->help) {
		paint_help(out, v);
		return;
	}
	if (v->help || q->is_rerun) {
		paint_body(out, q, v);
		return;
	}
	if (!low)
		paint_path(out, q, v);
	paint_what(out, q, v);
	paint_scopes(out, q, v);
	paint_who(out, q, v);
	paint_call(out, q, v);
	paint_stack(out, v);
	paint_others(out, v);
}

/* ---- pages ---- */

static size_t count_lines(const struct buf *text)
{
	size_t lines = 0;
	for (size_t i = 0; i < text->len; i++)
		lines += text->data[i] == '\n';
	return lines;
}

static void add_lines(struct buf *out, const struct buf *text, size_t from, size_t n)
{
	const char *s = buf_str(text), *end;
	for (size_t at = 0; *s && at < from + n; at++, s = end) {
		end = s + strcspn(s, "\n");
		end += *end == '\n';
		if (at >= from)
			buf_add(out, s, (size_t)(end - s));
	}
}

/* Of what is too long for the screen one page, between its head and its keys. Where there is no
 * room for it either, the head and the keys alone. */
static size_t add_page(struct buf *out, const struct buf *body, size_t room,
		       const struct prompt_view *v)
{
	if (room < 2)
		return 1;
	size_t lines = count_lines(body), each = room - 1;
	size_t pages = (lines + each - 1) / each;
	size_t page = v->page < pages ? v->page : pages - 1;
	char words[64];
	snprintf(words, sizeof words, "  page %zu of %zu: [space] on  [b] back", page + 1, pages);
	if (strlen(words) > promptline_width(v))
		snprintf(words, sizeof words, "  %zu of %zu: [space] [b]", page + 1, pages);
	add_lines(out, body, page * each, each);
	buf_addf(out, "%s\n", words);
	return pages;
}

/* What is left of the screen; the cursor stands on a line of its own below it all. */
static size_t room_between(const struct buf *head, const struct buf *foot,
			   const struct prompt_view *v)
{
	size_t taken = count_lines(head) + count_lines(foot) + 1;
	return v->rows > taken ? v->rows - taken : 0;
}

/* Takes them. */
static void put_parts(struct buf *out, struct buf *head, struct buf *body, struct buf *foot)
{
	struct buf *const parts[] = {head, body, foot};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		buf_add_str(out, buf_str(parts[i]));
		out->failed |= parts[i]->failed;
		buf_free(parts[i]);
	}
}

/* It does not fit: what it is about stays in sight, whatever page of the rest is shown. */
static size_t paint_page(struct buf *out, const struct question *q, const struct prompt_view *v)
{
	struct buf head = {0}, body = {0}, page = {0}, foot = {0};
	paint_head(&head, q, v);
	promptkeys_paint(&foot, q, v, false);
	bool low = room_between(&head, &foot, v) < ROOM_MIN;
	if (low) {
		buf_reset(&foot);
		promptkeys_paint(&foot, q, v, true);
		paint_path_short(&head, q, room_between(&head, &foot, v), v);
	}
	paint_in_pages(&body, q, v, low);
	size_t pages = add_page(&page, &body, room_between(&head, &foot, v), v);
	page.failed |= body.failed;
	buf_free(&body);
	put_parts(out, &head, &page, &foot);
	return pages;
}

size_t prompt_paint(struct buf *out, const struct question *q, const struct prompt_view *v)
{
	struct buf head = {0}, body = {0}, foot = {0};
	paint_head(&head, q, v);
	paint_body(&body, q, v);
	promptkeys_paint(&foot, q, v, false);
	bool fits = !v->rows || count_lines(&body) <= room_between(&head, &foot, v);
	if (fits) {
		put_parts(out, &head, &body, &foot);
		return 1;
	}
	buf_free(&head);
	buf_free(&body);
	buf_free(&foot);
	return paint_page(out, q, v);
}

/* ---- what stays ---- */

/* "Once" is about the path that was asked for, whatever scope is marked. */
static void add_subject(struct buf *text, const struct question *q, const struct scope *s,
			bool once, const struct prompt_view *v)
{
	struct buf raw = {0};
	if (q->is_rerun) {
		buf_add_str(text, "another run");
	} else {
		promptline_add_access(text, s ? s->access : q->access);
		buf_add_char(text, ' ');
		unsigned narrow = once && s ? once_scope(q, (unsigned)(s - q->scopes.item)) : 0;
		if (once)
			s = narrow ? &q->scopes.item[narrow] : NULL;
		if (s && s->kind == SCOPE_PRESET)
			buf_add_str(&raw, "preset ");
		promptline_add_path(&raw, s ? s->path : q->path, v);
		if (s && s->kind == SCOPE_TREE)
			buf_add_str(&raw, " and below");
	}
	if (v->details)
		escape_add_str(text, buf_str(&raw));
	else
		escape_add_fit(text, buf_str(&raw), promptline_width(v) * 2);
	buf_add_str(text, " (");
	escape_add_fit(text, promptline_program(q), 24);
	buf_add_char(text, ')');
	buf_free(&raw);
}

static void paint_line(struct buf *out, const char *verdict, const struct question *q,
		       const struct scope *s, bool once, const struct prompt_view *v)
{
	struct buf text = {0};
	promptline_bold(out, v, "warder:");
	buf_add_char(out, ' ');
	buf_addf(&text, "%s: ", verdict);
	add_subject(&text, q, s, once, v);
	prose_add(out, buf_str(&text), strlen("warder: "), promptline_width(v));
	buf_free(&text);
}

static const char *verdict_words(const struct answer *a)
{
	switch (a->lifetime) {
	case LIFETIME_ONCE:
		return a->allow ? "allowed once" : "refused";
	case LIFETIME_SESSION:
		return a->allow ? "allowed for the session" : "refused";
	case LIFETIME_ALWAYS:
		return a->allow ? "allowed always" : "refused always";
	}
	BUG(true);
}

void prompt_paint_record(struct buf *out, const struct question *q, const struct answer *a,
			 const struct prompt_view *v)
{
	const struct scope *s = NULL;
	if (a->allow && !q->is_rerun && a->scope < q->scopes.len)
		s = &q->scopes.item[a->scope];
	paint_line(out, verdict_words(a), q, s, a->lifetime == LIFETIME_ONCE, v);
}

void prompt_paint_late(struct buf *out, const struct question *q, const struct prompt_view *v)
{
	paint_line(out, "no answer in time, refused", q, NULL, false, v);
}
