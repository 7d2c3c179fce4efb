#include "agent/provider_chat.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

#define DEFAULT_BASE "https://api.openai.com/v1"

struct openai {
	struct provider base;
	struct chat chat;
	char *url;
	char *key; /* NULL: none */
};

static struct openai *self(struct provider *p)
{
	return (struct openai *)(void *)p;
}

static int prepare(void *arg, const struct provider_request *req, bool renew, char **ret_base,
		   struct http_headers *headers, struct provider_error *ret_error)
{
	const struct openai *o = arg;
	char *bearer AUTOFREE = NULL;
	(void)req;
	if (renew)
		return -ENOTSUP;
	int err = o->key && asprintf(&bearer, "Bearer %s", o->key) < 0 ? -ENOMEM : 0;
	if (!err && o->key)
		err = http_headers_add(headers, "Authorization", bearer);
	if (o->key && bearer)
		explicit_bzero(bearer, strlen(bearer));
	char *base = err ? NULL : strdup(o->url);
	if (!base)
		return provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, -ENOMEM,
				     "not enough memory");
	*ret_base = base;
	return 0;
}

static void redact(void *arg, char *text)
{
	const struct openai *o = arg;
	error_redact(text, o->key);
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

static void openai_free(struct provider *p)
{
	struct openai *o = self(p);
	chat_free(&o->chat);
	provider_config_set(&o->key, NULL);
	free(o->url);
	free(o);
}

static const struct provider_ops ops = {
	.name = "openai",
	.turn = turn,
	.models = models,
	.free = openai_free,
};

/* What can be told without asking anybody. */
static int check(const struct provider_config *c, const char *url, struct provider_error *ret_error)
{
	const char *key = c->openai_key;
	if (strncmp(url, "http://", 7) && strncmp(url, "https://", 8))
		return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
				     "\"%s\" is no http or https URL: correct the endpoint", url);
	if (!key && !strcmp(url, DEFAULT_BASE))
		return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
				     "there is no key: set OPENAI_API_KEY, or name another server "
				     "with --endpoint");
	for (; key && *key; key++)
		if ((unsigned char)*key <= ' ' || *key == 0x7f)
			return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
					     "the key has a space or a line end in it: correct "
					     "OPENAI_API_KEY");
	return 0;
}

int provider_openai_open(const struct provider_config *c, struct provider **ret,
			 struct provider_error *ret_error)
{
	const char *url = c->endpoint ?: c->openai_base_url ?: DEFAULT_BASE;
	int err = check(c, url, ret_error);
	if (err)
		return err;
	struct openai *o = calloc(1, sizeof(*o));
	const struct asker_endpoint endpoint = {
		.arg = o,
		.prepare = prepare,
		.where = ERROR_AT_ANY,
		.redact = redact,
	};
	if (o && !(o->url = strdup(url)))
		err = -ENOMEM;
	if (o && !err)
		err = provider_config_set(&o->key, c->openai_key);
	if (o && !err)
		err = chat_init(&o->chat, c, &endpoint, NULL);
	if (!o || err) {
		if (o)
			openai_free(&o->base);
		return provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, -ENOMEM,
				     "not enough memory");
	}
	o->base.ops = &ops;
	*ret = &o->base;
	return 0;
}
