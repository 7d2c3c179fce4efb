#include "agent/device.h"

#include "tracer/json.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define INTERVAL_S     5 /* between questions, where GitHub tells none */
#define SLOWER_S       5 /* more, each time it says that this is too often */
#define INTERVAL_MAX_S 300
#define LIFETIME_S     900 /* of a code, where GitHub tells none */
#define LIFETIME_MAX_S 86400
#define CODE_MAX       64 /* characters that a person may have to type */
#define GRANT_TYPE     "urn:ietf:params:oauth:grant-type:device_code"
#define RFC_ERROR      400 /* GitHub says 200 with an error, the RFC 400 */

static void redact(void *arg, char *text)
{
	const struct device *d = arg;
	error_redact(text, d->secret);
}

void device_free(struct device *d)
{
	asker_free(&d->asker);
	provider_config_set(&d->secret, NULL);
	free(d->url);
	free(d->client_id);
	free(d->user_code);
	free(d->uri);
	*d = (struct device){0};
}

static int no_memory(struct provider_error *ret_error)
{
	return provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, -ENOMEM, "not enough memory");
}

/* POST one JSON object, get one. */
static int post(struct device *d, const char *url, const struct buf *body,
		const volatile sig_atomic_t *cancel, struct json **ret, struct provider_error *e)
{
	struct http_headers headers = {0};
	const struct asker_fetch fetch = {
		.where = ERROR_AT_LOGIN,
		.method = "POST",
		.url = url,
		.headers = &headers,
		.body = buf_str(body),
		.accept = RFC_ERROR,
		.cancel = cancel,
	};
	int err = body->failed ? -ENOMEM : http_headers_add(&headers, "Accept", "application/json");
	err = err ?: http_headers_add(&headers, "Content-Type", "application/json");
	err = err ? no_memory(e) : asker_fetch(&d->asker, &fetch, ret, e);
	http_headers_free(&headers);
	return err;
}

/* ---- the code ---- */

static bool is_shown_code(const char *s)
{
	size_t n = s ? strlen(s) : 0;
	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] >= 0x7f)
			return false;
	return n && n <= CODE_MAX;
}

static int64_t within(int64_t n, int64_t least, int64_t most)
{
	return n < least ? least : n > most ? most : n;
}

static const char *words_of(const struct json *v, const char *otherwise)
{
	const char *words = json_get_str(v, "error_description");
	return words ?: json_get_str(v, "error") ?: otherwise;
}

static int read_code(struct device *d, const struct json *v, struct provider_error *ret_error)
{
	const char *secret = json_get_str(v, "device_code");
	const char *code = json_get_str(v, "user_code");
	const char *uri = json_get_str(v, "verification_uri");
	if (json_get(v, "error"))
		return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
				     "GitHub gives no code for the client %s: correct --client-id "
				     "or --host; the server says: %s",
				     d->client_id, words_of(v, "nothing more"));
	if (!secret || !is_shown_code(code) || !is_shown_code(uri) || !http_url_is_safe(uri))
		return provider_fail(
			ret_error, PROVIDER_FAIL_PROTOCOL, -EIO,
			"the server's answer holds no code to sign in with: check --host "
			"or WARDER_GITHUB_WEB");
	d->interval_s = INTERVAL_S;
	d->lifetime_s = LIFETIME_S;
	json_get_int(v, "interval", &d->interval_s);
	json_get_int(v, "expires_in", &d->lifetime_s);
	d->interval_s = within(d->interval_s, 1, INTERVAL_MAX_S);
	d->lifetime_s = within(d->lifetime_s, 1, LIFETIME_MAX_S);
	if (provider_config_set(&d->secret, secret) || !(d->user_code = strdup(code)) ||
	    !(d->uri = strdup(uri)))
		return no_memory(ret_error);
	return 0;
}

static int fetch_code(struct device *d, const struct github *github,
		      const volatile sig_atomic_t *cancel, struct provider_error *ret_error)
{
	char *url AUTOFREE = asker_url(github->web, "login/device/code");
	struct buf body = {0};
	struct jsonw w;
	struct json *v = NULL;
	jsonw_init(&w, &body);
	jsonw_begin_object(&w);
	jsonw_kstr(&w, "client_id", d->client_id);
	jsonw_kstr(&w, "scope", DEVICE_SCOPE);
	jsonw_end_object(&w);
	int err = url ? post(d, url, &body, cancel, &v, ret_error) : no_memory(ret_error);
	buf_free(&body);
	err = err ?: read_code(d, v, ret_error);
	json_free(v);
	return err;
}

int device_begin(const struct provider_config *config, const struct github *github,
		 const char *client_id, const volatile sig_atomic_t *cancel, struct device *ret,
		 struct provider_error *ret_error)
{
	const struct asker_endpoint endpoint = {
		.arg = ret, .where = ERROR_AT_LOGIN, .redact = redact};
	*ret = (struct device){0};
	if (!http_url_is_safe(github->web))
		return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
				     "nobody signs in at \"%s\": give an https URL", github->web);
	int err = asker_init(&ret->asker, config, &endpoint);
	ret->url = asker_url(github->web, "login/oauth/access_token");
	ret->client_id = strdup(client_id);
	if (err || !ret->url || !ret->client_id)
		err = no_memory(ret_error);
	err = err ?: fetch_code(ret, github, cancel, ret_error);
	if (err)
		device_free(ret);
	return err;
}

/* ---- the token ---- */

/* 0 and the token, or -EAGAIN: not yet, or as device_wait(). */
static int read_answer(struct device *d, const struct json *v, char **ret, struct provider_error *e)
{
	const char *token = json_get_str(v, "access_token");
	const char *error = json_get_str(v, "error");
	if (!error && token && *token) {
		*ret = strdup(token);
		return *ret ? 0 : no_memory(e);
	}
	if (!error)
		return provider_fail(e, PROVIDER_FAIL_PROTOCOL, -EIO,
				     "the server's answer holds no token: check --host or "
				     "WARDER_GITHUB_WEB");
	if (!strcmp(error, "authorization_pending"))
		return -EAGAIN;
	if (!strcmp(error, "slow_down")) {
		int64_t told = d->interval_s + SLOWER_S;
		json_get_int(v, "interval", &told);
		d->interval_s = within(told, d->interval_s, INTERVAL_MAX_S);
		return -EAGAIN;
	}
	if (!strcmp(error, "access_denied"))
		return provider_fail(e, PROVIDER_FAIL_AUTH, -EIO,
				     "the login was refused on GitHub's page: run `warder login` "
				     "again if that was not meant");
	if (!strcmp(error, "expired_token"))
		return provider_fail(e, PROVIDER_FAIL_AUTH, -EIO,
				     "the code has expired: run `warder login` again");
	return provider_fail(e, PROVIDER_FAIL_CONFIG, -EIO,
			     "GitHub does not let the client %s sign in: correct --client-id or "
			     "--host; the server says: %s",
			     d->client_id, words_of(v, error));
}

static int ask_whether(struct device *d, const volatile sig_atomic_t *cancel, char **ret,
		       struct provider_error *e)
{
	struct buf body = {0};
	struct jsonw w;
	struct json *v = NULL;
	jsonw_init(&w, &body);
	jsonw_begin_object(&w);
	jsonw_kstr(&w, "client_id", d->client_id);
	jsonw_kstr(&w, "device_code", d->secret);
	jsonw_kstr(&w, "grant_type", GRANT_TYPE);
	jsonw_end_object(&w);
	int err = post(d, d->url, &body, cancel, &v, e);
	if (body.data)
		explicit_bzero(body.data, body.len);
	buf_free(&body);
	err = err ?: read_answer(d, v, ret, e);
	json_free(v);
	return err;
}

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* A little more than wanted: asking a moment too early counts as too often. */
static int64_t pause_ms(const struct device *d, const struct provider_error *e)
{
	int64_t ms = d->interval_s * 1000 + d->interval_s * 200;
	int64_t told = e->retryable ? (int64_t)e->retry_after_s * 1000 : 0;
	return told > ms ? told : ms;
}

static void tell(const struct provider_sink *sink, const struct provider_error *e)
{
	char line[sizeof(e->text) + 32];
	snprintf(line, sizeof(line), "still waiting: %s", e->text);
	if (sink->on_status)
		sink->on_status(sink->arg, line);
}

int device_wait(struct device *d, const struct provider_sink *sink,
		const volatile sig_atomic_t *cancel, char **ret_token,
		struct provider_error *ret_error)
{
	struct provider_error e = {.retry_after_s = -1};
	int64_t end = now_ms() + d->lifetime_s * 1000;
	bool told = false;
	for (;;) {
		int64_t left = end - now_ms(), pause = pause_ms(d, &e);
		if (!asker_wait(pause < left ? pause : left, cancel))
			return provider_fail(ret_error, PROVIDER_FAIL_CANCELLED, -ECANCELED,
					     "cancelled");
		if (now_ms() >= end)
			return provider_fail(ret_error, PROVIDER_FAIL_AUTH, -EIO,
					     "the code has expired: run `warder login` again");
		e = (struct provider_error){.retry_after_s = -1};
		int err = ask_whether(d, cancel, ret_token, &e);
		if (err == -EAGAIN || (err == -EIO && e.retryable)) {
			if (err == -EIO && !told)
				tell(sink, &e);
			told = err == -EIO;
			continue;
		}
		if (err)
			*ret_error = e;
		return err;
	}
}
