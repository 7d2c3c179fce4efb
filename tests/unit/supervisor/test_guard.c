/* guard: what is protected is found by whatever name, and nothing is carried into the open. */
#include "supervisor/guard_move.h"
#include "tests/compile_case.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#define RWX (ACCESS_R | ACCESS_W | ACCESS_X)

/* As path_resolve() would fill it, for paths without symlinks on the way. */
static struct path_at at_of(const char *path)
{
	struct path_at at = {.object = -1, .parent = -1};
	char parent[PATH_MAX];
	const char *slash = strrchr(path, '/');

	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	snprintf(at.name, sizeof(at.name), "%s", slash + 1);
	at.parent = open(parent, O_PATH | O_CLOEXEC);
	at.object = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	at.exists = at.object >= 0 && fstat(at.object, &at.st) == 0;
	at.real = strdup(path);
	return at;
}

static void at_free(struct path_at *at)
{
	util_close(&at->object);
	util_close(&at->parent);
	free(at->real);
}

struct tree {
	struct case_tree t;
	struct guard *g;
};

static const char *const usual_names[] = {"src/",	   "src/f",	  "src/dir/",
					  "src/dir/in",	   "README",	  ".git/",
					  ".git/config",   ".git/hooks/", ".git/hooks/pre-push",
					  ".git/objects/", "readonly/",	  "readonly/f",
					  "readonly/dir/", "dark/",	  "dark/open/",
					  "dark/open/f",   "dark/key",	  NULL};

static const char *tree_path(const struct tree *x, const char *name)
{
	static char path[4][512];
	static unsigned next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s%s%s", x->t.top, *name ? "/" : "", name);
	return p;
}

static void tree_rule(struct tree *x, enum effect effect, enum rule_kind kind, uint32_t access,
		      const char *name)
{
	case_add(&x->t, effect, kind, access, tree_path(x, name));
}

/* A project with protected hooks and config, an absent secret, a read-only part, a dark one that is
 * open inside. */
static void tree_new(struct tree *x)
{
	memset(x, 0, sizeof(*x));
	strcpy(x->t.top, "/tmp/warder-guard-XXXXXX");
	cr_assert_not_null(mkdtemp(x->t.top));
	cr_assert_eq(policy_new(&x->t.policy), 0);
	for (const char *const *n = usual_names; *n; n++) {
		const char *path = tree_path(x, *n);
		int r = path[strlen(path) - 1] == '/' ? mkdir(path, 0755)
						      : mknod(path, S_IFREG | 0644, 0);
		cr_assert_eq(r, 0, "%s", path);
	}
	tree_rule(x, EFFECT_ALLOW, RULE_TREE, RWX, "");
	tree_rule(x, EFFECT_ASK, RULE_TREE, ACCESS_W, ".git/hooks");
	tree_rule(x, EFFECT_ASK, RULE_TREE, ACCESS_W, ".git/config");
	tree_rule(x, EFFECT_DENY, RULE_TREE, ACCESS_READ, "absent/secret");
	tree_rule(x, EFFECT_DENY, RULE_TREE, ACCESS_WRITE, "readonly");
	tree_rule(x, EFFECT_FORBID, RULE_TREE, ACCESS_ALL, "dark/key");
	tree_rule(x, EFFECT_DENY, RULE_TREE, ACCESS_R, "dark");
	tree_rule(x, EFFECT_ALLOW, RULE_TREE, ACCESS_R, "dark/open");
	tree_rule(x, EFFECT_DENY, RULE_GLOB, ACCESS_READ, "src/**/.env");
	cr_assert_eq(guard_new(x->t.policy, &x->g), 0);
}

static void tree_free(struct tree *x)
{
	guard_free(x->g);
	case_free(&x->t);
}

static int find(const struct tree *x, const char *path, uint32_t bits, const struct rule **ret)
{
	struct path_at at = at_of(path);
	int r = guard_find(x->g, &at, bits, ret);

	at_free(&at);
	return r;
}

enum { MOVE, LINK, SWAP };

static int may_move(const struct guard *g, const char *from, const char *to, int kind,
		    struct policy_error *why)
{
	struct path_at a = at_of(from), b = at_of(to);
	int r = guard_move_check(g, &a, &b, kind == SWAP, kind == LINK, why);

	at_free(&a);
	at_free(&b);
	return r;
}

Test(guard, finds, .timeout = 20)
{
	static const struct {
		const char *name;
		uint32_t bits;
		const char *rule; /* NULL: nothing withholds it */
	} rows[] = {
		{"src/f", RWX, NULL},
		{".git", RWX, NULL},
		{".git/hooks", ACCESS_R | ACCESS_X, NULL},
		{".git/hooks", ACCESS_CREATE, ".git/hooks"},
		{".git/hooks/pre-push", ACCESS_WRITE, ".git/hooks"},
		{".git/hooks/new", ACCESS_CREATE, ".git/hooks"},
		{".git/config", ACCESS_WRITE, ".git/config"},
		{".git/config.lock", ACCESS_CREATE, NULL},
		{"readonly/dir/new", ACCESS_WRITE, "readonly"},
		{"readonly/dir/new", ACCESS_READ, NULL},
		{"dark/key", ACCESS_META, "dark/key"},
		{"dark/x", ACCESS_READ, "dark"},
		{"dark/open/f", ACCESS_READ, NULL},
		{"dark/open", ACCESS_LIST, NULL},
	};
	struct tree x;

	tree_new(&x);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct rule *rule = NULL;
		int r = find(&x, tree_path(&x, rows[i].name), rows[i].bits, &rule);
		cr_expect_eq(r, rows[i].rule ? -EACCES : 0, "%s: %d", rows[i].name, r);
		if (rows[i].rule && rule)
			cr_expect_str_eq(rule->path, tree_path(&x, rows[i].rule));
	}
	tree_free(&x);
}

/* A hard link and a moved directory: other names, the same things. */
Test(guard, finds_by_inode, .timeout = 20)
{
	struct tree x;
	const struct rule *rule = NULL;

	tree_new(&x);
	cr_assert_eq(link(tree_path(&x, ".git/config"), tree_path(&x, "src/alias")), 0);
	cr_assert_eq(rename(tree_path(&x, ".git/hooks"), tree_path(&x, "src/moved")), 0);
	cr_expect_eq(find(&x, tree_path(&x, "src/alias"), ACCESS_WRITE, &rule), -EACCES);
	cr_expect_str_eq(rule->path, tree_path(&x, ".git/config"));
	cr_expect_eq(find(&x, tree_path(&x, "src/moved/pre-push"), ACCESS_WRITE, &rule), -EACCES);
	cr_expect_str_eq(rule->path, tree_path(&x, ".git/hooks"));
	cr_expect_eq(find(&x, tree_path(&x, "src/moved/pre-push"), ACCESS_READ, NULL), 0);

	struct stat st;
	cr_assert_eq(stat(tree_path(&x, "src/alias"), &st), 0);
	cr_expect(guard_hardlink_doubt(x.g, &st));
	cr_assert_eq(stat(tree_path(&x, "src/f"), &st), 0);
	cr_expect_not(guard_hardlink_doubt(x.g, &st));
	cr_assert_eq(stat(tree_path(&x, "src"), &st), 0);
	cr_expect_not(guard_hardlink_doubt(x.g, &st));
	tree_free(&x);
}

/* Moved away by somebody outside, or made since: the inode tells the one, the name the other. */
Test(guard, moves_by_inode_and_by_name, .timeout = 20)
{
	struct tree x;
	char a[512], b[512];

	tree_new(&x);
	cr_assert_eq(rename(tree_path(&x, ".git"), tree_path(&x, "moved")), 0);
	snprintf(a, sizeof(a), "%s", tree_path(&x, "moved"));
	snprintf(b, sizeof(b), "%s", tree_path(&x, "moved2"));
	cr_expect_eq(may_move(x.g, a, b, MOVE, NULL), -EACCES);
	snprintf(a, sizeof(a), "%s", tree_path(&x, "moved/hooks/pre-push"));
	cr_expect_eq(may_move(x.g, a, b, MOVE, NULL), -EXDEV);
	cr_assert_eq(mkdir(tree_path(&x, "absent"), 0755), 0);
	snprintf(a, sizeof(a), "%s", tree_path(&x, "absent"));
	cr_expect_eq(may_move(x.g, a, b, MOVE, NULL), -EACCES);
	cr_assert_eq(mkdir(tree_path(&x, "absent/secret"), 0755), 0);
	snprintf(a, sizeof(a), "%s", tree_path(&x, "absent/secret"));
	snprintf(b, sizeof(b), "%s", tree_path(&x, "dark/x"));
	cr_expect_eq(may_move(x.g, a, b, MOVE, NULL), -EACCES);
	tree_free(&x);
}

/* In a mount namespace of its own: nothing of the machine is touched. 0 is well. */
static int under_a_bind_mount(const struct tree *x)
{
	struct guard *g = NULL;
	int bad = 0;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(tree_path(x, ".git/hooks"), tree_path(x, "src/dir"), NULL, MS_BIND, NULL) < 0 ||
	    guard_new(x->t.policy, &g) < 0)
		return 77;
	struct path_at in = at_of(tree_path(x, "src/dir/pre-push"));
	struct path_at top = at_of(tree_path(x, "src/dir"));
	bad |= guard_find(g, &in, ACCESS_WRITE, NULL) != -EACCES;
	bad |= guard_find(g, &in, ACCESS_READ, NULL) != 0;
	bad |= guard_find(g, &top, ACCESS_WRITE, NULL) != -EACCES;
	bad |= !guard_is_ancestor(g, top.object);
	/* a directory that is mounted on its own child: the walk upward must not stop there */
	if (mkdir(tree_path(x, "readonly/dir/in"), 0755) < 0 ||
	    mount(tree_path(x, "readonly/dir"), tree_path(x, "readonly/dir/in"), NULL, MS_BIND,
		  NULL) < 0)
		return 77;
	struct path_at twice = at_of(tree_path(x, "readonly/dir/in/f"));
	bad |= guard_find(g, &twice, ACCESS_WRITE, NULL) != -EACCES;
	at_free(&in);
	at_free(&top);
	at_free(&twice);
	guard_free(g);
	return bad;
}

Test(guard, finds_under_a_bind_mount, .timeout = 20)
{
	struct tree x;
	int status;

	if (geteuid() != 0)
		return;
	tree_new(&x);
	pid_t pid = fork();
	if (pid == 0)
		_exit(under_a_bind_mount(&x));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
	tree_free(&x);
}

Test(guard, ancestors, .timeout = 20)
{
	static const struct {
		const char *name;
		bool is;
	} rows[] = {
		{"", true},
		{".git", true},
		{".git/hooks", true},
		{".git/config", true},
		{".git/objects", false},
		{".git/hooks/pre-push", false},
		{"src", false},
		{"README", false},
		{"dark", true},
		{"dark/open", false},
		{"dark/key", true},
	};
	struct tree x;

	tree_new(&x);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int fd AUTOCLOSE = open(tree_path(&x, rows[i].name), O_PATH | O_CLOEXEC);
		cr_expect_eq(guard_is_ancestor(x.g, fd), rows[i].is, "%s", rows[i].name);
	}
	tree_free(&x);
}

Test(guard, protected_names, .timeout = 20)
{
	static const struct {
		const char *parent, *name;
		bool is;
	} rows[] = {
		{"", ".git", true},
		{"", ".GIT", true},
		{"", ".g\xe2\x80\x8cit", true}, /* U+200C, which folds to nothing */
		{"", ".gitx", false},
		{"", "\xe6\x97\xa5\xe6\x9c\xac", false},
		{"", "absent", true},
		{"absent", "secret", true},
		{"absent", "sec\xc5\xbf", false},
		{"absent",
		 "\xc5\xbf"
		 "ecret",
		 true}, /* U+017F, which folds to s */
		{"absent", "other", false},
		{".git", "hooks", true},
		{".git", "config", true},
		{".git", "CONFIG", true},
		{".git", "config.lock", false},
		{".git", "objects", false},
		{".git/hooks", "pre-push", false}, /* inside: what is decided there decides */
		{"src", ".env", true},
		{"src/dir", ".env", true},
		{"src/dir", ".ENV", true},
		{"src/dir", "env", false},
		{"", "src", false},
	};
	struct tree x;

	tree_new(&x);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(
			guard_name_is_protected(x.g, tree_path(&x, rows[i].parent), rows[i].name),
			rows[i].is, "%s/%s", rows[i].parent, rows[i].name);
	tree_free(&x);
}

Test(guard, moves, .timeout = 20)
{
	static const struct {
		const char *from, *to;
		int kind, result;
	} rows[] = {
		{"src/f", "src/g", MOVE, 0},
		{"src/f", "README2", MOVE, 0},
		{"src/f", "README", SWAP, 0},
		{"src/f", "src/dir/link", LINK, 0},
		{"src/f", "README", MOVE, 0},
		/* an exception, or what holds one */
		{".git", "g", MOVE, -EACCES},
		{".git", "src", SWAP, -EACCES},
		{"src", ".git", SWAP, -EACCES},
		{".git/hooks", ".git/h", MOVE, -EACCES},
		{".git/config", "c", MOVE, -EACCES},
		{".git/config", "c", LINK, -EACCES},
		{"README", ".git/config", SWAP, -EACCES},
		{"dark", "d", MOVE, -EACCES},
		/* to where one is, or would be */
		{"src/f", ".git/config", MOVE, -EACCES},
		{"src/dir", ".git/hooks", MOVE, -EACCES},
		{"src/f", ".git/hooks/pre-commit", MOVE, -EACCES},
		{".git/objects", "absent", MOVE, -EACCES},
		{".git/objects", "Absent", MOVE, -EACCES},
		/* freer there than here */
		{"readonly/f", "src/g", MOVE, -EXDEV},
		{"readonly/f", "src/g", LINK, -EXDEV},
		{"readonly/f", "readonly/g", MOVE, 0},
		{"readonly/dir", "src/g", MOVE, -EXDEV},
		{"src/f", "readonly/g", MOVE, 0},
		{"src/f", "readonly/f", SWAP, -EXDEV},
		{"dark/open/f", "src/g", MOVE, 0},
		/* a pattern could match below the one place and not the other */
		{".git/objects", "src/objects", MOVE, -EXDEV},
		{"src/dir", "dir", MOVE, -EXDEV},
		{".git/objects", "objects", MOVE, 0},
		/* what is denied by pattern may be made there, and not carried away */
		{"src/f", "src/.env", MOVE, 0},
	};
	struct tree x;

	tree_new(&x);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct policy_error why = {0};
		int r = may_move(x.g, tree_path(&x, rows[i].from), tree_path(&x, rows[i].to),
				 rows[i].kind, &why);
		cr_expect_eq(r, rows[i].result, "%s -> %s: %d, %s", rows[i].from, rows[i].to, r,
			     why.text);
		cr_expect_eq(r == 0, why.text[0] == '\0');
	}
	tree_free(&x);
}

/* What a rule takes back is no exception any more; a new guard knows it. */
Test(guard, follows_the_policy, .timeout = 20)
{
	struct tree x;
	char lock[512], config[512];

	tree_new(&x);
	snprintf(lock, sizeof(lock), "%s", tree_path(&x, ".git/config.lock"));
	snprintf(config, sizeof(config), "%s", tree_path(&x, ".git/config"));
	cr_assert_eq(mknod(lock, S_IFREG | 0644, 0), 0);
	cr_expect_eq(may_move(x.g, lock, config, MOVE, NULL), -EACCES);
	tree_rule(&x, EFFECT_ALLOW, RULE_EXACT, ACCESS_CREATE | ACCESS_DELETE, ".git/config");
	guard_free(x.g);
	cr_assert_eq(guard_new(x.t.policy, &x.g), 0);
	cr_expect_eq(may_move(x.g, lock, config, MOVE, NULL), 0);
	cr_expect_eq(may_move(x.g, config, lock, MOVE, NULL), -EACCES);
	tree_rule(&x, EFFECT_ALLOW, RULE_EXACT, ACCESS_W, ".git/config");
	guard_free(x.g);
	cr_assert_eq(guard_new(x.t.policy, &x.g), 0);
	cr_expect_eq(may_move(x.g, config, lock, MOVE, NULL), 0);
	tree_free(&x);
}

/* What the policy says of sockets and devices is nothing to a plain file: it may go there. */
Test(guard, accesses_that_the_kind_can_not_use, .timeout = 20)
{
	struct tree x;

	tree_new(&x);
	tree_rule(&x, EFFECT_ALLOW, RULE_TREE, ACCESS_ALL, "src");
	guard_free(x.g);
	cr_assert_eq(guard_new(x.t.policy, &x.g), 0);
	cr_assert_eq(mknod(tree_path(&x, "plain"), S_IFREG | 0600, 0), 0);
	cr_assert_eq(mknod(tree_path(&x, "socket"), S_IFSOCK | 0600, 0), 0);
	cr_expect_eq(may_move(x.g, tree_path(&x, "plain"), tree_path(&x, "src/to"), MOVE, NULL), 0);
	cr_expect_eq(may_move(x.g, tree_path(&x, "socket"), tree_path(&x, "src/to"), MOVE, NULL),
		     -EXDEV);
	tree_free(&x);
}

/* Names of programs never reach a terminal raw. */
Test(guard, reasons_are_escaped, .timeout = 20)
{
	struct tree x;
	struct policy_error why = {0};

	tree_new(&x);
	cr_expect_lt(may_move(x.g, tree_path(&x, "readonly/f"), tree_path(&x, "src/\033[2J"), MOVE,
			      &why),
		     0);
	cr_expect_null(strchr(why.text, '\033'));
	cr_expect_not_null(strstr(why.text, "\\e"), "%s", why.text);
	tree_free(&x);
}

/* ---- random ---- */

static const char *check_pair(const struct case_tree *t, const struct guard *g, const char *from,
			      const char *to, int kind, size_t *allowed)
{
	static char at[320];

	if (may_move(g, from, to, kind, NULL) < 0)
		return NULL;
	++*allowed;
	if (case_widens(t, from, to, at) || (kind == SWAP && case_widens(t, to, from, at)))
		return at;
	return NULL;
}

static const char *check_all(const struct case_tree *t, const struct guard *g, size_t *allowed)
{
	char to[320];
	const char *wrong = NULL;

	for (size_t i = 1; i < t->objects; i++)
		for (size_t k = 0; k < t->objects * CASE_NAMES; k++) {
			const struct case_object *dir = &t->object[k / CASE_NAMES];
			if (!S_ISDIR(dir->st.st_mode) ||
			    case_is_below(t->object[i].path, dir->path))
				continue;
			snprintf(to, sizeof(to), "%s/%s", dir->path, case_names[k % CASE_NAMES]);
			if (case_is_below(to, t->object[i].path))
				continue;
			for (int kind = MOVE; kind <= SWAP && !wrong; kind++)
				wrong = check_pair(t, g, t->object[i].path, to, kind, allowed);
		}
	return wrong;
}

Test(guard, carries_nothing_into_the_open, .timeout = 240)
{
	size_t allowed = 0, cases = 400;

	for (uint64_t seed = 1; seed <= cases; seed++) {
		struct case_tree t;
		struct guard *g;
		case_make(&t, seed);
		cr_assert_eq(guard_new(t.policy, &g), 0);
		const char *wrong = check_all(&t, g, &allowed);
		if (wrong)
			case_print(&t, seed);
		guard_free(g);
		case_free(&t);
		cr_assert_null(wrong, "seed %llu: %s", (unsigned long long)seed, wrong);
	}
	cr_assert_gt(allowed, cases * 10);
}
