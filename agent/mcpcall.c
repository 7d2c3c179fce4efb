/* Tool calls of an MCP client: listed, queued, run one at a time, answered, cancelled. */
#include "agent/interrupt.h"
#include "agent/mcp.h"
#include "agent/toolanswer.h"
#include "agent/tools.h"
#include "tracer/util.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { CALL_ENDED = -32000, INVALID_PARAMS = -32602, INTERNAL_ERROR = -32603 };

/* ---- tools/list ---- */

static bool only_reads(const struct tool *t)
{
	return t->id == TOOL_READ_FILE || t->id == TOOL_LIST_DIR;
}

static void write_tool(struct jsonw *w, const struct tool *t)
{
	jsonw_begin_object(w);
	jsonw_kstr(w, "name", t->name);
	jsonw_kstr(w, "description", t->help);
	jsonw_key(w, "inputSchema");
	tools_write_schema(w, t);
	jsonw_key(w, "annotations");
	jsonw_begin_object(w);
	jsonw_kbool(w, "readOnlyHint", only_reads(t));
	jsonw_kbool(w, "openWorldHint", t->id == TOOL_RUN_SHELL);
	jsonw_end_object(w);
	jsonw_end_object(w);
}

void mcpcall_list(struct mcp *s, const char *id)
{
	struct mcp_message m;
	mcp_begin_result(&m, id);
	jsonw_key(&m.w, "tools");
	jsonw_begin_array(&m.w);
	for (size_t i = 0; i < TOOL_COUNT; i++)
		write_tool(&m.w, tools_at((enum tool_id)i));
	jsonw_end_array(&m.w);
	jsonw_end_object(&m.w);
	mcp_send(s, &m);
}

/* ---- the queue ---- */

static void call_free(struct mcp_call *c)
{
	if (!c)
		return;
	free(c->id);
	free(c->token);
	free(c->name);
	free(c->arguments);
	free(c);
}

/* Owned; NULL: absent (or no memory, which costs the progress). */
static char *json_text(const struct json *v)
{
	struct buf text = {0};
	struct jsonw w;
	if (!v)
		return NULL;
	jsonw_init(&w, &text);
	json_write(&w, v);
	char *ret = buf_take(&text);
	buf_free(&text);
	return ret;
}

static struct mcp_call *make_call(const char *id, const char *name, const struct json *params)
{
	const struct json *arguments = json_get(params, "arguments");
	struct mcp_call *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->id = strdup(id);
	c->name = strdup(name);
	c->token = json_text(json_get(json_get(params, "_meta"), "progressToken"));
	c->arguments = arguments ? json_text(arguments) : strdup("{}");
	if (c->id && c->name && c->arguments)
		return c;
	call_free(c);
	return NULL;
}

void mcpcall_take(struct mcp *s, const char *id, const struct json *params, struct jsontext raw)
{
	const char *name = json_get_str(params, "name");
	struct buf words = {0};
	struct mcp_call *c = NULL;
	if (!name)
		mcp_error(s, id, INVALID_PARAMS, "\"name\": expected a tool's name");
	else if (jsontext_has_nul(raw))
		mcp_error(s, id, INVALID_PARAMS,
			  "no string with U+0000 in it can be given to a tool");
	else if (!tools_find(name)) {
		tools_write_unknown(&words, name);
		mcp_error(s, id, INVALID_PARAMS, buf_str(&words));
	} else if (s->queued >= MCP_QUEUE_MAX)
		mcp_error(s, id, INTERNAL_ERROR, "too many calls wait already");
	else if (!(c = make_call(id, name, params)))
		mcp_error(s, id, INTERNAL_ERROR, "not enough memory");
	buf_free(&words);
	if (!c)
		return;
	struct mcp_call **end = &s->queue;
	while (*end)
		end = &(*end)->next;
	*end = c;
	s->queued++;
}

static struct mcp_call *shift(struct mcp *s)
{
	struct mcp_call *c = s->queue;
	s->queue = c->next;
	s->queued--;
	return c;
}

/* ---- cancelling ---- */

/* The run notices it as a Ctrl-C, and ends the tree. */
static void end_running(struct mcp *s)
{
	s->running->cancelled = true;
	kill(getpid(), SIGINT);
}

void mcpcall_cancel(struct mcp *s, const char *id)
{
	if (s->running && !strcmp(s->running->id, id)) {
		end_running(s);
		return;
	}
	for (struct mcp_call **at = &s->queue; *at; at = &(*at)->next) {
		struct mcp_call *c = *at;
		if (strcmp(c->id, id) != 0)
			continue;
		*at = c->next;
		s->queued--;
		call_free(c);
		return;
	}
}

void mcpcall_end_all(struct mcp *s, const char *words)
{
	while (s->queue) {
		struct mcp_call *c = shift(s);
		if (words)
			mcp_error(s, c->id, CALL_ENDED, words);
		call_free(c);
	}
	if (!s->running || s->running->cancelled)
		return;
	s->running->ended = words != NULL;
	end_running(s);
}

/* ---- while it runs ---- */

void mcpcall_progress(struct mcp *s, const char *words)
{
	struct mcp_call *c = s->running;
	struct mcp_message m;
	if (!c || !c->token)
		return;
	mcp_begin(&m);
	jsonw_kstr(&m.w, "method", "notifications/progress");
	jsonw_key(&m.w, "params");
	jsonw_begin_object(&m.w);
	jsonw_key(&m.w, "progressToken");
	jsonw_raw(&m.w, c->token, strlen(c->token));
	jsonw_kint(&m.w, "progress", ++c->progress);
	jsonw_kstr(&m.w, "message", words);
	jsonw_end_object(&m.w);
	mcp_send(s, &m);
}

/* The last whole line of what came is enough to see that it goes on. */
static void on_output(void *arg, const char *bytes, size_t n)
{
	struct buf line = {0};
	while (n && (bytes[n - 1] == '\n' || bytes[n - 1] == '\r'))
		n--;
	const char *newline = n ? memrchr(bytes, '\n', n) : NULL;
	const char *from = newline ? newline + 1 : bytes;
	buf_add(&line, from, (size_t)(bytes + n - from));
	if (line.len)
		mcpcall_progress(arg, buf_str(&line));
	buf_free(&line);
}

static void on_preview(void *arg, const char *diff, size_t n)
{
	(void)n;
	mcpcall_progress(arg, diff);
}

static void on_asking(void *arg, bool open)
{
	if (open)
		mcpcall_progress(arg, "waiting for the user's answer");
}

/* ---- its answer ---- */

static void send_answer(struct mcp *s, const struct mcp_call *c, const struct tool_result *r)
{
	struct json *v = NULL;
	struct mcp_message m;
	bool parsed = !json_parse(r->answer, strlen(r->answer), &v, NULL);
	mcp_begin_result(&m, c->id);
	jsonw_key(&m.w, "content");
	jsonw_begin_array(&m.w);
	jsonw_begin_object(&m.w);
	jsonw_kstr(&m.w, "type", "text");
	jsonw_kstr(&m.w, "text", r->answer);
	jsonw_end_object(&m.w);
	jsonw_end_array(&m.w);
	if (parsed && s->structured) {
		jsonw_key(&m.w, "structuredContent");
		json_write(&m.w, v);
	}
	jsonw_kbool(&m.w, "isError", !parsed || json_get(v, "error"));
	jsonw_end_object(&m.w);
	json_free(v);
	mcp_send(s, &m);
}

/* 0, -ENOMEM; what can't be run is an answer. */
static int run(struct mcp *s, const struct mcp_call *c, struct tool_result *ret)
{
	const struct toolrun_sink sink = {
		.arg = s, .output = on_output, .preview = on_preview, .asking = on_asking};
	const struct tool *t = tools_find(c->name);
	struct json *args = NULL;
	struct buf why = {0};
	int err;
	if (tools_parse(t, c->arguments, &args, &why))
		err = toolanswer_refuse(buf_str(&why), ret);
	else if (!(err = mcpask_open(s)))
		err = toolrun_call(&s->tools, t, args, &sink, ret);
	mcpask_close(s);
	json_free(args);
	buf_free(&why);
	return err;
}

void mcpcall_run(struct mcp *s)
{
	struct mcp_call *c = shift(s);
	struct tool_result result = {0};
	s->running = c;
	int err = run(s, c, &result);
	s->running = NULL;
	if (err)
		mcp_error(s, c->id, INTERNAL_ERROR, strerror(-err));
	else if (c->ended)
		mcp_error(s, c->id, CALL_ENDED, "ended while it ran: the client closed stdin");
	else if (!c->cancelled)
		send_answer(s, c, &result);
	if (!interrupt_ending())
		interrupt_clear();
	tool_result_release(&result);
	call_free(c);
}
