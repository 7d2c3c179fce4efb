#include "agent/http.h"

#include "agent/libcurl.h"
#include "tracer/clock.h"
#include "tracer/util.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#define POLL_MS	  100
#define LINGER_MS 500 /* for the end of a body whose rest does not matter */

struct http {
	const struct libcurl *curl;
	CURLM *multi;		/* keeps the connections */
	char *ca_file, *ca_dir; /* NULL: the system's */
};

/* One request under way. */
struct transfer {
	const struct libcurl *curl;
	const struct http_request *req;
	struct http_response *ret;
	CURL *easy;
	char why[CURL_ERROR_SIZE];
	int stopped;	   /* what on_bytes or the limit ended it with */
	bool enough;	   /* the rest does not matter */
	bool have_headers; /* *ret has them */
};

const char *http_missing(void)
{
	return libcurl_missing();
}

static int copy(const char *from, char **to)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

int http_new(const struct http_trust *trust, struct http **ret)
{
	const struct libcurl *curl = libcurl_get();
	if (!curl)
		return -ELIBACC;
	struct http *h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->curl = curl;
	h->multi = curl->multi_init();
	int err = h->multi ? 0 : -ENOMEM;
	if (trust)
		err = err ?: copy(trust->ca_file, &h->ca_file) ?: copy(trust->ca_dir, &h->ca_dir);
	if (err) {
		http_free(h);
		return err;
	}
	*ret = h;
	return 0;
}

void http_free(struct http *h)
{
	if (!h)
		return;
	h->curl->multi_cleanup(h->multi);
	free(h->ca_file);
	free(h->ca_dir);
	free(h);
}

/* ---- headers and URLs ---- */

static bool has_control(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	return false;
}

int http_headers_add(struct http_headers *h, const char *name, const char *value)
{
	if (has_control(name) || has_control(value))
		return -EINVAL;
	if (h->n >= HTTP_HEADERS_MAX)
		return -E2BIG;
	char *line = NULL;
	/* curl sends a header without a value only where it ends in a semicolon. */
	if (asprintf(&line, *value ? "%s: %s" : "%s;%s", name, value) < 0)
		return -ENOMEM;
	h->line[h->n++] = line;
	return 0;
}

void http_headers_free(struct http_headers *h)
{
	for (size_t i = 0; i < h->n; i++) {
		explicit_bzero(h->line[i], strlen(h->line[i]));
		free(h->line[i]);
	}
	*h = (struct http_headers){0};
}

/* "host" or "host:port" of url, for sentences. */
static void url_host(const struct libcurl *curl, const char *url, char *ret, size_t size)
{
	CURLU *u = curl->url();
	char *host = NULL, *port = NULL;
	snprintf(ret, size, "the server");
	if (u && !curl->url_set(u, CURLUPART_URL, url, 0) &&
	    !curl->url_get(u, CURLUPART_HOST, &host, 0)) {
		bool has_port = !curl->url_get(u, CURLUPART_PORT, &port, 0);
		snprintf(ret, size, "%s%s%s", host, has_port ? ":" : "", has_port ? port : "");
	}
	curl->free(host);
	curl->free(port);
	curl->url_cleanup(u);
}

bool http_url_is_safe(const char *url)
{
	static const char *const local[] = {"127.0.0.1", "[::1]", "localhost"};
	const struct libcurl *curl = libcurl_get();
	if (!curl)
		return false;
	CURLU *u = curl->url();
	char *scheme = NULL, *host = NULL;
	bool safe = false;
	if (u && !curl->url_set(u, CURLUPART_URL, url, 0) &&
	    !curl->url_get(u, CURLUPART_SCHEME, &scheme, 0) &&
	    !curl->url_get(u, CURLUPART_HOST, &host, 0)) {
		safe = !strcmp(scheme, "https");
		for (size_t i = 0; i < ARRAY_LEN(local); i++)
			safe |= !strcmp(scheme, "http") && !strcmp(host, local[i]);
	}
	curl->free(scheme);
	curl->free(host);
	curl->url_cleanup(u);
	return safe;
}

/* ---- the answer ---- */

static void copy_header(const struct transfer *t, const char *name, char *ret, size_t size)
{
	struct curl_header *h = NULL;
	if (!*ret && t->curl->easy_header(t->easy, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK)
		snprintf(ret, size, "%s", h->value);
}

static void take_headers(struct transfer *t)
{
	struct http_response *r = t->ret;
	long status = 0;
	curl_off_t retry_after = 0;
	const char *type = NULL;
	if (t->have_headers)
		return;
	t->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (!status)
		return;
	t->have_headers = true;
	r->status = (int)status;
	if (!t->curl->easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type) && type)
		snprintf(r->content_type, sizeof(r->content_type), "%s", type);
	copy_header(t, "x-request-id", r->request_id, sizeof(r->request_id));
	copy_header(t, "x-github-request-id", r->request_id, sizeof(r->request_id));
	copy_header(t, "location", r->location, sizeof(r->location));
	struct curl_header *h = NULL;
	if (t->curl->easy_header(t->easy, "retry-after", 0, CURLH_HEADER, -1, &h) == CURLHE_OK &&
	    !t->curl->easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &retry_after))
		r->retry_after_s = retry_after > INT_MAX ? INT_MAX : (int)retry_after;
}

static size_t on_write(char *bytes, size_t one, size_t n, void *arg)
{
	struct transfer *t = arg;
	(void)one; /* always 1 */
	take_headers(t);
	t->ret->body_len += n;
	if (t->ret->body_len > HTTP_BODY_MAX) {
		t->stopped = -EFBIG;
		return CURL_WRITEFUNC_ERROR;
	}
	if (!t->req->on_bytes || t->enough)
		return n;
	int err = t->req->on_bytes(t->req->arg, t->ret, bytes, n);
	if (err == HTTP_ENOUGH)
		t->enough = true;
	else if (err) {
		t->stopped = err;
		return CURL_WRITEFUNC_ERROR;
	}
	return n;
}

/* ---- failures ---- */

static int failed(struct http_response *r, int err, bool transient, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int failed(struct http_response *r, int err, bool transient, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(r->error, sizeof(r->error), fmt, ap);
	va_end(ap);
	r->transient = transient;
	return err;
}

static bool was_connected(const struct transfer *t)
{
	double connected = 0;
	t->curl->easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME, &connected);
	return connected > 0;
}

static int timed_out(struct transfer *t, const char *host)
{
	unsigned told = t->req->stall_timeout_s;
	if (was_connected(t))
		return failed(t->ret, -ETIMEDOUT, true,
			      "%s sent nothing for %u seconds: try again, or another model", host,
			      told ? told : HTTP_STALL_TIMEOUT_S);
	return failed(t->ret, -ETIMEDOUT, true,
		      "%s does not answer: check the network and the proxy settings", host);
}

/* The proxy answered instead of letting us through; 0: it did not. */
static int refused_by_proxy(struct transfer *t, const char *host)
{
	long code = 0;
	t->curl->easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &code);
	if (code < 300)
		return 0;
	if (code == 407)
		return failed(t->ret, -EHOSTUNREACH, false,
			      "the proxy wants a user and a password before it connects to %s: put "
			      "them into the proxy's URL (https_proxy)",
			      host);
	return failed(t->ret, -EHOSTUNREACH, code >= 500,
		      "the proxy does not connect to %s (HTTP %ld): allow it there, or name the "
		      "host in no_proxy",
		      host, code);
}

static int untrusted(struct transfer *t, CURLcode code, const char *host, const char *detail)
{
	if (code == CURLE_SSL_CACERT_BADFILE)
		return failed(t->ret, -EPROTO, false,
			      "the certificates to trust can't be read: correct CURL_CA_BUNDLE, "
			      "SSL_CERT_FILE or SSL_CERT_DIR (%s)",
			      detail);
	return failed(t->ret, -EPROTO, false,
		      "no trusted TLS connection to %s: set CURL_CA_BUNDLE to your organisation's "
		      "certificates, or correct the URL (%s)",
		      host, detail);
}

/* -errno and the sentence for what curl says. */
static int explain(struct transfer *t, CURLcode code)
{
	struct http_response *r = t->ret;
	const char *detail = t->why[0] ? t->why : t->curl->easy_strerror(code);
	char host[256];
	url_host(t->curl, t->req->url, host, sizeof(host));
	int refused = refused_by_proxy(t, host);
	if (refused)
		return refused;
	switch ((int)code) {
	case CURLE_UNSUPPORTED_PROTOCOL:
		if (was_connected(t)) /* it answered, with no status line */
			return failed(r, -EPROTO, false,
				      "%s does not speak HTTP: correct the endpoint", host);
		/* fallthrough */
	case CURLE_URL_MALFORMAT:
		return failed(r, -EINVAL, false,
			      "\"%s\" is no http or https URL: correct the endpoint", t->req->url);
	case CURLE_COULDNT_RESOLVE_HOST:
		return failed(r, -EHOSTUNREACH, true,
			      "cannot find %s: check the network, the name and the proxy (%s)",
			      host, detail);
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_PROXY:
		return failed(r, -EHOSTUNREACH, true,
			      "cannot reach %s by the proxy: correct https_proxy, http_proxy or "
			      "all_proxy (%s)",
			      host, detail);
	case CURLE_COULDNT_CONNECT:
		return failed(r, -ECONNREFUSED, true,
			      "cannot connect to %s: check that it runs, and the proxy (%s)", host,
			      detail);
	case CURLE_OPERATION_TIMEDOUT:
		return timed_out(t, host);
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CONNECT_ERROR:
		return untrusted(t, code, host, detail);
	case CURLE_PARTIAL_FILE:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
		return failed(r, -ECONNRESET, true,
			      "%s closed the connection in the middle: try again (%s)", host,
			      detail);
	case CURLE_BAD_CONTENT_ENCODING:
	case CURLE_WRITE_ERROR:
	case CURLE_WEIRD_SERVER_REPLY:
		return failed(r, -EBADMSG, false,
			      "the answer of %s is garbled: check the endpoint and the proxy (%s)",
			      host, detail);
	case CURLE_OUT_OF_MEMORY:
		return failed(r, -ENOMEM, false, "not enough memory");
	default:
		return failed(r, -EIO, true, "the request to %s failed: try again (%s)", host,
			      detail);
	}
}

static int stopped(struct transfer *t)
{
	if (t->stopped == -EFBIG && t->ret->body_len > HTTP_BODY_MAX)
		return failed(t->ret, -EFBIG, false,
			      "the answer is over %u MiB: is this the right endpoint?",
			      HTTP_BODY_MAX >> 20);
	return failed(t->ret, t->stopped, false, "the answer could not be used");
}

/* ---- the request ---- */

static long seconds(unsigned wanted, unsigned otherwise)
{
	return (long)(wanted ? wanted : otherwise);
}

static void set_timeouts(const struct transfer *t)
{
	const struct libcurl *curl = t->curl;
	const struct http_request *req = t->req;
	curl->easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT,
			  seconds(req->connect_timeout_s, HTTP_CONNECT_TIMEOUT_S));
	/* No total limit: a long answer is fine as long as it moves. */
	curl->easy_setopt(t->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl->easy_setopt(t->easy, CURLOPT_LOW_SPEED_TIME,
			  seconds(req->stall_timeout_s, HTTP_STALL_TIMEOUT_S));
}

static void set_options(const struct http *h, struct transfer *t, struct curl_slist *headers)
{
	const struct libcurl *curl = t->curl;
	const struct http_request *req = t->req;
	curl->easy_setopt(t->easy, CURLOPT_URL, req->url);
	curl->easy_setopt(t->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl->easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl->easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
	curl->easy_setopt(t->easy, CURLOPT_USERAGENT, "warder/" WARDER_VERSION);
	curl->easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->why);
	curl->easy_setopt(t->easy, CURLOPT_HTTPHEADER, headers);
	curl->easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_write);
	curl->easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
	curl->easy_setopt(t->easy, CURLOPT_ACCEPT_ENCODING, ""); /* all that it can unpack */
	if (h->ca_file)
		curl->easy_setopt(t->easy, CURLOPT_CAINFO, h->ca_file);
	if (h->ca_dir)
		curl->easy_setopt(t->easy, CURLOPT_CAPATH, h->ca_dir);
	if (req->body) {
		curl->easy_setopt(t->easy, CURLOPT_POSTFIELDS, req->body);
		curl->easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body_len);
	}
	curl->easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, req->method);
	set_timeouts(t);
}

static int make_headers(const struct libcurl *curl, const struct http_headers *from,
			struct curl_slist **ret)
{
	/* curl would wait for "100 Continue" before a body of more than 1 MiB. */
	struct curl_slist *list = curl->slist_append(NULL, "Expect:");
	for (size_t i = 0; list && from && i < from->n; i++) {
		struct curl_slist *more = curl->slist_append(list, from->line[i]);
		if (!more)
			curl->slist_free_all(list);
		list = more;
	}
	*ret = list;
	return list ? 0 : -ENOMEM;
}

static bool finished(const struct http *h, CURLcode *ret)
{
	int left = 0;
	for (CURLMsg *msg; (msg = h->curl->multi_info_read(h->multi, &left));) {
		if (msg->msg == CURLMSG_DONE) {
			*ret = msg->data.result;
			return true;
		}
	}
	return false;
}

/* Turn the loop until the answer is complete or somebody has had enough. */
static int pump(struct http *h, struct transfer *t)
{
	int64_t enough_at = 0;
	for (;;) {
		int running = 0;
		CURLcode code = CURLE_OK;
		if (t->req->cancel && *t->req->cancel)
			return failed(t->ret, -ECANCELED, false, "cancelled");
		CURLMcode err = t->curl->multi_perform(h->multi, &running);
		if (err)
			return failed(t->ret, -EIO, false, "curl: %s",
				      t->curl->multi_strerror(err));
		if (t->stopped)
			return stopped(t);
		bool over = finished(h, &code);
		if (t->enough && (over || (enough_at && clock_ms() - enough_at > LINGER_MS)))
			return 0;
		if (over)
			return code ? explain(t, code) : 0;
		BUG(!running); /* neither over nor under way */
		if (t->enough && !enough_at)
			enough_at = clock_ms();
		t->curl->multi_poll(h->multi, NULL, 0, POLL_MS, NULL);
	}
}

/* OpenSSL writes with write(2): a peer that went away would end us by SIGPIPE. */
static void hold_sigpipe(sigset_t *ret_old, bool *ret_was_pending)
{
	sigset_t pipe, pending;
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	*ret_was_pending = sigismember(&pending, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, ret_old);
}

static void release_sigpipe(const sigset_t *old, bool was_pending)
{
	sigset_t pipe;
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	if (!was_pending)
		sigtimedwait(&pipe, NULL, &(struct timespec){0});
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

int http_perform(struct http *h, const struct http_request *req, struct http_response *ret)
{
	struct transfer t = {.curl = h->curl, .req = req, .ret = ret, .easy = h->curl->easy_init()};
	struct curl_slist *headers = NULL;
	sigset_t old;
	bool was_pending;
	*ret = (struct http_response){.retry_after_s = -1};
	int err = t.easy ? make_headers(h->curl, req->headers, &headers) : -ENOMEM;
	if (err) {
		h->curl->easy_cleanup(t.easy);
		return failed(ret, err, false, "not enough memory");
	}
	hold_sigpipe(&old, &was_pending);
	set_options(h, &t, headers);
	CURLMcode added = h->curl->multi_add_handle(h->multi, t.easy);
	err = added ? failed(ret, -EIO, false, "curl: %s", h->curl->multi_strerror(added))
		    : pump(h, &t);
	take_headers(&t); /* an answer without a body */
	h->curl->multi_remove_handle(h->multi, t.easy);
	h->curl->easy_cleanup(t.easy);
	release_sigpipe(&old, was_pending);
	h->curl->slist_free_all(headers);
	return err;
}
