#include "agent/provider.h"

#include "agent/ghtoken.h"
#include "agent/http.h"
#include "agent/provider_error.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

void provider_free(struct provider *p)
{
	if (p)
		p->ops->free(p);
}

int provider_fail(struct provider_error *ret, enum provider_error_kind kind, int err,
		  const char *fmt, ...)
{
	va_list ap;
	*ret = (struct provider_error){.kind = kind, .retry_after_s = -1};
	va_start(ap, fmt);
	vsnprintf(ret->text, sizeof(ret->text), fmt, ap);
	va_end(ap);
	error_hide_userinfo(ret->text);
	return err;
}

/* ---- configuration ---- */

int provider_config_set(char **field, const char *value)
{
	char *copy = value ? strdup(value) : NULL;
	if (value && !copy)
		return -ENOMEM;
	if (*field)
		explicit_bzero(*field, strlen(*field));
	free(*field);
	*field = copy;
	return 0;
}

void provider_config_free(struct provider_config *c)
{
	char **owned[] = {
		&c->model,
		&c->endpoint,
		&c->openai_base_url,
		&c->openai_key,
		&c->copilot_bearer,
		&c->github_tokens[0],
		&c->github_tokens[1],
		&c->github_tokens[2],
		&c->stored_token_path,
		&c->gh_path,
		&c->editors_dir,
		&c->github_host,
		&c->github_api,
		&c->github_web,
		&c->ca_file,
		&c->ca_dir,
		&c->script_path,
		&c->integration_id,
		&c->editor_version,
		&c->editor_plugin_version,
		&c->intent,
		&c->github_api_version,
	};
	for (size_t i = 0; i < ARRAY_LEN(owned); i++)
		provider_config_set(owned[i], NULL);
	token_free(&c->token);
	*c = (struct provider_config){0};
}

/* The variable, unless it is empty: that is how one is switched off for one command. */
static const char *env(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

static int set_editors_dir(struct provider_config *c)
{
	const char *config = env("XDG_CONFIG_HOME");
	const char *home = env("HOME");
	char *dir = NULL;
	int n = 0;
	if (config && *config == '/')
		n = asprintf(&dir, "%s/github-copilot", config);
	else if (home)
		n = asprintf(&dir, "%s/.config/github-copilot", home);
	if (n < 0)
		return -ENOMEM;
	c->editors_dir = dir;
	return 0;
}

/* Here an empty value says something: no such header. */
static int set_identity(struct provider_config *c)
{
	const struct {
		char **field;
		const char *name;
	} vars[] = {
		{&c->integration_id, "WARDER_COPILOT_INTEGRATION_ID"},
		{&c->editor_version, "WARDER_COPILOT_EDITOR_VERSION"},
		{&c->editor_plugin_version, "WARDER_COPILOT_PLUGIN_VERSION"},
		{&c->intent, "WARDER_COPILOT_INTENT"},
		{&c->github_api_version, "WARDER_COPILOT_API_VERSION"},
	};
	int err = 0;
	for (size_t i = 0; i < ARRAY_LEN(vars) && !err; i++)
		err = provider_config_set(vars[i].field, getenv(vars[i].name));
	return err;
}

int provider_config_from_env(struct provider_config *ret)
{
	struct provider_config c = {0};
	const struct {
		char **field;
		const char *name;
	} vars[] = {
		{&c.model, "WARDER_MODEL"},
		{&c.endpoint, "WARDER_ENDPOINT"},
		{&c.openai_base_url, "OPENAI_BASE_URL"},
		{&c.openai_key, "OPENAI_API_KEY"},
		{&c.copilot_bearer, "WARDER_COPILOT_TOKEN"},
		{&c.github_tokens[0], "COPILOT_GITHUB_TOKEN"},
		{&c.github_tokens[1], "GH_TOKEN"},
		{&c.github_tokens[2], "GITHUB_TOKEN"},
		{&c.github_host, "GH_HOST"},
		{&c.github_host, "COPILOT_GH_HOST"},
		{&c.github_api, "WARDER_GITHUB_API"},
		{&c.github_web, "WARDER_GITHUB_WEB"},
		{&c.ca_dir, "SSL_CERT_DIR"},
		{&c.ca_file, "SSL_CERT_FILE"},
		{&c.ca_file, "CURL_CA_BUNDLE"},
	};
	int err = set_editors_dir(&c);
	for (size_t i = 0; i < ARRAY_LEN(vars) && !err; i++)
		if (env(vars[i].name))
			err = provider_config_set(vars[i].field, env(vars[i].name));
	err = err ?: set_identity(&c);
	c.gh_path = ghtoken_program(env("PATH"));
	c.gh_env = environ;
	if (err)
		provider_config_free(&c);
	else
		*ret = c;
	return err;
}

static bool names_github(const struct provider_config *c)
{
	return c->github_host || c->github_api || c->github_web;
}

int provider_github(const struct provider_config *c, struct github *ret)
{
	const struct github *stored = &c->token.github;
	if (!names_github(c) && stored->host)
		return github_make(stored->host, stored->web, stored->api, ret);
	return github_make(c->github_host, c->github_web, c->github_api, ret);
}

int provider_find_token(struct provider_config *c)
{
	struct github github = {0};
	if (c->token_sought)
		return c->token_error;
	c->token_sought = true;
	c->token_error = github_make(c->github_host, c->github_web, c->github_api, &github);
	if (c->token_error)
		return c->token_error;
	c->token_error =
		token_find(&(struct token_sources){.values = c->github_tokens,
						   .stored_path = c->stored_token_path,
						   .gh_path = c->gh_path,
						   .gh_env = c->gh_env,
						   .editors_dir = c->editors_dir,
						   .host = names_github(c) ? github.host : NULL},
			   &c->token);
	github_release(&github);
	return c->token_error;
}

static bool has_github_token(struct provider_config *c)
{
	return !provider_find_token(c) && token_kind(c->token.value) != TOKEN_CLASSIC;
}

enum provider_kind provider_pick(struct provider_config *c)
{
	if (c->kind != PROVIDER_AUTO)
		return c->kind;
	if (c->script_path)
		return PROVIDER_SCRIPT;
	if (c->copilot_bearer)
		return PROVIDER_COPILOT;
	if (c->endpoint)
		return PROVIDER_OPENAI;
	if (has_github_token(c))
		return PROVIDER_COPILOT;
	return c->openai_base_url || c->openai_key ? PROVIDER_OPENAI : PROVIDER_SCRIPT;
}

const char *provider_no_account(const struct provider_config *c)
{
	for (size_t i = 0; i < ARRAY_LEN(c->github_tokens); i++)
		if (c->github_tokens[i] && token_kind(c->github_tokens[i]) == TOKEN_CLASSIC)
			return "no account was found (a classic GitHub token, ghp_, is none for "
			       "Copilot)";
	return "no account was found";
}

static int check_http(enum provider_kind kind, struct provider_error *ret_error)
{
	const char *missing = kind == PROVIDER_SCRIPT ? NULL : http_missing();
	if (!missing)
		return 0;
	return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
			     "libcurl is needed to reach a model: %s", missing);
}

int provider_open(struct provider_config *c, struct provider **ret,
		  struct provider_error *ret_error)
{
	enum provider_kind kind = provider_pick(c);
	int err = check_http(kind, ret_error);
	if (err)
		return err;
	switch (kind) {
	case PROVIDER_COPILOT:
		return provider_copilot_open(c, ret, ret_error);
	case PROVIDER_OPENAI:
		return provider_openai_open(c, ret, ret_error);
	case PROVIDER_SCRIPT:
	case PROVIDER_AUTO:
		break;
	}
	if (c->script_path)
		return provider_script_open(c->script_path, ret, ret_error);
	if (c->script_text)
		return provider_script_open_text("the built-in script", c->script_text, ret,
						 ret_error);
	return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
			     "%s: run `warder login`, set OPENAI_API_KEY, or give --endpoint; "
			     "--provider script plays the demonstration",
			     provider_no_account(c));
}
