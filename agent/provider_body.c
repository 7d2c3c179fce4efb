#include "agent/provider_body.h"

#include "tracer/util.h"

#include <errno.h>
#include <string.h>

/* ---- /chat/completions ---- */

static void write_chat(struct jsonw *w, const struct provider_request *req)
{
	jsonw_key(w, "messages");
	convo_write(w, req->convo, req->model);
	if (req->tools_json) {
		jsonw_key(w, "tools");
		jsonw_raw(w, req->tools_json, strlen(req->tools_json));
	}
	jsonw_kbool(w, "stream", true);
	jsonw_key(w, "stream_options");
	jsonw_begin_object(w);
	jsonw_kbool(w, "include_usage", true);
	jsonw_end_object(w);
}

/* ---- /responses ---- */

static void write_text(struct jsonw *w, const char *role, const char *text)
{
	jsonw_begin_object(w);
	jsonw_kstr(w, "role", role);
	jsonw_kstr(w, "content", text);
	jsonw_end_object(w);
}

static void write_call(struct jsonw *w, const struct convo_call *call)
{
	jsonw_begin_object(w);
	jsonw_kstr(w, "type", "function_call");
	jsonw_kstr(w, "call_id", call->id);
	jsonw_kstr(w, "name", call->name);
	convo_write_arguments(w, call->arguments);
	jsonw_end_object(w);
}

static void write_result(struct jsonw *w, const struct convo_message *m)
{
	jsonw_begin_object(w);
	jsonw_kstr(w, "type", "function_call_output");
	jsonw_kstr(w, "call_id", m->call_id);
	jsonw_kstr(w, "output", m->text);
	jsonw_end_object(w);
}

/* What of a message was written already. */
struct written {
	bool text;
	bool call[CONVO_CALLS_MAX];
};

static void write_named_call(struct jsonw *w, const struct convo_message *m, const char *id,
			     struct written *done)
{
	for (size_t i = 0; i < m->n_calls; i++)
		if (!done->call[i] && !strcmp(m->calls[i].id, id)) {
			write_call(w, &m->calls[i]);
			done->call[i] = true;
			return;
		}
}

static void write_own_text(struct jsonw *w, const struct convo_message *m, struct written *done)
{
	if (*m->text && !done->text)
		write_text(w, "assistant", m->text);
	done->text = true;
}

/* The items of an answer in the order they came, the reasoning among them. */
static void write_kept(struct jsonw *w, const struct convo_message *m, const struct json *kept,
		       struct written *done)
{
	const struct json *v = json_is_array(kept) ? json_first(kept) : NULL;
	for (; v; v = json_next(v)) {
		const char *id = json_str(v);
		if (!id)
			json_write(w, v);
		else if (*id)
			write_named_call(w, m, id, done);
		else
			write_own_text(w, m, done);
	}
}

static void write_answer(struct jsonw *w, const struct convo_message *m, const char *model)
{
	struct written done = {0};
	struct json *kept = convo_kept(m, model);
	write_kept(w, m, kept, &done);
	json_free(kept);
	write_own_text(w, m, &done);
	for (size_t i = 0; i < m->n_calls; i++)
		if (!done.call[i])
			write_call(w, &m->calls[i]);
}

static void write_input(struct jsonw *w, const struct convo *c, size_t from, const char *model)
{
	jsonw_key(w, "input");
	jsonw_begin_array(w);
	for (size_t i = from; i < c->n; i++) {
		const struct convo_message *m = &c->messages[i];
		switch (m->role) {
		case CONVO_SYSTEM:
			write_text(w, "system", m->text);
			break;
		case CONVO_USER:
			write_text(w, "user", m->text);
			break;
		case CONVO_ASSISTANT:
			write_answer(w, m, model);
			break;
		case CONVO_TOOL:
			write_result(w, m);
			break;
		}
	}
	jsonw_end_array(w);
}

/* {"type":"function","function":{...}}, with what is inside one step higher. */
static void write_tool(struct jsonw *w, const struct json *tool)
{
	const struct json *v = json_first(json_get(tool, "function"));
	jsonw_begin_object(w);
	jsonw_kstr(w, "type", "function");
	for (; v; v = json_next(v)) {
		jsonw_key(w, json_key(v));
		json_write(w, v);
	}
	jsonw_end_object(w);
}

static int write_tools(struct jsonw *w, const char *tools_json)
{
	struct json *tools = NULL;
	if (!tools_json)
		return 0;
	int err = json_parse(tools_json, strlen(tools_json), &tools, NULL);
	BUG(err == -EINVAL); /* it is our own */
	if (err)
		return err;
	jsonw_key(w, "tools");
	jsonw_begin_array(w);
	for (const struct json *v = json_first(tools); v; v = json_next(v))
		write_tool(w, v);
	jsonw_end_array(w);
	json_free(tools);
	return 0;
}

static int write_responses(struct jsonw *w, const struct provider_request *req)
{
	const struct convo *c = req->convo;
	bool led = c->n && c->messages[0].role == CONVO_SYSTEM;
	if (led)
		jsonw_kstr(w, "instructions", c->messages[0].text);
	write_input(w, c, led, req->model);
	jsonw_kbool(w, "stream", true);
	/* Nothing is to stay at the server, so the reasoning comes to us, sealed. */
	jsonw_kbool(w, "store", false);
	jsonw_key(w, "include");
	jsonw_begin_array(w);
	jsonw_str(w, "reasoning.encrypted_content");
	jsonw_end_array(w);
	return write_tools(w, req->tools_json);
}

int body_write(enum answer_dialect dialect, const struct provider_request *req, struct buf *out)
{
	struct jsonw w;
	int err = 0;
	jsonw_init(&w, out);
	jsonw_begin_object(&w);
	jsonw_kstr(&w, "model", req->model);
	if (dialect == ANSWER_RESPONSES)
		err = write_responses(&w, req);
	else
		write_chat(&w, req);
	jsonw_end_object(&w);
	return err ? err : buf_error(out);
}
