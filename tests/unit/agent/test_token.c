#include "agent/token.h"

#include "agent/ghtoken.h"
#include "tests/support/mock.h"
#include "tracer/util.h"

#include <errno.h>
#include <sys/stat.h>

/* As token_store() writes it. */
#define STORED(token) "{\"host\":\"github.com\",\"token\":\"" token "\"}\n"

struct row {
	const char *what;
	const char *variables[TOKEN_VARIABLES];
	const char *stored, *apps, *hosts; /* the files' texts; NULL: no such file */
	int err;
	const char *value, *source; /* source: the end of it */
};

static const struct row table[] = {
	{"nothing", {0}, NULL, NULL, NULL, -ENOENT, NULL, NULL},
	{"the first variable",
	 {"ghu_a", "gho_b", "ghs_c"},
	 STORED("ghu_d"),
	 NULL,
	 NULL,
	 0,
	 "ghu_a",
	 "COPILOT_GITHUB_TOKEN"},
	{"the second", {"", "gho_b", "ghs_c"}, "ghu_d", NULL, NULL, 0, "gho_b", "GH_TOKEN"},
	{"the third, with space around",
	 {NULL, NULL, " ghs_c\n"},
	 STORED("ghu_d"),
	 NULL,
	 NULL,
	 0,
	 "ghs_c",
	 "GITHUB_TOKEN"},
	{"the stored one",
	 {0},
	 "{\"host\":\"github.com\",\"token\":\" ghu_d\\n\"}\n",
	 "{\"github.com\":{\"oauth_token\":\"ghu_e\"}}",
	 NULL,
	 0,
	 "ghu_d",
	 "/stored"},
	{"the editors' apps",
	 {0},
	 NULL,
	 "{\"github.com:Iv1.x\":{\"user\":\"u\",\"oauth_token\":\"ghu_e\"}}",
	 "{\"github.com\":{\"oauth_token\":\"ghu_f\"}}",
	 0,
	 "ghu_e",
	 "/apps.json"},
	{"the editors' hosts",
	 {0},
	 NULL,
	 "{}",
	 "{\"github.com\":{\"oauth_token\":\"ghu_f\"}}",
	 0,
	 "ghu_f",
	 "/hosts.json"},
	{"one that can be exchanged",
	 {0},
	 NULL,
	 "{\"github.com:a\":{\"oauth_token\":\"gho_e\"},\"github.com:b\":{\"oauth_token\":\"ghu_"
	 "e\"}}",
	 NULL,
	 0,
	 "ghu_e",
	 "/apps.json"},
	{"of no other host",
	 {0},
	 NULL,
	 "{\"github.com.evil.org\":{\"oauth_token\":\"ghu_e\"},\"xgithub.com\":{\"oauth_token\":"
	 "\"ghu_e\"}}",
	 NULL,
	 -ENOENT,
	 NULL,
	 NULL},
	{"a classic one is passed over",
	 {"ghp_a", NULL, NULL},
	 STORED("ghu_d"),
	 NULL,
	 NULL,
	 0,
	 "ghu_d",
	 "/stored"},
	{"unless there is no other",
	 {"ghp_a", NULL, NULL},
	 NULL,
	 NULL,
	 NULL,
	 0,
	 "ghp_a",
	 "COPILOT_GITHUB_TOKEN"},
	{"two words", {NULL, "gho_b c", NULL}, NULL, NULL, NULL, -EINVAL, NULL, "GH_TOKEN"},
	{"only space", {NULL, " ", NULL}, STORED("ghu_d"), NULL, NULL, -EINVAL, NULL, "GH_TOKEN"},
	{"a control character",
	 {"ghu_\x1b", NULL, NULL},
	 NULL,
	 NULL,
	 NULL,
	 -EINVAL,
	 NULL,
	 "COPILOT_GITHUB_TOKEN"},
	{"a stored one without a token",
	 {0},
	 "{\"host\":\"github.com\"}",
	 NULL,
	 NULL,
	 -EINVAL,
	 NULL,
	 "/stored"},
	{"a stored one that is no JSON", {0}, "ghu_d", NULL, NULL, -EINVAL, NULL, "/stored"},
	{"a stored one of no host",
	 {0},
	 "{\"token\":\"ghu_d\",\"host\":\"a b\"}",
	 NULL,
	 NULL,
	 -EINVAL,
	 NULL,
	 "/stored"},
	{"an empty stored file", {0}, "", NULL, NULL, -EINVAL, NULL, "/stored"},
	{"editors' nonsense", {0}, NULL, "{", NULL, -EINVAL, NULL, "/apps.json"},
	{"editors' other shapes", {0}, NULL, "[1]", "{\"github.com\":7}", -ENOENT, NULL, NULL},
};

static void put(const char *dir, const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (text)
		mock_write_file(path, text);
	else
		unlink(path);
}

static void check(const char *dir, const struct row *row)
{
	char *values[TOKEN_VARIABLES];
	char stored[128];
	struct token token = {0};
	for (size_t i = 0; i < TOKEN_VARIABLES; i++)
		values[i] = row->variables[i] ? strdup(row->variables[i]) : NULL;
	put(dir, "stored", row->stored);
	put(dir, "apps.json", row->apps);
	put(dir, "hosts.json", row->hosts);
	snprintf(stored, sizeof(stored), "%s/stored", dir);
	const struct token_sources from = {
		.values = values, .stored_path = stored, .editors_dir = dir};
	cr_assert_eq(token_find(&from, &token), row->err, "%s", row->what);
	if (row->value)
		cr_assert_str_eq(token.value, row->value, "%s", row->what);
	else
		cr_assert_null(token.value, "%s", row->what);
	size_t n = row->source ? strlen(row->source) : 0;
	if (row->source)
		cr_assert(token.source && strlen(token.source) >= n &&
				  !strcmp(token.source + strlen(token.source) - n, row->source),
			  "%s: %s", row->what, token.source);
	token_free(&token);
	for (size_t i = 0; i < TOKEN_VARIABLES; i++)
		free(values[i]);
}

Test(token, the_first_place_that_has_one)
{
	char dir[] = "/tmp/warder-token-XXXXXX";
	cr_assert_not_null(mkdtemp(dir));
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		check(dir, &table[i]);
	put(dir, "stored", NULL);
	put(dir, "apps.json", NULL);
	put(dir, "hosts.json", NULL);
	rmdir(dir);
}

/* In the child: exit 0 where it went as it should. */
static void try_unreadable(const char *path)
{
	char *none[TOKEN_VARIABLES] = {0};
	struct token token = {0};
	const struct token_sources from = {.values = none, .stored_path = path};
	if (!geteuid() && (setgid(65534) || setuid(65534)))
		_exit(2);
	int err = token_find(&from, &token);
	_exit(err == -EACCES && !token.value && token.source && !strcmp(token.source, path) ? 0
											    : 1);
}

Test(token, a_file_that_cannot_be_read_is_named)
{
	char dir[] = "/tmp/warder-token-XXXXXX", path[64];
	int status = 0;
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chmod(dir, 0755), 0);
	snprintf(path, sizeof(path), "%s/stored", dir);
	mock_write_file(path, "ghu_secret");
	cr_assert_eq(chmod(path, 0), 0);
	pid_t pid = fork();
	if (!pid)
		try_unreadable(path);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	unlink(path);
	rmdir(dir);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 0);
}

Test(token, a_huge_file_is_no_token)
{
	char dir[] = "/tmp/warder-token-XXXXXX", path[64];
	char *none[TOKEN_VARIABLES] = {0};
	struct token token = {0};
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/stored", dir);
	mock_write_file(path, "");
	cr_assert_eq(truncate(path, TOKEN_FILE_MAX + 1), 0);
	const struct token_sources from = {.values = none, .stored_path = path};
	cr_assert_eq(token_find(&from, &token), -EFBIG);
	cr_assert_str_eq(token.source, path);
	token_free(&token);
	unlink(path);
	rmdir(dir);
}

/* ---- whose token it is ---- */

#define EDITORS                                                                                    \
	"{\"github.com:a\":{\"oauth_token\":\"ghu_public\"},\"Octo.ghe.com\":{\"oauth_token\":"    \
	"\"ghu_octo\"}}"

Test(token, goes_to_no_other_host)
{
	static const struct {
		const char *stored_host, *asked;
		const char *value, *end_of_source;
	} rows[] = {
		{"octo.ghe.com", "octo.ghe.com", "ghu_kept", "/stored"},
		{"octo.ghe.com", "OCTO.ghe.com", "ghu_kept", "/stored"},
		{"octo.ghe.com", "github.com", "ghu_public", "/apps.json"},
		{"github.com", "octo.ghe.com", "ghu_octo", "/apps.json"},
		{"github.com", "other.ghe.com", NULL, NULL},
		/* Where nobody names one, the store does. */
		{"octo.ghe.com", NULL, "ghu_kept", "/stored"},
	};
	char dir[] = "/tmp/warder-token-XXXXXX", stored[64];
	char *none[TOKEN_VARIABLES] = {0};
	cr_assert_not_null(mkdtemp(dir));
	snprintf(stored, sizeof(stored), "%s/stored", dir);
	put(dir, "apps.json", EDITORS);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct token token = {0};
		struct github github = {0};
		const struct token_sources from = {.values = none,
						   .stored_path = stored,
						   .editors_dir = dir,
						   .host = rows[i].asked};
		cr_assert_eq(github_make(rows[i].stored_host, NULL, NULL, &github), 0);
		cr_assert_eq(token_store(stored, &github, "ghu_kept"), 0);
		int err = token_find(&from, &token);
		cr_assert_eq(err, rows[i].value ? 0 : -ENOENT, "row %zu: %d", i, err);
		if (rows[i].value) {
			cr_assert_str_eq(token.value, rows[i].value, "row %zu", i);
			cr_assert(strstr(token.source, rows[i].end_of_source), "row %zu", i);
		}
		cr_assert_eq(!!token.github.host, token.source && strstr(token.source, "/stored"));
		token_free(&token);
		github_release(&github);
	}
	put(dir, "apps.json", NULL);
	put(dir, "stored", NULL);
	rmdir(dir);
}

Test(token, is_kept_for_us_alone_and_forgotten)
{
	char dir[] = "/tmp/warder-token-XXXXXX", path[64], old[64];
	char *none[TOKEN_VARIABLES] = {0};
	struct token token = {0};
	struct github github = {0};
	struct stat st;
	const struct token_sources from = {.values = none, .stored_path = path};
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/stored", dir);
	snprintf(old, sizeof(old), "%s/old", dir);
	cr_assert_eq(github_make("octo.ghe.com", NULL, NULL, &github), 0);
	cr_assert_eq(token_forget(path), -ENOENT);
	umask(0);
	/* Somebody's link in its place is replaced, not followed. */
	mock_write_file(old, "old");
	cr_assert_eq(symlink(old, path), 0);
	cr_assert_eq(token_store(path, &github, "ghu_kept"), 0);
	cr_assert_eq(lstat(path, &st), 0);
	cr_assert(S_ISREG(st.st_mode));
	cr_assert_eq(st.st_mode & 07777, 0600);
	cr_assert_eq(token_find(&from, &token), 0);
	cr_assert_str_eq(token.value, "ghu_kept");
	cr_assert_str_eq(token.github.api, "https://api.octo.ghe.com");
	token_free(&token);
	cr_assert_eq(token_forget(path), 0);
	cr_assert_eq(token_find(&from, &token), -ENOENT);
	github_release(&github);
	unlink(old);
	cr_assert_eq(rmdir(dir), 0); /* nothing else was left there */
}

/* ---- gh ---- */

static void put_program(const char *dir, const char *text)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/gh", dir);
	mock_write_file(path, text);
	cr_assert_eq(chmod(path, 0755), 0);
}

Test(token, gh_is_asked_for_its_own)
{
	static const struct {
		const char *script;
		int err;
		const char *value;
	} rows[] = {
		{"#!/bin/sh\necho gho_own\necho more\n", 0, "gho_own"},
		/* It would answer with the variable, which was tried before. */
		{"#!/bin/sh\necho \"gho_${GH_TOKEN:-none}$GITHUB_TOKEN\"\n", 0, "gho_none"},
		{"#!/bin/sh\n[ \"$*\" = 'auth token --hostname octo.ghe.com' ] && echo gho_octo\n",
		 0, "gho_octo"},
		{"#!/bin/sh\nread line && echo gho_stdin; echo gho_not; [ ! -t 0 ]\n", 0,
		 "gho_not"},
		{"#!/bin/sh\necho ghp_classic\n", -ENOENT, NULL},
		{"#!/bin/sh\necho gho_x; exit 1\n", -ENOENT, NULL},
		{"#!/bin/sh\nexit 0\n", -ENOENT, NULL},
		{"#!/bin/sh\necho two words\n", -EINVAL, NULL},
		{"no program", -ENOENT, NULL},
	};
	char *env[] = {"PATH=/usr/bin:/bin", "GH_TOKEN=secret", "GITHUB_TOKEN=secret", NULL};
	char *none[TOKEN_VARIABLES] = {0};
	char dir[] = "/tmp/warder-token-XXXXXX", path[160];
	cr_assert_not_null(mkdtemp(dir));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct token token = {0};
		put_program(dir, rows[i].script);
		snprintf(path, sizeof(path), "relative:/nowhere:%s:", dir);
		char *gh = ghtoken_program(path);
		const struct token_sources from = {
			.values = none, .gh_path = gh, .gh_env = env, .host = "octo.ghe.com"};
		cr_assert_not_null(gh);
		cr_assert_eq(token_find(&from, &token), rows[i].err, "row %zu", i);
		if (rows[i].value) {
			cr_assert_str_eq(token.value, rows[i].value, "row %zu", i);
			cr_assert_str_eq(token.source, "gh auth token");
		}
		token_free(&token);
		free(gh);
	}
	put(dir, "gh", NULL);
	cr_assert_null(ghtoken_program(path));
	cr_assert_null(ghtoken_program(NULL));
	rmdir(dir);
}

Test(token, kinds)
{
	cr_assert_eq(token_kind("ghu_x"), TOKEN_USER_APP);
	cr_assert_eq(token_kind("gho_x"), TOKEN_OAUTH);
	cr_assert_eq(token_kind("github_pat_x"), TOKEN_FINE);
	cr_assert_eq(token_kind("ghp_x"), TOKEN_CLASSIC);
	cr_assert_eq(token_kind("ghs_x"), TOKEN_OTHER);
	cr_assert_eq(token_kind(""), TOKEN_OTHER);
}
