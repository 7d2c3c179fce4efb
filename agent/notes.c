#include "agent/notes.h"

#include "tracer/util.h"

#include <stdio.h>
#include <string.h>

/* The child's answer: its text, in *ret_answer's; NULL: none could be read. */
static const char *read_text(const struct toolrun *r, const char *path, struct json **ret_answer)
{
	struct toolrun quiet = *r;
	struct buf text = {0};
	struct jsonw w;
	struct json *args = NULL;
	struct tool_result result = {0};
	const struct toolrun_sink nobody = {0};
	quiet.mode = ENGINE_REPORT;
	quiet.yes = false;
	quiet.events = quiet.answers = -1;
	jsonw_init(&w, &text);
	jsonw_begin_object(&w);
	jsonw_kstr(&w, "path", path);
	jsonw_end_object(&w);
	if (!json_parse(buf_str(&text), text.len, &args, NULL) &&
	    !toolrun_call(&quiet, tools_at(TOOL_READ_FILE), args, &nobody, &result))
		json_parse(result.answer, strlen(result.answer), ret_answer, NULL);
	json_free(args);
	tool_result_release(&result);
	buf_free(&text);
	return json_get_str(*ret_answer, "content");
}

static void add(const struct toolrun *r, const char *dir, struct buf *out,
		const struct turn_sink *sink)
{
	struct json *answer = NULL;
	struct buf line = {0};
	AUTOFREE
	char *path = NULL;
	if (asprintf(&path, "%s/AGENTS.md", dir) < 0) {
		path = NULL;
		return;
	}
	const char *text = read_text(r, path, &answer);
	if (text && *text) {
		buf_addf(out, "\nFrom %s, the project's words to every agent:\n\n%s\n", path, text);
		buf_addf(&line, "read %s", path);
		if (sink->note)
			sink->note(sink->arg, buf_str(&line));
	}
	buf_free(&line);
	json_free(answer);
}

void notes_read(const struct toolrun *r, const char *project, struct buf *out,
		const struct turn_sink *sink)
{
	add(r, project, out, sink);
	if (strcmp(project, r->cwd) != 0)
		add(r, r->cwd, out, sink);
}
