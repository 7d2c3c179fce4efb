#include "agent/convo.h"

#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void call_free(struct convo_call *call)
{
	free(call->id);
	free(call->name);
	free(call->arguments);
}

void convo_message_free(struct convo_message *m)
{
	for (size_t i = 0; i < m->n_calls; i++)
		call_free(&m->calls[i]);
	free(m->calls);
	free(m->text);
	free(m->call_id);
	free(m->kept);
	free(m->kept_model);
	*m = (struct convo_message){0};
}

static const struct convo_call *find_call(const struct convo_message *m, const char *id)
{
	for (size_t i = 0; i < m->n_calls; i++)
		if (!strcmp(m->calls[i].id, id))
			return &m->calls[i];
	return NULL;
}

static char *free_id(const struct convo_message *m)
{
	char id[32];
	size_t n = m->n_calls;
	do
		snprintf(id, sizeof(id), "call_%zu", ++n);
	while (find_call(m, id));
	return strdup(id);
}

int convo_message_add_call(struct convo_message *m, const char *id, const char *name,
			   const char *arguments)
{
	if (!name || !*name)
		return -EINVAL;
	if (m->n_calls >= CONVO_CALLS_MAX)
		return -E2BIG;
	struct convo_call *calls = realloc(m->calls, (m->n_calls + 1) * sizeof(*calls));
	if (!calls)
		return -ENOMEM;
	m->calls = calls;
	bool usable = id && *id && !find_call(m, id);
	struct convo_call call = {
		.id = usable ? strdup(id) : free_id(m),
		.name = strdup(name),
		.arguments = strdup(arguments && *arguments ? arguments : "{}"),
	};
	if (!call.id || !call.name || !call.arguments) {
		call_free(&call);
		return -ENOMEM;
	}
	m->calls[m->n_calls++] = call;
	return 0;
}

void convo_free(struct convo *c)
{
	c->watch = NULL;
	convo_truncate(c, 0);
	free(c->messages);
	*c = (struct convo){0};
}

void convo_truncate(struct convo *c, size_t n)
{
	BUG(n > c->n);
	bool changed = c->n > n;
	while (c->n > n)
		convo_message_free(&c->messages[--c->n]);
	if (changed && c->watch)
		c->watch->truncated(c->watch->arg, n);
}

/* The last message is a new one. */
static void tell_added(const struct convo *c)
{
	if (c->watch)
		c->watch->added(c->watch->arg, &c->messages[c->n - 1]);
}

/* Room for one message more. */
static int reserve(struct convo *c)
{
	if (c->n < c->cap)
		return 0;
	size_t cap = c->cap ? c->cap * 2 : 16;
	struct convo_message *messages = realloc(c->messages, cap * sizeof(*messages));
	if (!messages)
		return -ENOMEM;
	c->messages = messages;
	c->cap = cap;
	return 0;
}

static int add_copy(struct convo *c, enum convo_role role, const char *text, const char *call_id)
{
	struct convo_message m = {.role = role, .text = strdup(text)};
	if (call_id)
		m.call_id = strdup(call_id);
	if (!m.text || (call_id && !m.call_id) || reserve(c)) {
		convo_message_free(&m);
		return -ENOMEM;
	}
	c->messages[c->n++] = m;
	tell_added(c);
	return 0;
}

int convo_add_text(struct convo *c, enum convo_role role, const char *text)
{
	BUG(role != CONVO_SYSTEM && role != CONVO_USER);
	if (convo_pending(c))
		return -EBUSY;
	return add_copy(c, role, text, NULL);
}

int convo_add_assistant(struct convo *c, struct convo_message *m)
{
	BUG(m->role != CONVO_ASSISTANT);
	if (convo_pending(c))
		return -EBUSY;
	if (!m->text && !(m->text = strdup("")))
		return -ENOMEM;
	int err = reserve(c);
	if (err)
		return err;
	c->messages[c->n++] = *m;
	*m = (struct convo_message){0};
	tell_added(c);
	return 0;
}

int convo_replace_system(struct convo *c, const char *text)
{
	BUG(!c->n || c->messages[0].role != CONVO_SYSTEM);
	char *copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	free(c->messages[0].text);
	c->messages[0].text = copy;
	return 0;
}

size_t convo_bytes(const struct convo *c)
{
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++) {
		const struct convo_message *m = &c->messages[i];
		n += strlen(m->text) + 32;
		for (size_t k = 0; k < m->n_calls; k++)
			n += strlen(m->calls[k].name) + strlen(m->calls[k].arguments) + 64;
	}
	return n;
}

/* The assistant message whose answers are being collected; NULL when the end is something else. */
static const struct convo_message *open_message(const struct convo *c, size_t *ret_at)
{
	size_t at = c->n;
	while (at > 0 && c->messages[at - 1].role == CONVO_TOOL)
		at--;
	if (!at || c->messages[at - 1].role != CONVO_ASSISTANT)
		return NULL;
	*ret_at = at - 1;
	return &c->messages[at - 1];
}

static bool answered(const struct convo *c, size_t from, const char *id)
{
	for (size_t i = from; i < c->n; i++)
		if (!strcmp(c->messages[i].call_id, id))
			return true;
	return false;
}

const struct convo_call *convo_pending(const struct convo *c)
{
	size_t at = 0;
	const struct convo_message *m = open_message(c, &at);
	for (size_t i = 0; m && i < m->n_calls; i++)
		if (!answered(c, at + 1, m->calls[i].id))
			return &m->calls[i];
	return NULL;
}

int convo_add_result(struct convo *c, const char *call_id, const char *text)
{
	size_t at = 0;
	const struct convo_message *m = open_message(c, &at);
	if (!m || !find_call(m, call_id) || answered(c, at + 1, call_id))
		return -ENOENT;
	return add_copy(c, CONVO_TOOL, text, call_id);
}

int convo_complete(struct convo *c, const char *text)
{
	int n = 0;
	for (const struct convo_call *call; (call = convo_pending(c)); n++) {
		int err = add_copy(c, CONVO_TOOL, text ? text : "cancelled", call->id);
		if (err)
			return err;
	}
	return n;
}

/* ---- writing ---- */

void convo_write_arguments(struct jsonw *w, const char *arguments)
{
	struct json *v = NULL;
	bool object = !json_parse(arguments, strlen(arguments), &v, NULL) && json_is_object(v);
	json_free(v);
	if (object) {
		jsonw_kstr(w, "arguments", arguments);
		return;
	}
	struct buf text = {0};
	struct jsonw inner;
	jsonw_init(&inner, &text);
	jsonw_begin_object(&inner);
	jsonw_kstr(&inner, "unparsed", arguments);
	jsonw_end_object(&inner);
	if (text.failed)
		w->out->failed = true;
	jsonw_kstr(w, "arguments", buf_str(&text));
	buf_free(&text);
}

static void write_call(struct jsonw *w, const struct convo_call *call)
{
	jsonw_begin_object(w);
	jsonw_kstr(w, "id", call->id);
	jsonw_kstr(w, "type", "function");
	jsonw_key(w, "function");
	jsonw_begin_object(w);
	jsonw_kstr(w, "name", call->name);
	convo_write_arguments(w, call->arguments);
	jsonw_end_object(w);
	jsonw_end_object(w);
}

struct json *convo_kept(const struct convo_message *m, const char *model)
{
	struct json *kept = NULL;
	if (!m->kept || !m->kept_model || !model || strcmp(m->kept_model, model) != 0)
		return NULL;
	return json_parse(m->kept, strlen(m->kept), &kept, NULL) ? NULL : kept;
}

/* For ourselves: whole, with the model's name. */
static void write_saved(struct jsonw *w, const struct convo_message *m)
{
	if (!m->kept)
		return;
	jsonw_kstr(w, "kept", m->kept);
	jsonw_kstr(w, "kept_model", m->kept_model);
}

/* The members of an object, into the message under way. */
static void write_kept(struct jsonw *w, const struct convo_message *m, const char *model)
{
	struct json *kept = convo_kept(m, model);
	const struct json *v = json_is_object(kept) ? json_first(kept) : NULL;
	for (; v; v = json_next(v)) {
		jsonw_key(w, json_key(v));
		json_write(w, v);
	}
	json_free(kept);
}

/* All but what is kept; the message stays open. */
static void begin_message(struct jsonw *w, const struct convo_message *m)
{
	static const char *const role[] = {
		[CONVO_SYSTEM] = "system",
		[CONVO_USER] = "user",
		[CONVO_ASSISTANT] = "assistant",
		[CONVO_TOOL] = "tool",
	};
	const char *text = m->text ? m->text : "";
	jsonw_begin_object(w);
	jsonw_kstr(w, "role", role[m->role]);
	if (m->call_id)
		jsonw_kstr(w, "tool_call_id", m->call_id);
	/* An assistant that only calls: null is the form every server takes. */
	jsonw_kstr(w, "content", *text || !m->n_calls ? text : NULL);
	if (m->n_calls) {
		jsonw_key(w, "tool_calls");
		jsonw_begin_array(w);
		for (size_t i = 0; i < m->n_calls; i++)
			write_call(w, &m->calls[i]);
		jsonw_end_array(w);
	}
}

void convo_write_message(struct jsonw *w, const struct convo_message *m)
{
	begin_message(w, m);
	write_saved(w, m);
	jsonw_end_object(w);
}

void convo_write(struct jsonw *w, const struct convo *c, const char *model)
{
	jsonw_begin_array(w);
	for (size_t i = 0; i < c->n; i++) {
		begin_message(w, &c->messages[i]);
		write_kept(w, &c->messages[i], model);
		jsonw_end_object(w);
	}
	jsonw_end_array(w);
}

/* ---- reading ---- */

static bool is_null(const struct json *v)
{
	struct buf text = {0};
	struct jsonw w;
	if (json_is_string(v) || json_is_array(v) || json_is_object(v))
		return false;
	jsonw_init(&w, &text);
	json_write(&w, v);
	bool null = !strcmp(buf_str(&text), "null");
	buf_free(&text);
	return null;
}

/* The text of "content": a string, nothing, or the text parts of an array. */
static int read_content(const struct json *v, char **ret, const char **ret_why)
{
	struct buf text = {0};
	*ret_why = "\"content\": expected a string, null or text parts";
	if (json_is_string(v)) {
		buf_add_str(&text, json_str(v));
	} else if (json_is_array(v)) {
		for (const struct json *p = json_first(v); p; p = json_next(p)) {
			const char *part = json_get_str(p, "text");
			if (!part) {
				buf_free(&text);
				return -EINVAL;
			}
			buf_add_str(&text, part);
		}
	} else if (v && !is_null(v)) {
		return -EINVAL;
	}
	*ret = buf_take(&text);
	*ret_why = "not enough memory";
	return *ret ? 0 : -ENOMEM;
}

static int read_call(const struct json *v, struct convo_message *m, const char **ret_why)
{
	const struct json *function = json_get(v, "function");
	const struct json *arguments = json_get(function, "arguments");
	*ret_why = "\"tool_calls\": expected {\"id\", \"function\": {\"name\", \"arguments\"}}";
	if (!json_is_object(function))
		return -EINVAL;
	struct buf text = {0};
	if (json_is_object(arguments)) {
		struct jsonw w;
		jsonw_init(&w, &text);
		json_write(&w, arguments);
	} else if (json_is_string(arguments)) {
		buf_add_str(&text, json_str(arguments));
	} else if (arguments && !is_null(arguments)) {
		*ret_why = "\"arguments\": expected a string or an object";
		return -EINVAL;
	}
	int err = buf_error(&text);
	if (!err)
		err = convo_message_add_call(m, json_get_str(v, "id"),
					     json_get_str(function, "name"), buf_str(&text));
	buf_free(&text);
	if (err == -E2BIG)
		*ret_why = "\"tool_calls\": too many in one message";
	return err;
}

static int read_calls(const struct json *v, struct convo_message *m, const char **ret_why)
{
	if (!v || is_null(v))
		return 0;
	if (!json_is_array(v)) {
		*ret_why = "\"tool_calls\": expected an array";
		return -EINVAL;
	}
	int err = 0;
	for (const struct json *call = json_first(v); call && !err; call = json_next(call))
		err = read_call(call, m, ret_why);
	return err;
}

/* As write_saved() wrote it; what is half of it is nothing. */
static int read_saved(const struct json *v, struct convo_message *m, const char **ret_why)
{
	const char *kept = json_get_str(v, "kept"), *model = json_get_str(v, "kept_model");
	if (!kept || !model)
		return 0;
	*ret_why = "not enough memory";
	m->kept = strdup(kept);
	m->kept_model = strdup(model);
	return m->kept && m->kept_model ? 0 : -ENOMEM;
}

int convo_read_assistant(const struct json *v, struct convo_message *ret, const char **ret_why)
{
	struct convo_message m = {.role = CONVO_ASSISTANT};
	const char *role = json_get_str(v, "role");
	if (!json_is_object(v)) {
		*ret_why = "expected an object {\"role\":\"assistant\",…}";
		return -EINVAL;
	}
	if (!role || strcmp(role, "assistant")) {
		*ret_why = "\"role\": expected \"assistant\"";
		return -EINVAL;
	}
	int err = read_content(json_get(v, "content"), &m.text, ret_why);
	if (!err)
		err = read_calls(json_get(v, "tool_calls"), &m, ret_why);
	if (!err)
		err = read_saved(v, &m, ret_why);
	if (err) {
		convo_message_free(&m);
		return err == -ENOMEM ? err : -EINVAL;
	}
	*ret = m;
	return 0;
}

/* -EBUSY and -ENOENT: calls wait for their answers, or none waits for this one. */
static int misplaced(int err, const char **ret_why)
{
	if (err != -EBUSY && err != -ENOENT)
		return err;
	*ret_why = err == -EBUSY ? "expected the answers to the calls before it"
				 : "\"tool_call_id\": expected that of a call without an answer";
	return -EINVAL;
}

static int read_assistant(struct convo *c, const struct json *v, const char **ret_why)
{
	struct convo_message m = {0};
	int err = convo_read_assistant(v, &m, ret_why);
	if (!err)
		err = misplaced(convo_add_assistant(c, &m), ret_why);
	convo_message_free(&m);
	return err;
}

int convo_read_message(struct convo *c, const struct json *v, const char **ret_why)
{
	const char *role = json_get_str(v, "role"), *text = json_get_str(v, "content");
	const char *id = json_get_str(v, "tool_call_id");
	*ret_why = "\"role\": expected system, user, assistant or tool";
	if (!role)
		return -EINVAL;
	if (!strcmp(role, "assistant"))
		return read_assistant(c, v, ret_why);
	bool system = !strcmp(role, "system");
	if (!system && strcmp(role, "user") != 0 && strcmp(role, "tool") != 0)
		return -EINVAL;
	*ret_why = "\"content\": expected a string";
	if (!text)
		return -EINVAL;
	if (!strcmp(role, "tool"))
		return misplaced(convo_add_result(c, id ? id : "", text), ret_why);
	return misplaced(convo_add_text(c, system ? CONVO_SYSTEM : CONVO_USER, text), ret_why);
}
