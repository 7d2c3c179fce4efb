#include "supervisor/redact.h"

#include "tracer/util.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char redacted[] = "[redacted]";

/* A secret in a text: `keep` bytes are shown, the next `hide` are not. */
struct hit {
	size_t keep;
	size_t hide;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool is_name(char c)
{
	return is_word(c) || c == '-' || c == '.';
}

/* ---- names ---- */

static const char *const secret_suffix[] = {
	"_TOKEN", "_KEY",    "_SECRET",	    "_PASSWORD",    "_PASSWD",
	"_PASS",  "_APIKEY", "_CREDENTIAL", "_CREDENTIALS", "_PASSPHRASE",
};

/* Whole names that no suffix tells. */
static const char *const secret_variable[] = {
	"TOKEN",
	"SECRET",
	"PASSWORD",
	"PASSWD",
	"APIKEY",
	"PGPASSWORD",
	"MYSQL_PWD",
	"SSHPASS",
	"REDISCLI_AUTH",
	"AWS_ACCESS_KEY_ID",
	"AWS_SHARED_CREDENTIALS_FILE",
	"AWS_WEB_IDENTITY_TOKEN_FILE",
	"AWS_CONTAINER_CREDENTIALS_FULL_URI",
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
	"AZURE_STORAGE_CONNECTION_STRING",
	"AZURE_CLIENT_CERTIFICATE_PATH",
	"CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE",
	"ALIBABA_CLOUD_ACCESS_KEY_ID",
	"OCI_CLI_KEY_CONTENT",
	"OCI_CLI_KEY_FILE",
	"KAGGLE_USERNAME",
	"NETRC",
};

/* The last word of an option's, header's or member's name: --gh-token, X-Api-Key, clientSecret. */
static const char *const secret_word[] = {
	"password", "passwd",	 "pass",   "passphrase", "token",
	"secret",   "apikey",	 "auth",   "credential", "credentials",
	"cookie",   "authtoken", "bearer", "passcode",	 "authorization",
};

/* "key" alone is a file or a sort order; these are not. */
static const char *const secret_key_word[] = {"api",	 "access", "secret", "private",
					      "account", "auth",   "shared", "license"};

static bool among(const char *s, size_t n, const char *const *list, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (strlen(list[i]) == n && !strncasecmp(s, list[i], n))
			return true;
	return false;
}

static bool secret_variable_name(const char *name, size_t n)
{
	if (among(name, n, secret_variable, ARRAY_LEN(secret_variable)))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(secret_suffix); i++) {
		size_t len = strlen(secret_suffix[i]);
		if (n > len && !strncasecmp(name + n - len, secret_suffix[i], len))
			return true;
	}
	return false;
}

bool redact_is_secret_name(const char *name)
{
	return secret_variable_name(name, strlen(name));
}

/* Where the last word of name begins: after - _ . or at a capital that follows a small letter. */
static size_t last_word(const char *name, size_t n)
{
	size_t i = n;
	for (; i > 0; i--) {
		if (!isalnum((unsigned char)name[i - 1]))
			break;
		if (i < n && isupper((unsigned char)name[i]) && islower((unsigned char)name[i - 1]))
			break;
	}
	return i;
}

static bool secret_option_name(const char *name, size_t n)
{
	if (n >= 3 && !strncasecmp(name, "no-", 3))
		return false;
	size_t at = last_word(name, n);
	if (among(name + at, n - at, secret_word, ARRAY_LEN(secret_word)))
		return true;
	if (n - at != 3 || strncasecmp(name + at, "key", 3) != 0)
		return false;
	size_t end = at && !isalnum((unsigned char)name[at - 1]) ? at - 1 : at;
	size_t before = last_word(name, end);
	return among(name + before, end - before, secret_key_word, ARRAY_LEN(secret_key_word));
}

static bool secret_name(const char *name, size_t n)
{
	return secret_variable_name(name, n) || secret_option_name(name, n);
}

/* ---- shapes in a text; each looks at text[at] and may look back ---- */

static bool at_word_start(const char *text, size_t at)
{
	return !at || !is_word(text[at - 1]);
}

static size_t value_len(const char *v, bool to_line_end)
{
	if (*v == '"' || *v == '\'') {
		const char *close = strchr(v + 1, *v);
		return close ? (size_t)(close - v) - 1 : strlen(v + 1);
	}
	return strcspn(v, to_line_end ? "\r\n\"'" : " \t\r\n\"'&;|<>,)}");
}

static bool is_header(const char *name, size_t n)
{
	static const char *const header[] = {"authorization", "proxy-authorization", "cookie",
					     "set-cookie"};
	return among(name, n, header, ARRAY_LEN(header));
}

/* NAME=value, NAME: value, "NAME": "value". */
static bool match_named(const char *text, size_t at, struct hit *ret)
{
	if (!is_word(text[at]) || (at && is_name(text[at - 1]) && text[at - 1] != '-'))
		return false;
	size_t n = 0;
	while (is_name(text[at + n]))
		n++;
	size_t i = at + n;
	if (text[i] == '"' || text[i] == '\'')
		i++;
	if (text[i] == ' ')
		i++;
	if ((text[i] != '=' && text[i] != ':') || !secret_name(text + at, n))
		return false;
	bool assigned = text[i] == '=';
	/* An argument that is nothing but this: the value is all of the rest. */
	bool whole = assigned && i == at + n && strspn(text, "-") == at;
	i++;
	if (!whole)
		i += strspn(text + i, " \t");
	bool quoted = !whole && (text[i] == '"' || text[i] == '\'');
	size_t hide = whole ? strlen(text + i)
			    : value_len(text + i, !assigned && is_header(text + at, n));
	*ret = (struct hit){.keep = i + quoted - at, .hide = hide};
	return hide > 0;
}

static bool match_userinfo(const char *text, size_t at, struct hit *ret)
{
	if (strncmp(text + at, "://", 3) != 0)
		return false;
	const char *authority = text + at + 3;
	size_t n = strcspn(authority, "/?# \t\r\n\"'<>");
	const char *sign = memrchr(authority, '@', n);
	if (!sign || sign == authority)
		return false;
	*ret = (struct hit){.keep = 3, .hide = (size_t)(sign - authority)};
	return true;
}

static bool match_bearer(const char *text, size_t at, struct hit *ret)
{
	if (!at_word_start(text, at) || strncasecmp(text + at, "bearer ", 7) != 0)
		return false;
	size_t n = strcspn(text + at + 7, " \t\r\n\"'");
	*ret = (struct hit){.keep = 7, .hide = n};
	return n >= 8;
}

static bool match_private_key(const char *text, size_t at, struct hit *ret)
{
	if (strncmp(text + at, "-----BEGIN ", 11) != 0)
		return false;
	const char *label = strstr(text + at, "PRIVATE KEY");
	size_t line = strcspn(text + at, "\r\n");
	if (!label || (size_t)(label - text) > at + line)
		return false;
	const char *end = strstr(text + at, "-----END ");
	*ret = (struct hit){.hide = end ? (size_t)(end - text) - at : strlen(text + at)};
	return true;
}

/* Well-known beginnings, and how many token characters follow at least. '?' is any letter. */
static const struct prefix {
	const char *text;
	size_t least;
} prefixes[] = {
	{"ghp_", 1},   {"gho_", 1},  {"ghu_", 1},  {"ghs_", 1},	 {"ghr_", 1},  {"github_pat_", 1},
	{"glpat-", 1}, {"xox?-", 1}, {"ya29.", 1}, {"sk-", 12},	 {"AKIA", 12}, {"ASIA", 12},
	{"eyJ", 12},   {"npm_", 20}, {"hf_", 20},  {"AIza", 20},
};

static size_t prefix_len(const char *s, const char *prefix)
{
	size_t i = 0;
	for (; prefix[i]; i++)
		if (prefix[i] == '?' ? !isalpha((unsigned char)s[i]) : s[i] != prefix[i])
			return 0;
	return i;
}

static bool match_token(const char *text, size_t at, struct hit *ret)
{
	if (!at_word_start(text, at))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		size_t start = prefix_len(text + at, prefixes[i].text);
		if (!start)
			continue;
		size_t n = start;
		while (is_name(text[at + n]) || (text[at + n] && strchr("+/=", text[at + n])))
			n++;
		*ret = (struct hit){.hide = n};
		return n - start >= prefixes[i].least;
	}
	return false;
}

void redact_add(struct buf *out, const char *arg)
{
	static bool (*const match[])(const char *, size_t, struct hit *) = {
		match_userinfo, match_named, match_bearer, match_private_key, match_token,
	};
	for (size_t at = 0; arg[at];) {
		struct hit hit = {0};
		bool found = false;
		for (size_t i = 0; i < ARRAY_LEN(match) && !found; i++)
			found = match[i](arg, at, &hit);
		if (!found) {
			buf_add_char(out, arg[at++]);
			continue;
		}
		buf_add(out, arg + at, hit.keep);
		buf_add_str(out, redacted);
		at += hit.keep + hit.hide;
	}
}

/* ---- a whole argv ---- */

/* Short options whose value is a secret in one program alone. */
static const struct known {
	const char *program;
	const char *option;
} known_options[] = {
	{"curl", "-u"}, {"curl", "--user"}, {"curl", "-U"}, {"curl", "--proxy-user"},
	{"curl", "-b"}, {"sshpass", "-p"},  {"http", "-a"}, {"https", "-a"},
};

static bool value_follows(const char *program, const char *option)
{
	const char *slash = strrchr(program, '/');
	const char *base = slash ? slash + 1 : program;
	for (size_t i = 0; i < ARRAY_LEN(known_options); i++)
		if (!strcmp(base, known_options[i].program) &&
		    !strcmp(option, known_options[i].option))
			return true;
	size_t dashes = strspn(option, "-");
	const char *name = option + dashes;
	size_t n = strlen(name);
	return dashes && n > 1 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "0123456789-_.") == n &&
	       secret_name(name, n);
}

static char *redact_one(const char *arg, bool all)
{
	struct buf b = {0};
	if (all && *arg)
		buf_add_str(&b, redacted);
	else
		redact_add(&b, arg);
	char *text = buf_take(&b);
	buf_free(&b);
	return text;
}

char **redact_argv(char *const *argv)
{
	size_t n = 0;
	while (argv[n])
		n++;
	char **list = calloc(n + 1, sizeof(*list));
	bool follows = false;
	for (size_t i = 0; list && i < n; i++) {
		list[i] = redact_one(argv[i], follows && argv[i][0] != '-');
		if (!list[i]) {
			redact_free(list);
			return NULL;
		}
		follows = i && value_follows(argv[0], argv[i]);
	}
	return list;
}

void redact_free(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}
