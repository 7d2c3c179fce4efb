#include "agent/tools.h"

#include "tracer/util.h"

#include <errno.h>
#include <string.h>

static const struct tool table[TOOL_COUNT] = {
#define TOOL(NAME, word, text)                                                                     \
	[TOOL_##NAME] = {.id = TOOL_##NAME, .name = #word, .help = text, .params = {
#define PARAM(word, kind_, need_, text)                                                            \
	{.key = #word, .kind = TOOL_PARAM_##kind_, .need = TOOL_PARAM_##need_, .help = text},
#define END()                                                                                      \
	}                                                                                          \
	}                                                                                          \
	,
#include "agent/tools.def"
#undef TOOL
#undef PARAM
#undef END
};

const struct tool *tools_at(enum tool_id id)
{
	BUG(id >= TOOL_COUNT);
	return &table[id];
}

const struct tool *tools_find(const char *name)
{
	for (size_t i = 0; i < TOOL_COUNT; i++)
		if (!strcmp(table[i].name, name))
			return &table[i];
	return NULL;
}

/* ---- for the model ---- */

static void write_param(struct jsonw *w, const struct tool_param *p)
{
	jsonw_key(w, p->key);
	jsonw_begin_object(w);
	jsonw_kstr(w, "type", p->kind == TOOL_PARAM_TEXT ? "string" : "integer");
	if (p->kind == TOOL_PARAM_NUMBER)
		jsonw_kint(w, "minimum", 1);
	jsonw_kstr(w, "description", p->help);
	jsonw_end_object(w);
}

void tools_write_schema(struct jsonw *w, const struct tool *t)
{
	jsonw_begin_object(w);
	jsonw_kstr(w, "type", "object");
	jsonw_key(w, "properties");
	jsonw_begin_object(w);
	for (const struct tool_param *p = t->params; p->key; p++)
		write_param(w, p);
	jsonw_end_object(w);
	jsonw_key(w, "required");
	jsonw_begin_array(w);
	for (const struct tool_param *p = t->params; p->key; p++)
		if (p->need == TOOL_PARAM_REQUIRED)
			jsonw_str(w, p->key);
	jsonw_end_array(w);
	jsonw_kbool(w, "additionalProperties", false);
	jsonw_end_object(w);
}

static void write_tool(struct jsonw *w, const struct tool *t)
{
	jsonw_begin_object(w);
	jsonw_kstr(w, "type", "function");
	jsonw_key(w, "function");
	jsonw_begin_object(w);
	jsonw_kstr(w, "name", t->name);
	jsonw_kstr(w, "description", t->help);
	jsonw_key(w, "parameters");
	tools_write_schema(w, t);
	jsonw_end_object(w);
	jsonw_end_object(w);
}

void tools_write_json(struct buf *out)
{
	struct jsonw w;
	jsonw_init(&w, out);
	jsonw_begin_array(&w);
	for (size_t i = 0; i < TOOL_COUNT; i++)
		write_tool(&w, &table[i]);
	jsonw_end_array(&w);
}

/* "read_file(path, [start_line])" */
static void write_signature(struct buf *out, const struct tool *t)
{
	buf_addf(out, "%s(", t->name);
	for (const struct tool_param *p = t->params; p->key; p++)
		buf_addf(out, p->need == TOOL_PARAM_REQUIRED ? "%s%s" : "%s[%s]",
			 p == t->params ? "" : ", ", p->key);
	buf_add_char(out, ')');
}

void tools_write_help(struct buf *out)
{
	for (size_t i = 0; i < TOOL_COUNT; i++) {
		write_signature(out, &table[i]);
		buf_addf(out, "  %s\n", table[i].help);
	}
}

void tools_write_unknown(struct buf *out, const char *name)
{
	buf_addf(out, "There is no tool \"%s\". The tools are:", name);
	for (size_t i = 0; i < TOOL_COUNT; i++) {
		buf_add_str(out, i ? ", " : " ");
		write_signature(out, &table[i]);
	}
	buf_add_char(out, '.');
}

/* ---- the check of a call ---- */

/* An escaped NUL would silently end a C string. "\\u0000" in JSON text is a backslash and words. */
static bool has_escaped_nul(const char *text)
{
	for (const char *p = text; *p; p++) {
		if (*p != '\\')
			continue;
		if (!strncmp(p, "\\u0000", 6))
			return true;
		if (p[1])
			p++;
	}
	return false;
}

static const struct tool_param *find_param(const struct tool *t, const char *key)
{
	for (const struct tool_param *p = t->params; p->key; p++)
		if (!strcmp(p->key, key))
			return p;
	return NULL;
}

static bool is_null(const struct json *v)
{
	struct buf text = {0};
	struct jsonw w;
	jsonw_init(&w, &text);
	json_write(&w, v);
	bool null = !strcmp(buf_str(&text), "null");
	buf_free(&text);
	return null;
}

static int check_value(const struct tool *t, const struct tool_param *p, const struct json *v,
		       struct buf *why)
{
	int64_t n;
	if (p->kind == TOOL_PARAM_TEXT && json_is_string(v))
		return 0;
	if (p->kind == TOOL_PARAM_NUMBER && json_int(v, &n) && n >= 1)
		return 0;
	if (p->need == TOOL_PARAM_OPTIONAL && is_null(v))
		return 0;
	buf_addf(why, "%s: \"%s\" must be %s. Nothing was done.", t->name, p->key,
		 p->kind == TOOL_PARAM_TEXT ? "a string" : "a whole number, at least 1");
	return -EINVAL;
}

static int check_required(const struct tool *t, const struct json *args, struct buf *why)
{
	for (const struct tool_param *p = t->params; p->key; p++) {
		if (p->need != TOOL_PARAM_REQUIRED || json_get(args, p->key))
			continue;
		buf_addf(why, "%s: \"%s\" is missing. Usage: ", t->name, p->key);
		write_signature(why, t);
		buf_add_str(why, ". Nothing was done.");
		return -EINVAL;
	}
	return 0;
}

static int check(const struct tool *t, const struct json *args, struct buf *why)
{
	if (!json_is_object(args)) {
		buf_addf(why, "%s: the arguments must be one JSON object. Nothing was done.",
			 t->name);
		return -EINVAL;
	}
	for (const struct json *v = json_first(args); v; v = json_next(v)) {
		const struct tool_param *p = find_param(t, json_key(v));
		if (!p) {
			buf_addf(why, "%s has no parameter \"%s\". Usage: ", t->name, json_key(v));
			write_signature(why, t);
			buf_add_str(why, ". Nothing was done.");
			return -EINVAL;
		}
		int err = check_value(t, p, v, why);
		if (err)
			return err;
	}
	return check_required(t, args, why);
}

int tools_parse(const struct tool *t, const char *arguments, struct json **ret, struct buf *why)
{
	size_t n = strlen(arguments), at = 0;
	if (n > TOOLS_ARGUMENTS_MAX) {
		buf_addf(why, "%s: the arguments are longer than %u bytes. Nothing was done.",
			 t->name, TOOLS_ARGUMENTS_MAX);
		return -EINVAL;
	}
	if (has_escaped_nul(arguments)) {
		buf_addf(why, "%s: a NUL character can't be part of an argument. Nothing was done.",
			 t->name);
		return -EINVAL;
	}
	struct json *args = NULL;
	int err = json_parse(arguments, n, &args, &at);
	if (err) {
		buf_addf(why,
			 "%s: the arguments are no valid JSON (at byte %zu of %zu). Nothing was "
			 "done; "
			 "send the call again with complete arguments.",
			 t->name, at, n);
		return -EINVAL;
	}
	err = check(t, args, why);
	if (err) {
		json_free(args);
		return err;
	}
	*ret = args;
	return 0;
}

void tools_write_gist(struct buf *out, const char *name, const char *arguments)
{
	const struct tool *t = tools_find(name);
	struct json *args = NULL;
	if (!t || json_parse(arguments, strlen(arguments), &args, NULL))
		return;
	const char *value = json_get_str(args, t->params[0].key);
	buf_add_str(out, value ? value : "");
	json_free(args);
}
