/*
 * asker: one question to a server, asked again as long as waiting can help. Who is asked,
 * and with which credentials, is the endpoint's affair; what is made of the answer, the caller's.
 */
#pragma once

#include "agent/http.h"
#include "agent/provider.h"
#include "agent/provider_error.h"

#define ASKER_RETRIES	 3
#define ASKER_BACKOFF_MS 1000
#define ASKER_WAIT_MAX_S 60 /* a longer Retry-After is not waited for but reported */

struct asker_endpoint {
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
};

struct asker {
	struct http *http;
	struct asker_endpoint endpoint;
	unsigned connect_timeout_s, stall_timeout_s; /* 0: http's */
	int retries;				     /* further tries */
	unsigned backoff_ms;
};

/* Take what the config says about timeouts, retries, certificates. 0, -ENOMEM, -ELIBACC. */
int asker_init(struct asker *a, const struct provider_config *config,
	       const struct asker_endpoint *endpoint);
void asker_free(struct asker *a);

/* What an answer is wrong with, where HTTP itself is content. */
struct asker_complaint {
	char text[512];
	bool passes; /* what it is about may pass */
};

/* A question. The callbacks may be called for several tries: restart() begins each. */
struct asker_query {
	struct asker *by;
	const struct provider_request
		*req;			  /* what prepare() is told; cancel, and the model's name */
	const struct provider_sink *sink; /* hears of waits; may be NULL */
	const char *method, *path;	  /* path: behind the base URL */
	const struct buf *body;		  /* JSON; NULL: none */
	void *arg;
	void (*restart)(void *arg);
	/* A 2xx answer's bytes; 0, HTTP_ENOUGH or -errno with *complaint. */
	int (*take)(void *arg, const struct http_response *r, const char *bytes, size_t n,
		    struct asker_complaint *complaint);
	/* No more bytes come: 0, or -errno with *complaint. -ENODATA: cut off, may be tried again.
	 */
	int (*end)(void *arg, struct asker_complaint *complaint);
	/* Is what came enough, although the connection failed? NULL: no. */
	bool (*is_whole)(void *arg);
	/* Was some of it shown, so that it can't be asked again unbidden? NULL: no. */
	bool (*is_shown)(void *arg);
};

/* 0; or -ECANCELED, -EIO, -ENOMEM with *ret_error. Blocks, waits included. */
int asker_run(const struct asker_query *q, struct provider_error *ret_error);

/* The same for one JSON value: 0 and *ret_root (the caller's). q's callbacks are not looked at. */
int asker_json(const struct asker_query *q, struct json **ret_root,
	       struct provider_error *ret_error);

/*
 * One small JSON value from any URL, once, without prepare() (which may call this). `accept` is
 * what else than a 2xx status is an answer (a status, 0: nothing). 0 and *ret_root (the caller's),
 * else -errno with *ret_error in the words of `where`.
 */
struct asker_fetch {
	enum error_where where;
	const char *method, *url;
	const struct http_headers *headers;
	const char *body; /* NULL: none */
	int accept;
	const volatile sig_atomic_t *cancel;
};
int asker_fetch(struct asker *a, const struct asker_fetch *f, struct json **ret_root,
		struct provider_error *ret_error);

/* "BASE/PATH", one slash between them. NULL: no memory. */
char *asker_url(const char *base, const char *path);
/* False: cancelled meanwhile. */
bool asker_wait(int64_t ms, const volatile sig_atomic_t *cancel);
