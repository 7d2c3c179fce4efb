#include "supervisor/cli_policy.h"

#include "tests/tempdir.h"
#include "tracer/buf.h"
#include "tracer/json.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[PATH_MAX];

static void setup(void)
{
	tempdir_enter(dir);
	cr_assert_eq(mkdir("home", 0700) | mkdir("p", 0700) | mkdir("p/sub", 0700), 0);
}

static void teardown(void)
{
	tempdir_leave(dir);
}

struct result {
	int status;
	char out[262144], err[8192];
};

static void slurp(const char *name, char *out, size_t n)
{
	int fd AUTOCLOSE = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? 0 : read(fd, out, n - 1);
	out[got > 0 ? got : 0] = '\0';
}

static int in_child(const char *cwd, char **argv, int argc)
{
	char home[PATH_MAX + 16];
	int out = creat("out", 0600), err = creat("err", 0600);
	snprintf(home, sizeof(home), "%s/home", dir);
	if (out < 0 || err < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 || chdir(cwd) < 0)
		return 99;
	setenv("HOME", home, 1);
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("XDG_STATE_HOME");
	unsetenv("XDG_RUNTIME_DIR");
	int status = cli_policy(argc, argv);
	fflush(stdout);
	return status;
}

/* `warder policy WORDS...` in p; words end with NULL. */
static struct result policy(const char *const *words)
{
	static struct result r;
	char *argv[16] = {"policy"};
	int argc = 1;
	while (*words)
		argv[argc++] = (char *)*words++;
	pid_t pid = fork();
	if (pid == 0)
		_exit(in_child("p", argv, argc));
	int status;
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "ended by a signal");
	r.status = WEXITSTATUS(status);
	slurp("out", r.out, sizeof(r.out));
	slurp("err", r.err, sizeof(r.err));
	return r;
}

#define POLICY(...) policy((const char *const[]){__VA_ARGS__, NULL})

static void saved_is(const char *want)
{
	char text[4096], full[4096] = "";
	slurp("home/.config/warder/policy", text, sizeof(text));
	for (const char *at = want; *at; at++) {
		size_t n = strlen(full);
		snprintf(full + n, sizeof(full) - n, *at == '@' ? "%s" : "%.1s",
			 *at == '@' ? dir : at);
	}
	cr_assert_str_eq(text, full);
}

Test(cli_policy, saves_and_forgets, .init = setup, .fini = teardown)
{
	cr_assert_eq(POLICY("allow", "rw", "~/.npm").status, 0);
	cr_assert_eq(POLICY("deny", "r", "**/.env").status, 0);
	cr_assert_eq(POLICY("allow", "list", "a b", "exact").status, 0);
	cr_assert_eq(POLICY("forbid", "../x\x1b").status, 0);
	saved_is("allow rw @/home/.npm\ndeny r @/p/**/.env\nallow list @/p/a\\ b exact\n"
		 "forbid @/x\\x1b\n");
	cr_assert_eq(POLICY("deny", "w", "~/.npm").status, 0);
	cr_assert_eq(POLICY("forget", "a b", "list").status, 0);
	cr_assert_eq(POLICY("forget", "**/.env").status, 0);
	cr_assert_eq(POLICY("forget", "nothing").status, 1);
	saved_is("allow r @/home/.npm\nforbid @/x\\x1b\ndeny w @/home/.npm\n");
	struct result r = POLICY("--project", "ask", "w", "sub");
	cr_assert_eq(r.status, 0);
	cr_assert_not_null(strstr(r.out, "/projects/p-"));
	r = POLICY("show");
	cr_assert_not_null(strstr(r.out, "/p/sub "));
	r = POLICY("path");
	cr_assert_not_null(strstr(r.out, "/home/.config/warder/policy\n"));
	/* It says where something else still decides. */
	r = POLICY("allow", "r", "../x\x1b/below");
	cr_assert_eq(r.status, 0);
	cr_assert_not_null(strstr(r.err, "still decides: forbid "), "%s", r.err);
	cr_assert_null(strchr(r.err, '\x1b'));
}

Test(cli_policy, usage, .init = setup, .fini = teardown)
{
	static const struct {
		const char *words[5];
		const char *say;
	} rows[] = {
		{{NULL}, "expected show, check, allow"},
		{{"frob"}, "not 'frob'"},
		{{"allow"}, "expected a path, with an access before it where not all are meant"},
		{{"allow", "rw"}, "expected a path after 'rw'"},
		{{"allow", "raed", "x"},
		 "expected an access such as r, rw or read,list, not 'raed'"},
		{{"allow", "r", "x", "y"}, "expected one path, not also 'y'"},
		{{"allow", "r", ""}, "expected a path, not ''"},
		{{"show", "x"}, "show takes no argument"},
		{{"check", "a", "b"}, "check takes one file"},
		{{"show", "--frob"}, "unknown option '--frob'"},
		{{"allow", "r", "x", "--json"}, "--json goes with show and check, not 'allow'"},
		{{"path", "--effective"}, "--effective goes with show and export, not 'path'"},
		{{"forget"}, "forget takes a path"},
		{{"forget", "x", "raed"}, "not 'raed'"},
		{{"allow", "r", "/proc/self/x"}, "/proc/self is another thing"},
		{{"\x1b[2J"}, "not '\\e[2J'"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct result r = policy(rows[i].words);
		cr_assert_eq(r.status, 2, "row %zu: %d %s", i, r.status, r.err);
		cr_assert_not_null(strstr(r.err, rows[i].say), "row %zu: %s", i, r.err);
		cr_assert_str_eq(r.out, "");
	}
	cr_assert_neq(access("home/.config/warder/policy", F_OK), 0, "nothing was saved");
	struct result r = POLICY("--help");
	cr_assert_eq(r.status, 0);
	size_t lines = 0;
	for (const char *c = r.out; *c; c++)
		lines += *c == '\n';
	cr_assert_leq(lines, 24, "--help fits a screen");
}

static void put_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");
	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

Test(cli_policy, checks, .init = setup, .fini = teardown)
{
	static const struct {
		const char *text, *say; /* NULL: nothing to say */
	} rows[] = {
		{"allow r sub\n", NULL},
		{"allow r nope\n", "f:1: warning: @/p/nope does not exist\n"},
		{"deny /etc\n", NULL},
		{"allow r link\n",
		 "f:1: warning: @/p/link leads through a symlink; the rule is about "
		 "@/p/sub, as the link stands now\n"},
		{"allow r sub\ndeny r sub\n",
		 "f:1: warning: never applies: 'deny r @/p/sub' (f:2) decides\n"},
		{"forbid sub\nallow r sub/file\n",
		 "f:2: warning: never applies: 'forbid @/p/sub' (f:1) decides\n"},
		{"deny r sub/file\n", "f:1: warning: @/p/sub/file may be renamed"},
		{"deny rw sub/file\n", "f:1: warning: @/p/sub may be renamed"},
		{"deny r **/.env\n", "f:1: warning: @/p: names in it may be changed"},
		{"deny rw **/.env\n", NULL},
		{"allow r star\\*/*.c\n", NULL},
		{"deny r star\\*/.env*\n", "f:1: warning: @/p/star*: names in it may be changed"},
	};
	put_text("p/sub/file", "");
	cr_assert_eq(mkdir("p/star*", 0700), 0);
	cr_assert_eq(symlink("sub", "p/link"), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf want = {0};
		put_text("p/f", rows[i].text);
		struct result r = POLICY("check", "f");
		cr_assert_eq(r.status, 0, "row %zu: %s", i, r.err);
		for (const char *at = rows[i].say ? rows[i].say : "nothing to complain about\n";
		     *at; at++)
			buf_add_str(&want, *at == '@' ? dir : (char[]){*at, 0});
		cr_assert_not_null(strstr(r.out, buf_str(&want)), "row %zu: %s", i, r.out);
		buf_free(&want);
	}
	put_text("p/f", "allow raed /x\n");
	struct result r = POLICY("check", "f");
	cr_assert_eq(r.status, 1);
	cr_assert_str_eq(r.out,
			 "f:1:7: expected an access such as r, rw or read,list, not 'raed'\n");
	/* Every line that does not read well is told, the others are looked at all the same. */
	put_text("p/f", "allow raed /x\nallow r /x\nalow r /y\n\nuse gti git\nallow r nowhere\n");
	r = POLICY("check", "f");
	cr_assert_eq(r.status, 1);
	const char *told[] = {"f:1:7: expected an access", "\nf:3:1: expected ",
			      "\nf:5:5: expected a preset", "\nf:2: warning: ", "\nf:6: warning: "};
	const char *at = r.out;
	for (size_t i = 0; i < ARRAY_LEN(told); i++) {
		at = strstr(at, told[i]);
		cr_assert_not_null(at, "%s not in %s", told[i], r.out);
	}
	r = POLICY("check", "absent");
	cr_assert_eq(r.status, 125);
	cr_assert_str_eq(r.err, "warder: absent: No such file or directory\n");
}

Test(cli_policy, json, .init = setup, .fini = teardown)
{
	struct json *root;
	POLICY("allow", "r", "a\xff");
	struct result r = POLICY("show", "--json");
	cr_assert_eq(json_parse(r.out, strlen(r.out), &root, NULL), 0, "%s", r.out);
	const struct json *rules = json_get(root, "rules");
	cr_assert_eq(json_len(rules), 1);
	cr_assert_str_eq(json_get_str(json_at(rules, 0), "effect"), "allow");
	cr_assert_not_null(json_get_str(json_at(rules, 0), "path_b64"));
	json_free(root);
	r = POLICY("show", "--json", "--effective");
	cr_assert_eq(json_parse(r.out, strlen(r.out), &root, NULL), 0);
	cr_assert_gt(json_len(json_get(root, "rules")), 100);
	json_free(root);
	put_text("p/f", "allow raed /x\n");
	r = POLICY("check", "--json", "f");
	cr_assert_eq(r.status, 1);
	cr_assert_eq(json_parse(r.out, strlen(r.out), &root, NULL), 0);
	cr_assert_eq(json_len(json_get(root, "errors")), 1);
	json_free(root);
}

/* A file that is no policy at all does not fill the screen. */
Test(cli_policy, many_errors_are_counted, .init = setup, .fini = teardown)
{
	struct buf text = {0};
	struct json *root;
	int64_t total = 0;
	for (size_t i = 0; i < 1000; i++)
		buf_add_str(&text, "nonsense\n");
	put_text("p/f", buf_str(&text));
	buf_free(&text);
	struct result r = POLICY("check", "f");
	cr_assert_eq(r.status, 1);
	cr_assert_not_null(strstr(r.out, "\nf:20:1: expected "), "%s", r.out);
	cr_assert_null(strstr(r.out, "f:21:"), "%s", r.out);
	cr_assert_not_null(strstr(r.out, "\nand 980 more errors\n"), "%s", r.out);
	r = POLICY("check", "--json", "f");
	cr_assert_eq(json_parse(r.out, strlen(r.out), &root, NULL), 0);
	cr_assert_eq(json_len(json_get(root, "errors")), 20);
	cr_assert(json_get_int(root, "errors_total", &total) && total == 1000);
	json_free(root);
}

Test(cli_policy, a_broken_saved_policy_is_trouble, .init = setup, .fini = teardown)
{
	POLICY("allow", "r", "x");
	put_text("home/.config/warder/policy", "nonsense\n");
	cr_assert_eq(POLICY("show").status, 125);
	cr_assert_eq(POLICY("allow", "r", "y").status, 125);
	cr_assert_eq(POLICY("check").status, 1);
	saved_is("nonsense\n");
}
