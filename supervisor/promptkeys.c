#include "supervisor/promptkeys.h"

#include "supervisor/promptline.h"
#include "tracer/util.h"

#include <string.h>

enum shown { SHOW_ALWAYS, SHOW_SAVING, SHOW_MANY, SHOW_SCOPES, SHOW_HELP };

struct key {
	char key;
	enum prompt_action action;
	const char *label;
	enum shown shown;
};

static const struct key keys[] = {
#define PROMPT_KEY(key, action, label, shown) {key, PROMPT_##action, label, shown},
#include "supervisor/prompt_keys.def"
#undef PROMPT_KEY
};

enum prompt_action promptkeys_action(char key)
{
	if (key >= '1' && key <= '9')
		return PROMPT_SCOPE;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i].key == key)
			return keys[i].action;
	return PROMPT_NOTHING;
}

static bool is_shown(const struct key *k, const struct question *q, const struct prompt_view *v)
{
	switch (k->shown) {
	case SHOW_ALWAYS:
		return !q->is_rerun || k->action != PROMPT_SESSION;
	case SHOW_SAVING:
		return !q->no_saving && !q->is_rerun;
	case SHOW_MANY:
		return v->waiting > 1;
	case SHOW_SCOPES:
		return q->scopes.len > 1;
	case SHOW_HELP:
		return false;
	}
	BUG(true);
}

static void add_item(struct buf *out, size_t *at, const char *item, const struct prompt_view *v)
{
	size_t n = strlen(item);
	if (!*at) {
		buf_add_str(out, "  ");
		*at = 2;
	} else if (*at + 2 + n > promptline_width(v)) {
		buf_add_str(out, "\n  ");
		*at = 2;
	} else {
		buf_add_str(out, "  ");
		*at += 2;
	}
	buf_add_str(out, item);
	*at += n;
}

static void paint_keys(struct buf *out, const struct question *q, const struct prompt_view *v)
{
	char item[64];
	size_t at = 0;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct key *k = &keys[i];
		if (!is_shown(k, q, v))
			continue;
		if (k->action == PROMPT_SCOPE)
			snprintf(item, sizeof(item), "[1-%zu] %s", q->scopes.len, k->label);
		else
			snprintf(item, sizeof(item), "[%c] %s", k->key,
				 q->is_rerun && k->action == PROMPT_ONCE ? "yes" : k->label);
		add_item(out, &at, item, v);
	}
	buf_add_char(out, '\n');
	if (v->group)
		promptline_add_wrapped(
			out, "  The answer goes to all; the others get their narrowest scope.", 2,
			promptline_width(v));
}

/* One line: the others are in the help. */
static void paint_keys_short(struct buf *out, const struct question *q, const struct prompt_view *v)
{
	buf_addf(out, "  [y] %s  [n] no  [?] help\n", q->is_rerun ? "yes" : "once");
	if (v->group)
		buf_add_str(out, "  The answer goes to all.\n");
}

static size_t count_lines(const struct buf *text)
{
	size_t lines = 0;
	for (size_t i = 0; i < text->len; i++)
		lines += text->data[i] == '\n';
	return lines;
}

/* In the place of the keys, and as high: what stands above them is not to jump. */
static void paint_early(struct buf *out, size_t lines, const struct prompt_view *v)
{
	struct buf text = {0};
	promptline_add_wrapped(&text, "keys count once you pause typing", 2, promptline_width(v));
	if (text.len)
		text.data[--text.len] = '\0'; /* its line's end */
	buf_add_str(out, "  ");
	promptline_soft(out, v, buf_str(&text));
	size_t used = 1 + count_lines(&text);
	do
		buf_add_char(out, '\n');
	while (v->rows && used++ < lines);
	buf_free(&text);
}

void promptkeys_paint(struct buf *out, const struct question *q, const struct prompt_view *v,
		      bool low)
{
	struct buf text = {0};
	(low ? paint_keys_short : paint_keys)(&text, q, v);
	if (v->early)
		paint_early(out, count_lines(&text), v);
	else
		buf_add_str(out, buf_str(&text));
	out->failed |= text.failed;
	buf_free(&text);
}
