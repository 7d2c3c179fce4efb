#include "supervisor/presets.h"

#include "supervisor/report.h"
#include "tests/tempdir.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static char *const env[] = {"XDG_RUNTIME_DIR=/run/user/4711", "SSH_AUTH_SOCK=/tmp/ssh-x/agent.1",
			    NULL};
static const struct policy_vars vars = {
	.home = "/home/u", .project = "/home/u/p", .tmpdir = "/tmp/warder-x", .env = env};

static struct policy *with(const char *names)
{
	struct policy *p;
	struct policy_error error;
	char name[32];
	cr_assert_eq(policy_new(&p), 0);
	for (int n; sscanf(names, "%31s%n", name, &n) == 1; names += n)
		cr_assert_eq(preset_add(p, name, &vars, &error), 0, "%s: %s", name, error.text);
	return p;
}

Test(presets, all_of_the_contract_are_there)
{
	static const char *const names[] = {"system", "tmp",  "project", "git", "node", "python",
					    "go",     "rust", "java",	 "c",	"gh",	"docs"};
	static const struct policy_vars none = {0};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct policy *p;
		struct policy_error error;
		cr_assert_not_null(preset_find(names[i]), "%s", names[i]);
		cr_assert_eq(policy_new(&p), 0);
		cr_assert_eq(preset_add(p, names[i], &vars, &error), 0, "%s", error.text);
		cr_assert_gt(policy_len(p), 0, "%s", names[i]);
		cr_assert_eq(preset_add(p, names[i], &none, &error), 0, "%s without a home: %s",
			     names[i], error.text);
		policy_free(p);
	}
	struct policy *p = with("");
	struct policy_error error;
	cr_assert_eq(preset_add(p, "nonesuch", &vars, &error), -ENOENT);
	cr_assert_not_null(strstr(error.text, "python"));
	policy_free(p);
}

/* A program looks there first: what is true of its files is true there, and at the usual place. */
static void expect_elsewhere(const struct policy *p, const struct rule *r)
{
	static const char *const places[][2] = {{"~/.config", "/xdg/config"},
						{"~/.cache", "/xdg/cache"},
						{"~/.local/share", "/xdg/data"},
						{"~/.local/state", "/xdg/state"}};
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		size_t n = strlen(places[i][0]);
		char path[PATH_MAX];
		struct rule there = *r;
		if (!r->given || strncmp(r->given, places[i][0], n) != 0)
			continue;
		cr_expect_eq(strncmp(r->path, "/home/u/.", 9), 0, "%s is %s", r->given, r->path);
		snprintf(path, sizeof(path), "%s%s", places[i][1], r->given + n);
		there.path = path;
		cr_expect(policy_has(p, &there), "%s is not known as %s", r->given, path);
	}
}

Test(presets, all_know_of_the_base_directories)
{
	char *const set[] = {"XDG_CONFIG_HOME=/xdg/config", "XDG_CACHE_HOME=/xdg/cache",
			     "XDG_DATA_HOME=/xdg/data", "XDG_STATE_HOME=/xdg/state", NULL};
	char *const odd[] = {"XDG_CONFIG_HOME=/home/u/.config",
			     "XDG_CACHE_HOME=", "XDG_DATA_HOME=relative", NULL};
	struct policy_vars there = vars, usual = vars;
	struct policy_error error;
	there.env = set;
	usual.env = odd;
	for (const struct preset_text *t = preset_texts; t->name; t++) {
		struct policy *p, *q;
		cr_assert(policy_new(&p) == 0 && policy_new(&q) == 0);
		cr_assert_eq(preset_add(p, t->name, &there, &error), 0, "%s", error.text);
		for (size_t i = 0; i < policy_len(p); i++)
			expect_elsewhere(p, policy_at(p, i));
		/* The usual place, no place, and one that is none: nothing is new. */
		cr_assert_eq(preset_add(q, t->name, &usual, &error), 0, "%s", error.text);
		size_t n = policy_len(q);
		usual.env = NULL;
		cr_assert_eq(preset_add(q, t->name, &usual, &error), 0, "%s", error.text);
		cr_expect_leq(n, policy_len(q) - n, "%s", t->name);
		usual.env = odd;
		policy_free(p);
		policy_free(q);
	}
}

static struct policy *all_presets(char *const *set)
{
	struct policy_vars there = vars;
	struct policy_error error;
	struct policy *p;

	there.env = set;
	cr_assert_eq(policy_new(&p), 0);
	for (const struct preset_text *t = preset_texts; t->name; t++)
		cr_assert_eq(preset_add(p, t->name, &there, &error), 0, "%s", error.text);
	return p;
}

/* Wherever they point, by mistake or not: what is opened is a program's own directory in there. */
Test(presets, base_directories_open_nothing_around_them)
{
	static const char *const places[] = {"/",
					     "/**",
					     "/*/u",
					     "/home/u",
					     "/home/u/.ssh",
					     "/etc",
					     "/home/u/.cache/../.ssh",
					     "/home/u/.config/."};
	static const char *const closed[] = {"/x",
					     "/etc/shadow",
					     "/etc/x",
					     "/root/x",
					     "/home/u/x",
					     "/home/u/.bashrc",
					     "/home/u/.ssh/id_rsa",
					     "/home/u/.ssh/x",
					     "/home/v/.netrc"};
	struct policy *usual = all_presets(NULL);

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		char config[64], cache[64], data[64], state[64];
		char *const set[] = {config, cache, data, state, NULL};
		snprintf(config, sizeof(config), "XDG_CONFIG_HOME=%s", places[i]);
		snprintf(cache, sizeof(cache), "XDG_CACHE_HOME=%s", places[i]);
		snprintf(data, sizeof(data), "XDG_DATA_HOME=%s", places[i]);
		snprintf(state, sizeof(state), "XDG_STATE_HOME=%s", places[i]);
		struct policy *p = all_presets(set);
		cr_expect_gt(policy_len(p), policy_len(usual), "%s", places[i]);
		for (size_t at = 0; at < ARRAY_LEN(closed); at++) {
			struct standing was = policy_standing(usual, closed[at], ACCESS_ALL);
			struct standing is = policy_standing(p, closed[at], ACCESS_ALL);
			cr_expect_eq(is.by[EFFECT_ALLOW] & ~was.by[EFFECT_ALLOW], 0u,
				     "%s by way of %s", closed[at], places[i]);
		}
		policy_free(p);
	}
	policy_free(usual);
}

Test(presets, each_is_known_by_its_digest)
{
	for (const struct preset_text *t = preset_texts; t->name; t++) {
		char digest[65];
		report_sha256(t->text, strlen(t->text), digest);
		cr_expect_str_eq(t->sha256, digest, "%s", t->name);
	}
}

Test(presets, what_they_decide)
{
	static const struct {
		const char *presets, *path;
		uint32_t bit;
		enum effect want;
	} rows[] = {
		{"system", "/usr/bin/git", ACCESS_EXEC, EFFECT_ALLOW},
		{"system", "/usr/lib/x/y.so", ACCESS_READ, EFFECT_ALLOW},
		{"system", "/usr/lib/x/y.so", ACCESS_WRITE, EFFECT_ASK},
		{"system", "/etc/passwd", ACCESS_READ, EFFECT_ALLOW},
		{"system", "/etc/passwd", ACCESS_WRITE, EFFECT_ASK},
		{"system", "/etc/shadow", ACCESS_READ, EFFECT_DENY},
		{"system", "/etc/gshadow-", ACCESS_READ, EFFECT_DENY},
		{"system", "/etc/sudoers.d/x", ACCESS_READ, EFFECT_DENY},
		{"system", "/etc/ssh/ssh_host_rsa_key", ACCESS_READ, EFFECT_DENY},
		{"system", "/etc/ssh/ssh_host_rsa_key.pub", ACCESS_READ, EFFECT_ALLOW},
		{"system", "/etc/ssh/ssh_config", ACCESS_READ, EFFECT_ALLOW},
		{"system", "/etc/ssl/private/x", ACCESS_READ, EFFECT_DENY},
		{"system", "/etc/ssl/certs/x", ACCESS_READ, EFFECT_ALLOW},
		{"system", "/proc/12/maps", ACCESS_READ, EFFECT_ALLOW},
		{"system", "/proc/12/mem", ACCESS_WRITE, EFFECT_ASK},
		{"system", "/sys/fs/cgroup/x", ACCESS_READ, EFFECT_ALLOW},
		{"system", "/dev/null", ACCESS_WRITE, EFFECT_ALLOW},
		{"system", "/dev/null", ACCESS_DELETE, EFFECT_ASK},
		{"system", "/dev/urandom", ACCESS_READ, EFFECT_ALLOW},
		{"system", "/dev/tty", ACCESS_IOCTL, EFFECT_ALLOW},
		{"system", "/dev/pts/3", ACCESS_WRITE, EFFECT_ASK},
		{"system", "/dev/pts", ACCESS_LIST, EFFECT_ALLOW},
		{"system", "/dev/sda", ACCESS_READ, EFFECT_ASK},
		{"system", "/dev/shm/x", ACCESS_CREATE, EFFECT_ASK},
		{"system", "/run/nscd/socket", ACCESS_CONNECT, EFFECT_ALLOW},
		{"system", "/run/systemd/userdb/io.systemd.Multiplexer", ACCESS_CONNECT,
		 EFFECT_ALLOW},
		{"system", "/run/docker.sock", ACCESS_CONNECT, EFFECT_ASK},
		{"system", "/", ACCESS_LIST, EFFECT_ALLOW},
		{"system", "/root", ACCESS_LIST, EFFECT_ASK},
		{"system", "/home/u", ACCESS_LIST, EFFECT_ASK},
		{"system", "/home/u/.bashrc", ACCESS_READ, EFFECT_ASK},
		{"system tmp project", "/home/u/.ssh/id_rsa", ACCESS_READ, EFFECT_ASK},
		{"tmp", "/tmp/warder-x/a", ACCESS_CREATE, EFFECT_ALLOW},
		{"tmp", "/tmp/warder-x/a", ACCESS_CONNECT, EFFECT_ALLOW},
		{"tmp", "/tmp/other", ACCESS_CREATE, EFFECT_ASK},
		{"tmp", "/tmp/other", ACCESS_READ, EFFECT_ASK},
		{"tmp", "/tmp/tmpfAb3dEf", ACCESS_CREATE, EFFECT_ALLOW},
		{"tmp", "/tmp", ACCESS_CREATE, EFFECT_ALLOW},
		{"tmp", "/tmp", ACCESS_LIST, EFFECT_ASK},
		{"tmp", "/tmp/.X11-unix/X0", ACCESS_CONNECT, EFFECT_ASK},
		{"project", "/home/u/p/src/a.c", ACCESS_WRITE, EFFECT_ALLOW},
		{"project", "/home/u/q", ACCESS_READ, EFFECT_ASK},
		{"git", "/home/u/.gitconfig", ACCESS_READ, EFFECT_ALLOW},
		{"git", "/home/u/.gitconfig", ACCESS_WRITE, EFFECT_ASK},
		{"git", "/home/u/.config/git/credentials", ACCESS_READ, EFFECT_DENY},
		{"git", "/home/u/.ssh/known_hosts", ACCESS_READ, EFFECT_ALLOW},
		{"git", "/home/u/.ssh/id_rsa", ACCESS_READ, EFFECT_ASK},
		{"node", "/home/u/.npm/_cacache/x", ACCESS_CREATE, EFFECT_ALLOW},
		{"node", "/home/u/.npmrc", ACCESS_READ, EFFECT_ASK},
		{"python", "/home/u/.local/lib/python3.11/x.py", ACCESS_READ, EFFECT_ALLOW},
		{"python", "/home/u/.local/lib/other", ACCESS_READ, EFFECT_ASK},
		{"python", "/dev/shm/sem.mp-x", ACCESS_CREATE, EFFECT_ALLOW},
		{"rust", "/home/u/.cargo/registry/x", ACCESS_WRITE, EFFECT_ALLOW},
		{"rust", "/home/u/.cargo/bin/cargo", ACCESS_EXEC, EFFECT_ALLOW},
		{"rust", "/home/u/.cargo/bin/cargo", ACCESS_WRITE, EFFECT_ASK},
		{"rust", "/home/u/.cargo/credentials.toml", ACCESS_READ, EFFECT_DENY},
		{"go", "/home/u/go/pkg/mod/x", ACCESS_CREATE, EFFECT_ALLOW},
		{"go", "/home/u/go/bin/x", ACCESS_CREATE, EFFECT_ASK},
		{"gh", "/home/u/.config/gh/config.yml", ACCESS_READ, EFFECT_ALLOW},
		{"gh", "/home/u/.config/gh/hosts.yml", ACCESS_READ, EFFECT_ASK},
		{"java", "/home/u/.m2/repository/g/a.jar", ACCESS_CREATE, EFFECT_ALLOW},
		{"java", "/home/u/.m2/settings.xml", ACCESS_READ, EFFECT_ASK},
		{"java", "/home/u/.gradle/caches/x", ACCESS_CREATE, EFFECT_ALLOW},
		{"java", "/home/u/.gradle/init.d/x.gradle", ACCESS_CREATE, EFFECT_ASK},
		{"java", "/home/u/.gradle/gradle.properties", ACCESS_READ, EFFECT_ASK},
		{"c", "/home/u/.conan2/profiles/default", ACCESS_WRITE, EFFECT_ASK},
		{"docs", "/home/u/.texlive2022/texmf-config/web2c/texmf.cnf", ACCESS_WRITE,
		 EFFECT_ASK},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct policy *p = with(rows[i].presets);
		struct decision d = policy_decide(p, rows[i].path, rows[i].bit);
		cr_assert_eq(d.effect, rows[i].want, "row %zu: %s: %s", i, rows[i].path,
			     effect_name(d.effect));
		policy_free(p);
	}
}

Test(presets, nothing_of_a_home_is_opened_by_default)
{
	struct policy *p = with("system tmp");
	for (size_t i = 0; i < policy_len(p); i++) {
		const struct rule *r = policy_at(p, i);
		if (r->effect == EFFECT_ALLOW)
			cr_assert_neq(strncmp(r->path, "/home", 5), 0, "%s", r->path);
	}
	policy_free(p);
}

Test(presets, the_sensitive_list)
{
	static const struct {
		const char *path;
		uint32_t mask;
		bool want;
	} rows[] = {
		{"/home/u/.ssh/id_ed25519", ACCESS_READ, true},
		{"/home/u/.aws/credentials", ACCESS_READ, true},
		{"/home/u/.config/google-chrome/Default/Cookies", ACCESS_READ, true},
		{"/home/u/.bashrc", ACCESS_READ, false},
		{"/home/u/.bashrc", ACCESS_WRITE, true},
		{"/home/u/.npmrc", ACCESS_READ, true},
		{"/home/u/x/y/.env", ACCESS_READ, true},
		{"/home/u/.bash_history", ACCESS_READ, true},
		{"/home/u/.zsh_history", ACCESS_READ, true},
		{"/home/u/.local/share/fish/fish_history", ACCESS_READ, true},
		{"/home/u/.gnupg/private-keys-v1.d/x", ACCESS_READ, true},
		{"/home/u/.kube/config", ACCESS_READ, true},
		{"/home/u/.docker/config.json", ACCESS_READ, true},
		{"/home/u/.netrc", ACCESS_READ, true},
		{"/home/u/.local/share/keyrings/login.keyring", ACCESS_READ, true},
		{"/home/u/.mozilla/firefox/x/logins.json", ACCESS_READ, true},
		{"/home/u/.config/chromium/Default/Cookies", ACCESS_READ, true},
		{"/home/u/snap/firefox/common/x", ACCESS_READ, true},
		{"/home/u/.zshrc", ACCESS_WRITE, true},
		{"/home/u/.profile", ACCESS_META, true},
		{"/home/u/.config/fish/config.fish", ACCESS_CREATE, true},
		{"/home/u/.claude/settings.json", ACCESS_WRITE, true},
		{"/home/u/.codex/auth.json", ACCESS_READ, true},
		{"/home/u/.config/Code/User/tasks.json", ACCESS_WRITE, true},
		{"/home/u/.vimrc", ACCESS_WRITE, true},
		{"/home/u/.vimrc", ACCESS_READ, false},
		{"/home/u/.emacs.d/init.el", ACCESS_CREATE, true},
		{"/home/u/.config/nvim/init.lua", ACCESS_WRITE, true},
		{"/home/u/.config/warder/policy", ACCESS_READ, true},
		{"/home/u/.local/state/warder/audit.jsonl", ACCESS_READ, true},
		{"/home/u/.pypirc", ACCESS_READ, true},
		{"/home/u/.cargo/credentials.toml", ACCESS_READ, true},
		{"/home/u/.config/gh/hosts.yml", ACCESS_READ, true},
		{"/home/u/.m2/settings.xml", ACCESS_READ, true},
		{"/home/u/.config/pip/pip.conf", ACCESS_READ, true},
		{"/home/u/.cargo/bin/cargo", ACCESS_WRITE, true},
		{"/home/u/.cargo/bin/cargo", ACCESS_EXEC, false},
		{"/run/podman/podman.sock", ACCESS_CONNECT, true},
		{"/run/docker.sock", ACCESS_CONNECT, true},
		{"/tmp/ssh-x/agent.1", ACCESS_CONNECT, true},
		{"/tmp/ssh-other/agent.7", ACCESS_CONNECT, true},
		{"/run/user/4711/bus", ACCESS_CONNECT, true},
		{"/etc/shadow", ACCESS_READ, true},
		{"/etc/hosts", ACCESS_WRITE, true},
		{"/etc/hosts", ACCESS_READ, false},
		{"/home/u/p/main.c", ACCESS_ALL, false},
		{"/home/u/Downloads/x", ACCESS_READ, false},
	};
	struct policy *p = with("system tmp project");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_assert_eq(policy_sensitive_for(p, rows[i].path, rows[i].mask), rows[i].want,
			     "row %zu: %s", i, rows[i].path);
	policy_free(p);
}

/* Single files of sensitive directories that hold no secret, and that a tool needs. */
static bool is_opened_on_purpose(const char *path)
{
	static const char *const files[] = {"/home/u/.ssh/config", "/home/u/.ssh/known_hosts",
					    "/home/u/.config/gh/config.yml"};
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (strcmp(path, files[i]) == 0)
			return true;
	return false;
}

/* A path at or below a sensitive one that a rule could mean, without its wildcards. */
static bool is_plain(const char *path)
{
	return !strpbrk(path, "*?");
}

static void expect_closed(const struct policy *p, const char *preset, const struct rule *sensitive)
{
	static const uint32_t bits[] = {ACCESS_READ, ACCESS_WRITE, ACCESS_CONNECT};
	for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
		if (!(sensitive->access & bits[i]))
			continue;
		struct decision d = policy_decide(p, sensitive->path, bits[i]);
		cr_expect_neq(d.effect, EFFECT_ALLOW, "preset %s: %s %s", preset,
			      access_name(bits[i]), sensitive->path);
	}
}

/* With any preset: nothing on the sensitive list is open, neither by its path nor by a rule on it.
 */
Test(presets, nothing_sensitive_is_opened)
{
	struct policy *system = with("system");
	for (const struct preset_text *t = preset_texts; t->name; t++) {
		char names[64];
		snprintf(names, sizeof(names), "system tmp %s", t->name);
		struct policy *p = with(names);
		for (size_t i = 0; i < policy_len(system); i++) {
			const struct rule *r = policy_at(system, i);
			if (r->sensitive && is_plain(r->path))
				expect_closed(p, t->name, r);
		}
		for (size_t i = 0; i < policy_len(p); i++) {
			const struct rule *r = policy_at(p, i);
			uint32_t content = r->access & (ACCESS_READ | ACCESS_WRITE);
			if (r->effect == EFFECT_ALLOW && !r->sensitive && content &&
			    strncmp(r->path, "/home", 5) == 0 && !is_opened_on_purpose(r->path))
				cr_expect_not(policy_sensitive_for(system, r->path, content),
					      "preset %s: %s", t->name, r->path);
		}
		policy_free(p);
	}
	policy_free(system);
}

/* ---- the project's repositories ---- */

static char dir[PATH_MAX];

static void setup(void)
{
	tempdir_enter(dir);
}

static void teardown(void)
{
	tempdir_leave(dir);
}

static void git_dir(const char *name)
{
	char path[PATH_MAX];
	static const char *const parts[] = {"", "/objects", "/refs", "/hooks"};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		snprintf(path, sizeof(path), "%s%s", name, parts[i]);
		cr_assert_eq(mkdir(path, 0700), 0, "%s", path);
	}
	snprintf(path, sizeof(path), "%s/HEAD", name);
	tempdir_file(path, "ref: refs/heads/main\n");
}

static struct policy *project_at(const char *at, const char *home, char **ret_note)
{
	struct project project;
	struct policy *p;
	struct policy_error error = {""};
	const char *homes[] = {home, NULL};
	struct policy_vars here = {.home = home};
	cr_assert_eq(project_find(at, NULL, homes, &project), 0);
	cr_assert_eq(policy_new(&p), 0);
	cr_assert_eq(preset_add_project(p, &project, &here, ret_note, &error), 0, "%s", error.text);
	project_release(&project);
	return p;
}

static void decides(const struct policy *p, const char *name, uint32_t bit, enum effect want,
		    bool sensitive)
{
	char path[2 * PATH_MAX];
	snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : dir, name[0] == '/' ? "" : "/",
		 name);
	enum effect got = policy_decide(p, path, bit).effect;
	cr_assert_eq(got, want, "%s: %s", path, effect_name(got));
	cr_assert_eq(policy_sensitive_for(p, path, bit), sensitive, "%s", path);
}

Test(presets, repositories_are_protected, .init = setup, .fini = teardown)
{
	char *note = NULL;
	git_dir(".git");
	tempdir_file(".git/config",
		     "[core]\n\tbare = false\n\tHooksPath = \"tools/hooks\" ; ours\n"
		     "[include]\n\tpath = ../shared.cfg\n[includeIf \"gitdir:x\"] path=~/more\n");
	cr_assert_eq(mkdir("sub", 0700), 0);
	git_dir("sub/.git");
	git_dir("bare.git");
	cr_assert_eq(mkdir("m", 0700), 0);
	tempdir_file("m/.git", "gitdir: ../.git/modules/m\n");
	cr_assert_eq(mkdir(".git/modules", 0700), 0);
	git_dir(".git/modules/m");
	tempdir_file(".git/modules/m/config", "[core]\n\tworktree = ../../../m\n\thooksPath = h\n");
	struct policy *p = project_at(dir, "/home/u", &note);
	cr_assert_null(note);
	decides(p, "a.c", ACCESS_WRITE, EFFECT_ALLOW, false);
	decides(p, "a.c", ACCESS_EXEC, EFFECT_ALLOW, false);
	decides(p, "a.c", ACCESS_CONNECT, EFFECT_ASK, false);
	decides(p, ".git/index", ACCESS_WRITE, EFFECT_ALLOW, false);
	decides(p, ".git/hooks/pre-commit", ACCESS_CREATE, EFFECT_ASK, true);
	decides(p, ".git/hooks/pre-commit", ACCESS_READ, EFFECT_ALLOW, false);
	decides(p, ".git/hooks/pre-commit", ACCESS_EXEC, EFFECT_ALLOW, false);
	decides(p, ".git/config", ACCESS_WRITE, EFFECT_ASK, true);
	decides(p, ".git/config.lock", ACCESS_CREATE, EFFECT_ALLOW, false);
	decides(p, "tools/hooks/x", ACCESS_CREATE, EFFECT_ASK, true);
	decides(p, "shared.cfg", ACCESS_WRITE, EFFECT_ASK, true);
	decides(p, "/home/u/more", ACCESS_WRITE, EFFECT_ASK, true);
	decides(p, "sub/.git/hooks/x", ACCESS_META, EFFECT_ASK, true);
	decides(p, "sub/.git/config", ACCESS_DELETE, EFFECT_ASK, true);
	decides(p, "bare.git/hooks/x", ACCESS_WRITE, EFFECT_ASK, true);
	decides(p, ".git/modules/m/config", ACCESS_WRITE, EFFECT_ASK, true);
	decides(p, "m/h/x", ACCESS_WRITE, EFFECT_ASK, true);
	decides(p, "m/.git", ACCESS_WRITE, EFFECT_ASK, true);
	decides(p, ".git/commondir", ACCESS_CREATE, EFFECT_ASK, true);
	policy_free(p);
}

Test(presets, a_worktree_may_commit, .init = setup, .fini = teardown)
{
	char *note = NULL;
	char tree[PATH_MAX + 16];
	cr_assert_eq(mkdir("main", 0700), 0);
	git_dir("main/.git");
	tempdir_file("main/.git/config", "[core]\n hooksPath = h\n");
	cr_assert_eq(mkdir("main/.git/worktrees", 0700), 0);
	cr_assert_eq(mkdir("main/.git/worktrees/w", 0700), 0);
	cr_assert_eq(mkdir("w", 0700), 0);
	tempdir_file("w/.git", "gitdir: %s/main/.git/worktrees/w\n", dir);
	tempdir_file("main/.git/worktrees/w/gitdir", "%s/w/.git\n", dir);
	tempdir_file("main/.git/worktrees/w/commondir", "../..\n");
	cr_assert_eq(mkdir("main/.git/worktrees/v", 0700), 0);
	snprintf(tree, sizeof(tree), "%s/w", dir);
	struct policy *p = project_at(tree, "/home/u", &note);
	decides(p, "w/a", ACCESS_WRITE, EFFECT_ALLOW, false);
	decides(p, "main/.git/objects/x", ACCESS_CREATE, EFFECT_ALLOW, false);
	decides(p, "main/.git/worktrees/w/index", ACCESS_CREATE, EFFECT_ALLOW, false);
	decides(p, "main/.git/hooks/x", ACCESS_CREATE, EFFECT_ASK, true);
	decides(p, "main/.git/hooks/x", ACCESS_EXEC, EFFECT_ALLOW, false);
	decides(p, "main/.git/x", ACCESS_EXEC, EFFECT_ASK, false);
	decides(p, "main/.git/commondir", ACCESS_CREATE, EFFECT_ASK, true);
	decides(p, "main/.git/worktrees/w/commondir", ACCESS_WRITE, EFFECT_ASK, true);
	decides(p, "main/.git/worktrees/v/commondir", ACCESS_WRITE, EFFECT_ASK, true);
	decides(p, "main/.git/worktrees/v/config.worktree", ACCESS_CREATE, EFFECT_ASK, true);
	decides(p, "main/.git/worktrees/v/index", ACCESS_CREATE, EFFECT_ALLOW, false);
	decides(p, "w/.git", ACCESS_WRITE, EFFECT_ASK, true);
	decides(p, "main/.git/config", ACCESS_WRITE, EFFECT_ASK, true);
	decides(p, "main/a", ACCESS_READ, EFFECT_ASK, false);
	decides(p, "w/h/x", ACCESS_WRITE, EFFECT_ASK, true);
	decides(p, "main/h/x", ACCESS_WRITE, EFFECT_ASK, true);
	policy_free(p);
}

Test(presets, too_wide_opens_nothing, .init = setup, .fini = teardown)
{
	char *note = NULL;
	struct policy *p = project_at(dir, dir, &note);
	cr_assert_eq(policy_len(p), 0);
	cr_assert_not_null(note);
	cr_assert_not_null(strstr(note, "too wide"));
	free(note);
	policy_free(p);
}
