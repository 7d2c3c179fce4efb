/*
 * A model's answer, streamed or plain, in either dialect: in one piece and in two the same message
 * comes out; what was shown is its text; and what it makes of a conversation can be sent again.
 */
#include "tests/fuzz/fuzz.h"

#include "agent/http.h"
#include "agent/provider_body.h"

#include <errno.h>
#include <string.h>

static void on_text(void *arg, const char *bytes, size_t n)
{
	buf_add(arg, bytes, n);
}

static void on_status(void *arg, const char *line)
{
	(void)arg;
	if (!*line)
		abort();
}

static void on_usage(void *arg, const struct provider_usage *usage)
{
	(void)arg;
	(void)usage;
}

struct outcome {
	int err;
	struct buf shown;
	struct convo_message message;
};

static struct outcome feed(enum answer_dialect dialect, const char *type, const char *bytes,
			   size_t first, size_t n)
{
	struct outcome o = {0};
	struct answer a;
	const struct provider_sink sink = {
		.arg = &o.shown, .on_text = on_text, .on_status = on_status, .on_usage = on_usage};
	answer_init(&a, dialect, &sink);
	o.err = answer_feed(&a, type, bytes, first);
	if (!o.err && n > first)
		o.err = answer_feed(&a, type, bytes + first, n - first);
	if (o.err == 0 || o.err == HTTP_ENOUGH)
		o.err = answer_end(&a, &o.message);
	if (o.err && o.message.text)
		abort();
	if (o.err == -ENOMEM)
		abort();
	answer_free(&a);
	return o;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void compare(const struct outcome *a, const struct outcome *b)
{
	const struct convo_message *m = &a->message, *n = &b->message;
	bool same = a->err == b->err && same_text(m->text, n->text) && m->n_calls == n->n_calls &&
		    same_text(m->kept, n->kept);
	for (size_t i = 0; same && i < m->n_calls; i++)
		same = same_text(m->calls[i].id, n->calls[i].id) &&
		       same_text(m->calls[i].name, n->calls[i].name) &&
		       same_text(m->calls[i].arguments, n->calls[i].arguments);
	if (!same || (!a->err && strcmp(m->text, buf_str(&a->shown)) != 0))
		abort();
}

/* The next request, with all that was kept. */
static void send_again(struct convo_message *m, enum answer_dialect dialect)
{
	struct convo c = {0};
	struct buf body = {0};
	struct json *v = NULL;
	m->kept_model = m->kept ? strdup("m") : NULL;
	if (convo_add_assistant(&c, m) || convo_complete(&c, NULL) < 0)
		abort();
	const struct provider_request req = {.convo = &c, .model = "m"};
	if (body_write(dialect, &req, &body) || json_parse(buf_str(&body), body.len, &v, NULL))
		abort();
	json_free(v);
	buf_free(&body);
	convo_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const types[] = {"", "text/event-stream", "application/json",
					    "text/html"};
	if (size < 2)
		return 0;
	/* The last two bytes say how the others come. */
	size_t n = size - 2, first = data[size - 1] * n / 256;
	enum answer_dialect dialect = data[size - 2] & 1 ? ANSWER_RESPONSES : ANSWER_CHAT;
	enum answer_dialect next = data[size - 2] & 2 ? ANSWER_RESPONSES : ANSWER_CHAT;
	const char *type = types[data[size - 2] >> 2 & 3];
	struct outcome whole = feed(dialect, type, (const char *)data, n, n);
	struct outcome pieces = feed(dialect, type, (const char *)data, first, n);
	compare(&whole, &pieces);
	if (!whole.err)
		send_again(&whole.message, next);
	convo_message_free(&whole.message);
	convo_message_free(&pieces.message);
	buf_free(&whole.shown);
	buf_free(&pieces.shown);
	return 0;
}
