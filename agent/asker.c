#include "agent/asker.h"

#include "tracer/clock.h"
#include "tracer/json.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define FAILURE_MAX  (64u << 10) /* bytes kept of an error's body */
#define JSON_MAX     (8u << 20)	 /* of a list of models, of a token */
#define WAIT_STEP_MS 50

/* One request under way, and what came of it. */
struct attempt {
	const struct asker_query *q;
	int accept;
	struct buf failure; /* the body of an answer that is no success */
	int take_err;	    /* what take() ended the request with */
	bool asked;	    /* the server itself was asked, and answered or not */
	struct asker_complaint complaint;
};

int asker_init(struct asker *a, const struct provider_config *config,
	       const struct asker_endpoint *endpoint)
{
	*a = (struct asker){
		.endpoint = *endpoint,
		.connect_timeout_s = config->connect_timeout_s,
		.stall_timeout_s = config->stall_timeout_s,
		.retries = config->retries < 0 ? 0 : config->retries ?: ASKER_RETRIES,
		.backoff_ms = config->backoff_ms ?: ASKER_BACKOFF_MS,
	};
	return http_new(&(struct http_trust){config->ca_file, config->ca_dir}, &a->http);
}

void asker_free(struct asker *a)
{
	http_free(a->http);
	*a = (struct asker){0};
}

char *asker_url(const char *base, const char *path)
{
	size_t n = strlen(base);
	char *url = NULL;
	while (n && base[n - 1] == '/')
		n--;
	return asprintf(&url, "%.*s/%s", (int)n, base, path) < 0 ? NULL : url;
}

/* ---- one request ---- */

static bool is_success(const struct attempt *a, const struct http_response *r)
{
	return (r->status >= 200 && r->status < 300) || (a->accept && r->status == a->accept);
}

static int on_bytes(void *arg, const struct http_response *so_far, const char *bytes, size_t n)
{
	struct attempt *a = arg;
	if (is_success(a, so_far)) {
		a->take_err = a->q->take(a->q->arg, so_far, bytes, n, &a->complaint);
		return a->take_err;
	}
	size_t room = FAILURE_MAX - a->failure.len;
	buf_add(&a->failure, bytes, n < room ? n : room);
	return 0;
}

static void redact(const struct asker *a, char *text)
{
	if (text && a->endpoint.redact)
		a->endpoint.redact(a->endpoint.arg, text);
}

/* The id that we gave the request. */
static const char *sent_id(const struct http_headers *headers)
{
	static const char name[] = "X-Request-Id: ";
	for (size_t i = 0; i < headers->n; i++)
		if (!strncmp(headers->line[i], name, sizeof(name) - 1))
			return headers->line[i] + sizeof(name) - 1;
	return NULL;
}

/* The answer came as HTTP wants it, and is still no use. */
static int unusable(struct attempt *a, const struct error_facts *f, int err,
		    struct provider_error *ret_error)
{
	enum provider_error_kind kind = PROVIDER_FAIL_PROTOCOL;
	char text[sizeof(a->complaint.text) + 32];
	const char *advice = "try again";
	if (err == -ENOMEM)
		return provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, err, "not enough memory");
	if (err == -ENODATA)
		kind = PROVIDER_FAIL_TRANSPORT;
	else if (err == -EIO)
		kind = a->complaint.passes ? PROVIDER_FAIL_SERVER : PROVIDER_FAIL_REQUEST;
	else
		advice = "check the endpoint";
	const char *what =
		a->complaint.text[0] ? a->complaint.text : "the answer can't be understood";
	snprintf(text, sizeof(text), "%s: %s", what, advice);
	return error_from_answer(f, kind, a->complaint.passes || err == -ENODATA, text, ret_error);
}

static int outcome(struct attempt *a, int err, const struct error_facts *f,
		   struct provider_error *ret_error)
{
	const struct http_response *r = f->response;
	const struct asker_query *q = a->q;
	if (err == -ECANCELED && !a->take_err)
		return error_from_http(f, err, ret_error);
	if (r->status && !is_success(a, r))
		return error_from_status(f, ret_error);
	if (a->take_err < 0)
		return unusable(a, f, a->take_err, ret_error);
	if (err && !(q->is_whole && q->is_whole(q->arg)))
		return error_from_http(f, err, ret_error);
	err = q->end(q->arg, &a->complaint);
	redact(q->by, a->complaint.text);
	return err ? unusable(a, f, err, ret_error) : 0;
}

static int perform(struct attempt *a, enum error_where where, struct http_request *req,
		   struct provider_error *ret_error)
{
	struct asker *by = a->q->by;
	struct http_response response;
	req->connect_timeout_s = by->connect_timeout_s;
	req->stall_timeout_s = by->stall_timeout_s;
	req->on_bytes = on_bytes;
	req->arg = a;
	int err = http_perform(by->http, req, &response);
	redact(by, a->failure.data);
	redact(by, a->complaint.text);
	const struct error_facts facts = {
		.where = where,
		.response = &response,
		.url = req->url,
		.model = a->q->req ? a->q->req->model : NULL,
		.source = by->endpoint.source ? by->endpoint.source(by->endpoint.arg) : NULL,
		.request_id = sent_id(req->headers),
		.body = buf_str(&a->failure),
		.body_len = a->failure.len,
	};
	err = outcome(a, err, &facts, ret_error);
	if (err) {
		redact(by, ret_error->text);
		redact(by, ret_error->request_id);
	}
	return err;
}

/* Ask the endpoint itself, once. -ENOTSUP: renew was wanted and can't be. */
static int ask_once(struct attempt *a, bool renew, struct provider_error *ret_error)
{
	const struct asker_query *q = a->q;
	const struct asker_endpoint *endpoint = &q->by->endpoint;
	struct http_headers headers = {0};
	char *base AUTOFREE = NULL, *url AUTOFREE = NULL;
	a->asked = false;
	int err = endpoint->prepare(endpoint->arg, q->req, renew, &base, &headers, ret_error);
	if (!err) {
		url = asker_url(base, q->path);
		err = url ? http_headers_add(&headers, "Content-Type", "application/json")
			  : -ENOMEM;
		if (err)
			provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, err, "not enough memory");
	}
	if (!err) {
		struct http_request req = {
			.method = q->method,
			.url = url,
			.headers = &headers,
			.body = q->body ? buf_str(q->body) : NULL,
			.body_len = q->body ? q->body->len : 0,
			.cancel = q->req->cancel,
		};
		a->asked = true;
		err = perform(a, endpoint->where, &req, ret_error);
	}
	http_headers_free(&headers);
	return err;
}

/* ---- again, and how often ---- */

bool asker_wait(int64_t ms, const volatile sig_atomic_t *cancel)
{
	const struct timespec step = {.tv_nsec = WAIT_STEP_MS * 1000000L};
	const int64_t end = clock_ms() + ms;
	for (;;) {
		if (cancel && *cancel)
			return false;
		if (clock_ms() >= end)
			return true;
		nanosleep(&step, NULL); /* a signal ends it early, and may have raised *cancel */
	}
}

/* How long to wait before try number n+2; -1: don't. */
static int64_t pause_for(const struct asker *a, const struct provider_error *e, int n)
{
	if (!e->retryable || n >= a->retries || e->retry_after_s > ASKER_WAIT_MAX_S)
		return -1;
	int64_t ms = (int64_t)a->backoff_ms << (n < 10 ? n : 10);
	int64_t told = (int64_t)e->retry_after_s * 1000;
	return ms > told ? ms : told;
}

static bool pause_before_retry(const struct asker_query *q, int n, int64_t ms,
			       const struct provider_error *e)
{
	char line[160];
	snprintf(line, sizeof(line), "%s: trying again in %lld s (%d of %d)", error_short(e),
		 (long long)(ms + 999) / 1000, n + 1, q->by->retries);
	if (q->sink && q->sink->on_status)
		q->sink->on_status(q->sink->arg, line);
	return asker_wait(ms, q->req->cancel);
}

static void attempt_restart(struct attempt *a)
{
	buf_reset(&a->failure);
	a->take_err = 0;
	a->complaint = (struct asker_complaint){0};
	a->q->restart(a->q->arg);
}

/* Ask until there is an answer, a failure that waiting can't cure, or text was shown already. */
static int ask_often(struct attempt *a, struct provider_error *ret_error)
{
	const struct asker_query *q = a->q;
	bool renewed = false, renew = false;
	struct provider_error e = {0};
	for (int n = 0;;) {
		attempt_restart(a);
		int err = ask_once(a, renew, &e);
		if (err == -ENOTSUP) /* *ret_error has the refusal */
			return -EIO;
		if (!err)
			return 0;
		e.unasked = !a->asked;
		*ret_error = e;
		renew = a->asked && e.status == 401 && !renewed;
		if (renew) {
			renewed = true;
			continue;
		}
		bool shown = q->is_shown && q->is_shown(q->arg);
		int64_t ms = shown || err == -ECANCELED ? -1 : pause_for(q->by, &e, n);
		if (ms < 0)
			return err;
		if (!pause_before_retry(q, n, ms, &e))
			return provider_fail(ret_error, PROVIDER_FAIL_CANCELLED, -ECANCELED,
					     "cancelled");
		n++;
	}
}

int asker_run(const struct asker_query *q, struct provider_error *ret_error)
{
	struct attempt a = {.q = q};
	int err = ask_often(&a, ret_error);
	buf_free(&a.failure);
	return err;
}

/* ---- JSON values ---- */

struct value {
	struct buf text;
	struct json *root;
};

static void value_restart(void *arg)
{
	struct value *v = arg;
	if (v->text.data)
		explicit_bzero(v->text.data, v->text.len); /* it may hold a credential */
	buf_reset(&v->text);
}

static int value_take(void *arg, const struct http_response *r, const char *bytes, size_t n,
		      struct asker_complaint *complaint)
{
	struct value *v = arg;
	(void)r;
	buf_add(&v->text, bytes, n);
	int err = buf_error(&v->text);
	if (err == -EFBIG)
		snprintf(complaint->text, sizeof(complaint->text), "the answer is over %u MiB long",
			 JSON_MAX >> 20);
	return err;
}

static int value_end(void *arg, struct asker_complaint *complaint)
{
	struct value *v = arg;
	if (!json_parse(buf_str(&v->text), v->text.len, &v->root, NULL))
		return 0;
	snprintf(complaint->text, sizeof(complaint->text), "the answer is no JSON");
	return -EPROTO;
}

static int finish_value(struct value *v, int err, struct json **ret_root)
{
	if (!err)
		*ret_root = v->root;
	value_restart(v);
	buf_free(&v->text);
	return err;
}

int asker_json(const struct asker_query *q, struct json **ret_root,
	       struct provider_error *ret_error)
{
	struct value v = {.text = {.max = JSON_MAX}};
	struct asker_query own = *q;
	own.arg = &v;
	own.restart = value_restart;
	own.take = value_take;
	own.end = value_end;
	own.is_whole = own.is_shown = NULL;
	return finish_value(&v, asker_run(&own, ret_error), ret_root);
}

int asker_fetch(struct asker *a, const struct asker_fetch *f, struct json **ret_root,
		struct provider_error *ret_error)
{
	struct value v = {.text = {.max = JSON_MAX}};
	const struct asker_query q = {.by = a, .arg = &v, .take = value_take, .end = value_end};
	struct attempt attempt = {.q = &q, .accept = f->accept};
	struct http_request req = {
		.method = f->method,
		.url = f->url,
		.headers = f->headers,
		.body = f->body,
		.body_len = f->body ? strlen(f->body) : 0,
		.cancel = f->cancel,
	};
	int err = perform(&attempt, f->where, &req, ret_error);
	buf_free(&attempt.failure);
	return finish_value(&v, err, ret_root);
}
