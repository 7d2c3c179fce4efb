#include "supervisor/redact.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct row {
	const char *in;
	const char *out;
} rows[] = {
	{"", ""},
	{"--password=hunter2 and more", "--password=[redacted]"},
	{"--gh-token=abc", "--gh-token=[redacted]"},
	{"-Dapi.secret=abc", "-Dapi.secret=[redacted]"},
	{"--apiKey=abc", "--apiKey=[redacted]"},
	{"--secret-key=abc", "--secret-key=[redacted]"},
	{"GITHUB_TOKEN=abc", "GITHUB_TOKEN=[redacted]"},
	{"//registry/:_authToken=abc", "//registry/:_authToken=[redacted]"},
	{"sh; export API_KEY='a b'; x", "sh; export API_KEY='[redacted]'; x"},
	{"cd /x && A_TOKEN=abc make all", "cd /x && A_TOKEN=[redacted] make all"},
	{"https://h/p?token=abc&page=2", "https://h/p?token=[redacted]&page=2"},
	{"https://user:pa@ss@host/x", "https://[redacted]@host/x"},
	{"git clone https://abc@host/x.git", "git clone https://[redacted]@host/x.git"},
	{"https://host/a@b", "https://host/a@b"},
	{"Authorization: Bearer abc def", "Authorization: [redacted]"},
	{"authorization:Basic dXNlcg==", "authorization:[redacted]"},
	{"curl -H 'Authorization: token x' u", "curl -H 'Authorization: [redacted]' u"},
	{"X-Api-Key: abc", "X-Api-Key: [redacted]"},
	{"{\"password\": \"a, b\", \"n\": 1}", "{\"password\": \"[redacted]\", \"n\": 1}"},
	{"bearer abcdefghij", "bearer [redacted]"},
	{"ghp_abcDEF0123", "[redacted]"},
	{"x=gho_abc,y", "x=[redacted],y"},
	{"github_pat_11AAA_bbb", "[redacted]"},
	{"key sk-proj-abcdef0123456789 end", "key [redacted] end"},
	{"xoxb-123-abc", "[redacted]"},
	{"glpat-abc_def", "[redacted]"},
	{"AKIAIOSFODNN7EXAMPLE", "[redacted]"},
	{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc_def", "[redacted]"},
	{"ya29.a0Af", "[redacted]"},
	{"-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----",
	 "[redacted]-----END RSA PRIVATE KEY-----"},
	/* What is no secret stays readable. */
	{"--token-file=/x", "--token-file=/x"},
	{"--max-tokens=100", "--max-tokens=100"},
	{"--sort-key=name", "--sort-key=name"},
	{"--no-password", "--no-password"},
	{"--password=", "--password="},
	{"PWD=/home/u", "PWD=/home/u"},
	{"--author=me", "--author=me"},
	{"--lang=sk-SK", "--lang=sk-SK"},
	{"task-force-of-seven", "task-force-of-seven"},
	{"-----BEGIN PUBLIC KEY-----", "-----BEGIN PUBLIC KEY-----"},
	{"http://host:80/", "http://host:80/"},
	{"a/b:c=d", "a/b:c=d"},
};

Test(redact, table, .timeout = 10)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf b = {0}, again = {0};
		redact_add(&b, rows[i].in);
		cr_expect_str_eq(buf_str(&b), rows[i].out, "row %zu: %s", i, buf_str(&b));
		redact_add(&again, buf_str(&b));
		cr_expect_str_eq(buf_str(&again), buf_str(&b), "row %zu, twice: %s", i,
				 buf_str(&again));
		buf_free(&b);
		buf_free(&again);
	}
}

static const struct argv_row {
	char *in[6];
	char *out[6];
} argv_rows[] = {
	{{"gh", "--token", "abc", "x"}, {"gh", "--token", "[redacted]", "x"}},
	{{"p", "--password", "--verbose"}, {"p", "--password", "--verbose"}},
	{{"/usr/bin/curl", "-u", "me:pw", "u"}, {"/usr/bin/curl", "-u", "[redacted]", "u"}},
	{{"sort", "-u", "file"}, {"sort", "-u", "file"}},
	{{"sshpass", "-p", "pw", "ssh"}, {"sshpass", "-p", "[redacted]", "ssh"}},
	{{"curl", "-H", "Authorization: a b"}, {"curl", "-H", "Authorization: [redacted]"}},
	{{"x", "--token"}, {"x", "--token"}},
	{{"x", "--token=a", "b"}, {"x", "--token=[redacted]", "b"}},
	{{NULL}, {NULL}},
};

Test(redact, argv, .timeout = 10)
{
	for (size_t i = 0; i < ARRAY_LEN(argv_rows); i++) {
		char **got = redact_argv(argv_rows[i].in);
		size_t k = 0;
		for (; argv_rows[i].out[k] && got[k]; k++)
			cr_expect_str_eq(got[k], argv_rows[i].out[k], "row %zu.%zu: %s", i, k,
					 got[k]);
		cr_expect_eq(argv_rows[i].out[k], NULL);
		cr_expect_eq(got[k], NULL);
		redact_free(got);
	}
	redact_free(NULL);
}

Test(redact, variables, .timeout = 10)
{
	static const struct {
		const char *name;
		bool secret;
	} names[] = {
		{"GITHUB_TOKEN", true},
		{"OPENAI_API_KEY", true},
		{"CLIENT_SECRET", true},
		{"DB_PASSWORD", true},
		{"AWS_ACCESS_KEY_ID", true},
		{"AWS_SECRET_ACCESS_KEY", true},
		{"AWS_SESSION_TOKEN", true},
		{"GOOGLE_APPLICATION_CREDENTIALS", true},
		{"PGPASSWORD", true},
		{"npm_token", true},
		{"PATH", false},
		{"PWD", false},
		{"SSH_AUTH_SOCK", false},
		{"TOKENIZERS_PARALLELISM", false},
		{"KEYBOARD", false},
		{"XDG_SESSION_ID", false},
		{"_KEY", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		cr_expect_eq(redact_is_secret_name(names[i].name), names[i].secret, "%s",
			     names[i].name);
}
