/*
 * tools: the table of the tools a model may call (tools.def), what derives from it, and the check
 * of a call's arguments. Nothing here acts or blocks.
 */
#pragma once

#include "tracer/buf.h"
#include "tracer/json.h"

#include <stdbool.h>
#include <stddef.h>

enum tool_id {
#define TOOL(NAME, ...) TOOL_##NAME,
#define PARAM(...)
#define END()
#include "agent/tools.def"
#undef TOOL
#undef PARAM
#undef END
	TOOL_COUNT,
};

enum tool_param_kind { TOOL_PARAM_TEXT, TOOL_PARAM_NUMBER };
enum tool_param_need { TOOL_PARAM_OPTIONAL, TOOL_PARAM_REQUIRED };

struct tool_param {
	const char *key; /* NULL: none */
	enum tool_param_kind kind;
	enum tool_param_need need;
	const char *help;
};

#define TOOL_PARAMS_MAX 6

/* A row; static. */
struct tool {
	enum tool_id id;
	const char *name;
	const char *help;
	struct tool_param params[TOOL_PARAMS_MAX + 1]; /* ends with a key of NULL */
};

/* Bytes of one call's arguments; more is answered as malformed. */
#define TOOLS_ARGUMENTS_MAX (8u << 20)

const struct tool *tools_at(enum tool_id id);
/* NULL: no tool has this name. */
const struct tool *tools_find(const char *name);
/* Append the "tools" array of the chat-completions form. */
void tools_write_json(struct buf *out);
/* The value of an object's key: the JSON schema of a tool's arguments. */
void tools_write_schema(struct jsonw *w, const struct tool *t);
/* Append "read_file(path, [start_line], [end_line])  help", a line a tool. */
void tools_write_help(struct buf *out);

/*
 * Read a call's arguments and hold them against the tool's parameters. 0 and *ret (an object the
 * caller frees; an optional null counts as absent), or -EINVAL and in *why a sentence for the
 * model.
 */
int tools_parse(const struct tool *t, const char *arguments, struct json **ret, struct buf *why);
/* For the model: which tools there are, where it named another. */
void tools_write_unknown(struct buf *out, const char *name);
/* Append the value of the argument that says best what a call is about (a path, a command), or "".
 */
void tools_write_gist(struct buf *out, const char *name, const char *arguments);
