#include "supervisor/plan.h"

#include "supervisor/breadth.h"
#include "supervisor/policyfile.h"
#include "supervisor/surplus.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* A home of our own, two below /tmp; its name is in every expectation as ~. */
static char base[64], home[96];

static void make_home(void)
{
	strcpy(base, "/tmp/warder-plan-XXXXXX");
	cr_assert(mkdtemp(base));
	snprintf(home, sizeof(home), "%s/u", base);
	cr_assert_eq(mkdir(home, 0755), 0);
}

static void remove_home(void)
{
	pid_t pid = fork();
	if (!pid) {
		execlp("rm", "rm", "-rf", "--", base, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

TestSuite(plan, .init = make_home, .fini = remove_home, .timeout = 60);

/* An owned absolute path of "~/x" or "/x". */
static char *in_home(const char *path)
{
	struct buf b = {0};
	buf_addf(&b, "%s%s", path[0] == '~' ? home : "", path[0] == '~' ? path + 1 : path);
	return buf_take(&b);
}

static void make(const char *path)
{
	char *full AUTOFREE = in_home(path);
	for (char *c = full + strlen(home) + 1; (c = strchr(c, '/')); c++) {
		*c = 0;
		cr_assert(!mkdir(full, 0755) || errno == EEXIST, "%s", full);
		*c = '/';
	}
	if (full[strlen(full) - 1] == '/')
		return;
	int fd = open(full, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	cr_assert_geq(fd, 0, "%s", full);
	close(fd);
}

static struct policy *policy_of(const char *text, enum rule_source source)
{
	struct policy *p = NULL;
	struct policy_vars vars = {.home = home, .project = home};
	struct policy_error error = {0};
	cr_assert_eq(policy_new(&p), 0);
	cr_assert_eq(policyfile_parse(p, "test", text, strlen(text), source, &vars, &error), 0,
		     "%s", error.text);
	return p;
}

/* "exact ~/x read +0; tree ~ r +3 sensitive; ..." */
static char *describe(const struct scope_list *l)
{
	struct buf b = {0};
	for (size_t i = 0; i < l->len; i++) {
		const struct scope *s = &l->item[i];
		buf_addf(&b, "%s%s ", i ? "; " : "", scope_kind_name(s->kind));
		plan_add_short(&b, s->path, home);
		if (s->path2) {
			buf_add_char(&b, ' ');
			plan_add_short(&b, s->path2, home);
		}
		if (s->kind == SCOPE_PRESET)
			continue;
		buf_add_char(&b, ' ');
		access_format(&b, s->access);
		buf_addf(&b, " +%u%s%s", (unsigned)s->surplus, s->surplus_more ? "+" : "",
			 s->sensitive ? " sensitive" : "");
	}
	return buf_take(&b);
}

static const struct row {
	const char *what;
	const char *path;
	const char *path2;
	const char *call;
	uint32_t access;
	bool exists;
	bool is_dir;
	const char *scopes;
} rows[] = {
	{"a file, read", "~/a/b/f", NULL, "openat", ACCESS_READ, true, false,
	 "exact ~/a/b/f read +0; tree ~/a/b read +2; tree ~/a/b r +2; tree ~/a read +4"},
	{"a file, written", "~/a/b/f", NULL, "openat", ACCESS_WRITE, true, false,
	 "exact ~/a/b/f write +0; exact ~/a/b/f rw +0; tree ~/a/b write +2; tree ~/a/b rw +2; "
	 "tree ~/a write +4"},
	{"a file of the home directory: never the home", "~/f", NULL, "openat", ACCESS_READ, true,
	 false, "exact ~/f read +0"},
	{"a new file there", "~/.npm", NULL, "openat", ACCESS_CREATE | ACCESS_WRITE, false, false,
	 "exact ~/.npm write,create +0; exact ~/.npm rw +0; preset node"},
	{"a directory, listed", "~/a/b", NULL, "openat", ACCESS_LIST, true, true,
	 "exact ~/a/b list +0; tree ~/a/b list +3; tree ~/a/b r +3; tree ~/a list +4"},
	{"the home, listed", "~", NULL, "openat", ACCESS_LIST, true, true, "exact ~ list +0"},
	{"mkdir -p, the deepest", "~/.cache/x/y", NULL, "mkdir", ACCESS_CREATE, false, false,
	 "exact ~/.cache/x/y create +0; tree ~/.cache/x/y create +0; tree ~/.cache/x/y rw +0; "
	 "tree ~/.cache/x create +0; tree ~/.cache create +0"},
	{"mkdir -p, the first it makes", "~/.cache", NULL, "mkdirat", ACCESS_CREATE, false, false,
	 "exact ~/.cache create +0; tree ~/.cache create +0; tree ~/.cache rw +0"},
	{"a rename within a tree", "~/a/b/f", "~/a/c/g", "rename",
	 ACCESS_CREATE | ACCESS_DELETE | ACCESS_MOVE, true, false,
	 "exact ~/a/b/f ~/a/c/g create,delete,move +0; exact ~/a/b/f ~/a/c/g rw +0; "
	 "tree ~/a create,delete,move +4; tree ~/a rw +4"},
	{"a rename whose paths share only the home", "~/a/b/f", "~/d/g", "rename", ACCESS_MOVE,
	 true, false, "exact ~/a/b/f ~/d/g move +0; exact ~/a/b/f ~/d/g rw +0"},
	{"a rename onto the directory's own parent name", "~/a/b/f", "~/a/b", "rename", ACCESS_MOVE,
	 true, false,
	 "exact ~/a/b/f ~/a/b move +0; exact ~/a/b/f ~/a/b rw +0; tree ~/a move +3; "
	 "tree ~/a rw +3"},
	{"a program", "~/a/b/f", NULL, "execve", ACCESS_EXEC, true, false,
	 "exact ~/a/b/f x +0; exact ~/a/b/f rx +0; tree ~/a/b x +2; tree ~/a/b rx +2; "
	 "tree ~/a x +4"},
	{"/etc is too wide", "/etc/warder-nothing", NULL, "openat", ACCESS_READ, false, false,
	 "exact /etc/warder-nothing read +0; preset system"},
	{"another's home is too wide", "/home/someone-else/x", NULL, "openat", ACCESS_READ, false,
	 false, "exact /home/someone-else/x read +0"},
	{"a process's files", "/proc/4711/status", NULL, "openat", ACCESS_READ, false, false,
	 "exact /proc/4711/status read +0; preset system"},
	{"a secret", "~/.ssh/id", NULL, "openat", ACCESS_READ, true, false,
	 "exact ~/.ssh/id read +0 sensitive; tree ~/.ssh read +1 sensitive; "
	 "tree ~/.ssh r +1 sensitive"},
	{"beside a secret that exists", "~/p/src/f", NULL, "openat", ACCESS_READ, true, false,
	 "exact ~/p/src/f read +0; tree ~/p/src read +0; tree ~/p/src r +0; "
	 "tree ~/p read +2 sensitive"},
	{"beside a secret's name", "~/.config/x/f", NULL, "openat", ACCESS_READ, false, false,
	 "exact ~/.config/x/f read +0; tree ~/.config/x read +0; tree ~/.config/x r +0; "
	 "tree ~/.config read +0 sensitive"},
};

static void make_things(void)
{
	static const char *const things[] = {"~/a/b/f",	   "~/a/b/g",	"~/a/b/sub/",
					     "~/a/c/",	   "~/f",	"~/.ssh/id",
					     "~/.ssh/pub", "~/p/src/f", "~/p/.env"};
	for (size_t i = 0; i < ARRAY_LEN(things); i++)
		make(things[i]);
}

static void expect_scopes(const struct row *row, const struct policy *policy)
{
	char *path AUTOFREE = in_home(row->path);
	char *path2 AUTOFREE = row->path2 ? in_home(row->path2) : NULL;
	struct denial d = {.path = path,
			   .path2 = path2,
			   .call = row->call,
			   .access = row->access,
			   .exists = row->exists,
			   .is_dir = row->is_dir};
	struct scope_list l = {0};
	cr_assert_eq(plan_scopes(&d, policy, home, &l), 0);
	char *got AUTOFREE = describe(&l);
	cr_expect_str_eq(got, row->scopes, "%s:\n%s\n%s", row->what, got, row->scopes);
	plan_scopes_release(&l);
}

Test(plan, scopes)
{
	make_things();
	struct policy *p = policy_of(
		"sensitive ~/.ssh\nsensitive **/.env\nsensitive ~/.config/gh\n", RULE_PRESET);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		expect_scopes(&rows[i], p);
	policy_free(p);
}

Test(plan, rule_is_the_line_that_would_be_written)
{
	make_things();
	char *path AUTOFREE = in_home("~/a/b/f"), *path2 AUTOFREE = in_home("~/a/c/g");
	struct denial d = {.path = path, .call = "openat", .access = ACCESS_READ};
	struct scope_list l;
	struct buf want = {0};
	cr_assert_eq(plan_scopes(&d, NULL, home, &l), 0);
	buf_addf(&want, "allow read %s exact", path);
	cr_expect_str_eq(l.item[0].rule, buf_str(&want));
	buf_reset(&want);
	buf_addf(&want, "allow r %s/a/b", home);
	cr_expect_str_eq(l.item[2].rule, buf_str(&want), "%s", l.item[2].rule);
	plan_scopes_release(&l);
	d = (struct denial){.path = path, .path2 = path2, .access = ACCESS_MOVE};
	cr_assert_eq(plan_scopes(&d, NULL, home, &l), 0);
	buf_reset(&want);
	buf_addf(&want, "allow move %s exact\nallow move %s exact", path, path2);
	cr_expect_str_eq(l.item[0].rule, buf_str(&want), "%s", l.item[0].rule);
	plan_scopes_release(&l);
	buf_free(&want);
}

/* Each rule, read back and added, allows what was asked; the wider ones a neighbour too. */
Test(plan, rules_read_back)
{
	make_things();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *path AUTOFREE = in_home(rows[i].path);
		char *path2 AUTOFREE = rows[i].path2 ? in_home(rows[i].path2) : NULL;
		struct denial d = {.path = path,
				   .path2 = path2,
				   .call = rows[i].call,
				   .access = rows[i].access,
				   .is_dir = rows[i].is_dir};
		struct scope_list l;
		cr_assert_eq(plan_scopes(&d, NULL, home, &l), 0);
		for (size_t k = 0; k < l.len; k++) {
			struct policy *p = policy_of(l.item[k].rule, RULE_USER);
			cr_expect_eq(policy_decide_all(p, path, d.access, NULL).effect,
				     EFFECT_ALLOW, "%s: %s", rows[i].what, l.item[k].rule);
			if (path2)
				cr_expect_eq(policy_decide_all(p, path2, d.access, NULL).effect,
					     EFFECT_ALLOW, "%s: %s", rows[i].what, l.item[k].rule);
			policy_free(p);
		}
		plan_scopes_release(&l);
	}
}

/* What a more specific rule keeps closed is not offered: it would be a yes that does nothing. */
Test(plan, no_scope_without_effect)
{
	static const struct row closed = {
		"deny below", "~/a/b/f",
		NULL,	      "openat",
		ACCESS_READ,  true,
		false,	      "exact ~/a/b/f read +0; tree ~/a/b read +2; tree ~/a/b r +2"};
	make_things();
	struct policy *p = policy_of("ask r ~/a/b\n", RULE_PRESET);
	expect_scopes(&closed, p);
	cr_expect_eq(policy_len(p), 1, "the policy is as it was");
	policy_free(p);
}

Test(plan, preset_that_covers)
{
	make("~/.npm/x");
	make("~/.npm/y");
	char *path AUTOFREE = in_home("~/.npm/x");
	struct denial d = {.path = path, .call = "openat", .access = ACCESS_READ, .exists = true};
	struct scope_list l;
	cr_assert_eq(plan_scopes(&d, NULL, home, &l), 0);
	const struct scope *last = &l.item[l.len - 1];
	cr_assert_eq(last->kind, SCOPE_PRESET);
	cr_expect_str_eq(last->path, "node");
	cr_expect_str_eq(last->rule, "use node");
	cr_expect_geq(last->surplus, 1);
	plan_scopes_release(&l);
}

/* The rule of `deny` reached through a preset's tree counts against the preset as well. */
Test(plan, preset_that_is_kept_closed)
{
	make("~/.npm/x");
	char *path AUTOFREE = in_home("~/.npm/x");
	struct denial d = {.path = path, .call = "openat", .access = ACCESS_READ, .exists = true};
	struct scope_list l;
	struct policy *p = policy_of("deny r ~/.npm/x\n", RULE_PRESET);
	cr_assert_eq(plan_scopes(&d, p, home, &l), 0);
	for (size_t i = 0; i < l.len; i++)
		cr_expect_neq(l.item[i].kind, SCOPE_PRESET);
	cr_expect_eq(l.len, 1, "the exact one always stands");
	plan_scopes_release(&l);
	policy_free(p);
}

/* ---- surplus ---- */

Test(plan, surplus_is_bounded)
{
	for (unsigned i = 0; i < 30; i++) {
		char name[32];
		snprintf(name, sizeof(name), "~/many/d%u/f", i);
		make(name);
	}
	char *path AUTOFREE = in_home("~/many"), *asked AUTOFREE = in_home("~/many/d3/f");
	char *link AUTOFREE = in_home("~/many/loop");
	cr_assert_eq(symlink(home, link), 0);
	struct surplus s = {0};
	struct surplus_ask ask = {.path = path, .asked = {asked}, .max = 1000};
	surplus_add(&ask, &s);
	cr_expect_eq(s.count, 60, "%u", (unsigned)s.count);
	cr_expect_not(s.more);
	s = (struct surplus){0};
	ask.max = 10;
	surplus_add(&ask, &s);
	cr_expect_leq(s.count, 10);
	cr_expect_geq(s.count, 9);
	cr_expect(s.more);
	s = (struct surplus){0};
	ask.path = asked;
	surplus_add(&ask, &s);
	cr_expect_eq(s.count, 0, "a file has nothing below");
	cr_expect_not(s.more);
}

/* As an ordinary user: what can't be looked into makes it "at least". 0: as it should be. */
static int closed_directory(const char *path, const char *closed)
{
	struct surplus s = {0};
	if (!geteuid() && (setgid(65534) || setuid(65534)))
		return 1;
	if (mkdir(closed, 0))
		return 2;
	surplus_add(&(struct surplus_ask){.path = path, .max = 100}, &s);
	return s.count == 1 && s.more ? 0 : 3;
}

Test(plan, surplus_of_closed_directories)
{
	char *path AUTOFREE = in_home("~/open"), *closed AUTOFREE = in_home("~/open/closed");
	cr_assert_eq(mkdir(path, 0777), 0);
	cr_assert_eq(chmod(path, 0777), 0);
	cr_assert_eq(chmod(base, 0755), 0);
	pid_t pid = fork();
	if (!pid)
		_exit(closed_directory(path, closed));
	int status;
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status), "%x", status);
	rmdir(closed);
}

/* ---- many denials ---- */

static void add(struct denial_list *l, uint32_t access, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void add(struct denial_list *l, uint32_t access, const char *fmt, ...)
{
	struct buf b = {0};
	va_list ap;
	va_start(ap, fmt);
	buf_vaddf(&b, fmt, ap);
	va_end(ap);
	struct denial d = {.path = (char *)buf_str(&b), .access = access, .call = "openat"};
	d.is_dir = access == ACCESS_LIST;
	cr_assert(denial_add(l, &d));
	buf_free(&b);
}

static char *suggested(const struct denial_list *l)
{
	char **rules = NULL;
	struct buf b = {0};
	cr_assert_eq(plan_suggest(l, "/home/u", &rules), 0);
	for (size_t i = 0; rules[i]; i++)
		buf_addf(&b, "%s%s", i ? "; " : "", rules[i]);
	plan_free_rules(rules);
	return buf_take(&b);
}

static void expect_suggested(struct denial_list *l, const char *want)
{
	char *got AUTOFREE = suggested(l);
	cr_expect_str_eq(got, want, "\n%s\n%s", got, want);
	denial_list_release(l);
}

Test(plan, suggest_nothing)
{
	struct denial_list l = {0};
	struct denial d = {.path = (char *)"/a/b", .access = ACCESS_READ, .allowed = true};
	cr_assert(denial_add(&l, &d));
	d.allowed = false;
	d.verdict = VERDICT_PERMISSIONS;
	cr_assert(denial_add(&l, &d));
	d.path = (char *)"/a/c";
	d.verdict = VERDICT_SANDBOX;
	d.forbidden = true;
	cr_assert(denial_add(&l, &d));
	expect_suggested(&l, "");
}

Test(plan, suggest_single)
{
	struct denial_list l = {0};
	add(&l, ACCESS_READ, "/home/u/.ssh/config");
	add(&l, ACCESS_CREATE | ACCESS_WRITE, "/home/u/.npm");
	add(&l, ACCESS_LIST, "/home/u");
	add(&l, ACCESS_READ, "/srv/x y");
	add(&l, ACCESS_CONNECT, "/run/docker.sock");
	expect_suggested(&l, "allow r ~/.ssh/config; allow write,create ~/.npm exact; "
			     "allow list ~ exact; "
			     "allow r /srv/x\\ y; allow connect /run/docker.sock");
}

Test(plan, suggest_one_path_once)
{
	struct denial_list l = {0};
	add(&l, ACCESS_READ, "/srv/p/f");
	add(&l, ACCESS_READ | ACCESS_WRITE, "/srv/p/f");
	expect_suggested(&l, "allow read,write /srv/p/f exact");
}

/* What comes once is no rule where its directory is everybody's, and its directory elsewhere. */
Test(plan, suggest_no_name_that_comes_once)
{
	struct denial_list l = {0};
	struct denial d = {.path = (char *)"/tmp/tool-4711",
			   .access = ACCESS_CREATE,
			   .call = "openat",
			   .pid = 4711};
	cr_assert(denial_add(&l, &d));
	d.path = (char *)"/srv/run/tool-4711";
	cr_assert(denial_add(&l, &d));
	add(&l, ACCESS_CREATE | ACCESS_WRITE, "/dev/shm/sem.QmkNIC");
	add(&l, ACCESS_CREATE | ACCESS_WRITE, "/dev/shm/plain");
	add(&l, ACCESS_READ, "/tmp/tmp.aBcDeFgHiJ");
	expect_suggested(&l, "allow w /srv/run; allow write,create /dev/shm/plain exact; "
			     "allow r /tmp/tmp.aBcDeFgHiJ");
}

Test(plan, suggest_both_paths)
{
	struct denial_list l = {0};
	struct denial d = {.path = (char *)"/srv/p/f",
			   .path2 = (char *)"/srv/q/g",
			   .access = ACCESS_MOVE,
			   .call = "rename"};
	cr_assert(denial_add(&l, &d));
	expect_suggested(&l, "allow move /srv/p/f exact; allow move /srv/q/g exact");
}

/* Three of one directory stay three, four become the directory. */
Test(plan, suggest_siblings)
{
	struct denial_list l = {0};
	for (unsigned i = 0; i < 3; i++)
		add(&l, ACCESS_READ, "/srv/p/%u", i);
	for (unsigned i = 0; i < 4; i++)
		add(&l, ACCESS_READ, "/srv/q/%u", i);
	expect_suggested(&l,
			 "allow r /srv/p/0; allow r /srv/p/1; allow r /srv/p/2; allow r /srv/q");
}

/* Sixty reads below one directory are one question, however deep. */
Test(plan, suggest_sixty_below)
{
	struct denial_list l = {0};
	for (unsigned i = 0; i < 60; i++)
		add(&l, ACCESS_READ, "/home/u/.cargo/registry/%u/src/lib.rs", i);
	expect_suggested(&l, "allow r ~/.cargo/registry");
}

Test(plan, suggest_never_wide)
{
	struct denial_list l = {0};
	for (unsigned i = 0; i < 5; i++)
		add(&l, ACCESS_READ, "/etc/%u", i);
	for (unsigned i = 0; i < 5; i++)
		add(&l, ACCESS_READ, "/home/u/.config/app%u/x", i);
	for (unsigned i = 0; i < 5; i++)
		add(&l, ACCESS_READ, "/home/u/.ssh/%u", i);
	for (unsigned i = 0; i < 5; i++)
		add(&l, ACCESS_READ, "/usr/share/%u", i);
	for (unsigned i = 0; i < 5; i++)
		add(&l, ACCESS_READ, "/proc/%u/status", i);
	for (unsigned i = 0; i < 5; i++)
		add(&l, ACCESS_READ, "/home/u/.%u", i);
	for (unsigned i = 0; i < 5; i++)
		add(&l, ACCESS_READ, "/home/other/%u", i);
	struct plan_rules r;
	cr_assert_eq(plan_rules(&l, "/home/u", &r), 0);
	cr_expect_eq(r.len, 35, "%zu", r.len);
	for (size_t i = 0; i < r.len; i++)
		cr_expect_eq(r.item[i].paths, 1, "%s", r.item[i].path);
	plan_rules_release(&r);
	denial_list_release(&l);
}

/* What lies below a tree goes with it where the tree allows it; what does not, stays. */
Test(plan, suggest_below_a_tree)
{
	struct denial_list l = {0};
	add(&l, ACCESS_LIST, "/srv/q");
	add(&l, ACCESS_READ, "/srv/q/sub/deep");
	for (unsigned i = 0; i < 4; i++)
		add(&l, ACCESS_READ, "/srv/q/%u", i);
	add(&l, ACCESS_READ, "/srv/q-neighbour");
	expect_suggested(&l, "allow r /srv/q; allow r /srv/q-neighbour");
}

/* Whatever the set: every denial is allowed by the rules, and no directory named wide is a tree. */
Test(plan, suggestions_cover)
{
	static const uint32_t accesses[] = {ACCESS_READ, ACCESS_WRITE,
					    ACCESS_LIST, ACCESS_CREATE | ACCESS_WRITE,
					    ACCESS_EXEC, ACCESS_CONNECT};
	static const char *const tops[] = {"/home/u", "/home/u/.config", "/etc", "/srv/p",
					   "/usr/lib"};
	unsigned seed = 1;
	for (unsigned round = 0; round < 200; round++) {
		struct denial_list l = {0};
		for (unsigned i = 0; i < 1 + round % 50; i++)
			add(&l, accesses[(unsigned)rand_r(&seed) % 6], "%s/%c/%c/%d",
			    tops[(unsigned)rand_r(&seed) % 5], 'a' + rand_r(&seed) % 3,
			    'a' + rand_r(&seed) % 3, rand_r(&seed) % 4);
		struct plan_rules r;
		struct policy *p = NULL;
		cr_assert_eq(plan_rules(&l, "/home/u", &r), 0);
		cr_assert_eq(policy_new(&p), 0);
		for (size_t i = 0; i < r.len; i++) {
			struct rule rule = {.kind = r.item[i].kind == SCOPE_EXACT ? RULE_EXACT
										  : RULE_TREE,
					    .access = r.item[i].access,
					    .path = r.item[i].path,
					    .origin = (char *)"test"};
			cr_assert_eq(policy_add(p, &rule), 0);
			cr_expect(r.item[i].paths == 1 ||
					  !breadth_is_wide(rule.path, strlen(rule.path), "/home/u"),
				  "%s", rule.path);
		}
		for (size_t i = 0; i < l.len; i++)
			cr_expect_eq(
				policy_decide_all(p, l.item[i].path, l.item[i].access, NULL).effect,
				EFFECT_ALLOW, "round %u: %s", round, l.item[i].path);
		policy_free(p);
		plan_rules_release(&r);
		denial_list_release(&l);
	}
}

/* ---- guards ---- */

static const struct guard_row {
	const char *path;
	bool closed;
	bool wide;
} guards[] = {
	{"/", true, true},
	{"/etc", true, true},
	{"/etc/ssl", false, false},
	{"/home", true, true},
	{"/home/u", true, true},
	{"/home/other", true, true},
	{"/home/u/p", false, false},
	{"/home/u/.config", false, true},
	{"/home/u/.config/x", false, false},
	{"/home/u/.ssh", false, true},
	{"/usr/share", false, true},
	{"/usr/share/x", false, false},
	{"/home/other/x", false, false},
	{"/run/user/1000", false, true},
};

Test(plan, guard)
{
	for (size_t i = 0; i < ARRAY_LEN(guards); i++) {
		const char *path = guards[i].path;
		cr_expect_eq(breadth_is_closed(path, strlen(path), "/home/u"), guards[i].closed,
			     "%s", path);
		cr_expect_eq(breadth_is_wide(path, strlen(path), "/home/u"), guards[i].wide, "%s",
			     path);
	}
	cr_expect(breadth_is_closed("/data/people", 12, "/data/people/u"),
		  "an ancestor of the home");
	/* Where the user has such directories elsewhere, they and what is above them are as wide.
	 */
	setenv("XDG_CONFIG_HOME", "/data/u/settings/", 1);
	setenv("XDG_DATA_HOME", "relative", 1);
	setenv("XDG_CACHE_HOME", "/home/u/tmp/cache", 1);
	setenv("XDG_STATE_HOME", "", 1);
	static const char *const wide[] = {"/data/u/settings", "/data/u", "/home/u/tmp/cache",
					   "/home/u/tmp"};
	static const char *const narrow[] = {
		"/data/u/settings/app", "/data/u/settingsx", "/data/v",
		"/home/u/tmp/cache/x",	"/home/u/tm",	     "/home/u/relative"};
	for (size_t i = 0; i < ARRAY_LEN(wide); i++)
		cr_expect(breadth_is_wide(wide[i], strlen(wide[i]), "/home/u"), "%s", wide[i]);
	for (size_t i = 0; i < ARRAY_LEN(narrow); i++)
		cr_expect_not(breadth_is_wide(narrow[i], strlen(narrow[i]), "/home/u"), "%s",
			      narrow[i]);
	cr_expect(breadth_is_wide("/data/u/settings/x", 16, NULL), "a path that goes on");
	cr_expect(breadth_is_below("/a/b", "/a"));
	cr_expect(breadth_is_below("/a", "/a"));
	cr_expect(breadth_is_below("/a", "/"));
	cr_expect_not(breadth_is_below("/ab", "/a"));
}
