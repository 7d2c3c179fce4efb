#include "agent/provider_answer.h"

#include "tracer/util.h"

#include <errno.h>
#include <string.h>

static int add_content(struct answer *a, const struct json *content)
{
	int err = answer_add_text(a, json_str(content));
	if (!json_is_array(content))
		return err;
	for (const struct json *p = json_first(content); p && !err; p = json_next(p))
		err = answer_add_text(a, json_get_str(p, "text"));
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

/* Names and ids come whole, once; what repeats them adds nothing. */
static void set_once(struct buf *b, const char *s)
{
	if (filled(s) && !b->len)
		buf_add_str(b, s);
}

static int add_call_piece(struct answer *a, int64_t choice, const struct json *piece)
{
	const struct json *function = json_get(piece, "function");
	const char *id = json_get_str(piece, "id");
	const char *name = json_get_str(function, "name");
	int64_t index = 0;
	int err = 0;
	bool has_index = json_get_int(piece, "index", &index);
	struct answer_call *call = continued(a, choice, has_index ? &index : NULL, id, name);
	if (!call)
		call = answer_begin_call(a, choice, has_index ? index : -1, &err);
	if (!call)
		return err;
	set_once(&call->id, id);
	set_once(&call->name, name);
	err = answer_add_arguments(call, json_get(function, "arguments"));
	return err ? err : buf_error(call->name.failed ? &call->name : &call->id);
}

/* Sealed reasoning, which some models want back with their message; the last piece has it. */
static int add_reasoning(struct answer *a, const struct json *delta)
{
	const char *sealed = json_get_str(delta, "reasoning_opaque");
	const char *words = json_get_str(delta, "reasoning_text");
	if (filled(sealed)) {
		buf_reset(&a->kept);
		buf_add_str(&a->kept, sealed);
	}
	if (filled(words))
		buf_add_str(&a->thought, words);
	return buf_error(a->kept.failed ? &a->kept : &a->thought);
}

static int add_choice(struct answer *a, const struct json *choice, int64_t position)
{
	int64_t n = position;
	json_get_int(choice, "index", &n);
	const struct json *delta = json_get(choice, "delta");
	if (!json_is_object(delta))
		delta = json_get(choice, "message");
	int err = add_content(a, json_get(delta, "content"));
	err = err ?: answer_add_text(a, json_get_str(delta, "refusal"));
	err = err ?: add_reasoning(a, delta);
	const struct json *calls = json_get(delta, "tool_calls");
	const struct json *piece = json_is_array(calls) ? json_first(calls) : NULL;
	for (; piece && !err; piece = json_next(piece))
		err = add_call_piece(a, n, piece);
	answer_set_finish(a, json_get_str(choice, "finish_reason"));
	return err;
}

static void add_usage(struct answer *a, const struct json *v)
{
	struct provider_usage usage = {.prompt = -1, .cached = -1, .completion = -1};
	if (!json_is_object(v))
		return;
	json_get_int(v, "prompt_tokens", &usage.prompt);
	json_get_int(v, "completion_tokens", &usage.completion);
	json_get_int(json_get(v, "prompt_tokens_details"), "cached_tokens", &usage.cached);
	answer_add_usage(a, &usage);
}

int answer_chat_add(struct answer *a, const char *type, const struct json *v)
{
	const struct json *choices = json_get(v, "choices");
	int err = 0;
	int64_t position = 0;
	(void)type; /* the stream names none */
	const struct json *choice = json_is_array(choices) ? json_first(choices) : NULL;
	for (; choice && !err; choice = json_next(choice))
		err = add_choice(a, choice, position++);
	if (!err)
		add_usage(a, json_get(v, "usage"));
	return err;
}
