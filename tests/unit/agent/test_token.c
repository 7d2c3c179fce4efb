#include "agent/token.h"

#include "tests/support/mock.h"
#include "tracer/util.h"

#include <errno.h>
#include <sys/stat.h>

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
	 "ghu_d",
	 NULL,
	 NULL,
	 0,
	 "ghu_a",
	 "COPILOT_GITHUB_TOKEN"},
	{"the second", {"", "gho_b", "ghs_c"}, "ghu_d", NULL, NULL, 0, "gho_b", "GH_TOKEN"},
	{"the third, with space around",
	 {NULL, NULL, " ghs_c\n"},
	 "ghu_d",
	 NULL,
	 NULL,
	 0,
	 "ghs_c",
	 "GITHUB_TOKEN"},
	{"the stored one",
	 {0},
	 "ghu_d\n",
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
	 "ghu_d",
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
	{"only space", {NULL, " ", NULL}, "ghu_d", NULL, NULL, -EINVAL, NULL, "GH_TOKEN"},
	{"a control character",
	 {"ghu_\x1b", NULL, NULL},
	 NULL,
	 NULL,
	 NULL,
	 -EINVAL,
	 NULL,
	 "COPILOT_GITHUB_TOKEN"},
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

Test(token, kinds)
{
	cr_assert_eq(token_kind("ghu_x"), TOKEN_USER_APP);
	cr_assert_eq(token_kind("gho_x"), TOKEN_OAUTH);
	cr_assert_eq(token_kind("github_pat_x"), TOKEN_FINE);
	cr_assert_eq(token_kind("ghp_x"), TOKEN_CLASSIC);
	cr_assert_eq(token_kind("ghs_x"), TOKEN_OTHER);
	cr_assert_eq(token_kind(""), TOKEN_OTHER);
}
