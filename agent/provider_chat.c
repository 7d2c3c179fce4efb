#include "agent/provider_chat.h"

#include "agent/provider_answer.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define FAILURE_MAX  (64u << 10) /* bytes kept of an error's body */
#define JSON_MAX     (8u << 20)	 /* of a list of models, of a token */
#define WAIT_STEP_MS 50

/* One request under way, and what came of it. */
struct attempt {
	struct chat *chat;
	const struct provider_request *req;
	const char *method;
	const char *path;
	const struct buf *body; /* NULL: none */
	/* A 2xx answer's bytes; 0, HTTP_ENOUGH or -errno. */
	int (*take)(struct attempt *a, const struct http_response *r, const char *bytes, size_t n);
	/* No more bytes come: 0, or -errno with a->complaint. */
	int (*end)(struct attempt *a);
	/* Is what came enough, although the connection failed? NULL: no. */
	bool (*is_whole)(struct attempt *a);
	struct answer *answer;	       /* of a turn */
	struct convo_message *message; /* of a turn: where it goes */
	struct buf json;	       /* of a fetch */
	struct json *root;	       /* of a fetch: what it was */

	struct buf failure; /* the body of an answer that is no success */
	int take_err;	    /* what take() ended the request with */
	bool asked;	    /* the server itself was asked, and answered or not */
	char complaint[512];
	bool passes; /* what the complaint is about may pass */
};

int chat_init(struct chat *c, const struct provider_config *config,
	      const struct chat_endpoint *endpoint)
{
	*c = (struct chat){
		.endpoint = *endpoint,
		.connect_timeout_s = config->connect_timeout_s,
		.stall_timeout_s = config->stall_timeout_s,
		.retries = config->retries < 0 ? 0 : config->retries ?: CHAT_RETRIES,
		.backoff_ms = config->backoff_ms ?: CHAT_BACKOFF_MS,
	};
	return http_new(config->ca_file, &c->http);
}

void chat_free(struct chat *c)
{
	http_free(c->http);
	free(c->model);
	*c = (struct chat){0};
}

char *chat_url(const char *base, const char *path)
{
	size_t n = strlen(base);
	char *url = NULL;
	while (n && base[n - 1] == '/')
		n--;
	return asprintf(&url, "%.*s/%s", (int)n, base, path) < 0 ? NULL : url;
}

/* ---- one request ---- */

static bool is_success(const struct http_response *r)
{
	return r->status >= 200 && r->status < 300;
}

static int on_bytes(void *arg, const struct http_response *so_far, const char *bytes, size_t n)
{
	struct attempt *a = arg;
	if (is_success(so_far)) {
		a->take_err = a->take(a, so_far, bytes, n);
		return a->take_err;
	}
	size_t room = FAILURE_MAX - a->failure.len;
	buf_add(&a->failure, bytes, n < room ? n : room);
	return 0;
}

static void redact(const struct chat *c, char *text)
{
	if (text && c->endpoint.redact)
		c->endpoint.redact(c->endpoint.arg, text);
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
	char text[sizeof(a->complaint) + 32];
	const char *advice = "try again";
	if (err == -ENOMEM)
		return provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, err, "not enough memory");
	if (err == -ENODATA)
		kind = PROVIDER_FAIL_TRANSPORT;
	else if (err == -EIO)
		kind = a->passes ? PROVIDER_FAIL_SERVER : PROVIDER_FAIL_REQUEST;
	else
		advice = "check the endpoint";
	const char *what = a->complaint[0] ? a->complaint : "the answer can't be understood";
	snprintf(text, sizeof(text), "%s: %s", what, advice);
	return error_from_answer(f, kind, a->passes || err == -ENODATA, text, ret_error);
}

static int outcome(struct attempt *a, int err, const struct error_facts *f,
		   struct provider_error *ret_error)
{
	const struct http_response *r = f->response;
	if (err == -ECANCELED && !a->take_err)
		return error_from_http(f, err, ret_error);
	if (r->status && !is_success(r))
		return error_from_status(f, ret_error);
	if (a->take_err < 0)
		return unusable(a, f, a->take_err, ret_error);
	if (err && !(a->is_whole && a->is_whole(a)))
		return error_from_http(f, err, ret_error);
	err = a->end(a);
	return err ? unusable(a, f, err, ret_error) : 0;
}

static int perform(struct attempt *a, enum error_where where, const char *url,
		   const struct http_headers *headers, const volatile sig_atomic_t *cancel,
		   struct provider_error *ret_error)
{
	struct chat *c = a->chat;
	struct http_response response;
	const struct http_request req = {
		.method = a->method,
		.url = url,
		.headers = headers,
		.body = a->body ? buf_str(a->body) : NULL,
		.body_len = a->body ? a->body->len : 0,
		.connect_timeout_s = c->connect_timeout_s,
		.stall_timeout_s = c->stall_timeout_s,
		.cancel = cancel,
		.on_bytes = on_bytes,
		.arg = a,
	};
	int err = http_perform(c->http, &req, &response);
	redact(c, a->failure.data);
	redact(c, a->complaint);
	const struct error_facts facts = {
		.where = where,
		.response = &response,
		.url = url,
		.model = a->req ? a->req->model : NULL,
		.source = c->endpoint.source ? c->endpoint.source(c->endpoint.arg) : NULL,
		.request_id = sent_id(headers),
		.body = buf_str(&a->failure),
		.body_len = a->failure.len,
	};
	err = outcome(a, err, &facts, ret_error);
	if (err) {
		redact(c, ret_error->text);
		redact(c, ret_error->detail);
		redact(c, ret_error->request_id);
	}
	return err;
}

/* Ask the endpoint itself, once. -ENOTSUP: renew was wanted and can't be. */
static int ask_once(struct attempt *a, bool renew, struct provider_error *ret_error)
{
	struct chat *c = a->chat;
	struct http_headers headers = {0};
	char *base AUTOFREE = NULL, *url AUTOFREE = NULL;
	a->asked = false;
	int err = c->endpoint.prepare(c->endpoint.arg, a->req, renew, &base, &headers, ret_error);
	if (!err) {
		url = chat_url(base, a->path);
		err = url ? http_headers_add(&headers, "Content-Type", "application/json")
			  : -ENOMEM;
		if (err)
			provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, err, "not enough memory");
	}
	if (!err) {
		a->asked = true;
		err = perform(a, c->endpoint.where, url, &headers, a->req->cancel, ret_error);
	}
	http_headers_free(&headers);
	return err;
}

/* ---- again, and how often ---- */

static void say(const struct provider_sink *sink, const char *line)
{
	if (sink && sink->on_status)
		sink->on_status(sink->arg, line);
}

/* False: cancelled. */
static bool wait_ms(int64_t ms, const volatile sig_atomic_t *cancel)
{
	const struct timespec step = {.tv_nsec = WAIT_STEP_MS * 1000000L};
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t end = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + ms;
	for (;;) {
		if (cancel && *cancel)
			return false;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 >= end)
			return true;
		nanosleep(&step, NULL); /* a signal ends it early, and may have raised *cancel */
	}
}

/* How long to wait before try number n+2; -1: don't. */
static int64_t pause_for(const struct chat *c, const struct provider_error *e, int n)
{
	if (!e->retryable || n >= c->retries || e->retry_after_s > CHAT_WAIT_MAX_S)
		return -1;
	int64_t ms = (int64_t)c->backoff_ms << (n < 10 ? n : 10);
	int64_t told = (int64_t)e->retry_after_s * 1000;
	return ms > told ? ms : told;
}

static bool pause_before_retry(const struct chat *c, const struct provider_request *req,
			       const struct provider_sink *sink, int n, int64_t ms,
			       const struct provider_error *e)
{
	char line[160];
	snprintf(line, sizeof(line), "%s: trying again in %lld s (%d of %d)", error_short(e),
		 (long long)(ms + 999) / 1000, n + 1, c->retries);
	say(sink, line);
	return wait_ms(ms, req->cancel);
}

static void attempt_reset(struct attempt *a)
{
	buf_reset(&a->failure);
	buf_reset(&a->json);
	a->take_err = 0;
	a->complaint[0] = '\0';
	a->passes = false;
	if (a->answer) {
		const struct provider_sink *sink = a->answer->sink;
		answer_free(a->answer);
		answer_init(a->answer, sink);
	}
}

/* Ask until there is an answer, a failure that waiting can't cure, or text was shown already. */
static int ask(struct attempt *a, const struct provider_sink *sink,
	       struct provider_error *ret_error)
{
	bool renewed = false, renew = false;
	struct provider_error e = {0};
	for (int n = 0;;) {
		attempt_reset(a);
		int err = ask_once(a, renew, &e);
		if (err == -ENOTSUP) /* *ret_error has the refusal */
			return -EIO;
		if (!err)
			return 0;
		*ret_error = e;
		renew = a->asked && e.status == 401 && !renewed;
		if (renew) {
			renewed = true;
			continue;
		}
		bool shown = a->answer && a->answer->shown;
		int64_t ms = shown || err == -ECANCELED ? -1 : pause_for(a->chat, &e, n);
		if (ms < 0)
			return err;
		if (!pause_before_retry(a->chat, a->req, sink, n, ms, &e))
			return provider_fail(ret_error, PROVIDER_FAIL_CANCELLED, -ECANCELED,
					     "cancelled");
		n++;
	}
}

/* ---- JSON values ---- */

static int json_take(struct attempt *a, const struct http_response *r, const char *bytes, size_t n)
{
	(void)r;
	buf_add(&a->json, bytes, n);
	return buf_error(&a->json);
}

static int json_end(struct attempt *a)
{
	if (!json_parse(buf_str(&a->json), a->json.len, &a->root, NULL))
		return 0;
	snprintf(a->complaint, sizeof(a->complaint), "the answer is no JSON");
	return -EPROTO;
}

static void attempt_free(struct attempt *a)
{
	if (a->json.data)
		explicit_bzero(a->json.data, a->json.len); /* it may hold a bearer */
	buf_free(&a->json);
	buf_free(&a->failure);
}

int chat_fetch(struct chat *c, enum error_where where, const char *url,
	       const struct http_headers *headers, const volatile sig_atomic_t *cancel,
	       struct json **ret_root, struct provider_error *ret_error)
{
	struct attempt a = {.chat = c, .method = "GET", .take = json_take, .end = json_end};
	a.json.max = JSON_MAX;
	int err = perform(&a, where, url, headers, cancel, ret_error);
	if (!err)
		*ret_root = a.root;
	attempt_free(&a);
	return err;
}

/* ---- models ---- */

void provider_models_free(struct provider_models *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->items[i].id);
		free(m->items[i].name);
	}
	free(m->items);
	*m = (struct provider_models){0};
}

static int add_model(const struct chat *c, const struct json *v, struct provider_models *to)
{
	const char *id = json_get_str(v, "id");
	const char *name = json_get_str(v, "name");
	if (!id || !*id)
		return 0;
	struct provider_model m = {.usable = true, .context = -1};
	m.id = strdup(id);
	m.name = strdup(name && *name ? name : id);
	if (!m.id || !m.name) {
		free(m.id);
		free(m.name);
		return -ENOMEM;
	}
	if (c->endpoint.judge)
		c->endpoint.judge(v, &m);
	to->items[to->n++] = m;
	return 0;
}

/* {"data": [...]}; some servers send the array itself. */
static int read_models(const struct chat *c, const struct json *root, struct provider_models *ret)
{
	const struct json *list = json_is_array(root) ? root : json_get(root, "data");
	struct provider_models models = {0};
	if (!json_is_array(list))
		return -EPROTO;
	models.items = calloc(json_len(list) + 1, sizeof(*models.items));
	int err = models.items ? 0 : -ENOMEM;
	const struct json *v = err ? NULL : json_first(list);
	for (; v && !err; v = json_next(v))
		err = add_model(c, v, &models);
	if (err)
		provider_models_free(&models);
	else
		*ret = models;
	return err;
}

int chat_models(struct chat *c, const volatile sig_atomic_t *cancel, struct provider_models *ret,
		struct provider_error *ret_error)
{
	const struct provider_request req = {.initiator = PROVIDER_BY_USER, .cancel = cancel};
	struct attempt a = {
		.chat = c,
		.req = &req,
		.method = "GET",
		.path = "models",
		.take = json_take,
		.end = json_end,
	};
	a.json.max = JSON_MAX;
	int err = ask(&a, NULL, ret_error);
	if (!err) {
		err = read_models(c, a.root, ret);
		if (err == -EPROTO)
			err = provider_fail(ret_error, PROVIDER_FAIL_PROTOCOL, -EIO,
					    "the server's list of models has no \"data\": name a "
					    "model with --model or WARDER_MODEL");
		else if (err)
			provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, err, "not enough memory");
	}
	json_free(a.root);
	attempt_free(&a);
	return err;
}

static const struct provider_model *best_model(const struct provider_models *models)
{
	const struct provider_model *first = NULL;
	for (size_t i = 0; i < models->n; i++) {
		const struct provider_model *m = &models->items[i];
		if (!m->usable)
			continue;
		if (m->preferred)
			return m;
		if (!first)
			first = m;
	}
	return first;
}

/* The model for requests that name none: the server's default, else the first that is usable. */
static int choose_model(struct chat *c, const volatile sig_atomic_t *cancel,
			const struct provider_sink *sink, struct provider_error *ret_error)
{
	struct provider_models models = {0};
	char line[160];
	int err = chat_models(c, cancel, &models, ret_error);
	if (err)
		return err;
	const struct provider_model *best = best_model(&models);
	if (!best) {
		err = provider_fail(ret_error, PROVIDER_FAIL_MODEL, -EIO,
				    "the server lists no model that can chat and call tools: name "
				    "one with --model or WARDER_MODEL");
	} else if (!(c->model = strdup(best->id))) {
		err = provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, -ENOMEM,
				    "not enough memory");
	} else {
		snprintf(line, sizeof(line), "model %s", c->model);
		say(sink, line);
	}
	provider_models_free(&models);
	return err;
}

/* ---- a turn ---- */

static int write_body(const struct provider_request *req, struct buf *out)
{
	struct jsonw w;
	jsonw_init(&w, out);
	jsonw_begin_object(&w);
	jsonw_kstr(&w, "model", req->model);
	jsonw_key(&w, "messages");
	convo_write(&w, req->convo);
	if (req->tools_json) {
		jsonw_key(&w, "tools");
		jsonw_raw(&w, req->tools_json, strlen(req->tools_json));
	}
	jsonw_kbool(&w, "stream", true);
	jsonw_key(&w, "stream_options");
	jsonw_begin_object(&w);
	jsonw_kbool(&w, "include_usage", true);
	jsonw_end_object(&w);
	jsonw_end_object(&w);
	return buf_error(out);
}

static int answer_complains(struct attempt *a, int err)
{
	if (err < 0) {
		snprintf(a->complaint, sizeof(a->complaint), "%s", a->answer->complaint);
		a->passes = a->answer->complaint_passes;
	}
	return err;
}

static int turn_take(struct attempt *a, const struct http_response *r, const char *bytes, size_t n)
{
	return answer_complains(a, answer_feed(a->answer, r->content_type, bytes, n));
}

static int turn_end(struct attempt *a)
{
	return answer_complains(a, answer_end(a->answer, a->message));
}

static bool turn_is_whole(struct attempt *a)
{
	return answer_is_whole(a->answer);
}

static int turn_with_model(struct chat *c, const struct provider_request *req,
			   const struct provider_sink *sink, struct convo_message *ret_message,
			   struct provider_error *ret_error)
{
	struct buf body = {0};
	struct answer answer;
	struct attempt a = {
		.chat = c,
		.req = req,
		.method = "POST",
		.path = "chat/completions",
		.body = &body,
		.take = turn_take,
		.end = turn_end,
		.is_whole = turn_is_whole,
		.answer = &answer,
		.message = ret_message,
	};
	answer_init(&answer, sink);
	int err = write_body(req, &body);
	if (err == -EFBIG)
		err = provider_fail(ret_error, PROVIDER_FAIL_REQUEST, -EIO,
				    "the conversation is too long to be sent: /clear starts a new "
				    "one");
	else if (err)
		provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, err, "not enough memory");
	else
		err = ask(&a, sink, ret_error);
	answer_free(&answer);
	attempt_free(&a);
	buf_free(&body);
	return err;
}

int chat_turn(struct chat *c, const struct provider_request *req, const struct provider_sink *sink,
	      struct convo_message *ret_message, struct provider_error *ret_error)
{
	struct provider_request named = *req;
	if (!named.model && !c->model) {
		int err = choose_model(c, req->cancel, sink, ret_error);
		if (err)
			return err;
	}
	if (!named.model)
		named.model = c->model;
	return turn_with_model(c, &named, sink, ret_message, ret_error);
}
