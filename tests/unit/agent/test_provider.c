#include "agent/provider.h"

#include "tests/support/mock.h"
#include "tracer/util.h"

#include <errno.h>

static const char *const variables[] = {
	"WARDER_MODEL",
	"WARDER_ENDPOINT",
	"WARDER_COPILOT_TOKEN",
	"COPILOT_GITHUB_TOKEN",
	"GH_TOKEN",
	"GITHUB_TOKEN",
	"OPENAI_BASE_URL",
	"OPENAI_API_KEY",
	"WARDER_GITHUB_API",
	"SSL_CERT_FILE",
	"CURL_CA_BUNDLE",
	"XDG_CONFIG_HOME",
	"WARDER_GITHUB_WEB",
	"SSL_CERT_DIR",
	"COPILOT_GH_HOST",
	"GH_HOST",
	"WARDER_COPILOT_INTENT",
};

static void clear(void)
{
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		unsetenv(variables[i]);
}

TestSuite(provider, .init = clear);

Test(provider, the_environment_is_read)
{
	struct provider_config c;
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		setenv(variables[i], variables[i], 1);
	setenv("XDG_CONFIG_HOME", "/xdg", 1);
	cr_assert_eq(provider_config_from_env(&c), 0);
	cr_assert_str_eq(c.model, "WARDER_MODEL");
	cr_assert_str_eq(c.endpoint, "WARDER_ENDPOINT");
	cr_assert_str_eq(c.copilot_bearer, "WARDER_COPILOT_TOKEN");
	cr_assert_str_eq(c.github_tokens[0], "COPILOT_GITHUB_TOKEN");
	cr_assert_str_eq(c.github_tokens[1], "GH_TOKEN");
	cr_assert_str_eq(c.github_tokens[2], "GITHUB_TOKEN");
	cr_assert_str_eq(c.openai_base_url, "OPENAI_BASE_URL");
	cr_assert_str_eq(c.openai_key, "OPENAI_API_KEY");
	cr_assert_str_eq(c.github_api, "WARDER_GITHUB_API");
	cr_assert_str_eq(c.github_web, "WARDER_GITHUB_WEB");
	cr_assert_str_eq(c.github_host, "COPILOT_GH_HOST");
	cr_assert_str_eq(c.intent, "WARDER_COPILOT_INTENT");
	cr_assert_str_eq(c.ca_file, "CURL_CA_BUNDLE");
	cr_assert_str_eq(c.ca_dir, "SSL_CERT_DIR");
	cr_assert_str_eq(c.editors_dir, "/xdg/github-copilot");
	provider_config_free(&c);
	cr_assert_null(c.copilot_bearer);
}

Test(provider, an_empty_or_odd_variable_is_none)
{
	struct provider_config c;
	setenv("WARDER_COPILOT_TOKEN", "", 1);
	setenv("WARDER_COPILOT_INTENT", "", 1);
	setenv("XDG_CONFIG_HOME", "relative", 1);
	setenv("HOME", "/home/u", 1);
	cr_assert_eq(provider_config_from_env(&c), 0);
	cr_assert_null(c.copilot_bearer);
	cr_assert_str_eq(c.intent, ""); /* a header that is switched off */
	cr_assert_null(c.editor_version);
	cr_assert_null(c.ca_file);
	cr_assert_str_eq(c.editors_dir, "/home/u/.config/github-copilot");
	provider_config_free(&c);
}

Test(provider, picks)
{
	static const struct {
		const char *bearer, *token, *endpoint, *openai_url, *openai_key, *script;
		enum provider_kind given, picked;
	} rows[] = {
		{.picked = PROVIDER_SCRIPT},
		{.bearer = "b", .picked = PROVIDER_COPILOT},
		{.token = "ghu_x", .picked = PROVIDER_COPILOT},
		{.token = "ghp_x", .picked = PROVIDER_SCRIPT},
		{.token = "no token", .picked = PROVIDER_SCRIPT},
		{.openai_key = "k", .picked = PROVIDER_OPENAI},
		{.openai_url = "u", .picked = PROVIDER_OPENAI},
		{.openai_url = "u", .token = "ghu_x", .picked = PROVIDER_COPILOT},
		{.endpoint = "e", .token = "ghu_x", .picked = PROVIDER_OPENAI},
		{.endpoint = "e", .bearer = "b", .picked = PROVIDER_COPILOT},
		{.endpoint = "e",
		 .bearer = "b",
		 .given = PROVIDER_OPENAI,
		 .picked = PROVIDER_OPENAI},
		{.script = "s", .bearer = "b", .picked = PROVIDER_SCRIPT},
		{.script = "s", .given = PROVIDER_COPILOT, .picked = PROVIDER_COPILOT},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct provider_config c = {.kind = rows[i].given};
		provider_config_set(&c.copilot_bearer, rows[i].bearer);
		provider_config_set(&c.github_tokens[0], rows[i].token);
		provider_config_set(&c.endpoint, rows[i].endpoint);
		provider_config_set(&c.openai_base_url, rows[i].openai_url);
		provider_config_set(&c.openai_key, rows[i].openai_key);
		provider_config_set(&c.script_path, rows[i].script);
		cr_assert_eq(provider_pick(&c), rows[i].picked, "row %zu", i);
		provider_config_free(&c);
	}
}

Test(provider, without_an_account_the_built_in_script_answers_where_it_may)
{
	struct provider_config c = {0};
	struct provider *p = NULL;
	struct provider_error error = {0};
	cr_assert_eq(provider_open(&c, &p, &error), -EIO);
	cr_assert(strstr(error.text, "warder login") && strstr(error.text, "--provider script"));
	c.script_text = "{\"role\":\"assistant\",\"content\":\"hi\"}\n";
	cr_assert_eq(provider_open(&c, &p, &error), 0, "%s", error.text);
	cr_assert_str_eq(p->ops->name, "script");
	provider_free(p);
	provider_free(NULL);
	provider_config_free(&c);
}
