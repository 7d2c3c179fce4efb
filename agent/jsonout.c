#include "agent/jsonout.h"

#include "agent/agent.h"
#include "agent/toolanswer.h"
#include "tracer/json.h"

#include <string.h>

static void put_line(struct jsonout *j, struct buf *line)
{
	buf_add_char(line, '\n');
	fwrite(buf_str(line), 1, line->len, j->out);
	fflush(j->out);
	buf_free(line);
}

/* {"event":NAME, … the caller goes on and ends with end_event(). */
static void begin_event(struct jsonw *w, struct buf *line, const char *name)
{
	*line = (struct buf){0};
	jsonw_init(w, line);
	jsonw_begin_object(w);
	jsonw_kstr(w, "event", name);
}

static void end_event(struct jsonout *j, struct jsonw *w)
{
	jsonw_end_object(w);
	put_line(j, w->out);
}

static void text_event(struct jsonout *j, const char *name, const struct buf *text)
{
	struct buf line;
	struct jsonw w;
	if (!text->len || !j->stream)
		return;
	begin_event(&w, &line, name);
	jsonw_key(&w, "text");
	jsonw_bytes(&w, text->data, text->len);
	end_event(j, &w);
}

static void on_text(void *arg, const char *bytes, size_t n)
{
	struct jsonout *j = arg;
	struct buf whole = {0};
	if (j->fresh)
		buf_reset(&j->result);
	j->fresh = false;
	show_whole(&j->words, bytes, n, &whole);
	buf_add(&j->result, whole.data, whole.len);
	text_event(j, "text", &whole);
	buf_free(&whole);
}

static void on_text_end(void *arg)
{
	struct jsonout *j = arg;
	struct buf rest = {0};
	show_end(&j->words, false, &rest);
	buf_add(&j->result, rest.data, rest.len);
	text_event(j, "text", &rest);
	buf_free(&rest);
	j->fresh = true;
}

static void on_tool_start(void *arg, const struct convo_call *call)
{
	struct jsonout *j = arg;
	struct buf line;
	struct jsonw w;
	if (!j->stream)
		return;
	begin_event(&w, &line, "tool");
	jsonw_kstr(&w, "id", call->id);
	jsonw_kstr(&w, "name", call->name);
	jsonw_kstr(&w, "arguments", call->arguments);
	end_event(j, &w);
}

static void on_output(void *arg, const char *bytes, size_t n)
{
	struct jsonout *j = arg;
	struct buf whole = {0};
	show_whole(&j->printed, bytes, n, &whole);
	text_event(j, "output", &whole);
	buf_free(&whole);
}

static void on_preview(void *arg, const char *diff, size_t n)
{
	const struct buf text = {.data = (char *)diff, .len = n};
	text_event(arg, "diff", &text);
}

static void on_tool_end(void *arg, const struct convo_call *call, const struct tool_result *result)
{
	struct jsonout *j = arg;
	struct buf line, rest = {0};
	struct jsonw w;
	show_end(&j->printed, false, &rest);
	text_event(j, "output", &rest);
	buf_free(&rest);
	if (!j->stream)
		return;
	begin_event(&w, &line, "tool_end");
	jsonw_kstr(&w, "id", call->id);
	jsonw_kstr(&w, "status", result->status);
	jsonw_key(&w, "answer");
	jsonw_raw(&w, result->answer, strlen(result->answer));
	end_event(j, &w);
}

static void on_note(void *arg, const char *line_)
{
	struct jsonout *j = arg;
	struct buf line;
	struct jsonw w;
	if (!j->stream)
		return;
	begin_event(&w, &line, "note");
	jsonw_kstr(&w, "text", line_);
	end_event(j, &w);
}

struct turn_sink jsonout_sink(struct jsonout *j)
{
	return (struct turn_sink){
		.arg = j,
		.text = on_text,
		.text_end = on_text_end,
		.tool_start = on_tool_start,
		.tool_end = on_tool_end,
		.note = on_note,
		.tool = {.arg = j, .output = on_output, .preview = on_preview, .note = on_note},
	};
}

static void write_tokens(struct jsonw *w, const char *key, int64_t n)
{
	jsonw_key(w, key);
	if (n < 0)
		jsonw_null(w);
	else
		jsonw_int(w, n);
}

static void write_usage(struct jsonw *w, const struct provider_usage *u)
{
	jsonw_key(w, "usage");
	jsonw_begin_object(w);
	write_tokens(w, "prompt_tokens", u->prompt);
	write_tokens(w, "cached_tokens", u->cached);
	write_tokens(w, "completion_tokens", u->completion);
	jsonw_end_object(w);
}

void jsonout_result(struct jsonout *j, const struct agent *a, const struct turn_result *result)
{
	struct buf line = {0};
	struct jsonw w;
	jsonw_init(&w, &line);
	jsonw_begin_object(&w);
	if (j->stream)
		jsonw_kstr(&w, "event", "result");
	jsonw_key(&w, "result");
	jsonw_bytes(&w, buf_str(&j->result), j->result.len);
	jsonw_kstr(&w, "end", turn_end_name(result->end));
	jsonw_kstr(&w, "error", result->words[0] ? result->words : NULL);
	jsonw_kstr(&w, "provider", a->provider->ops->name);
	jsonw_kstr(&w, "model", a->model);
	jsonw_kstr(&w, "session", a->log.id);
	jsonw_kint(&w, "steps", result->steps);
	jsonw_kint(&w, "tool_calls", result->tool_calls);
	jsonw_key(&w, "denials");
	jsonw_begin_array(&w);
	for (size_t i = 0; i < result->denials.len; i++)
		toolanswer_write_denial(&w, &result->denials.item[i], false);
	jsonw_end_array(&w);
	write_usage(&w, &result->usage);
	end_event(j, &w);
}

void jsonout_release(struct jsonout *j)
{
	buf_free(&j->result);
}
