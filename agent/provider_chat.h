/*
 * provider_chat: the chat-completions protocol, for whatever speaks it: the request's body, the
 * streamed (or plain) answer put together again, retries. Who is asked, and with which
 * credentials, is the endpoint's affair.
 */
#pragma once

#include "agent/http.h"
#include "agent/provider.h"
#include "agent/provider_error.h"

#define CHAT_RETRIES	3
#define CHAT_BACKOFF_MS 1000
#define CHAT_WAIT_MAX_S 60 /* a longer Retry-After is not waited for but reported */

struct chat_endpoint {
	void *arg;
	/*
	 * Before each request: the base URL (the caller's) and the headers beyond content type.
	 * renew: the credential of the last request was refused (401): get a new one. 0, -ENOTSUP
	 * (there is no other credential; *ret_error untouched), or -errno with *ret_error.
	 */
	int (*prepare)(void *arg, const struct provider_request *req, bool renew, char **ret_base,
		       struct http_headers *headers, struct provider_error *ret_error);
	enum error_where where;		       /* whose words explain a failure */
	const char *(*source)(void *arg);      /* where the credential is from. NULL: not told */
	void (*redact)(void *arg, char *text); /* overwrite credentials. NULL: there are none */
	/* Fill what the server tells of a listed model beyond its id. NULL: all can be used. */
	void (*judge)(const struct json *listed, struct provider_model *m);
};

struct chat {
	struct http *http;
	struct chat_endpoint endpoint;
	unsigned connect_timeout_s, stall_timeout_s; /* 0: http's */
	int retries;				     /* further tries */
	unsigned backoff_ms;
	char *model; /* the choice for requests that name none, once made */
};

/* Take what the config says about timeouts, retries, certificates. 0 or -ENOMEM. */
int chat_init(struct chat *c, const struct provider_config *config,
	      const struct chat_endpoint *endpoint);
void chat_free(struct chat *c);

/* As provider_ops. */
int chat_turn(struct chat *c, const struct provider_request *req, const struct provider_sink *sink,
	      struct convo_message *ret_message, struct provider_error *ret_error);
int chat_models(struct chat *c, const volatile sig_atomic_t *cancel, struct provider_models *ret,
		struct provider_error *ret_error);

/*
 * For prepare(): GET one small JSON value, once. 0 with a 2xx status and *ret_root (the caller's),
 * else -errno with *ret_error in the words of `where`.
 */
int chat_fetch(struct chat *c, enum error_where where, const char *url,
	       const struct http_headers *headers, const volatile sig_atomic_t *cancel,
	       struct json **ret_root, struct provider_error *ret_error);
/* "BASE/PATH", one slash between them. NULL: no memory. */
char *chat_url(const char *base, const char *path);
