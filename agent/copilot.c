#include "agent/copilot.h"

#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define GRANT_LIFETIME_S 1500 /* where GitHub tells none */

static int no_memory(struct provider_error *ret_error)
{
	return provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, -ENOMEM, "not enough memory");
}

/* ---- the grant ---- */

void copilot_grant_free(struct copilot_grant *g)
{
	provider_config_set(&g->bearer, NULL);
	free(g->base);
	*g = (struct copilot_grant){0};
}

char *copilot_base_of(const char *bearer, const char *otherwise)
{
	static const char key[] = "proxy-ep=proxy.";
	char *base = NULL;
	const char *at = bearer;
	while ((at = strstr(at, key)) && at != bearer && at[-1] != ';')
		at++;
	if (!at)
		return strdup(otherwise);
	at += sizeof(key) - 1;
	size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");
	bool whole = n && (at[n] == ';' || !at[n]);
	if (!whole)
		return strdup(otherwise);
	return asprintf(&base, "https://api.%.*s", (int)n, at) < 0 ? NULL : base;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void read_lifetime(const struct json *root, int64_t now_s, struct copilot_grant *g)
{
	int64_t expires_at = 0, refresh_in = 0;
	bool has_refresh = json_get_int(root, "refresh_in", &refresh_in) && refresh_in >= 0;
	g->lifetime_s = has_refresh ? refresh_in : GRANT_LIFETIME_S;
	/* A clock that runs wrong must not make us ask for ever. */
	if (json_get_int(root, "expires_at", &expires_at) && expires_at > now_s)
		g->lifetime_s = expires_at - now_s;
	g->renew_after_s = g->lifetime_s - smaller(120, g->lifetime_s / 4);
	if (has_refresh)
		g->renew_after_s =
			smaller(g->renew_after_s, refresh_in - smaller(60, refresh_in / 4));
}

int copilot_read_grant(const struct json *root, int64_t now_s, const char *base,
		       struct copilot_grant *ret, const char **ret_why)
{
	const char *bearer = json_get_str(root, "token");
	const char *api = json_get_str(json_get(root, "endpoints"), "api");
	bool chat = true;
	if (!bearer || !*bearer) {
		*ret_why = "GitHub's answer has no token for Copilot";
		return -EINVAL;
	}
	for (const char *p = bearer; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f) {
			*ret_why = "GitHub's token for Copilot has a space or a line end in it";
			return -EINVAL;
		}
	if (json_bool(json_get(root, "chat_enabled"), &chat) && !chat) {
		*ret_why = "Copilot Chat is switched off for this account";
		return -EINVAL;
	}
	if (api && !http_url_is_safe(api)) {
		*ret_why = "GitHub names an API without https for Copilot";
		return -EINVAL;
	}
	struct copilot_grant g = {
		.bearer = strdup(bearer),
		.base = api ? strdup(api) : copilot_base_of(bearer, base),
	};
	if (!g.bearer || !g.base) {
		copilot_grant_free(&g);
		return -ENOMEM;
	}
	read_lifetime(root, now_s, &g);
	*ret = g;
	return 0;
}

/* ---- the credential ---- */

static int copy_config(struct provider_config *to, const struct provider_config *from)
{
	const struct {
		char **to;
		const char *from, *otherwise;
	} fields[] = {
		{&to->copilot_bearer, from->copilot_bearer, NULL},
		{&to->endpoint, from->endpoint, NULL},
		{&to->integration_id, from->integration_id, NULL},
		{&to->editor_version, from->editor_version, COPILOT_EDITOR_VERSION},
		{&to->editor_plugin_version, from->editor_plugin_version, COPILOT_EDITOR_VERSION},
		{&to->intent, from->intent, COPILOT_INTENT},
		{&to->github_api_version, from->github_api_version, COPILOT_GITHUB_API_VERSION},
	};
	int err = 0;
	for (size_t i = 0; i < ARRAY_LEN(fields) && !err; i++)
		err = provider_config_set(fields[i].to, fields[i].from ?: fields[i].otherwise);
	return err;
}

static int choose_github(struct copilot *c, const struct provider_config *config,
			 struct provider_error *ret_error)
{
	int err = provider_github(config, &c->github);
	if (err == -EINVAL)
		return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
				     "no GitHub has that name or URL: correct WARDER_GITHUB_API, "
				     "WARDER_GITHUB_WEB, COPILOT_GH_HOST or GH_HOST");
	return err ? no_memory(ret_error) : 0;
}

static int no_token(int err, const char *source, struct provider_error *ret_error)
{
	if (err == -ENOENT)
		return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
				     "there is no GitHub token: run `warder login`, or set "
				     "COPILOT_GITHUB_TOKEN");
	if (err == -EINVAL)
		return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
				     "%s holds no GitHub token: correct or remove it, or run "
				     "`warder login`",
				     source);
	return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
			     "%s can't be read (%s): correct its permissions or remove it", source,
			     ownfile_strerror(err));
}

/* A GitHub token, or why there is none. */
static int use_token(struct copilot *c, struct provider_config *config,
		     struct provider_error *ret_error)
{
	int err = provider_find_token(config);
	const struct token *found = &config->token;
	if (err == -ENOMEM)
		return no_memory(ret_error);
	if (err == -EINVAL && !found->source)
		return choose_github(c, config, ret_error);
	if (err)
		return no_token(err, found->source ?: "the configuration", ret_error);
	if (token_kind(found->value) == TOKEN_CLASSIC)
		return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
				     "the token from %s is a classic personal access token, which "
				     "Copilot never takes: run `warder login`, or set another",
				     found->source);
	if (provider_config_set(&c->token, found->value) ||
	    provider_config_set(&c->source, found->source))
		return no_memory(ret_error);
	c->direct = token_kind(found->value) == TOKEN_FINE;
	return choose_github(c, config, ret_error);
}

static int check_urls(const struct copilot *c, struct provider_error *ret_error)
{
	const char *const urls[] = {c->config.endpoint, c->github.api, c->github.web};
	for (size_t i = 0; i < ARRAY_LEN(urls); i++)
		if (urls[i] && !http_url_is_safe(urls[i]))
			return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
					     "no token is sent to \"%s\": give an https URL",
					     urls[i]);
	return 0;
}

/* A ready bearer is a grant that never ends by itself. */
static int use_ready_bearer(struct copilot *c, const struct provider_config *config,
			    struct provider_error *ret_error)
{
	const char *bearer = c->config.copilot_bearer;
	int err = choose_github(c, config, ret_error);
	if (err)
		return err;
	for (const char *p = bearer; *p; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f)
			return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
					     "WARDER_COPILOT_TOKEN has a space or a line end in "
					     "it: correct it");
	c->grant.base = copilot_base_of(bearer, c->github.copilot);
	if (!c->grant.base || provider_config_set(&c->grant.bearer, bearer))
		return no_memory(ret_error);
	return 0;
}

int copilot_init(struct copilot *c, struct provider_config *config,
		 struct provider_error *ret_error)
{
	*c = (struct copilot){0};
	int err = copy_config(&c->config, config) ? no_memory(ret_error) : 0;
	if (!err)
		err = c->config.copilot_bearer ? use_ready_bearer(c, config, ret_error)
					       : use_token(c, config, ret_error);
	if (!err)
		err = check_urls(c, ret_error);
	if (err)
		copilot_free(c);
	return err;
}

void copilot_free(struct copilot *c)
{
	provider_config_free(&c->config);
	provider_config_set(&c->token, NULL);
	provider_config_set(&c->previous, NULL);
	free(c->source);
	github_release(&c->github);
	copilot_grant_free(&c->grant);
	*c = (struct copilot){0};
}

/* ---- the exchange ---- */

static int64_t boot_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int add_credential(struct http_headers *headers, const char *scheme, const char *secret)
{
	char *value = NULL;
	if (asprintf(&value, "%s %s", scheme, secret) < 0)
		return -ENOMEM;
	int err = http_headers_add(headers, "Authorization", value);
	explicit_bzero(value, strlen(value));
	free(value);
	return err;
}

/* A header that the configuration may switch off with an empty value. */
static int add_optional(struct http_headers *headers, const char *name, const char *value)
{
	return *value ? http_headers_add(headers, name, value) : 0;
}

static int add_editor(const struct copilot *c, struct http_headers *headers)
{
	int err = add_optional(headers, "Editor-Version", c->config.editor_version);
	return err
		       ?: add_optional(headers, "Editor-Plugin-Version",
				       c->config.editor_plugin_version);
}

int copilot_ask_github(const struct copilot *c, struct asker *asker, const char *path,
		       const volatile sig_atomic_t *cancel, struct json **ret_root,
		       struct provider_error *ret_error)
{
	struct http_headers headers = {0};
	char *url AUTOFREE = asker_url(c->github.api, path);
	int err = url ? add_credential(&headers, "token", c->token) : -ENOMEM;
	err = err ?: http_headers_add(&headers, "Accept", "application/json");
	err = err ?: add_editor(c, &headers);
	const struct asker_fetch fetch = {
		.where = ERROR_AT_EXCHANGE,
		.method = "GET",
		.url = url,
		.headers = &headers,
		.cancel = cancel,
	};
	if (err)
		err = provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, err,
				    "the request to GitHub could not be made");
	else
		err = asker_fetch(asker, &fetch, ret_root, ret_error);
	http_headers_free(&headers);
	return err;
}

/* The token is the bearer; it lives as long as its owner lets it. */
static int go_direct(struct copilot *c, struct provider_error *ret_error)
{
	c->direct = true;
	free(c->grant.base);
	c->grant.base = strdup(c->github.copilot);
	if (!c->grant.base || provider_config_set(&c->grant.bearer, c->token))
		return no_memory(ret_error);
	return 0;
}

static int exchange(struct copilot *c, struct asker *asker, const volatile sig_atomic_t *cancel,
		    struct provider_error *ret_error)
{
	struct json *root = NULL;
	struct copilot_grant grant = {0};
	const char *why = NULL;
	int err =
		copilot_ask_github(c, asker, "copilot_internal/v2/token", cancel, &root, ret_error);
	/* Of another application than those whose tokens GitHub exchanges. */
	if (err && ret_error->status == 404 && token_kind(c->token) != TOKEN_USER_APP)
		return go_direct(c, ret_error);
	if (err)
		return err;
	err = copilot_read_grant(root, (int64_t)time(NULL), c->github.copilot, &grant, &why);
	json_free(root);
	if (err == -ENOMEM)
		return no_memory(ret_error);
	if (err)
		return provider_fail(ret_error, PROVIDER_FAIL_AUTH, -EIO,
				     "%s: check the account at github.com/settings/copilot", why);
	provider_config_set(&c->previous, NULL);
	c->previous = TAKE_PTR(c->grant.bearer);
	copilot_grant_free(&c->grant);
	c->grant = grant;
	c->granted_ms = boot_ms();
	return 0;
}

/* Have a bearer that lives. */
static int ensure_grant(struct copilot *c, struct asker *asker, bool renew,
			const volatile sig_atomic_t *cancel, struct provider_error *ret_error)
{
	if (c->config.copilot_bearer || (c->direct && c->grant.bearer))
		return renew ? -ENOTSUP : 0;
	if (c->direct)
		return go_direct(c, ret_error);
	int64_t age_ms = boot_ms() - c->granted_ms;
	bool have = c->grant.bearer && !renew;
	if (have && age_ms < c->grant.renew_after_s * 1000)
		return 0;
	struct provider_error error;
	int err = exchange(c, asker, cancel, &error);
	/* It has some time left: a hiccup at GitHub need not be the user's. */
	if (err && have && error.retryable && age_ms < c->grant.lifetime_s * 1000)
		return 0;
	if (err)
		*ret_error = error;
	return err;
}

/* ---- a request ---- */

static void make_uuid(char ret[37])
{
	unsigned char b[16];
	/* So few bytes come whole; the call is older than any kernel we run on. */
	BUG(getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b));
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	snprintf(ret, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		 b[13], b[14], b[15]);
}

static int add_headers(const struct copilot *c, const struct provider_request *req,
		       struct http_headers *headers)
{
	const struct provider_config *config = &c->config;
	const char *id = c->direct ? COPILOT_DIRECT_INTEGRATION : COPILOT_INTEGRATION_ID;
	char uuid[37];
	make_uuid(uuid);
	int err = add_credential(headers, "Bearer", c->grant.bearer);
	err = err ?: add_editor(c, headers);
	err = err ?: add_optional(headers, "Copilot-Integration-Id", config->integration_id ?: id);
	err = err ?: add_optional(headers, "X-GitHub-Api-Version", config->github_api_version);
	err = err ?: http_headers_add(headers, "X-Request-Id", uuid);
	if (err || !req->convo)
		return err;
	err = add_optional(headers, "Openai-Intent", config->intent);
	/* Without it, or with "user" on every request, each step of a turn is billed. */
	return err
		       ?: http_headers_add(headers, "X-Initiator",
					   req->initiator == PROVIDER_BY_AGENT ? "agent" : "user");
}

int copilot_prepare(struct copilot *c, struct asker *asker, const struct provider_request *req,
		    bool renew, char **ret_base, struct http_headers *headers,
		    struct provider_error *ret_error)
{
	int err = ensure_grant(c, asker, renew, req->cancel, ret_error);
	if (err)
		return err;
	err = add_headers(c, req, headers);
	char *base = err ? NULL : strdup(c->config.endpoint ?: c->grant.base);
	if (err == -EINVAL)
		return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
				     "a Copilot header has a control character in it: correct the "
				     "configuration");
	if (!base)
		return no_memory(ret_error);
	*ret_base = base;
	return 0;
}

const char *copilot_source(const struct copilot *c)
{
	return c->config.copilot_bearer ? "WARDER_COPILOT_TOKEN" : c->source;
}

void copilot_redact(const struct copilot *c, char *text)
{
	error_redact(text, c->grant.bearer);
	error_redact(text, c->previous);
	error_redact(text, c->token);
}

/* ---- models ---- */

static bool lists(const struct json *array, const char *s)
{
	const struct json *v = json_is_array(array) ? json_first(array) : NULL;
	for (; v; v = json_next(v))
		if (json_str(v) && !strcmp(json_str(v), s))
			return true;
	return false;
}

void copilot_judge(const struct json *listed, struct provider_model *m)
{
	const struct json *can = json_get(listed, "capabilities");
	const struct json *endpoints = json_get(listed, "supported_endpoints");
	const char *type = json_get_str(can, "type");
	const char *policy = json_get_str(json_get(listed, "policy"), "state");
	bool tools = false, shown = true;
	json_bool(json_get(json_get(can, "supports"), "tool_calls"), &tools);
	json_bool(json_get(listed, "is_chat_default"), &m->preferred);
	json_bool(json_get(listed, "model_picker_enabled"), &shown);
	json_get_int(json_get(can, "limits"), "max_context_window_tokens", &m->context);
	bool chat = !json_len(endpoints) || lists(endpoints, "/chat/completions");
	bool responses = lists(endpoints, "/responses");
	m->hidden = !shown;
	m->responses_only = responses && !chat;
	m->needs_enabling = policy && strcmp(policy, "enabled") != 0;
	m->usable = tools && type && !strcmp(type, "chat") && (chat || responses) &&
		    !(policy && !strcmp(policy, "disabled"));
}
