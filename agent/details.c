#include "agent/details.h"

#include "agent/show.h"
#include "supervisor/escape.h"
#include "tracer/util.h"

#include <string.h>

struct detail {
	char *name, *arguments, *answer; /* owned */
	char status[64];
};

static void detail_free(struct detail *d)
{
	if (!d)
		return;
	free(d->name);
	free(d->arguments);
	free(d->answer);
	free(d);
}

void details_release(struct details *d)
{
	for (size_t i = 0; i < DETAILS_MAX; i++)
		detail_free(d->item[i]);
	*d = (struct details){0};
}

size_t details_add(struct details *d, const struct convo_call *call,
		   const struct tool_result *result)
{
	struct detail *one = calloc(1, sizeof(*one));
	if (!one)
		return 0;
	one->name = strdup(call->name);
	one->arguments = strdup(call->arguments);
	one->answer = strdup(result->answer);
	memcpy(one->status, result->status, sizeof(one->status));
	if (!one->name || !one->arguments || !one->answer) {
		detail_free(one);
		return 0;
	}
	struct detail **at = &d->item[d->n++ % DETAILS_MAX];
	detail_free(*at);
	*at = one;
	return d->n;
}

/* ---- as people read it ---- */

static void add_indented(struct buf *out, const char *text, size_t indent)
{
	for (const char *line = text; *line;) {
		size_t n = strcspn(line, "\n");
		buf_addf(out, "%*s", (int)indent, "");
		show_text(out, line, n);
		buf_add_char(out, '\n');
		line += n + (line[n] == '\n');
	}
}

static void add_members_of(struct buf *out, const struct json *object, size_t indent);

static void add_value(struct buf *out, const char *key, const struct json *v, size_t indent)
{
	const char *text = json_str(v);
	struct buf raw = {0};
	struct jsonw w;
	buf_addf(out, "%*s", (int)indent, "");
	escape_add_str(out, key);
	buf_add_char(out, ':');
	if (json_is_object(v) || (text && strchr(text, '\n'))) {
		buf_add_char(out, '\n');
		if (text)
			add_indented(out, text, indent + 2);
		else
			add_members_of(out, v, indent + 2);
		return;
	}
	if (!text) {
		jsonw_init(&w, &raw);
		json_write(&w, v);
	}
	buf_add_char(out, ' ');
	escape_add_str(out, text ? text : buf_str(&raw));
	buf_add_char(out, '\n');
	buf_free(&raw);
}

/* An array's elements have its name, one by one. Objects in objects: as deep as tools answer. */
static void add_members_of(struct buf *out, const struct json *object, size_t indent)
{
	for (const struct json *v = json_first(object); v; v = json_next(v)) {
		if (!json_is_array(v) || !json_len(v) || json_str(json_first(v))) {
			add_value(out, json_key(v), v, indent);
			continue;
		}
		for (const struct json *one = json_first(v); one; one = json_next(one))
			add_value(out, json_key(v), one, indent);
	}
}

/* Or the text as it is where it is no object. */
static void add_members(struct buf *out, const char *json, size_t indent)
{
	struct json *root = NULL;
	if (json_parse(json, strlen(json), &root, NULL) || !json_is_object(root))
		add_indented(out, json, indent);
	else
		add_members_of(out, root, indent);
	json_free(root);
}

bool details_write(const struct details *d, size_t number, struct buf *out)
{
	if (!number)
		number = d->n;
	if (!number || number > d->n || number + DETAILS_MAX <= d->n)
		return false;
	const struct detail *one = d->item[(number - 1) % DETAILS_MAX];
	buf_addf(out, "%zu: ", number);
	escape_add_str(out, one->name);
	buf_addf(out, " [%s]\n", one->status);
	add_members(out, one->arguments, 2);
	buf_add_str(out, " answer\n");
	add_members(out, one->answer, 2);
	return true;
}
