#include "agent/provider_answer.h"

#include "agent/http.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

static int on_event(void *arg, const char *type, const char *data, size_t n);

void answer_init(struct answer *a, const struct provider_sink *sink)
{
	*a = (struct answer){.sink = sink};
	a->text.max = ANSWER_TEXT_MAX;
	sse_init(&a->sse, on_event, a, 0);
}

void answer_free(struct answer *a)
{
	for (size_t i = 0; i < a->n_calls; i++) {
		buf_free(&a->calls[i].id);
		buf_free(&a->calls[i].name);
		buf_free(&a->calls[i].arguments);
	}
	free(a->calls);
	buf_free(&a->text);
	buf_free(&a->plain);
	sse_free(&a->sse);
}

static int complain(struct answer *a, int err, const char *what, const char *bytes)
{
	snprintf(a->complaint, sizeof(a->complaint), "%s%.300s", what, bytes);
	return err;
}

/* ---- one piece ---- */

static int add_text(struct answer *a, const char *text)
{
	size_t n = text ? strlen(text) : 0;
	if (!n)
		return 0;
	buf_add(&a->text, text, n);
	int err = buf_error(&a->text);
	if (err)
		return err;
	a->shown = true;
	if (a->sink->on_text)
		a->sink->on_text(a->sink->arg, text, n);
	return 0;
}

static int add_content(struct answer *a, const struct json *content)
{
	int err = add_text(a, json_str(content));
	if (!json_is_array(content))
		return err;
	for (const struct json *p = json_first(content); p && !err; p = json_next(p))
		err = add_text(a, json_get_str(p, "text"));
	return err;
}

static bool filled(const char *s)
{
	return s && *s;
}

/* The call that a piece continues; NULL where the piece begins one. */
static struct answer_call *continued(struct answer *a, int64_t choice, const int64_t *index,
				     const char *id, const char *name)
{
	for (size_t i = a->n_calls; i-- > 0;) {
		struct answer_call *call = &a->calls[i];
		if (call->choice != choice || (index && call->index != *index))
			continue;
		/* Servers without indices send whole calls, some number them all 0. */
		bool another = filled(id) && call->id.len && strcmp(id, buf_str(&call->id)) != 0;
		if (filled(name) && (index ? another : true))
			return NULL;
		return call;
	}
	return NULL;
}

static struct answer_call *begin_call(struct answer *a, int64_t choice, int64_t index)
{
	struct answer_call *calls = realloc(a->calls, (a->n_calls + 1) * sizeof(*calls));
	if (!calls)
		return NULL;
	a->calls = calls;
	calls[a->n_calls] = (struct answer_call){.choice = choice, .index = index};
	calls[a->n_calls].arguments.max = ANSWER_TEXT_MAX;
	return &calls[a->n_calls++];
}

/* Names and ids come whole, once; what repeats them adds nothing. */
static void set_once(struct buf *b, const char *s)
{
	if (filled(s) && !b->len)
		buf_add_str(b, s);
}

static int add_call_piece(struct answer *a, int64_t choice, const struct json *piece)
{
	const struct json *function = json_get(piece, "function");
	const struct json *arguments = json_get(function, "arguments");
	const char *id = json_get_str(piece, "id");
	const char *name = json_get_str(function, "name");
	int64_t index = 0;
	bool has_index = json_get_int(piece, "index", &index);
	struct answer_call *call = continued(a, choice, has_index ? &index : NULL, id, name);
	if (!call && a->n_calls >= CONVO_CALLS_MAX)
		return complain(a, -E2BIG, "too many tool calls in one answer", "");
	if (!call)
		call = begin_call(a, choice, has_index ? index : -1);
	if (!call)
		return -ENOMEM;
	set_once(&call->id, id);
	set_once(&call->name, name);
	if (json_is_string(arguments)) {
		buf_add_str(&call->arguments, json_str(arguments));
	} else if (json_is_object(arguments)) {
		struct jsonw w;
		jsonw_init(&w, &call->arguments);
		json_write(&w, arguments);
	}
	int err = buf_error(&call->arguments);
	return err ? err : buf_error(call->name.failed ? &call->name : &call->id);
}

static int add_choice(struct answer *a, const struct json *choice, int64_t position)
{
	int64_t n = position;
	json_get_int(choice, "index", &n);
	const struct json *delta = json_get(choice, "delta");
	if (!json_is_object(delta))
		delta = json_get(choice, "message");
	int err = add_content(a, json_get(delta, "content"));
	if (!err)
		err = add_text(a, json_get_str(delta, "refusal"));
	const struct json *calls = json_get(delta, "tool_calls");
	const struct json *piece = json_is_array(calls) ? json_first(calls) : NULL;
	for (; piece && !err; piece = json_next(piece))
		err = add_call_piece(a, n, piece);
	const char *finish = json_get_str(choice, "finish_reason");
	bool telling = !strcmp(a->finish, "length") || !strcmp(a->finish, "content_filter");
	if (filled(finish) && !telling)
		snprintf(a->finish, sizeof(a->finish), "%s", finish);
	return err;
}

static void add_usage(struct answer *a, const struct json *v)
{
	struct provider_usage usage = {.prompt = -1, .cached = -1, .completion = -1};
	if (!json_is_object(v) || !a->sink->on_usage)
		return;
	json_get_int(v, "prompt_tokens", &usage.prompt);
	json_get_int(v, "completion_tokens", &usage.completion);
	json_get_int(json_get(v, "prompt_tokens_details"), "cached_tokens", &usage.cached);
	a->sink->on_usage(a->sink->arg, &usage);
}

/* {"error": {"message", "code", "type"} | "text"} in the place of an answer. */
static int add_error(struct answer *a, const struct json *v)
{
	static const char *const passing[] = {"overload", "rate", "timeout", "unavailable",
					      "server_error"};
	const char *message = json_is_string(v) ? json_str(v) : json_get_str(v, "message");
	const char *code = json_get_str(v, "code");
	const char *type = json_get_str(v, "type");
	for (size_t i = 0; i < ARRAY_LEN(passing); i++)
		if ((code && strstr(code, passing[i])) || (type && strstr(type, passing[i])))
			a->complaint_passes = true;
	return complain(a, -EIO, "", message ? message : code ? code : "no reason given");
}

static int add_piece(struct answer *a, const struct json *v)
{
	const struct json *error = json_get(v, "error");
	if (json_is_object(error) || json_is_string(error))
		return add_error(a, error);
	const struct json *choices = json_get(v, "choices");
	int err = 0;
	int64_t position = 0;
	const struct json *choice = json_is_array(choices) ? json_first(choices) : NULL;
	for (; choice && !err; choice = json_next(choice))
		err = add_choice(a, choice, position++);
	if (!err)
		add_usage(a, json_get(v, "usage"));
	return err;
}

static int on_event(void *arg, const char *type, const char *data, size_t n)
{
	struct answer *a = arg;
	struct json *v = NULL;
	if (!n)
		return 0; /* keeps the connection awake */
	if (!strcmp(data, "[DONE]")) {
		a->done = true;
		return HTTP_ENOUGH;
	}
	if (json_parse(data, n, &v, NULL) || !json_is_object(v)) {
		json_free(v);
		return complain(a, -EPROTO, "an event of the stream is no JSON object: ", data);
	}
	bool is_error = !strcmp(type, "error") && !json_get(v, "error");
	int err = is_error ? add_error(a, v) : add_piece(a, v);
	json_free(v);
	return err;
}

/* ---- the whole ---- */

static int tell_form(struct answer *a, const char *content_type)
{
	if (!strncasecmp(content_type, "text/event-stream", 17)) {
		a->form = ANSWER_STREAM;
		return 0;
	}
	const char *head = buf_str(&a->plain);
	head += strspn(head, " \t\r\n");
	if (!*head)
		return 0;
	if (*head == '{')
		a->form = ANSWER_PLAIN;
	else if (strchr(":deir\xef", *head)) /* a comment, a field, a byte order mark */
		a->form = ANSWER_STREAM;
	else
		return complain(a, -EPROTO, "the answer is no chat completion but ",
				*content_type ? content_type : "something else");
	return 0;
}

static int feed_sse(struct answer *a, const char *bytes, size_t n)
{
	int err = sse_feed(&a->sse, bytes, n);
	if (err == -EFBIG && !a->complaint[0])
		complain(a, err, "an event of the stream is too long", "");
	return err;
}

int answer_feed(struct answer *a, const char *content_type, const char *bytes, size_t n)
{
	if (a->done)
		return HTTP_ENOUGH;
	if (a->form == ANSWER_STREAM)
		return feed_sse(a, bytes, n);
	buf_add(&a->plain, bytes, n);
	int err = buf_error(&a->plain);
	if (err || a->form == ANSWER_PLAIN)
		return err;
	err = tell_form(a, content_type);
	if (err || a->form != ANSWER_STREAM)
		return err;
	err = feed_sse(a, buf_str(&a->plain), a->plain.len);
	buf_free(&a->plain);
	return err;
}

static int read_plain(struct answer *a)
{
	struct json *v = NULL;
	if (json_parse(buf_str(&a->plain), a->plain.len, &v, NULL))
		return complain(a, -ENODATA, "the answer is no whole JSON: ", buf_str(&a->plain));
	int err = add_piece(a, v);
	if (!err && !json_len(json_get(v, "choices")))
		err = complain(a, -EPROTO, "the answer has no \"choices\": ", buf_str(&a->plain));
	json_free(v);
	if (!err)
		a->done = true;
	return err;
}

bool answer_is_whole(const struct answer *a)
{
	return a->done || a->finish[0];
}

static void tell_end(const struct answer *a)
{
	const char *line = NULL;
	if (!strcmp(a->finish, "length"))
		line = "the answer was cut off at the model's length limit";
	else if (!strcmp(a->finish, "content_filter"))
		line = "the server's content filter cut the answer off";
	if (line && a->sink->on_status)
		a->sink->on_status(a->sink->arg, line);
}

static int make_message(struct answer *a, struct convo_message *ret)
{
	struct convo_message m = {.role = CONVO_ASSISTANT, .text = strdup(buf_str(&a->text))};
	int err = m.text ? 0 : -ENOMEM;
	for (size_t i = 0; i < a->n_calls && !err; i++) {
		const struct answer_call *call = &a->calls[i];
		err = convo_message_add_call(&m, buf_str(&call->id), buf_str(&call->name),
					     buf_str(&call->arguments));
		if (err == -EINVAL)
			err = complain(a, -EPROTO, "a tool call without a name", "");
	}
	if (err)
		convo_message_free(&m);
	else
		*ret = m;
	return err;
}

int answer_end(struct answer *a, struct convo_message *ret_message)
{
	int err = a->form == ANSWER_PLAIN && !a->done ? read_plain(a) : 0;
	if (err)
		return err;
	if (!answer_is_whole(a))
		return complain(a, -ENODATA, "the server ended its answer in the middle", "");
	if (!a->text.len && !a->n_calls && !strcmp(a->finish, "content_filter"))
		return complain(a, -EIO, "the server's content filter stopped the answer", "");
	err = make_message(a, ret_message);
	if (!err)
		tell_end(a);
	return err;
}
