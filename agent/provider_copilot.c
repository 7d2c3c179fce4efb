#include "agent/copilot.h"

#include "agent/provider_chat.h"
#include "tracer/util.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Copilot is chat completions with a bearer of its own. */
struct provider_copilot {
	struct provider base;
	struct copilot copilot;
	struct chat chat;
};

static struct provider_copilot *self(struct provider *p)
{
	return (struct provider_copilot *)(void *)p;
}

static int prepare(void *arg, const struct provider_request *req, bool renew, char **ret_base,
		   struct http_headers *headers, struct provider_error *ret_error)
{
	struct provider_copilot *p = arg;
	return copilot_prepare(&p->copilot, &p->chat.asker, req, renew, ret_base, headers,
			       ret_error);
}

static const char *source(void *arg)
{
	const struct provider_copilot *p = arg;
	return copilot_source(&p->copilot);
}

static void redact(void *arg, char *text)
{
	const struct provider_copilot *p = arg;
	copilot_redact(&p->copilot, text);
}

static int turn(struct provider *p, const struct provider_request *req,
		const struct provider_sink *sink, struct convo_message *ret_message,
		struct provider_error *ret_error)
{
	return chat_turn(&self(p)->chat, req, sink, ret_message, ret_error);
}

static int models(struct provider *p, const volatile sig_atomic_t *cancel,
		  struct provider_models *ret, struct provider_error *ret_error)
{
	return chat_models(&self(p)->chat, cancel, ret, ret_error);
}

/* "models/ID/policy"; whatever is in the id stays one segment. */
static char *policy_path(const char *model)
{
	struct buf path = {0};
	buf_add_str(&path, "models/");
	for (const char *c = model; *c; c++)
		if (isalnum((unsigned char)*c) || strchr("-._~", *c))
			buf_add_char(&path, *c);
		else
			buf_addf(&path, "%%%02X", (unsigned)(unsigned char)*c);
	buf_add_str(&path, "/policy");
	char *ret = buf_take(&path);
	buf_free(&path);
	return ret;
}

static int enable(struct provider *p, const char *model, const volatile sig_atomic_t *cancel,
		  struct provider_error *ret_error)
{
	struct chat *chat = &self(p)->chat;
	struct buf body = {0};
	struct json *root = NULL;
	const struct provider_request req = {.model = model, .cancel = cancel};
	char *path AUTOFREE = policy_path(model);
	const struct asker_query q = {
		.by = &chat->asker, .req = &req, .method = "POST", .path = path, .body = &body};
	buf_add_str(&body, "{\"state\":\"enabled\"}");
	int err = path && !body.failed ? asker_json(&q, &root, ret_error)
				       : provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, -ENOMEM,
						       "not enough memory");
	json_free(root);
	buf_free(&body);
	if (!err)
		chat->listed = false; /* the list says otherwise now */
	return err;
}

static int quota(struct provider *p, const volatile sig_atomic_t *cancel, struct buf *out,
		 struct provider_error *ret_error)
{
	struct provider_copilot *c = self(p);
	struct json *root = NULL;
	if (!c->copilot.token)
		return -ENOTSUP;
	int err = copilot_ask_github(&c->copilot, &c->chat.asker, "copilot_internal/user", cancel,
				     &root, ret_error);
	if (!err)
		copilot_write_quota(root, out);
	json_free(root);
	return err;
}

static void copilot_provider_free(struct provider *p)
{
	chat_free(&self(p)->chat);
	copilot_free(&self(p)->copilot);
	free(p);
}

static const struct provider_ops ops = {
	.name = "copilot",
	.turn = turn,
	.models = models,
	.enable = enable,
	.quota = quota,
	.free = copilot_provider_free,
};

int provider_copilot_open(struct provider_config *c, struct provider **ret,
			  struct provider_error *ret_error)
{
	struct provider_copilot *p = calloc(1, sizeof(*p));
	const struct asker_endpoint endpoint = {
		.arg = p,
		.prepare = prepare,
		.where = ERROR_AT_COPILOT,
		.source = source,
		.redact = redact,
	};
	if (!p)
		return provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, -ENOMEM,
				     "not enough memory");
	p->base.ops = &ops;
	int err = copilot_init(&p->copilot, c, ret_error);
	if (!err && chat_init(&p->chat, c, &endpoint, copilot_judge))
		err = provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, -ENOMEM,
				    "not enough memory");
	if (err) {
		copilot_provider_free(&p->base);
		return err;
	}
	*ret = &p->base;
	return 0;
}
