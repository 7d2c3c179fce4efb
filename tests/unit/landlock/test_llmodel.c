/* The model's walk and the published rename table, without restricting anything. The kernel's own
 * answers are compared in tests/live/test_landlock_model.c. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "landlock/llmodel.h"
#include "landlock/llright.h"

static char root[] = "/tmp/warder-llmodel-XXXXXX";
static int base = -1;
static struct llruleset *rs;

static const char *const dirs[] = {"s", "d", "s/sub", "d/esub"};
static const char *const files[] = {"s/f", "d/g", "s/sub/x"};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The domain of this ruleset alone; good until the next call. */
static const struct lldomain *one(const struct llruleset *set)
{
	static struct lldomain domain;

	domain = lldomain_of(set);
	return &domain;
}

static struct llruleset *fresh(int abi)
{
	struct llabi want = llabi_of(abi);
	struct llruleset *made = NULL;

	cr_assert_eq(llruleset_new(&want, 0, &made), 0);
	return made;
}

static void setup(void)
{
	if (llabi_probe() < 5)
		cr_skip_test("the measured table is of ABI 5 and later");
	cr_assert_not_null(mkdtemp(root));
	base = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < COUNT(dirs); i++)
		cr_assert_eq(mkdirat(base, dirs[i], 0755), 0);
	for (size_t i = 0; i < COUNT(files); i++)
		close(openat(base, files[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	rs = fresh(5);
}

static void teardown(void)
{
	llruleset_free(rs);
	for (size_t i = 0; i < COUNT(files); i++)
		unlinkat(base, files[i], 0);
	for (size_t i = COUNT(dirs); i > 0; i--)
		unlinkat(base, dirs[i - 1], AT_REMOVEDIR);
	rmdir(root);
	close(base);
}

TestSuite(llmodel, .init = setup, .fini = teardown, .timeout = 30);

static int at(const char *path)
{
	int fd = openat(base, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	cr_assert_geq(fd, 0, "%s", path);
	return fd;
}

static void allow(struct llruleset *set, const char *path, uint64_t rights)
{
	int fd = at(path);

	cr_assert_eq(llruleset_allow_fd(set, fd, rights), 0);
	close(fd);
}

Test(llmodel, rules_join_on_the_way_up)
{
	uint64_t unhandled = LLR_ALL & ~llruleset_handled(rs), got = 0;
	int file = at("s/sub/x"), sub = at("s/sub"), d = at("d");

	allow(rs, "s", LLR_READ_FILE | LLR_MAKE_REG);
	allow(rs, "s/sub", LLR_WRITE_FILE);
	allow(rs, "s/sub/x", LLR_EXECUTE);
	cr_assert_eq(llmodel_granted_at(one(rs), file, sub, &got), 0);
	cr_expect_eq(got, LLR_READ_FILE | LLR_MAKE_REG | LLR_WRITE_FILE | LLR_EXECUTE | unhandled);
	cr_assert_eq(llmodel_granted_at(one(rs), -1, sub, &got), 0);
	cr_expect_eq(got, LLR_READ_FILE | LLR_MAKE_REG | LLR_WRITE_FILE | unhandled);
	cr_assert_eq(llmodel_granted(one(rs), sub, &got), 0);
	cr_expect_eq(got, LLR_READ_FILE | LLR_MAKE_REG | LLR_WRITE_FILE | unhandled);
	cr_assert_eq(llmodel_granted(one(rs), d, &got), 0);
	cr_expect_eq(got, unhandled);
	close(file);
	close(sub);
	close(d);
}

Test(llmodel, the_real_roots_rule_counts)
{
	uint64_t got = 0;
	int d = at("d");

	cr_assert_eq(llruleset_allow_path(rs, "/", LLR_READ_DIR), 0);
	cr_assert_eq(llmodel_granted(one(rs), d, &got), 0);
	cr_expect(got & LLR_READ_DIR);
	close(d);
}

Test(llmodel, what_landlock_never_restricts)
{
	int pipes[2], pair[2], memfd = memfd_create("m", MFD_CLOEXEC);
	int ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	uint64_t got;

	cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	int table[] = {pipes[0], pipes[1], pair[0], memfd, ns};

	for (size_t i = 0; i < COUNT(table); i++) {
		got = 0;
		cr_expect_eq(llmodel_granted(one(rs), table[i], &got), 0, "row %zu", i);
		cr_expect_eq(got, (uint64_t)LLR_ALL, "row %zu", i);
		close(table[i]);
	}
	close(pipes[1]);
	close(pair[1]);
}

Test(llmodel, errors_leave_the_result_alone)
{
	uint64_t got = 77;
	int verdict = 77, file = at("s/f");
	struct llmodel_move move = {
		.old_dir = -1, .old_object = file, .new_dir = base, .new_object = -1};

	cr_expect_eq(llmodel_granted(one(rs), file, &got), -ENOTDIR);
	cr_expect_eq(llmodel_granted(one(rs), -1, &got), -EBADF);
	cr_expect_eq(llmodel_granted_at(one(rs), -1, -1, &got), -EBADF);
	cr_expect_eq(llmodel_granted_at(one(rs), 12345, base, &got), -EBADF);
	cr_expect_eq(llmodel_granted_at(one(rs), file, file, &got), -ENOTDIR);
	cr_expect_eq(llmodel_rename(one(rs), &move, &verdict), -EBADF);
	cr_expect_eq(llmodel_link(one(rs), &move, &verdict), -EBADF);
	move.old_dir = base;
	move.flags = RENAME_EXCHANGE;
	cr_expect_eq(llmodel_rename(one(rs), &move, &verdict), -EINVAL);
	cr_expect_eq(got, 77);
	cr_expect_eq(verdict, 77);
	close(file);
}

#define S (LLR_REFER | LLR_REMOVE_FILE)
#define D (LLR_REFER | LLR_MAKE_REG)
#define B (S | D)

enum how { RENAME, OVERWRITE, LINK, RENAME_DIR, EXCHANGE };

/* Measured on Linux 6.18: rights of two sibling directories, of the file, of their parent. */
static const struct {
	enum how how;
	uint64_t s, d, f, parent;
	int want;
} moves[] = {
	{RENAME, S, D, 0, 0, 0},
	{RENAME, S, D | LLR_READ_FILE, 0, 0, -EXDEV},
	{RENAME, S | LLR_READ_FILE, D | LLR_READ_FILE, 0, 0, 0},
	{RENAME, S, D | LLR_READ_FILE, LLR_READ_FILE, 0, 0},
	{RENAME, S | LLR_READ_FILE | LLR_WRITE_FILE | LLR_EXECUTE, D, 0, 0, 0},
	{RENAME, S, D | LLR_MAKE_DIR | LLR_READ_DIR | LLR_REMOVE_DIR, 0, 0, 0},
	{RENAME, S, D | LLR_IOCTL_DEV, 0, 0, -EXDEV},
	{RENAME, LLR_REFER, D, 0, 0, -EACCES},
	{RENAME, S, LLR_REFER, 0, 0, -EACCES},
	{RENAME, LLR_REMOVE_FILE, D, 0, 0, -EXDEV},
	{RENAME, S, LLR_MAKE_REG, 0, 0, -EXDEV},
	{RENAME, LLR_REMOVE_FILE, LLR_REFER, 0, 0, -EACCES},
	{RENAME, S, LLR_REFER | LLR_READ_FILE, 0, 0, -EACCES},
	{OVERWRITE, S, D, 0, 0, -EACCES},
	{OVERWRITE, S, B, 0, 0, 0},
	{RENAME, 0, 0, 0, B, 0},
	{RENAME, 0, LLR_READ_FILE, 0, B, -EXDEV},
	{RENAME, LLR_READ_FILE, 0, 0, B, 0},
	{LINK, LLR_REFER, D, 0, 0, 0},
	{LINK, 0, D, 0, 0, -EXDEV},
	{LINK, LLR_REFER, D | LLR_READ_FILE, 0, 0, -EXDEV},
	{RENAME_DIR, LLR_REFER | LLR_REMOVE_DIR, LLR_REFER | LLR_MAKE_DIR, 0, 0, -EXDEV},
	{RENAME_DIR, LLR_REFER | LLR_REMOVE_DIR | LLR_MAKE_DIR, LLR_REFER | LLR_MAKE_DIR, 0, 0, 0},
	{RENAME_DIR, LLR_REFER | LLR_REMOVE_DIR | LLR_MAKE_DIR,
	 LLR_REFER | LLR_MAKE_DIR | LLR_READ_DIR, 0, 0, -EXDEV},
	{RENAME_DIR, 0, 0, 0, LLR_REFER | LLR_REMOVE_DIR | LLR_MAKE_DIR, 0},
	{EXCHANGE, B, B, 0, 0, 0},
	{EXCHANGE, B, B | LLR_READ_FILE, 0, 0, -EXDEV},
	{EXCHANGE, B | LLR_READ_FILE, B, 0, 0, -EXDEV},
	{EXCHANGE, B, B | LLR_READ_FILE, LLR_READ_FILE, 0, 0},
	{EXCHANGE, S, D, 0, 0, -EACCES},
};

static int verdict_of(struct llruleset *set, enum how how)
{
	int object = at(how == RENAME_DIR ? "s/sub" : "s/f"), other = at("d/g");
	struct llmodel_move move = {.old_dir = at("s"),
				    .old_object = object,
				    .new_dir = at("d"),
				    .new_object = how == OVERWRITE || how == EXCHANGE ? other : -1,
				    .flags = how == EXCHANGE ? RENAME_EXCHANGE : 0};
	int verdict = 77, r;

	r = how == LINK ? llmodel_link(one(set), &move, &verdict)
			: llmodel_rename(one(set), &move, &verdict);
	cr_assert_eq(r, 0);
	close(object);
	close(other);
	close(move.old_dir);
	close(move.new_dir);
	return verdict;
}

Test(llmodel, moves_as_measured)
{
	for (size_t i = 0; i < COUNT(moves); i++) {
		struct llruleset *set = fresh(5);

		allow(set, "s", moves[i].s);
		allow(set, "d", moves[i].d);
		allow(set, "s/f", moves[i].f);
		allow(set, "d/g", moves[i].f);
		allow(set, ".", moves[i].parent);
		cr_expect_eq(verdict_of(set, moves[i].how), moves[i].want, "row %zu", i);
		llruleset_free(set);
	}
}

Test(llmodel, abi_1_refuses_all_reparenting)
{
	struct llruleset *old = fresh(1);
	uint64_t got = 0;

	allow(old, ".", LLR_ALL);
	cr_expect_eq(verdict_of(old, RENAME), -EXDEV);
	cr_expect_eq(verdict_of(old, LINK), -EXDEV);
	cr_assert_eq(llmodel_granted(one(old), base, &got), 0);
	cr_expect_eq(got, (uint64_t)(LLR_ALL & ~LLR_REFER));
	llruleset_free(old);
}

/* Whether a whiteout left behind needs make_reg is an erratum: asked of the ABI, never guessed. */
Test(llmodel, whiteout_by_erratum)
{
	static const struct {
		uint32_t errata;
		int want;
	} table[] = {{0, 0}, {LLABI_ERRATUM_WHITEOUT, -EACCES}};

	for (size_t i = 0; i < COUNT(table); i++) {
		struct llabi abi = llabi_of(5);
		struct llruleset *set = NULL;
		struct llmodel_move move = {.old_dir = at("s"),
					    .old_object = at("s/f"),
					    .new_dir = at("d"),
					    .new_object = -1,
					    .flags = RENAME_WHITEOUT};
		int verdict = 77;

		abi.errata = table[i].errata;
		cr_assert_eq(llruleset_new(&abi, 0, &set), 0);
		allow(set, "s", S);
		allow(set, "d", D);
		cr_assert_eq(llmodel_rename(one(set), &move, &verdict), 0);
		cr_expect_eq(verdict, table[i].want);
		llruleset_free(set);
		close(move.old_dir);
		close(move.old_object);
		close(move.new_dir);
	}
}
