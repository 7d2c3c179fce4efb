#include "tests/support/mock_stream.h"

#include <stdio.h>
#include <string.h>

#define PIECE 7 /* bytes of text or arguments in one event: words and characters are cut */

/* ---- /chat/completions ---- */

static void begin_event(struct jsonw *w, struct buf *out, int choice)
{
	buf_add_str(out, "data: ");
	jsonw_init(w, out);
	jsonw_begin_object(w);
	jsonw_kstr(w, "id", "chatcmpl-mock");
	jsonw_key(w, "choices");
	jsonw_begin_array(w);
	jsonw_begin_object(w);
	jsonw_kint(w, "index", choice);
	jsonw_key(w, "delta");
	jsonw_begin_object(w);
}

static void end_event(struct jsonw *w, struct buf *out, const char *finish)
{
	jsonw_end_object(w);
	jsonw_kstr(w, "finish_reason", finish);
	jsonw_end_object(w);
	jsonw_end_array(w);
	jsonw_end_object(w);
	buf_add_str(out, "\n\n");
}

/* The next piece of s from *at on, whole characters. */
static size_t piece_len(const char *s, size_t at)
{
	size_t n = 0;
	while (s[at + n] && n < PIECE) {
		size_t len = json_utf8_len(s + at + n, strlen(s + at + n));
		n += len ? len : 1;
	}
	return n;
}

static void stream_text(struct buf *out, const char *text)
{
	struct jsonw w;
	for (size_t at = 0, n; text && text[at]; at += n) {
		n = piece_len(text, at);
		begin_event(&w, out, 0);
		jsonw_key(&w, "content");
		jsonw_bytes(&w, text + at, n);
		end_event(&w, out, NULL);
	}
}

static void stream_call_piece(struct buf *out, const struct json *call, int index, const char *args,
			      size_t at, size_t n)
{
	struct jsonw w;
	const struct json *function = json_get(call, "function");
	begin_event(&w, out, 1); /* as Claude models do: text in one choice, calls in another */
	jsonw_key(&w, "tool_calls");
	jsonw_begin_array(&w);
	jsonw_begin_object(&w);
	jsonw_kint(&w, "index", index);
	if (!at) {
		jsonw_kstr(&w, "id", json_get_str(call, "id"));
		jsonw_kstr(&w, "type", "function");
	}
	jsonw_key(&w, "function");
	jsonw_begin_object(&w);
	if (!at)
		jsonw_kstr(&w, "name", json_get_str(function, "name"));
	jsonw_key(&w, "arguments");
	jsonw_bytes(&w, args + at, n);
	jsonw_end_object(&w);
	jsonw_end_object(&w);
	jsonw_end_array(&w);
	end_event(&w, out, NULL);
}

static void stream_calls(struct buf *out, const struct json *calls)
{
	for (size_t i = 0; i < json_len(calls); i++) {
		const struct json *call = json_at(calls, i);
		const char *args = json_get_str(json_get(call, "function"), "arguments");
		size_t at = 0, n;
		if (!args)
			args = "";
		do {
			n = piece_len(args, at);
			stream_call_piece(out, call, (int)i, args, at, n);
			at += n;
		} while (args[at]);
	}
}

static void stream_reasoning(struct buf *out, const struct json *line)
{
	struct jsonw w;
	if (!json_get_str(line, "reasoning"))
		return;
	begin_event(&w, out, 0);
	jsonw_kstr(&w, "reasoning_text", "hmm");
	jsonw_kstr(&w, "reasoning_opaque", json_get_str(line, "reasoning"));
	end_event(&w, out, NULL);
}

static const char usage[] = "{\"prompt_tokens\":11,\"completion_tokens\":7,\"total_tokens\":18,"
			    "\"prompt_tokens_details\":{\"cached_tokens\":3}}";

static const char *finish_of(const struct json *line, const struct json *message)
{
	const char *given = json_get_str(line, "finish");
	if (given)
		return given;
	return json_len(json_get(message, "tool_calls")) ? "tool_calls" : "stop";
}

void mock_stream_chat(struct buf *out, const struct json *line, const struct json *message)
{
	struct jsonw w;
	buf_add_str(out, ": a comment\n\ndata: {\"choices\":[],\"prompt_filter_results\":[]}\n\n");
	stream_text(out, json_get_str(message, "content"));
	stream_calls(out, json_get(message, "tool_calls"));
	stream_reasoning(out, line);
	begin_event(&w, out, 0);
	end_event(&w, out, finish_of(line, message));
	buf_addf(out, "data: {\"choices\":[],\"usage\":%s}\n\ndata: [DONE]\n\n", usage);
}

void mock_stream_plain_chat(struct buf *out, const struct json *line, const struct json *message)
{
	struct jsonw w;
	jsonw_init(&w, out);
	jsonw_begin_object(&w);
	jsonw_key(&w, "choices");
	jsonw_begin_array(&w);
	jsonw_begin_object(&w);
	jsonw_kint(&w, "index", 0);
	jsonw_key(&w, "message");
	json_write(&w, message);
	jsonw_kstr(&w, "finish_reason", finish_of(line, message));
	jsonw_end_object(&w);
	jsonw_end_array(&w);
	jsonw_key(&w, "usage");
	jsonw_raw(&w, usage, sizeof(usage) - 1);
	jsonw_end_object(&w);
}

/* ---- /responses ---- */

static const char responses_usage[] =
	"{\"input_tokens\":11,\"output_tokens\":7,\"input_tokens_details\":{\"cached_tokens\":3}}";

/* As behind Copilot: another id each time. */
static void write_id(struct jsonw *w, struct buf *out)
{
	char id[32];
	snprintf(id, sizeof(id), "item_%zu", out->len);
	jsonw_kstr(w, "id", id);
}

static void begin_typed(struct jsonw *w, struct buf *out, const char *type)
{
	buf_addf(out, "event: %s\ndata: ", type);
	jsonw_init(w, out);
	jsonw_begin_object(w);
	jsonw_kstr(w, "type", type);
}

static void end_typed(struct jsonw *w, struct buf *out)
{
	jsonw_end_object(w);
	buf_add_str(out, "\n\n");
}

static void write_reasoning(struct jsonw *w, struct buf *out, const char *sealed)
{
	static const char summary[] = "[{\"type\":\"summary_text\",\"text\":\"hmm\"}]";
	jsonw_begin_object(w);
	jsonw_kstr(w, "type", "reasoning");
	write_id(w, out);
	jsonw_key(w, "summary");
	jsonw_raw(w, summary, sizeof(summary) - 1);
	jsonw_kstr(w, "encrypted_content", sealed);
	jsonw_kstr(w, "status", "completed");
	jsonw_end_object(w);
}

static void write_text(struct jsonw *w, struct buf *out, const char *text)
{
	jsonw_begin_object(w);
	jsonw_kstr(w, "type", "message");
	write_id(w, out);
	jsonw_kstr(w, "role", "assistant");
	jsonw_key(w, "content");
	jsonw_begin_array(w);
	jsonw_begin_object(w);
	jsonw_kstr(w, "type", "output_text");
	jsonw_kstr(w, "text", text);
	jsonw_end_object(w);
	jsonw_end_array(w);
	jsonw_end_object(w);
}

static void write_call(struct jsonw *w, struct buf *out, const struct json *call)
{
	const struct json *function = json_get(call, "function");
	jsonw_begin_object(w);
	jsonw_kstr(w, "type", "function_call");
	write_id(w, out);
	jsonw_kstr(w, "call_id", json_get_str(call, "id"));
	jsonw_kstr(w, "name", json_get_str(function, "name"));
	jsonw_kstr(w, "arguments", json_get_str(function, "arguments"));
	jsonw_end_object(w);
}

static void begin_item(struct jsonw *w, struct buf *out)
{
	begin_typed(w, out, "response.output_item.done");
	jsonw_key(w, "item");
}

static void stream_deltas(struct buf *out, const char *text)
{
	struct jsonw w;
	for (size_t at = 0, n; text[at]; at += n) {
		n = piece_len(text, at);
		begin_typed(&w, out, "response.output_text.delta");
		write_id(&w, out);
		jsonw_key(&w, "delta");
		jsonw_bytes(&w, text + at, n);
		end_typed(&w, out);
	}
}

static void stream_response_calls(struct buf *out, const struct json *calls)
{
	struct jsonw w;
	for (size_t i = 0; i < json_len(calls); i++) {
		begin_typed(&w, out, "response.function_call_arguments.delta");
		jsonw_kstr(&w, "delta", "padding, not to be used");
		end_typed(&w, out);
		begin_item(&w, out);
		write_call(&w, out, json_at(calls, i));
		end_typed(&w, out);
	}
}

static void write_end(struct jsonw *w, const struct json *line)
{
	const char *finish = json_get_str(line, "finish");
	jsonw_kstr(w, "status", finish ? "incomplete" : "completed");
	if (finish) {
		jsonw_key(w, "incomplete_details");
		jsonw_begin_object(w);
		jsonw_kstr(w, "reason", finish);
		jsonw_end_object(w);
	}
	jsonw_key(w, "usage");
	jsonw_raw(w, responses_usage, sizeof(responses_usage) - 1);
}

void mock_stream_responses(struct buf *out, const struct json *line, const struct json *message)
{
	struct jsonw w;
	const char *text = json_get_str(message, "content");
	const char *sealed = json_get_str(line, "reasoning");
	begin_typed(&w, out, "response.created");
	end_typed(&w, out);
	if (sealed) {
		begin_item(&w, out);
		write_reasoning(&w, out, sealed);
		end_typed(&w, out);
	}
	if (text && *text) {
		stream_deltas(out, text);
		begin_item(&w, out);
		write_text(&w, out, text);
		end_typed(&w, out);
	}
	stream_response_calls(out, json_get(message, "tool_calls"));
	begin_typed(&w, out,
		    json_get_str(line, "finish") ? "response.incomplete" : "response.completed");
	jsonw_key(&w, "response");
	jsonw_begin_object(&w);
	write_end(&w, line);
	jsonw_end_object(&w);
	end_typed(&w, out);
}

void mock_stream_plain_responses(struct buf *out, const struct json *line,
				 const struct json *message)
{
	struct jsonw w;
	const char *text = json_get_str(message, "content");
	const struct json *calls = json_get(message, "tool_calls");
	jsonw_init(&w, out);
	jsonw_begin_object(&w);
	jsonw_kstr(&w, "object", "response");
	jsonw_key(&w, "error");
	jsonw_null(&w);
	jsonw_key(&w, "output");
	jsonw_begin_array(&w);
	if (json_get_str(line, "reasoning"))
		write_reasoning(&w, out, json_get_str(line, "reasoning"));
	if (text && *text)
		write_text(&w, out, text);
	for (size_t i = 0; i < json_len(calls); i++)
		write_call(&w, out, json_at(calls, i));
	jsonw_end_array(&w);
	write_end(&w, line);
	jsonw_end_object(&w);
}

void mock_stream_events(struct buf *out, const struct json *events)
{
	struct jsonw w;
	for (size_t i = 0; i < json_len(events); i++) {
		const struct json *v = json_at(events, i);
		buf_add_str(out, "data: ");
		jsonw_init(&w, out);
		if (json_is_string(v))
			buf_add_str(out, json_str(v));
		else
			json_write(&w, v);
		buf_add_str(out, "\n\n");
	}
}
