/* compile: nothing more than the policy allows, and as much of it as the kernel can say. */
#include "landlock/llmodel.h"
#include "landlock/llright.h"
#include "supervisor/compile.h"
#include "supervisor/reach.h"
#include "tests/compile_case.h"
#include "tracer/util.h"

#include <criterion/criterion.h>

#define CONTENT                                                                                    \
	(ACCESS_READ | ACCESS_LIST | ACCESS_EXEC | ACCESS_WRITE | ACCESS_CONNECT | ACCESS_IOCTL)
#define MAKES                                                                                      \
	(LLR_MAKE_REG | LLR_MAKE_DIR | LLR_MAKE_SYM | LLR_MAKE_FIFO | LLR_MAKE_SOCK |              \
	 LLR_MAKE_CHAR | LLR_MAKE_BLOCK)
#define REMOVES (LLR_REMOVE_FILE | LLR_REMOVE_DIR)

static struct llabi kernel_abi(void)
{
	struct llabi abi;

	cr_assert_eq(llabi_detect(&abi), 0);
	return abi;
}

/* Under an older ABI where `abi_number` says so: 0 is the kernel's own. */
static struct llruleset *compiled(const struct policy *p, int abi_number,
				  struct compile_stats *stats)
{
	struct llabi abi = kernel_abi();
	struct llruleset *rs = NULL;

	if (abi_number && abi_number < abi.abi)
		abi = llabi_of(abi_number);

	cr_assert_eq(compile_policy(p, &abi, 0, &rs, stats), 0);
	return rs;
}

/* The rights that the kernel would grant to an existing path, which may be a symlink's. */
static uint64_t granted(const struct llruleset *rs, const char *path)
{
	const struct lldomain domain = lldomain_of(rs);
	char parent[256];
	uint64_t rights = 0;

	snprintf(parent, sizeof(parent), "%s", path);
	*strrchr(parent, '/') = '\0';
	int object AUTOCLOSE = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int dir AUTOCLOSE = open(parent, O_PATH | O_CLOEXEC);
	cr_assert(dir >= 0);
	cr_assert_eq(llmodel_granted_at(&domain, object, dir, &rights), 0);
	return rights & llruleset_handled(rs);
}

/* ---- random ---- */

static bool is_allowed_by_name(const struct case_tree *t, const struct case_object *o, uint32_t bit)
{
	bool allowed = false;

	/* A file is one thing by all its names: open by one, it is open; withheld by one, withheld.
	 */
	for (size_t i = 0; i < t->objects; i++) {
		const struct case_object *a = &t->object[i];
		if (a != o && (S_ISDIR(o->st.st_mode) || a->st.st_ino != o->st.st_ino))
			continue;
		struct decision d = policy_decide(t->policy, a->path, bit);
		if (d.effect != EFFECT_ALLOW && d.rule && reach_is_exception(t->policy, d.rule) &&
		    o->st.st_nlink > 1 && !S_ISDIR(o->st.st_mode))
			return false;
		allowed = allowed || d.effect == EFFECT_ALLOW;
	}
	return allowed;
}

/* Any name in a directory may come into being: the rights must be right for it, too. */
static bool are_names_allowed(const struct case_tree *t, const char *dir, uint32_t bit)
{
	char path[256];

	for (size_t i = 0; i < CASE_NAMES; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, case_names[i]);
		if (policy_decide(t->policy, path, bit).effect != EFFECT_ALLOW)
			return false;
		snprintf(path, sizeof(path), "%s/%s/zz", dir, case_names[i]);
		if (policy_decide(t->policy, path, bit).effect != EFFECT_ALLOW)
			return false;
	}
	return true;
}

static const char *check_object(const struct case_tree *t, const struct case_object *o, uint64_t u)
{
	bool dir = S_ISDIR(o->st.st_mode);

	if (S_ISLNK(o->st.st_mode))
		return NULL;
	for (uint32_t bit = 1; bit < ACCESS_ALL; bit <<= 1) {
		if (!(bit & CONTENT) || !(u & access_rights(bit)))
			continue;
		if ((!dir || bit == ACCESS_LIST) && !is_allowed_by_name(t, o, bit))
			return access_name(bit);
		if (dir && !are_names_allowed(t, o->path, bit))
			return "a name below";
	}
	if ((u & MAKES) && dir && !are_names_allowed(t, o->path, ACCESS_CREATE))
		return "create";
	if ((u & REMOVES) && dir && !are_names_allowed(t, o->path, ACCESS_DELETE))
		return "delete";
	if ((u & LLR_REFER) && dir && !are_names_allowed(t, o->path, ACCESS_MOVE))
		return "move";
	if ((u & LLR_MAKE_REG) && (~u & (LLR_READ_FILE | LLR_WRITE_FILE)))
		return "make_reg alone";
	return NULL;
}

static const char *const kinds[] = {"rename", "link", "exchange"};

/* What the kernel would say to a move of object i to dir/name; true: it goes through. */
static bool goes_through(const struct llruleset *rs, const char *from, const char *dir,
			 const char *to, int kind)
{
	const struct lldomain domain = lldomain_of(rs);
	char parent[256];
	int r = -EACCES;

	snprintf(parent, sizeof(parent), "%s", from);
	*strrchr(parent, '/') = '\0';
	int fds[4] = {open(parent, O_PATH | O_CLOEXEC), open(from, O_PATH | O_NOFOLLOW | O_CLOEXEC),
		      open(dir, O_PATH | O_CLOEXEC), open(to, O_PATH | O_NOFOLLOW | O_CLOEXEC)};
	struct llmodel_move m = {fds[0], fds[1], fds[2], fds[3], kind == 2 ? RENAME_EXCHANGE : 0};
	if (kind == 1 ? fds[3] < 0 : kind == 0 || fds[3] >= 0)
		cr_assert_eq((kind == 1 ? llmodel_link : llmodel_rename)(&domain, &m, &r), 0);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		util_close(&fds[i]);
	return r == 0;
}

static const char *check_moves(const struct case_tree *t, const struct llruleset *rs,
			       const uint64_t *u, size_t *moves)
{
	static char text[1024];
	char to[256], at[256];

	for (size_t i = 1; i < t->objects; i++) {
		const char *from = t->object[i].path;
		for (size_t d = 0; d < t->objects * CASE_NAMES * 3; d++) {
			size_t k = d / (CASE_NAMES * 3);
			int kind = (int)(d % 3);
			if (!(u[k] & LLR_STRUCTURE) || case_is_below(from, t->object[k].path) ||
			    (kind == 1 && S_ISDIR(t->object[i].st.st_mode)))
				continue;
			snprintf(to, sizeof(to), "%s/%s", t->object[k].path,
				 case_names[d / 3 % CASE_NAMES]);
			if (case_is_below(to, from) ||
			    !goes_through(rs, from, t->object[k].path, to, kind))
				continue;
			++*moves;
			if (case_widens(t, from, to, at) ||
			    (kind == 2 && case_widens(t, to, from, at))) {
				snprintf(text, sizeof(text), "%s %s -> %s: %s", kinds[kind], from,
					 to, at);
				return text;
			}
		}
	}
	return NULL;
}

Test(compile, grants_nothing_more, .timeout = 240)
{
	size_t moves = 0, ruled = 0, cases = 2500;

	for (uint64_t seed = 1; seed <= cases; seed++) {
		struct case_tree t;
		struct compile_stats stats;
		uint64_t u[CASE_OBJECTS_MAX] = {0};
		const char *wrong = NULL, *path = "";

		case_make(&t, seed);
		struct llruleset *rs = compiled(t.policy, (int)(seed % 9), &stats);
		for (size_t i = 0; i < t.objects && !wrong; i++) {
			u[i] = S_ISLNK(t.object[i].st.st_mode) ? 0 : granted(rs, t.object[i].path);
			path = t.object[i].path;
			wrong = check_object(&t, &t.object[i], u[i]);
			if (!S_ISDIR(t.object[i].st.st_mode))
				u[i] = 0;
		}
		if (!wrong)
			wrong = check_moves(&t, rs, u, &moves);
		if (wrong)
			case_print(&t, seed);
		ruled += stats.rules > 0;
		llruleset_free(rs);
		case_free(&t);
		cr_assert_null(wrong, "seed %llu: %s: %s", (unsigned long long)seed, path, wrong);
	}
	/* The cases are worth something: rules were made, and things could be moved. */
	cr_assert_gt(ruled, cases / 2);
	cr_assert_gt(moves, cases);
}

/* ---- by example ---- */

struct tree {
	struct case_tree t;
	struct llruleset *rs;
	struct compile_stats stats;
};

static void tree_new(struct tree *x)
{
	memset(x, 0, sizeof(*x));
	strcpy(x->t.top, "/tmp/warder-compile-XXXXXX");
	cr_assert_not_null(mkdtemp(x->t.top));
	cr_assert_eq(policy_new(&x->t.policy), 0);
}

static const char *tree_path(const struct tree *x, const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s%s%s", x->t.top, *name ? "/" : "", name);
	return path;
}

/* "dir/" is a directory. */
static void tree_make(const struct tree *x, const char *const *names)
{
	for (; *names; names++) {
		const char *path = tree_path(x, *names);
		if (path[strlen(path) - 1] == '/') {
			cr_assert_eq(mkdir(path, 0755), 0, "%s", path);
			continue;
		}
		int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0755);
		cr_assert(fd >= 0, "%s", path);
		close(fd);
	}
}

static void tree_rule(struct tree *x, enum effect effect, enum rule_kind kind, uint32_t access,
		      const char *name)
{
	case_add(&x->t, effect, kind, access, tree_path(x, name));
}

static void tree_compile(struct tree *x)
{
	x->rs = compiled(x->t.policy, 0, &x->stats);
}

static void tree_free(struct tree *x)
{
	llruleset_free(x->rs);
	case_free(&x->t);
}

#define RWX (ACCESS_R | ACCESS_W | ACCESS_X)

struct expectation {
	const char *name;
	uint64_t has, lacks;
};

static void expect_all(const struct tree *x, const struct expectation *e, size_t n)
{
	char has[256], lacks[256];

	for (size_t i = 0; i < n; i++) {
		uint64_t u = granted(x->rs, tree_path(x, e[i].name));
		uint64_t handled = llruleset_handled(x->rs);
		llright_format(e[i].has & handled & ~u, has, sizeof(has));
		llright_format(e[i].lacks & u, lacks, sizeof(lacks));
		cr_expect(!(e[i].has & handled & ~u) && !(e[i].lacks & u),
			  "%s: misses %s, has too much: %s", e[i].name, has, lacks);
	}
}

#define LOOK (LLR_READ_FILE | LLR_READ_DIR | LLR_EXECUTE)
#define EDIT (LLR_WRITE_FILE | LLR_TRUNCATE)

/* Hooks that are asked about cost the project its top, and nothing else. */
Test(compile, project_with_hooks, .timeout = 20)
{
	static const char *const names[] = {"src/",	   "src/deep/",	    "build/",
					    "README",	   ".git/",	    ".git/HEAD",
					    ".git/refs/",  ".git/objects/", ".git/objects/0/",
					    ".git/config", ".git/hooks/",   ".git/hooks/pre-push",
					    NULL};
	static const struct expectation expected[] = {
		{"", LOOK, EDIT | LLR_STRUCTURE},
		{"README", LOOK & ~LLR_READ_DIR, 0},
		{"README", EDIT, 0},
		{"new", LOOK, EDIT | LLR_STRUCTURE},
		{"src", LOOK | EDIT | LLR_STRUCTURE, 0},
		{"src/deep", LOOK | EDIT | LLR_STRUCTURE, 0},
		{"build", LOOK | EDIT | LLR_STRUCTURE, 0},
		{".git", LOOK, EDIT | LLR_STRUCTURE},
		{".git/HEAD", LLR_READ_FILE | EDIT, 0},
		{".git/refs", LOOK | EDIT | LLR_STRUCTURE, 0},
		{".git/objects/0", LOOK | EDIT | LLR_STRUCTURE, 0},
		{".git/config", LLR_READ_FILE, EDIT},
		{".git/hooks", LOOK, EDIT | LLR_STRUCTURE},
		{".git/hooks/pre-push", LLR_READ_FILE | LLR_EXECUTE, EDIT},
	};
	struct tree x;

	tree_new(&x);
	tree_make(&x, names);
	tree_rule(&x, EFFECT_ALLOW, RULE_TREE, RWX, "");
	tree_rule(&x, EFFECT_ASK, RULE_TREE, ACCESS_W, ".git/hooks");
	tree_rule(&x, EFFECT_ASK, RULE_TREE, ACCESS_W, ".git/config");
	tree_compile(&x);
	expect_all(&x, expected, ARRAY_LEN(expected));
	/* one for looking; for writing README, src, build, HEAD, refs, objects */
	cr_expect_eq(x.stats.rules, 7, "%d rules", (int)x.stats.rules);
	cr_expect_not(x.stats.truncated);
	tree_free(&x);
}

/* A protected name that is not there yet counts as one that is. */
Test(compile, absent_exception, .timeout = 20)
{
	static const char *const names[] = {"sub/", "sub/x", "other/", NULL};
	static const struct expectation expected[] = {
		{"", LLR_READ_DIR, LLR_READ_FILE | LLR_STRUCTURE},
		{"sub", LLR_READ_DIR, LLR_READ_FILE | LLR_STRUCTURE},
		{"sub/x", LLR_READ_FILE | EDIT, 0},
		{"sub/secret", 0, LLR_READ_FILE | LLR_STRUCTURE},
		{"other", LOOK | EDIT | LLR_STRUCTURE, 0},
	};
	struct tree x;

	tree_new(&x);
	tree_make(&x, names);
	tree_rule(&x, EFFECT_ALLOW, RULE_TREE, RWX, "");
	tree_rule(&x, EFFECT_DENY, RULE_EXACT, ACCESS_READ, "sub/secret");
	tree_compile(&x);
	expect_all(&x, expected, ARRAY_LEN(expected));
	tree_free(&x);
}

/* What anybody may have put where everybody makes names costs no start anything. */
Test(compile, a_crowd_is_left_to_the_broker, .timeout = 20)
{
	static const char *const names[] = {"tmp/",	  "tmp/t1",	"tmp/t2", "tmp/mine/",
					    "tmp/mine/f", "tmp/other/", NULL};
	static const struct expectation expected[] = {
		{"tmp/t1", 0, LLR_ALL},
		{"tmp/mine", LOOK | EDIT | LLR_STRUCTURE, 0},
		{"tmp/other", 0, LLR_ALL},
	};
	struct tree x;

	tree_new(&x);
	tree_make(&x, names);
	cr_assert_eq(chmod(tree_path(&x, "tmp"), 01777), 0);
	tree_rule(&x, EFFECT_ALLOW, RULE_GLOB_EXACT, ACCESS_READ, "tmp/t?");
	tree_rule(&x, EFFECT_ALLOW, RULE_TREE, RWX, "tmp/mine");
	tree_compile(&x);
	expect_all(&x, expected, ARRAY_LEN(expected));
	cr_expect_eq(x.stats.walked, 0);

	/* A pattern that means what lies below is another thing. */
	llruleset_free(x.rs);
	tree_rule(&x, EFFECT_ALLOW, RULE_GLOB, ACCESS_READ, "tmp/oth??");
	tree_compile(&x);
	cr_expect(granted(x.rs, tree_path(&x, "tmp/other")) & LLR_READ_FILE);
	cr_expect(granted(x.rs, tree_path(&x, "tmp/t1")) & LLR_READ_FILE);
	tree_free(&x);
}

/* One rule where one is enough, whatever else says the same; none on a directory for `exact`. */
Test(compile, minimal, .timeout = 20)
{
	static const char *const names[] = {"a/",      "a/b/",	"a/b/f", "only/",
					    "only/in", "plain", NULL};
	static const struct expectation expected[] = {
		{"a/b", LOOK | EDIT | LLR_STRUCTURE, 0},
		{"only", 0, LLR_ALL},
		{"only/in", 0, LLR_ALL},
		{"plain", LLR_READ_FILE, EDIT | LLR_EXECUTE},
		{"", 0, LLR_ALL},
	};
	struct tree x;

	tree_new(&x);
	tree_make(&x, names);
	tree_rule(&x, EFFECT_ALLOW, RULE_TREE, RWX, "a");
	tree_rule(&x, EFFECT_ALLOW, RULE_TREE, ACCESS_R, "a/b");
	tree_rule(&x, EFFECT_ALLOW, RULE_EXACT, ACCESS_READ, "a/b/f");
	tree_rule(&x, EFFECT_ALLOW, RULE_EXACT, ACCESS_LIST, "only");
	tree_rule(&x, EFFECT_ALLOW, RULE_EXACT, ACCESS_R, "plain");
	tree_rule(&x, EFFECT_ALLOW, RULE_TREE, RWX, "absent");
	tree_compile(&x);
	expect_all(&x, expected, ARRAY_LEN(expected));
	cr_expect_eq(x.stats.rules, 2);
	tree_free(&x);
}

/* From where reading is denied nothing goes natively to where it would merely be asked about. */
Test(compile, denied_does_not_become_asked, .timeout = 20)
{
	static const char *const names[] = {"denied/", "asked/", "asked2/", NULL};
	static const struct expectation expected[] = {
		{"denied", LLR_WRITE_FILE | LLR_MAKE_DIR, LLR_REFER | LLR_MAKE_REG},
		{"asked", LLR_WRITE_FILE | LLR_MAKE_DIR | LLR_REFER, LLR_MAKE_REG},
		{"asked2", LLR_WRITE_FILE | LLR_MAKE_DIR | LLR_REFER, LLR_MAKE_REG},
	};
	struct tree x;

	tree_new(&x);
	tree_make(&x, names);
	for (size_t i = 0; names[i]; i++) {
		char name[32];
		snprintf(name, sizeof(name), "%.*s", (int)strlen(names[i]) - 1, names[i]);
		tree_rule(&x, EFFECT_ALLOW, RULE_TREE, ACCESS_W, name);
	}
	tree_rule(&x, EFFECT_DENY, RULE_TREE, ACCESS_READ, "denied");
	tree_compile(&x);
	expect_all(&x, expected, ARRAY_LEN(expected));
	tree_free(&x);
}

/* Nor from where reading is forbidden to where it is denied. */
Test(compile, forbidden_does_not_become_denied, .timeout = 20)
{
	static const char *const names[] = {"denied/", "forbidden/", NULL};
	static const struct expectation expected[] = {
		{"denied", LLR_WRITE_FILE | LLR_MAKE_DIR | LLR_REFER, LLR_MAKE_REG},
		{"forbidden", LLR_WRITE_FILE | LLR_MAKE_DIR, LLR_REFER | LLR_MAKE_REG},
	};
	struct tree x;

	tree_new(&x);
	tree_make(&x, names);
	tree_rule(&x, EFFECT_ALLOW, RULE_TREE, ACCESS_W, "denied");
	tree_rule(&x, EFFECT_ALLOW, RULE_TREE, ACCESS_W, "forbidden");
	tree_rule(&x, EFFECT_DENY, RULE_TREE, ACCESS_READ, "denied");
	tree_rule(&x, EFFECT_FORBID, RULE_TREE, ACCESS_READ, "forbidden");
	tree_compile(&x);
	expect_all(&x, expected, ARRAY_LEN(expected));
	tree_free(&x);
}

/* Places that differ may both have REFER where the kernel itself refuses the way that would widen.
 */
Test(compile, refer_where_the_kernel_sees_it, .timeout = 20)
{
	static const char *const names[] = {"all/", "all/f", "project/", "project/f", NULL};
	struct tree x;
	bool ioctl = kernel_abi().abi >= 5;

	tree_new(&x);
	tree_make(&x, names);
	tree_rule(&x, EFFECT_ALLOW, RULE_TREE, ACCESS_ALL, "all");
	tree_rule(&x, EFFECT_ALLOW, RULE_TREE, RWX, "project");
	tree_compile(&x);
	char from[256], dir[256], to[256];
	snprintf(from, sizeof(from), "%s", tree_path(&x, "all/f"));
	snprintf(dir, sizeof(dir), "%s", tree_path(&x, "project"));
	snprintf(to, sizeof(to), "%s", tree_path(&x, "project/new"));
	cr_expect_eq(goes_through(x.rs, from, dir, to, 0), ioctl);
	snprintf(from, sizeof(from), "%s", tree_path(&x, "project/f"));
	snprintf(dir, sizeof(dir), "%s", tree_path(&x, "all"));
	snprintf(to, sizeof(to), "%s", tree_path(&x, "all/new"));
	cr_expect_not(goes_through(x.rs, from, dir, to, 0));
	tree_free(&x);
}

/* A rule's path that leads through a symlink now was not meant. */
Test(compile, no_symlinks, .timeout = 20)
{
	static const char *const names[] = {"real/", "real/f", NULL};
	struct tree x;

	tree_new(&x);
	tree_make(&x, names);
	cr_assert_eq(symlink("real", tree_path(&x, "link")), 0);
	tree_rule(&x, EFFECT_ALLOW, RULE_TREE, RWX, "link");
	tree_rule(&x, EFFECT_ALLOW, RULE_EXACT, ACCESS_R, "link/f");
	tree_compile(&x);
	cr_expect_eq(x.stats.rules, 0);
	tree_free(&x);
}

/* Another name of a protected file closes what it lies in; for that access alone. */
Test(compile, hard_link_of_a_protected_file, .timeout = 20)
{
	static const char *const names[] = {"secret/", "secret/key", "pub/", "pub/f",
					    "pub/in/", "other/",     NULL};
	static const struct expectation expected[] = {
		{"pub/in/alias", LLR_WRITE_FILE, LLR_READ_FILE},
		{"pub/in", LLR_READ_DIR, LLR_READ_FILE | LLR_STRUCTURE},
		{"pub/f", LLR_READ_FILE, 0},
		{"other", LOOK | EDIT | LLR_STRUCTURE, 0},
	};
	struct tree x;
	char key[256];

	tree_new(&x);
	tree_make(&x, names);
	snprintf(key, sizeof(key), "%s", tree_path(&x, "secret/key"));
	cr_assert_eq(link(key, tree_path(&x, "pub/in/alias")), 0);
	tree_rule(&x, EFFECT_ALLOW, RULE_TREE, RWX, "");
	tree_rule(&x, EFFECT_DENY, RULE_TREE, ACCESS_READ, "secret");
	tree_compile(&x);
	expect_all(&x, expected, ARRAY_LEN(expected));
	tree_free(&x);
}

/* Our own spare directories are not searched for such files; what else is ours, is. */
Test(compile, spares_hold_no_protected_file, .timeout = 20)
{
	static const char *const names[] = {"own/",
					    "own/key",
					    "own/.warder-pool-1/",
					    "own/.warder-pool-1/key",
					    "own/x/",
					    "own/x/.warder-pool-2/",
					    "own/x/.warder-pool-2/key",
					    "pub/",
					    NULL};
	static const char *const links[][2] = {{"own/key", "pub/1"},
					       {"own/.warder-pool-1/key", "pub/2"},
					       {"own/x/.warder-pool-2/key", "pub/3"}};
	static const struct expectation expected[] = {
		{"pub/1", 0, LLR_READ_FILE},
		{"pub/2", LLR_READ_FILE, 0},
		{"pub/3", 0, LLR_READ_FILE},
	};
	struct tree x;
	char from[256];

	tree_new(&x);
	tree_make(&x, names);
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		snprintf(from, sizeof(from), "%s", tree_path(&x, links[i][0]));
		cr_assert_eq(link(from, tree_path(&x, links[i][1])), 0);
	}
	tree_rule(&x, EFFECT_ALLOW, RULE_TREE, ACCESS_R, "pub");
	snprintf(from, sizeof(from), "%s", tree_path(&x, "own"));
	cr_assert_eq(policy_add(x.t.policy, &(struct rule){.effect = EFFECT_FORBID,
							   .kind = RULE_TREE,
							   .source = RULE_BUILTIN,
							   .access = ACCESS_ALL,
							   .path = from,
							   .origin = (char *)"test"}),
		     0);
	tree_compile(&x);
	expect_all(&x, expected, ARRAY_LEN(expected));
	tree_free(&x);
}

/* Beyond the bound there are fewer rules, and it is said. */
Test(compile, bounded, .timeout = 120)
{
	struct tree x;
	char name[32];
	int dir;

	memset(&x, 0, sizeof(x));
	strcpy(x.t.top, access("/dev/shm", W_OK) == 0 ? "/dev/shm/warder-compile-XXXXXX"
						      : "/tmp/warder-compile-XXXXXX");
	cr_assert_not_null(mkdtemp(x.t.top));
	cr_assert_eq(policy_new(&x.t.policy), 0);
	dir = open(x.t.top, O_PATH | O_CLOEXEC);
	for (int i = 0; i < COMPILE_WALK_MAX + 50; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		cr_assert_eq(mknodat(dir, name, S_IFREG | 0600, 0), 0);
	}
	close(dir);
	tree_rule(&x, EFFECT_ALLOW, RULE_TREE, ACCESS_R, "");
	tree_rule(&x, EFFECT_DENY, RULE_EXACT, ACCESS_READ, "f0");
	tree_compile(&x);
	cr_expect(x.stats.truncated);
	cr_expect_eq(x.stats.walked, COMPILE_WALK_MAX);
	cr_expect_leq(x.stats.rules, COMPILE_WALK_MAX + 1);
	cr_expect_geq(x.stats.rules, COMPILE_WALK_MAX - 1);
	tree_free(&x);
}
