/*
 * http: one HTTP request at a time, its answer streamed to a callback. By libcurl
 * (agent/libcurl.h).
 *
 * Proxies are the environment's, as curl reads them. Redirects are never followed, so no
 * credential goes to a host that the caller did not name. User-Agent is warder/VERSION.
 * Compressed answers arrive unpacked.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#define HTTP_BODY_MAX	       (32u << 20) /* bytes of one answer */
#define HTTP_CONNECT_TIMEOUT_S 20
#define HTTP_STALL_TIMEOUT_S   300 /* a model may think for minutes before its first byte */
#define HTTP_HEADERS_MAX       24

/* Returned by on_bytes: the rest does not matter, give the server a moment to end by itself. */
#define HTTP_ENOUGH 1

struct http; /* a client: kept connections; one thread at a time */

/* Header lines "Name: value", owned. */
struct http_headers { /* {0} is empty */
	char *line[HTTP_HEADERS_MAX];
	size_t n;
};

struct http_response {
	int status;		/* 0: no answer came */
	char content_type[128]; /* "" where there is none, as with all of these */
	char request_id[128];	/* x-request-id, else x-github-request-id */
	char location[256];	/* where a redirect points */
	int retry_after_s;	/* seconds, a date is converted; -1: not told */
	size_t body_len;	/* bytes received */
	bool transient;		/* after a failure: the same request may work later */
	char error[512];	/* after a failure: one sentence that says what to do */
};

struct http_request {
	const char *method; /* "GET", "POST" */
	const char *url;    /* http or https */
	const struct http_headers *headers;
	const char *body; /* NULL: none */
	size_t body_len;
	unsigned connect_timeout_s;	     /* 0: HTTP_CONNECT_TIMEOUT_S */
	unsigned stall_timeout_s;	     /* without a byte; 0: HTTP_STALL_TIMEOUT_S */
	const volatile sig_atomic_t *cancel; /* may be NULL; looked at every 0.1 s */
	/*
	 * The next bytes of the body; *so_far has status and headers. 0 goes on, HTTP_ENOUGH, or
	 * -errno, which ends the request and is returned. NULL: the body is dropped.
	 */
	int (*on_bytes)(void *arg, const struct http_response *so_far, const char *bytes, size_t n);
	void *arg;
};

/* Why no request can be made at all: one line, static; NULL: they can. */
const char *http_missing(void);

/* Whom to trust instead of the system's certificates, as curl(1) takes it from the environment. */
struct http_trust {
	const char *ca_file; /* a bundle: CURL_CA_BUNDLE, SSL_CERT_FILE; may be NULL */
	const char *ca_dir;  /* hashed names: SSL_CERT_DIR; may be NULL */
};

/* trust (copied) may be NULL. 0, -ENOMEM, or -ELIBACC (no libcurl). */
int http_new(const struct http_trust *trust, struct http **ret);
void http_free(struct http *h);

/*
 * Blocks until the answer is complete. 0 for any status that came whole; then look at
 * ret->status. Else *ret tells what is known, with a sentence in ret->error:
 * -ECANCELED, -EINVAL (URL or header), -EHOSTUNREACH (the name, or a proxy that
 * will not), -ECONNREFUSED, -ETIMEDOUT (connecting, or
 * stalled), -EPROTO (TLS), -ECONNRESET (cut off in the middle), -EBADMSG (no HTTP),
 * -EFBIG (HTTP_BODY_MAX), -ENOMEM,
 * -EIO (the rest), or what on_bytes returned.
 */
int http_perform(struct http *h, const struct http_request *req, struct http_response *ret);

/* Add a line. -EINVAL: a control character in it. -E2BIG, -ENOMEM. */
int http_headers_add(struct http_headers *h, const char *name, const char *value);
/* The lines are wiped: they hold credentials. */
void http_headers_free(struct http_headers *h);

/* May a credential be sent there: https, or plain http to this very machine (tests, proxies). */
bool http_url_is_safe(const char *url);
