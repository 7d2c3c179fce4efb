#include "supervisor/store.h"

#include "tests/tempdir.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[PATH_MAX];
static char home[PATH_MAX + 16];

static void setup(void)
{
	tempdir_enter(dir);
	cr_assert_eq(chmod(dir, 0755), 0);
	cr_assert_eq(mkdir("home", 0755), 0);
	snprintf(home, sizeof(home), "%s/home", dir);
	umask(022);
}

static void teardown(void)
{
	tempdir_leave(dir);
}

struct env {
	char text[3][PATH_MAX + 64];
	char *list[4];
};

/* HOME, XDG_CONFIG_HOME, XDG_STATE_HOME; NULL: not set. */
static char *const *make_env(struct env *e, const char *h, const char *config, const char *state)
{
	const char *const names[] = {"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"};
	const char *const values[] = {h, config, state};
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!values[i])
			continue;
		snprintf(e->text[i], sizeof(e->text[i]), "%s=%s", names[i], values[i]);
		e->list[n++] = e->text[i];
	}
	e->list[n] = NULL;
	return e->list;
}

static struct store open_store(void)
{
	struct env e;
	struct store s;
	struct policy_error error;
	cr_assert_eq(store_open(make_env(&e, home, NULL, NULL), &s, &error), 0, "%s", error.text);
	return s;
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	cr_assert_eq(lstat(path, &st), 0, "%s", path);
	return st.st_mode & 07777;
}

static void has_text(const char *path, const char *want)
{
	char text[4096] = "";
	int fd AUTOCLOSE = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_geq(read(fd, text, sizeof(text) - 1), 0);
	cr_assert_str_eq(text, want);
}

static void put_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");
	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

static struct rule rule(enum effect effect, uint32_t access, const char *path)
{
	return (struct rule){.effect = effect,
			     .source = RULE_USER,
			     .access = access,
			     .path = (char *)path,
			     .origin = "test"};
}

/* Nothing but what the store made may be there. */
static void is_listed(const char *path, const char *want)
{
	char command[PATH_MAX + 64], got[1024] = "";
	snprintf(command, sizeof(command), "ls -A '%s' | tr '\\n' ' '", path);
	FILE *f = popen(command, "re");
	cr_assert_not_null(f);
	got[fread(got, 1, sizeof(got) - 1, f)] = '\0';
	cr_assert_eq(pclose(f), 0);
	cr_assert_str_eq(got, want);
}

Test(store, makes_its_directories, .init = setup, .fini = teardown)
{
	struct store s = open_store();
	char want[2 * PATH_MAX];
	snprintf(want, sizeof(want), "%s/.config/warder", home);
	cr_assert_str_eq(s.config_dir, want);
	cr_assert_eq(mode_of(want), 0700);
	snprintf(want, sizeof(want), "%s/.local/state/warder", home);
	cr_assert_str_eq(s.state_dir, want);
	cr_assert_eq(mode_of(want), 0700);
	/* What others could look into is closed. */
	cr_assert_eq(chmod(want, 0777), 0);
	store_release(&s);
	s = open_store();
	cr_assert_eq(mode_of(want), 0700);
	store_release(&s);
}

Test(store, xdg_variables, .init = setup, .fini = teardown)
{
	struct env e;
	struct store s;
	struct policy_error error;
	char config[PATH_MAX + 16], want[2 * PATH_MAX];
	snprintf(config, sizeof(config), "%s/c/d", dir);
	cr_assert_eq(store_open(make_env(&e, home, config, NULL), &s, &error), 0, "%s", error.text);
	snprintf(want, sizeof(want), "%s/warder", config);
	cr_assert_str_eq(s.config_dir, want);
	cr_assert_eq(mode_of(want), 0700);
	store_release(&s);
	cr_assert_eq(store_open(make_env(&e, home, "relative/c", NULL), &s, &error), -EINVAL);
	cr_assert_str_eq(error.text, "relative/c: expected an absolute path in the XDG variable");
	cr_assert_eq(store_open(make_env(&e, home, "", ""), &s, &error), 0, "empty is unset");
	store_release(&s);
	/* A symlink is followed once, and what it leads to is what we protect. */
	cr_assert_eq(symlink("c", "link"), 0);
	snprintf(config, sizeof(config), "%s/link/e", dir);
	snprintf(want, sizeof(want), "%s/c/e/warder", dir);
	cr_assert_eq(store_open(make_env(&e, home, config, NULL), &s, &error), 0, "%s", error.text);
	cr_assert_str_eq(s.config_dir, want);
	/* So is the link: another one in its place would lead the next run elsewhere. */
	struct policy *p;
	cr_assert_eq(policy_new(&p), 0);
	cr_assert_eq(store_protect(&s, p), 0);
	snprintf(want, sizeof(want), "%s/link", dir);
	cr_assert_eq(policy_decide(p, want, ACCESS_DELETE).effect, EFFECT_FORBID);
	cr_assert_eq(policy_decide(p, want, ACCESS_CREATE).effect, EFFECT_FORBID);
	cr_assert_eq(policy_decide(p, want, ACCESS_MOVE).effect, EFFECT_FORBID);
	cr_assert_eq(policy_decide(p, want, ACCESS_READ).effect, EFFECT_ASK);
	policy_free(p);
	store_release(&s);
}

Test(store, foreign_directories_are_refused, .init = setup, .fini = teardown)
{
	if (geteuid() != 0) {
		teardown(); /* a skipped test never reaches it */
		cr_skip_test("needs two users");
	}
	struct env e;
	struct store s;
	struct policy_error error;
	char config[PATH_MAX + 16], want[PATH_MAX + 64];
	snprintf(config, sizeof(config), "%s/foreign", dir);
	cr_assert_eq(mkdir(config, 0755), 0);
	cr_assert_eq(chown(config, 65534, 65534), 0);
	cr_assert_eq(store_open(make_env(&e, home, config, NULL), &s, &error), -EPERM);
	snprintf(want, sizeof(want), "%s: belongs to another user", config);
	cr_assert_str_eq(error.text, want);
	/* HOME of somebody else does not count: root's own is used. */
	cr_assert_eq(store_open(make_env(&e, config, dir, dir), &s, &error), 0, "%s", error.text);
	cr_assert_str_neq(s.home, config);
	store_release(&s);
	/* The directory itself, planted by somebody else. */
	snprintf(config, sizeof(config), "%s/mine", dir);
	cr_assert_eq(mkdir(config, 0755), 0);
	cr_assert_eq(mkdir("mine/warder", 0755), 0);
	cr_assert_eq(chown("mine/warder", 65534, 65534), 0);
	cr_assert_eq(store_open(make_env(&e, home, config, NULL), &s, &error), -EPERM);
}

Test(store, appends_lines, .init = setup, .fini = teardown)
{
	struct store s = open_store();
	struct policy_error error;
	char *file AUTOFREE = store_user_policy(&s);
	struct rule r = rule(EFFECT_ALLOW, ACCESS_R, "/x y");
	cr_assert_eq(store_append_rule(file, &r, "saved by cat\n\x1b[2J, open", &error), 0, "%s",
		     error.text);
	has_text(file, "allow r /x\\ y  # saved by cat\\n\\e[2J, open\n");
	cr_assert_eq(mode_of(file), 0600);
	r = rule(EFFECT_DENY, ACCESS_ALL, "/\x1b\n");
	cr_assert_eq(store_append_rule(file, &r, NULL, &error), 0);
	/* Said already: once is enough. */
	r = rule(EFFECT_ALLOW, ACCESS_R, "/x y");
	cr_assert_eq(store_append_rule(file, &r, "again", &error), 0);
	has_text(file, "allow r /x\\ y  # saved by cat\\n\\e[2J, open\ndeny /\\x1b\\x0a\n");
	r = rule(EFFECT_ALLOW, ACCESS_R, "/x");
	cr_assert_eq(store_append_rule(file, &r, NULL, &error), 0, "a prefix is not the same");
	struct policy *p;
	struct policy_vars vars = {.home = home};
	cr_assert_eq(policy_new(&p), 0);
	cr_assert_eq(policyfile_load(p, file, RULE_USER, &vars, &error), 0, "%s", error.text);
	cr_assert_eq(policy_len(p), 3);
	cr_assert_str_eq(policy_at(p, 1)->path, "/\x1b\n");
	policy_free(p);
	is_listed(s.config_dir, ".lock policy ");
	store_release(&s);
}

Test(store, makes_the_folder_of_projects, .init = setup, .fini = teardown)
{
	struct store s = open_store();
	struct project project = {.slug = "p-0123456789abcdef"};
	struct policy_error error;
	char *file AUTOFREE = store_project_policy(&s, &project);
	char want[2 * PATH_MAX];
	snprintf(want, sizeof(want), "%s/projects/p-0123456789abcdef.policy", s.config_dir);
	cr_assert_str_eq(file, want);
	struct rule r = rule(EFFECT_ASK, ACCESS_W, "/x");
	cr_assert_eq(store_append_rule(file, &r, NULL, &error), 0, "%s", error.text);
	has_text(file, "ask w /x\n");
	snprintf(want, sizeof(want), "%s/projects", s.config_dir);
	cr_assert_eq(mode_of(want), 0700);
	store_release(&s);
}

Test(store, keeps_what_people_wrote, .init = setup, .fini = teardown)
{
	struct store s = open_store();
	struct policy_error error;
	char *file AUTOFREE = store_user_policy(&s);
	struct rule r = rule(EFFECT_ALLOW, ACCESS_R, "/x");
	put_text(file, "# mine\n\nuse git   # yes\nallow   r ~/a");
	cr_assert_eq(store_append_rule(file, &r, NULL, &error), 0, "%s", error.text);
	has_text(file, "# mine\n\nuse git   # yes\nallow   r ~/a\nallow r /x\n");
	/* A broken file is left alone. */
	put_text(file, "allow raed /x\n");
	cr_assert_eq(store_append_rule(file, &r, NULL, &error), -EINVAL);
	char want[2 * PATH_MAX];
	snprintf(want, sizeof(want),
		 "%s:1:7: expected an access such as r, rw or read,list, not 'raed'", file);
	cr_assert_str_eq(error.text, want);
	has_text(file, "allow raed /x\n");
	store_release(&s);
}

Test(store, the_last_word_counts, .init = setup, .fini = teardown)
{
	struct store s = open_store();
	struct policy_error error;
	struct policy_vars vars = {.home = "/h", .project = "/p"};
	char *file AUTOFREE = store_user_policy(&s);
	size_t changed = 0;
	put_text(file,
		 "deny rw /x # a\n# kept\ndeny r /x exact\ndeny r /x/y\nallow x /x\nuse tmp\n");
	struct rule r = rule(EFFECT_ALLOW, ACCESS_R, "/x");
	cr_assert_eq(store_put_rule(file, &r, "b", &vars, &changed, &error), 0, "%s", error.text);
	has_text(file, "deny w /x\n# kept\ndeny r /x exact\ndeny r /x/y\nallow x /x\nuse tmp\n"
		       "allow r /x  # b\n");
	cr_assert_eq(changed, 1);
	r = rule(EFFECT_DENY, ACCESS_ALL, "/x");
	cr_assert_eq(store_put_rule(file, &r, NULL, &vars, &changed, &error), 0, "%s", error.text);
	has_text(file, "deny w /x\n# kept\ndeny r /x exact\ndeny r /x/y\nuse tmp\ndeny /x\n");
	cr_assert_eq(changed, 2);
	store_release(&s);
}

Test(store, a_forbid_gives_way_to_no_other_rule, .init = setup, .fini = teardown)
{
	struct store s = open_store();
	struct policy_error error;
	struct policy_vars vars = {.home = "/h", .project = "/p"};
	char *file AUTOFREE = store_user_policy(&s);
	put_text(file, "use tmp\nforbid /x\n");
	struct rule r = rule(EFFECT_ALLOW, ACCESS_R, "/x");
	cr_assert_eq(store_put_rule(file, &r, NULL, &vars, NULL, &error), -EPERM);
	char want[2 * PATH_MAX];
	snprintf(want, sizeof(want),
		 "%s:2: forbid /x: no other rule overrides it, and nothing was saved", file);
	cr_assert_str_eq(error.text, want);
	r = rule(EFFECT_DENY, ACCESS_ALL, "/x");
	cr_assert_eq(store_put_rule(file, &r, NULL, &vars, NULL, &error), -EPERM);
	has_text(file, "use tmp\nforbid /x\n");
	r = rule(EFFECT_FORBID, ACCESS_ALL, "/x");
	cr_assert_eq(store_put_rule(file, &r, NULL, &vars, NULL, &error), 0, "%s", error.text);
	r = rule(EFFECT_ALLOW, ACCESS_R, "/x/y");
	cr_assert_eq(store_put_rule(file, &r, NULL, &vars, NULL, &error), 0, "%s", error.text);
	has_text(file, "use tmp\nforbid /x\nallow r /x/y\n");
	store_release(&s);
}

Test(store, forgets, .init = setup, .fini = teardown)
{
	struct store s = open_store();
	struct policy_error error;
	struct policy_vars vars = {.home = "/h", .project = "/p"};
	char *file AUTOFREE = store_user_policy(&s);
	size_t removed = 99;
	cr_assert_eq(store_forget(file, "/x", ACCESS_ALL, &vars, &removed, &error), 0);
	cr_assert_eq(removed, 0);
	cr_assert_neq(access(file, F_OK), 0, "nothing to write");
	put_text(file,
		 "# c\nallow r /x\nallow w ~/a # why\ndeny r **/.env\nuse git\nallow r /x/y\n");
	cr_assert_eq(store_forget(file, "/x", ACCESS_W, &vars, &removed, &error), 0);
	cr_assert_eq(removed, 0);
	cr_assert_eq(store_forget(file, "/x", ACCESS_ALL, &vars, &removed, &error), 0);
	cr_assert_eq(removed, 1);
	cr_assert_eq(store_forget(file, "/h/a", ACCESS_META, &vars, &removed, &error), 0);
	cr_assert_eq(removed, 1);
	cr_assert_eq(store_forget(file, "**/.env", ACCESS_ALL, &vars, &removed, &error), 0);
	cr_assert_eq(removed, 1);
	has_text(file, "# c\nuse git\nallow r /x/y\n");
	cr_assert_eq(store_forget(file, "/h/.gitconfig", ACCESS_ALL, &vars, &removed, &error), 0);
	cr_assert_eq(removed, 0, "a preset's rules are not the file's");
	store_release(&s);
}

Test(store, symlinks_are_not_followed, .init = setup, .fini = teardown)
{
	struct store s = open_store();
	struct policy_error error;
	char *file AUTOFREE = store_user_policy(&s);
	char path[2 * PATH_MAX];
	struct rule r = rule(EFFECT_ALLOW, ACCESS_R, "/x");
	put_text("victim", "keep\n");
	char victim[PATH_MAX + 16];
	snprintf(victim, sizeof(victim), "%s/victim", dir);
	cr_assert_eq(symlink(victim, file), 0);
	cr_assert_eq(store_append_rule(file, &r, NULL, &error), -ELOOP);
	has_text("victim", "keep\n");
	cr_assert_eq(unlink(file), 0);
	/* The lock, and the temporary name. */
	snprintf(path, sizeof(path), "%s/.lock", s.config_dir);
	unlink(path);
	cr_assert_eq(symlink(victim, path), 0);
	cr_assert_eq(store_append_rule(file, &r, NULL, &error), -ELOOP);
	cr_assert_not_null(strstr(error.text, "; remove it"), "%s", error.text);
	cr_assert_eq(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/.new.%d", s.config_dir, (int)getpid());
	cr_assert_eq(symlink(victim, path), 0);
	cr_assert_eq(store_append_rule(file, &r, NULL, &error), 0, "%s", error.text);
	has_text("victim", "keep\n");
	has_text(file, "allow r /x\n");
	/* A FIFO does not hold us, a directory is no file. */
	cr_assert_eq(unlink(file), 0);
	cr_assert_eq(mkfifo(file, 0600), 0);
	cr_assert_eq(store_append_rule(file, &r, NULL, &error), -EINVAL);
	cr_assert_eq(unlink(file), 0);
	cr_assert_eq(mkdir(file, 0700), 0);
	cr_assert_eq(store_append_rule(file, &r, NULL, &error), -EINVAL);
	store_release(&s);
}

Test(store, a_full_disk_leaves_the_old_file, .init = setup, .fini = teardown, .timeout = 20)
{
	struct store s = open_store();
	struct policy_error error;
	char *file AUTOFREE = store_user_policy(&s);
	struct rule r = rule(EFFECT_ALLOW, ACCESS_R, "/x");
	put_text(file, "# a line that is longer than the limit\n");
	pid_t pid = fork();
	if (pid == 0) {
		struct rlimit limit = {10, 10};
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(store_append_rule(file, &r, NULL, &error) == -EFBIG ? 0 : 1);
	}
	int status;
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	has_text(file, "# a line that is longer than the limit\n");
	is_listed(s.config_dir, ".lock policy ");
	store_release(&s);
}

Test(store, two_writers_lose_nothing, .init = setup, .fini = teardown, .timeout = 60)
{
	enum { WRITERS = 4, LINES = 25 };
	struct store s = open_store();
	struct policy_error error;
	char *file AUTOFREE = store_user_policy(&s);
	pid_t pid[WRITERS];
	for (int w = 0; w < WRITERS; w++) {
		pid[w] = fork();
		if (pid[w] == 0) {
			int bad = 0;
			for (int i = 0; i < LINES; i++) {
				char path[32];
				snprintf(path, sizeof(path), "/w%d/%d", w, i);
				struct rule r = rule(EFFECT_ALLOW, ACCESS_R, path);
				bad |= store_append_rule(file, &r, NULL, &error) < 0;
			}
			_exit(bad);
		}
	}
	for (int w = 0; w < WRITERS; w++) {
		int status;
		cr_assert_eq(waitpid(pid[w], &status, 0), pid[w]);
		cr_assert_eq(status, 0);
	}
	struct policy *p;
	struct policy_vars vars = {0};
	cr_assert_eq(policy_new(&p), 0);
	cr_assert_eq(policyfile_load(p, file, RULE_USER, &vars, &error), 0, "%s", error.text);
	cr_assert_eq(policy_len(p), WRITERS * LINES);
	policy_free(p);
	store_release(&s);
}

Test(store, protects_itself, .init = setup, .fini = teardown)
{
	struct store s = open_store();
	struct policy *p;
	cr_assert_eq(policy_new(&p), 0);
	cr_assert_eq(store_protect(&s, p), 0);
	char *file AUTOFREE = store_user_policy(&s);
	struct rule r = rule(EFFECT_ALLOW, ACCESS_ALL, file);
	r.kind = RULE_EXACT;
	cr_assert_eq(policy_add(p, &r), 0);
	for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1) {
		cr_assert_eq(policy_decide(p, file, bit).effect, EFFECT_FORBID);
		cr_assert_eq(policy_decide(p, s.state_dir, bit).effect, EFFECT_FORBID);
	}
	policy_free(p);
	store_release(&s);
}

/* ---- as an ordinary user ---- */

/* 0 where everything was as it should be; else the number of the step. */
static int as_user(const char *h, const char *closed)
{
	struct env e;
	struct store s;
	struct policy_error error;
	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 1;
	if (store_open(make_env(&e, h, NULL, NULL), &s, &error) < 0)
		return 2;
	char *file = store_user_policy(&s);
	struct rule r = rule(EFFECT_ALLOW, ACCESS_R, "/x");
	if (store_append_rule(file, &r, NULL, &error) < 0)
		return 3;
	/* A directory that can't be written: the old file stays, the error says why. */
	if (chmod(s.config_dir, 0500) < 0)
		return 4;
	r = rule(EFFECT_ALLOW, ACCESS_R, "/y");
	if (store_append_rule(file, &r, NULL, &error) != -EACCES)
		return 5;
	if (strstr(error.text, "remove it")) /* there is nothing to be removed */
		return 13;
	if (chmod(s.config_dir, 0700) < 0)
		return 6;
	/* An unreadable file. */
	if (chmod(file, 0) < 0 || store_append_rule(file, &r, NULL, &error) != -EACCES)
		return 7;
	chmod(file, 0600);
	free(file);
	store_release(&s);
	/* A home that can't be written: no directories, and no failure before something is saved.
	 */
	if (store_open(make_env(&e, h, closed, closed), &s, &error) != -EPERM)
		return 8;
	char below[PATH_MAX + 32];
	snprintf(below, sizeof(below), "%s/not/there", closed);
	if (store_open(make_env(&e, h, below, below), &s, &error) < 0)
		return 9;
	file = store_user_policy(&s);
	/* Why, not just that what lies deeper is not there either. */
	if (store_append_rule(file, &r, NULL, &error) != -EACCES ||
	    !strstr(error.text, "XDG_CONFIG_HOME"))
		return 10;
	if (s.state_error != -EACCES)
		return 11;
	size_t removed = 99;
	struct policy_vars vars = {.home = h, .project = "/p"};
	if (store_forget(file, "/x", ACCESS_ALL, &vars, &removed, &error) || removed)
		return 12;
	free(file);
	store_release(&s);
	return 0;
}

Test(store, as_an_ordinary_user, .init = setup, .fini = teardown, .timeout = 20)
{
	if (geteuid() != 0) {
		teardown(); /* a skipped test never reaches it */
		cr_skip_test("needs two users");
	}
	char closed[PATH_MAX + 16];
	snprintf(closed, sizeof(closed), "%s/closed", dir);
	cr_assert_eq(mkdir(closed, 0755), 0);
	cr_assert_eq(chown(home, 65534, 65534), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(as_user(home, closed));
	int status;
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "step %d", WEXITSTATUS(status));
	char path[2 * PATH_MAX];
	snprintf(path, sizeof(path), "%s/.config/warder/policy", home);
	has_text(path, "allow r /x\n");
	is_listed(closed, "");
}
