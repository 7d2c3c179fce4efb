#include "agent/provider_answer.h"

#include "agent/http.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

static int on_event(void *arg, const char *type, const char *data, size_t n);

void answer_init(struct answer *a, enum answer_dialect dialect, const struct provider_sink *sink)
{
	*a = (struct answer){.sink = sink, .dialect = dialect};
	a->text.max = a->kept.max = a->thought.max = ANSWER_TEXT_MAX;
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
	buf_free(&a->kept);
	buf_free(&a->thought);
	sse_free(&a->sse);
}

int answer_complain(struct answer *a, int err, const char *what, const char *bytes)
{
	snprintf(a->complaint, sizeof(a->complaint), "%s%.300s", what, bytes);
	return err;
}

/* ---- what pieces are made of ---- */

int answer_add_text(struct answer *a, const char *text)
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

struct answer_call *answer_begin_call(struct answer *a, int64_t choice, int64_t index, int *ret_err)
{
	if (a->n_calls >= CONVO_CALLS_MAX) {
		*ret_err = answer_complain(a, -E2BIG, "too many tool calls in one answer", "");
		return NULL;
	}
	struct answer_call *calls = realloc(a->calls, (a->n_calls + 1) * sizeof(*calls));
	if (!calls) {
		*ret_err = -ENOMEM;
		return NULL;
	}
	a->calls = calls;
	calls[a->n_calls] = (struct answer_call){.choice = choice, .index = index};
	calls[a->n_calls].arguments.max = ANSWER_TEXT_MAX;
	return &calls[a->n_calls++];
}

int answer_add_arguments(struct answer_call *call, const struct json *arguments)
{
	if (json_is_string(arguments)) {
		buf_add_str(&call->arguments, json_str(arguments));
	} else if (json_is_object(arguments)) {
		struct jsonw w;
		jsonw_init(&w, &call->arguments);
		json_write(&w, arguments);
	}
	return buf_error(&call->arguments);
}

void answer_set_finish(struct answer *a, const char *finish)
{
	bool telling = !strcmp(a->finish, "length") || !strcmp(a->finish, "content_filter");
	if (finish && *finish && !telling)
		snprintf(a->finish, sizeof(a->finish), "%s", finish);
}

void answer_add_usage(struct answer *a, const struct provider_usage *usage)
{
	if (a->sink->on_usage)
		a->sink->on_usage(a->sink->arg, usage);
}

int answer_add_error(struct answer *a, const struct json *v)
{
	static const char *const passing[] = {"overload", "rate", "timeout", "unavailable",
					      "server_error"};
	const char *message = json_is_string(v) ? json_str(v) : json_get_str(v, "message");
	const char *code = json_get_str(v, "code");
	const char *type = json_get_str(v, "type");
	for (size_t i = 0; i < ARRAY_LEN(passing); i++)
		if ((code && strstr(code, passing[i])) || (type && strstr(type, passing[i])))
			a->complaint_passes = true;
	return answer_complain(a, -EIO, "", message ? message : code ? code : "no reason given");
}

static int add_piece(struct answer *a, const char *type, const struct json *v)
{
	const struct json *error = json_get(v, "error");
	if (json_is_object(error) || json_is_string(error))
		return answer_add_error(a, error);
	if (type && !strcmp(type, "error"))
		return answer_add_error(a, v);
	return a->dialect == ANSWER_RESPONSES ? answer_responses_add(a, type, v)
					      : answer_chat_add(a, type, v);
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
		return answer_complain(a, -EPROTO,
				       "an event of the stream is no JSON object: ", data);
	}
	int err = add_piece(a, type, v);
	json_free(v);
	return !err && a->done ? HTTP_ENOUGH : err;
}

/* ---- the whole ---- */

/* By its first character: what a proxy or a careless server says of the type may be wrong. */
static int tell_form(struct answer *a, const char *content_type)
{
	bool says_stream = !strncasecmp(content_type, "text/event-stream", 17);
	const char *head = buf_str(&a->plain);
	head += strspn(head, " \t\r\n");
	if (!*head)
		return 0; /* whatever is said: one and the same answer comes in any pieces */
	if (*head == '{')
		a->form = ANSWER_PLAIN;
	else if (*head == '<')
		return answer_complain(a, -EPROTO, "the answer is no model's but ",
				       says_stream || !*content_type ? "a web page" : content_type);
	else if (says_stream || strchr(":deir\xef", *head)) /* a comment, a field */
		a->form = ANSWER_STREAM;
	else
		return answer_complain(a, -EPROTO, "the answer is no model's but ",
				       *content_type ? content_type : "something else");
	return 0;
}

static int feed_sse(struct answer *a, const char *bytes, size_t n)
{
	int err = sse_feed(&a->sse, bytes, n);
	if (err == -EFBIG && !a->complaint[0])
		answer_complain(a, err, "an event of the stream is too long", "");
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
		return answer_complain(a, -ENODATA,
				       "the answer is no whole JSON: ", buf_str(&a->plain));
	const char *what = a->dialect == ANSWER_RESPONSES ? "output" : "choices";
	int err = add_piece(a, NULL, v);
	if (!err && !json_len(json_get(v, what))) {
		snprintf(a->complaint, sizeof(a->complaint), "the answer has no \"%s\": %.300s",
			 what, buf_str(&a->plain));
		err = -EPROTO;
	}
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

/* Into *ret (NULL: nothing is to be kept); 0 or -ENOMEM. */
static int make_kept(const struct answer *a, char **ret)
{
	struct buf out = {.max = 2 * ANSWER_TEXT_MAX};
	struct jsonw w;
	bool chat = a->dialect == ANSWER_CHAT;
	if (chat ? !a->kept.len : !a->reasoned)
		return 0;
	if (!a->text.len && !a->n_calls)
		return 0; /* reasoning that nothing follows is taken back by no server */
	if (!chat) {
		buf_addf(&out, "[%s]", buf_str(&a->kept));
	} else {
		jsonw_init(&w, &out);
		jsonw_begin_object(&w);
		jsonw_kstr(&w, "reasoning_opaque", buf_str(&a->kept));
		if (a->thought.len)
			jsonw_kstr(&w, "reasoning_text", buf_str(&a->thought));
		jsonw_end_object(&w);
	}
	bool failed = a->kept.failed || a->thought.failed || buf_error(&out);
	*ret = failed ? NULL : buf_take(&out);
	buf_free(&out);
	return *ret ? 0 : -ENOMEM;
}

static int make_message(struct answer *a, struct convo_message *ret)
{
	struct convo_message m = {.role = CONVO_ASSISTANT, .text = strdup(buf_str(&a->text))};
	int err = m.text ? make_kept(a, &m.kept) : -ENOMEM;
	for (size_t i = 0; i < a->n_calls && !err; i++) {
		const struct answer_call *call = &a->calls[i];
		err = convo_message_add_call(&m, buf_str(&call->id), buf_str(&call->name),
					     buf_str(&call->arguments));
		if (err == -EINVAL)
			err = answer_complain(a, -EPROTO, "a tool call without a name", "");
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
		return answer_complain(a, -ENODATA, "the server ended its answer in the middle",
				       "");
	if (!a->text.len && !a->n_calls && !strcmp(a->finish, "content_filter"))
		return answer_complain(a, -EIO, "the server's content filter stopped the answer",
				       "");
	err = make_message(a, ret_message);
	if (!err)
		tell_end(a);
	return err;
}
