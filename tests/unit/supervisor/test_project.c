#include "supervisor/project.h"

#include "supervisor/gitconfig.h"
#include "supervisor/sha256.h"
#include "tests/tempdir.h"
#include "tracer/buf.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[PATH_MAX];

static void setup(void)
{
	tempdir_enter(dir);
}

static void teardown(void)
{
	tempdir_leave(dir);
}

static void dirs(const char *names)
{
	char name[PATH_MAX];
	for (int n; sscanf(names, "%4095s%n", name, &n) == 1; names += n)
		cr_assert_eq(mkdir(name, 0700), 0, "%s", name);
}

static void git_dir(const char *name)
{
	char path[PATH_MAX];
	static const char *const parts[] = {"", "/objects", "/refs"};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		snprintf(path, sizeof(path), "%s%s", name, parts[i]);
		cr_assert_eq(mkdir(path, 0700), 0, "%s", path);
	}
	snprintf(path, sizeof(path), "%s/HEAD", name);
	tempdir_file(path, "ref: refs/heads/main\n");
}

/* main is a repository, w a worktree of it, both with everything a worktree has. */
static void make_worktree(void)
{
	dirs("main w");
	git_dir("main/.git");
	dirs("main/.git/worktrees main/.git/worktrees/w");
	tempdir_file("w/.git", "gitdir: %s/main/.git/worktrees/w\n", dir);
	tempdir_file("main/.git/worktrees/w/gitdir", "%s/w/.git\n", dir);
	tempdir_file("main/.git/worktrees/w/commondir", "../..\n");
}

static struct project find(const char *name)
{
	char path[2 * PATH_MAX];
	struct project p;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	cr_assert_eq(project_find(path, NULL, NULL, &p), 0, "%s", path);
	return p;
}

static void is_below(const char *path, const char *name)
{
	char want[2 * PATH_MAX];
	snprintf(want, sizeof(want), "%s%s%s", dir, name[0] ? "/" : "", name);
	cr_assert_not_null(path);
	cr_assert_str_eq(path, want);
}

static bool same_slug(const char *a, const char *b)
{
	struct project x = find(a), y = find(b);
	bool same = strcmp(x.slug, y.slug) == 0;
	project_release(&x);
	project_release(&y);
	return same;
}

Test(project, the_top_level_or_the_cwd, .init = setup, .fini = teardown)
{
	dirs("p p/a p/a/b q q/.git");
	git_dir("p/.git");
	struct project p = find("p/a/b");
	is_below(p.dir, "p");
	is_below(p.git_dir, "p/.git");
	cr_assert_null(p.work_git);
	cr_assert_eq(strncmp(p.slug, "p-", 2), 0);
	cr_assert_eq(strlen(p.slug), 2 + 16);
	project_release(&p);
	p = find("q");
	is_below(p.dir, "q");
	cr_assert_null(p.git_dir, "an empty .git is no repository");
	project_release(&p);
	cr_assert(same_slug("p", "p/a"));
	cr_assert_not(same_slug("p", "q"));
}

Test(project, forced_and_relative, .init = setup, .fini = teardown)
{
	dirs("p p/a");
	git_dir("p/.git");
	struct project p;
	char cwd[PATH_MAX + 8];
	snprintf(cwd, sizeof(cwd), "%s/p", dir);
	cr_assert_eq(project_find(cwd, "a", NULL, &p), 0);
	is_below(p.dir, "p/a");
	cr_assert_null(p.git_dir);
	project_release(&p);
	cr_assert_eq(project_find(cwd, "nope", NULL, &p), -ENOENT);
	cr_assert_eq(project_find(cwd, ".git/HEAD", NULL, &p), -ENOTDIR);
	cr_assert_eq(project_find("/nonexistent-dir", NULL, NULL, &p), -ENOENT);
}

Test(project, git_variables_do_not_matter, .init = setup, .fini = teardown)
{
	dirs("p other");
	git_dir("p/.git");
	git_dir("other/.git");
	setenv("GIT_DIR", "/tmp", 1);
	setenv("GIT_WORK_TREE", "/tmp", 1);
	struct project p = find("p");
	is_below(p.dir, "p");
	project_release(&p);
	unsetenv("GIT_DIR");
	unsetenv("GIT_WORK_TREE");
}

Test(project, worktrees_share_when_the_repository_says_so, .init = setup, .fini = teardown)
{
	make_worktree();
	struct project p = find("w");
	is_below(p.dir, "w");
	is_below(p.git_dir, "main/.git");
	is_below(p.work_git, "main/.git/worktrees/w");
	project_release(&p);
	cr_assert(same_slug("main", "w"));
	/* Paths relative to the file, as newer git can write them. */
	tempdir_file("w/.git", "gitdir: ../main/.git/worktrees/w\n");
	tempdir_file("main/.git/worktrees/w/gitdir", "../../../../w/.git\n");
	cr_assert(same_slug("main", "w"));
}

Test(project, a_copied_git_file_is_not_believed, .init = setup, .fini = teardown)
{
	make_worktree();
	dirs("evil");
	tempdir_file("evil/.git", "gitdir: %s/main/.git/worktrees/w\n", dir);
	struct project p = find("evil");
	is_below(p.dir, "evil");
	cr_assert_null(p.git_dir);
	cr_assert_null(p.work_git);
	project_release(&p);
	cr_assert_not(same_slug("main", "evil"));
}

Test(project, forged_repositories, .init = setup, .fini = teardown)
{
	static const char *const forged[] = {
		"gitdir: %s/main/.git\n",	    /* the repository itself */
		"gitdir: %s/main/.git/worktrees\n", /* no worktree's directory */
		"gitdir: %s/evil/fake\n", /* points back, but the common directory does not know it
					   */
		"gitdir: %s/nowhere\n",
		"gitdir:%s/main/.git/worktrees/w\n",
		"",
	};
	make_worktree();
	dirs("evil evil/fake");
	tempdir_file("evil/fake/gitdir", "%s/evil/.git\n", dir);
	tempdir_file("evil/fake/commondir", "%s/main/.git\n", dir);
	for (size_t i = 0; i < ARRAY_LEN(forged); i++) {
		char line[2 * PATH_MAX];
		const char *rest = strstr(forged[i], "%s");
		snprintf(line, sizeof(line), "%.*s%s%s", rest ? (int)(rest - forged[i]) : 0,
			 forged[i], rest ? dir : "", rest ? rest + 2 : "");
		tempdir_file("evil/.git", "%s", line);
		struct project p = find("evil");
		cr_assert_null(p.git_dir, "row %zu", i);
		project_release(&p);
		cr_assert_not(same_slug("main", "evil"), "row %zu", i);
	}
}

Test(project, a_worktree_that_was_moved_is_its_own, .init = setup, .fini = teardown)
{
	make_worktree();
	cr_assert_eq(rename("w", "moved"), 0);
	cr_assert_not(same_slug("main", "moved"));
	cr_assert_eq(symlink("moved", "w"), 0);
	/* The record now leads through a symlink to us: it is the same directory after all. */
	cr_assert(same_slug("main", "moved"));
}

Test(project, submodules, .init = setup, .fini = teardown)
{
	dirs("s s/m evil");
	git_dir("s/.git");
	dirs("s/.git/modules");
	git_dir("s/.git/modules/m");
	tempdir_file("s/.git/modules/m/config", "[core]\n\tworktree = ../../../m\n");
	tempdir_file("s/m/.git", "gitdir: ../.git/modules/m\n");
	struct project p = find("s/m");
	is_below(p.dir, "s/m");
	is_below(p.git_dir, "s/.git/modules/m");
	project_release(&p);
	cr_assert_not(same_slug("s", "s/m"));
	tempdir_file("evil/.git", "gitdir: ../s/.git/modules/m\n");
	p = find("evil");
	cr_assert_null(p.git_dir);
	project_release(&p);
}

Test(project, too_wide, .init = setup, .fini = teardown)
{
	dirs("home home/u home/u/p homes");
	char home[PATH_MAX + 16];
	snprintf(home, sizeof(home), "%s/home/u", dir);
	const char *homes[] = {home, NULL};
	static const struct {
		const char *name;
		bool wide;
	} rows[] = {{"home/u", true},
		    {"home", true},
		    {"", true},
		    {"home/u/p", false},
		    {"homes", false}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct project p;
		char path[2 * PATH_MAX];
		snprintf(path, sizeof(path), "%s/%s", dir, rows[i].name);
		cr_assert_eq(project_find(path, path, homes, &p), 0);
		cr_assert_eq(p.too_wide, rows[i].wide, "%s", path);
		project_release(&p);
	}
	struct project p;
	cr_assert_eq(project_find(dir, getpwuid(0)->pw_dir, NULL, &p), 0);
	cr_assert(p.too_wide, "the home directory, although nobody named it");
	project_release(&p);
	cr_assert_eq(project_find("/", NULL, NULL, &p), 0);
	cr_assert(p.too_wide);
	cr_assert_str_eq(p.dir, "/");
	project_release(&p);
}

/* As another user, below a stranger's .git: that one is not our project. */
Test(project, a_strangers_git_above_us, .init = setup, .fini = teardown, .timeout = 20)
{
	if (geteuid() != 0) {
		teardown(); /* a skipped test never reaches it */
		cr_skip_test("needs two users");
	}
	dirs("shared shared/mine");
	git_dir("shared/.git");
	cr_assert_eq(chmod(dir, 0755), 0);
	cr_assert_eq(chmod("shared", 0755), 0);
	cr_assert_eq(chown("shared/mine", 65534, 65534), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct project p;
		char path[PATH_MAX + 32];
		snprintf(path, sizeof(path), "%s/shared/mine", dir);
		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(2);
		int r = project_find(path, NULL, NULL, &p);
		_exit(r == 0 && strcmp(p.dir, path) == 0 && !p.git_dir ? 0 : 1);
	}
	int status;
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	/* Root, in a user's repository, means that repository. */
	git_dir("shared/mine/.git");
	cr_assert_eq(chown("shared/mine/.git", 65534, 65534), 0);
	struct project p = find("shared/mine");
	is_below(p.dir, "shared/mine");
	project_release(&p);
}

Test(project, slugs_are_plain_file_names, .init = setup, .fini = teardown)
{
	static const char *const names[] = {".hidden", "a b", "\x1b[2J", "-x", "\xc3\xa9", "a*b"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		cr_assert_eq(mkdir(names[i], 0700), 0);
		struct project p = find(names[i]);
		cr_assert_neq(p.slug[0], '.');
		cr_assert_eq(strspn(p.slug, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					    "0123456789-_."),
			     strlen(p.slug), "%s", p.slug);
		project_release(&p);
	}
}

static void git_file(const char *name)
{
	int fd AUTOCLOSE = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert(fd >= 0 && dprintf(fd, "gitdir: elsewhere\n") > 0);
}

static bool lists(char **list, const char *name)
{
	char want[2 * PATH_MAX];
	snprintf(want, sizeof(want), "%s/%s", dir, name);
	for (; *list; list++)
		if (strcmp(*list, want) == 0)
			return true;
	return false;
}

Test(project, finds_every_git_directory, .init = setup, .fini = teardown)
{
	dirs("p p/x p/x/y p/.git p/empty p/empty/.git p/t p/x/leaf");
	cr_assert_eq(rmdir("p/.git"), 0);
	/* Working trees of others, in directories with nothing below them. */
	git_file("p/t/.git");
	git_file("p/x/leaf/.git");
	git_dir("p/.git");
	git_dir("p/x/y/.git");
	git_dir("p/x/bare");
	dirs("p/.git/modules p/.git/modules/a");
	git_dir("p/.git/modules/a/b");
	cr_assert_eq(symlink("x", "p/link"), 0);
	struct project p = find("p");
	char **list = NULL;
	bool truncated = true;
	cr_assert_eq(project_git_dirs(&p, &list, &truncated), 0);
	cr_assert_not(truncated);
	cr_assert(lists(list, "p/.git"));
	cr_assert(lists(list, "p/x/y/.git"));
	cr_assert(lists(list, "p/x/bare"));
	cr_assert(lists(list, "p/.git/modules/a/b"));
	cr_assert(lists(list, "p/t/.git"));
	cr_assert(lists(list, "p/x/leaf/.git"));
	cr_assert_not(lists(list, "p/empty/.git"));
	size_t n = 0;
	while (list[n])
		n++;
	cr_assert_eq(n, 6);
	project_free_list(list);
	project_release(&p);
}

Test(project, the_search_is_bounded_and_says_so, .init = setup, .fini = teardown)
{
	dirs("p");
	git_dir("p/.git");
	for (int i = 0; i < 4100; i++) {
		char name[64];
		snprintf(name, sizeof(name), "p/d%d", i);
		cr_assert_eq(mkdir(name, 0700), 0);
		snprintf(name, sizeof(name), "p/d%d/below", i);
		cr_assert_eq(mkdir(name, 0700), 0);
	}
	struct project p = find("p");
	char **list = NULL;
	bool truncated = false;
	cr_assert_eq(project_git_dirs(&p, &list, &truncated), 0);
	cr_assert(truncated);
	cr_assert(lists(list, "p/.git"));
	project_free_list(list);
	project_release(&p);
}

/* ---- git's config, and the hash ---- */

static int collect(const char *section, const char *subsection, const char *key, const char *value,
		   void *arg)
{
	buf_addf(arg, "%s/%s/%s=%s|", section, subsection, key, value);
	return 0;
}

Test(project, reads_git_config)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"[core]\n\tbare = false\n", "core//bare=false|"},
		{"[CORE] HooksPath=a b \t ; c\n", "core//hookspath=a b|"},
		{"[core]\nhooksPath = \"a ; b\" # c\n", "core//hookspath=a ; b|"},
		{"[a \"B\\\"c\"]\nx=1\ny = 2", "a/B\"c/x=1|a/B\"c/y=2|"},
		{"[a]\nx = 1\\\n2\n", "a//x=12|"},
		{"[a]\r\nx = 1\r\n", "a//x=1|"},
		{"[a]\nflag\n; c\n# d\nx = \\t\\\\\n", "a//x=\t\\|"},
		{"x = 1\n", "//x=1|"},
		{"[a\nx = 1\n[b]\ny = 2\n", "a//x=1|b//y=2|"},
		{"", ""},
		{"[", ""},
		{"[a \"", ""},
		{"[a]\nx =", "a//x=|"},
		{"[a]\nx = \\", "a//x=|"},
		{"\xff\xfe[a]x=1", ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf out = {0};
		cr_assert_eq(gitconfig_scan(rows[i].text, strlen(rows[i].text), collect, &out), 0);
		cr_assert_str_eq(buf_str(&out), rows[i].want, "row %zu: %s", i, buf_str(&out));
		buf_free(&out);
	}
}

Test(project, sha256)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char hash[65];
		sha256_hex(rows[i].text, strlen(rows[i].text), hash);
		cr_assert_str_eq(hash, rows[i].want);
	}
	char *million AUTOFREE = malloc(1000000), hash[65];
	memset(million, 'a', 1000000);
	sha256_hex(million, 1000000, hash);
	cr_assert_str_eq(hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
