#include "agent/provider_answer.h"

#include "tracer/util.h"

#include <errno.h>
#include <string.h>

/*
 * The events of /responses. Only what is complete counts, beside the text's deltas: behind Copilot
 * an item's id changes with every event, and the deltas of arguments may be padded.
 */

static int place(struct answer *a, const char *json, size_t n)
{
	if (a->kept.len)
		buf_add_char(&a->kept, ',');
	buf_add(&a->kept, json, n);
	return buf_error(&a->kept);
}

/* Where in the order of the items a call or the text (id "") stands. */
static int place_id(struct answer *a, const char *id)
{
	struct buf text = {0};
	struct jsonw w;
	jsonw_init(&w, &text);
	jsonw_str(&w, id);
	int err = buf_error(&text);
	err = err ?: place(a, buf_str(&text), text.len);
	buf_free(&text);
	return err;
}

/* A reasoning item without its seal can't be given back: the server keeps none of it. */
static int add_reasoning(struct answer *a, const struct json *item)
{
	const char *sealed = json_get_str(item, "encrypted_content");
	const struct json *summary = json_get(item, "summary");
	struct buf text = {.max = ANSWER_TEXT_MAX};
	struct jsonw w;
	if (!sealed || !*sealed)
		return 0;
	jsonw_init(&w, &text);
	jsonw_begin_object(&w);
	jsonw_kstr(&w, "type", "reasoning");
	jsonw_key(&w, "summary");
	if (json_is_array(summary))
		json_write(&w, summary);
	else
		jsonw_raw(&w, "[]", 2);
	jsonw_kstr(&w, "encrypted_content", sealed);
	jsonw_end_object(&w);
	int err = buf_error(&text);
	err = err ?: place(a, buf_str(&text), text.len);
	buf_free(&text);
	a->reasoned = true;
	return err;
}

static int add_call(struct answer *a, const struct json *item)
{
	const char *id = json_get_str(item, "call_id");
	const char *name = json_get_str(item, "name");
	int err = 0;
	struct answer_call *call = answer_begin_call(a, 0, (int64_t)a->n_calls, &err);
	if (!call)
		return err;
	buf_add_str(&call->id, id ? id : "");
	buf_add_str(&call->name, name ? name : "");
	err = answer_add_arguments(call, json_get(item, "arguments"));
	err = err ?: buf_error(call->name.failed ? &call->name : &call->id);
	return err || !id ? err : place_id(a, id);
}

/* The text of a message that came without deltas. */
static int add_message(struct answer *a, const struct json *item)
{
	const struct json *content = json_get(item, "content");
	const struct json *p = json_is_array(content) ? json_first(content) : NULL;
	int err = a->text_kept ? 0 : place_id(a, "");
	a->text_kept = true;
	for (; p && !err && !a->item_text; p = json_next(p)) {
		err = answer_add_text(a, json_get_str(p, "text"));
		err = err ?: answer_add_text(a, json_get_str(p, "refusal"));
	}
	a->item_text = 0;
	return err;
}

static int add_item(struct answer *a, const struct json *item)
{
	const char *type = json_get_str(item, "type");
	if (!type)
		return 0;
	if (!strcmp(type, "message"))
		return add_message(a, item);
	if (!strcmp(type, "function_call"))
		return add_call(a, item);
	return strcmp(type, "reasoning") ? 0 : add_reasoning(a, item);
}

static void add_usage(struct answer *a, const struct json *v)
{
	struct provider_usage usage = {.prompt = -1, .cached = -1, .completion = -1};
	if (!json_is_object(v))
		return;
	json_get_int(v, "input_tokens", &usage.prompt);
	json_get_int(v, "output_tokens", &usage.completion);
	json_get_int(json_get(v, "input_tokens_details"), "cached_tokens", &usage.cached);
	answer_add_usage(a, &usage);
}

static const char *finish_of(const struct answer *a, const struct json *response)
{
	const char *reason = json_get_str(json_get(response, "incomplete_details"), "reason");
	const char *status = json_get_str(response, "status");
	if (reason && !strcmp(reason, "content_filter"))
		return "content_filter";
	if (reason || (status && !strcmp(status, "incomplete")))
		return "length";
	return a->n_calls ? "tool_calls" : "stop";
}

/* The whole response, at the end of the stream or instead of one. */
static int add_response(struct answer *a, const struct json *response)
{
	const struct json *error = json_get(response, "error");
	const struct json *output = json_get(response, "output");
	const char *status = json_get_str(response, "status");
	int err = 0;
	if (json_is_object(error) || json_is_string(error) || (status && !strcmp(status, "failed")))
		return answer_add_error(a, error);
	/* Items that came by themselves are not taken twice. */
	bool have = a->text.len || a->n_calls || a->kept.len;
	const struct json *item = json_is_array(output) && !have ? json_first(output) : NULL;
	for (; item && !err; item = json_next(item))
		err = add_item(a, item);
	if (err)
		return err;
	add_usage(a, json_get(response, "usage"));
	answer_set_finish(a, finish_of(a, response));
	a->done = true;
	return 0;
}

static int add_delta(struct answer *a, const struct json *v)
{
	const char *delta = json_get_str(v, "delta");
	a->item_text += delta ? strlen(delta) : 0;
	return answer_add_text(a, delta);
}

static int add_failure(struct answer *a, const struct json *v)
{
	return answer_add_error(a, json_get(json_get(v, "response"), "error"));
}

static int add_done_item(struct answer *a, const struct json *v)
{
	return add_item(a, json_get(v, "item"));
}

static int add_end(struct answer *a, const struct json *v)
{
	return add_response(a, json_get(v, "response"));
}

int answer_responses_add(struct answer *a, const char *type, const struct json *v)
{
	static const struct {
		const char *type;
		int (*add)(struct answer *a, const struct json *v);
	} events[] = {
		{"response.output_text.delta", add_delta},
		{"response.refusal.delta", add_delta},
		{"response.output_item.done", add_done_item},
		{"response.completed", add_end},
		{"response.incomplete", add_end},
		{"response.failed", add_failure},
		{"error", answer_add_error},
	};
	if (!type)
		return add_response(a, v);
	const char *named = json_get_str(v, "type");
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		if (!strcmp(named ? named : type, events[i].type))
			return events[i].add(a, v);
	return 0;
}
