/* What the builder masks, remembers and pins. Nothing is restricted here. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "landlock/llright.h"
#include "landlock/llruleset.h"

#define ALL_SCOPES (LLR_SCOPE_ABSTRACT_UNIX_SOCKET | LLR_SCOPE_SIGNAL)

static char dir[] = "/tmp/warder-llruleset-XXXXXX";
static char file[sizeof(dir) + 8];
static struct llruleset *rs;

static struct llruleset *with_abi(int abi, uint64_t scopes)
{
	struct llabi here;
	struct llruleset *made = NULL;

	cr_assert_eq(llabi_detect(&here), 0);
	if (abi > 0)
		here = llabi_of(abi);
	cr_assert_eq(llruleset_new(&here, scopes, &made), 0);
	return made;
}

static void setup(void)
{
	if (llabi_probe() < 0)
		cr_skip_test("no Landlock here");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/file", dir);
	cr_assert_eq(close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	rs = with_abi(0, 0);
}

static void teardown(void)
{
	llruleset_free(rs);
	unlink(file);
	rmdir(dir);
}

TestSuite(llruleset, .init = setup, .fini = teardown, .timeout = 30);

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Each right alone, then all, on each kind of thing: never EINVAL, and only what may stand. */
Test(llruleset, rights_are_masked_by_what_the_thing_is)
{
	const char *paths[] = {dir, file, "/dev/null", "/dev", "/proc/self/status", "/"};
	uint64_t handled = llruleset_handled(rs);

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const struct llrule *rule;
		struct stat st;
		uint64_t want;

		cr_assert_eq(stat(paths[i], &st), 0);
		want = S_ISDIR(st.st_mode) ? handled : handled & llright_for_file();
		for (uint64_t bit = 1; bit & LLR_ALL; bit <<= 1) {
			uint64_t before = llruleset_lookup(rs, st.st_dev, st.st_ino);

			cr_expect_eq(llruleset_allow_path(rs, paths[i], bit), 0, "%s %s", paths[i],
				     llright_name(bit));
			cr_expect_eq(llruleset_lookup(rs, st.st_dev, st.st_ino),
				     before | (bit & want));
		}
		cr_expect_eq(llruleset_allow_path(rs, paths[i], LLR_ALL), 0);
		cr_assert_eq(llruleset_count(rs), i + 1);
		rule = llruleset_rule(rs, i);
		cr_expect_eq(rule->rights, want);
		cr_expect_eq(rule->dev, st.st_dev);
		cr_expect_eq(rule->ino, st.st_ino);
		cr_expect_eq(rule->mode & S_IFMT, st.st_mode & S_IFMT);
		cr_expect_str_eq(rule->label, paths[i]);
	}
	cr_expect_null(llruleset_rule(rs, llruleset_count(rs)));
}

Test(llruleset, nothing_left_is_success_without_a_rule)
{
	cr_expect_eq(llruleset_allow_path(rs, file, LLR_READ_DIR | LLR_STRUCTURE), 0);
	cr_expect_eq(llruleset_allow_path(rs, dir, 0), 0);
	cr_expect_eq(llruleset_count(rs), 0);
}

Test(llruleset, errors_change_nothing)
{
	int pipes[2], memfd = memfd_create("x", MFD_CLOEXEC), before;

	cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
	before = open_fds();
	cr_expect_eq(llruleset_allow_path(rs, "/nonexistent/x", LLR_READ_FILE), -ENOENT);
	cr_expect_eq(llruleset_allow_path(rs, dir, 1ULL << 40), -EINVAL);
	cr_expect_eq(llruleset_allow_fd(rs, -1, LLR_READ_FILE), -EBADF);
	cr_expect_eq(llruleset_allow_fd(rs, 12345, LLR_READ_FILE), -EBADF);
	cr_expect_eq(llruleset_allow_fd_as(rs, pipes[0], LLR_READ_FILE, "pipe"), -EBADFD);
	cr_expect_eq(llruleset_allow_fd(rs, memfd, LLR_READ_FILE), -EBADFD);
	cr_expect_eq(llruleset_count(rs), 0);
	cr_expect_eq(open_fds(), before, "a descriptor was left open");
	close(pipes[0]);
	close(pipes[1]);
	close(memfd);
}

Test(llruleset, only_procfs_is_pinned_and_free_lets_go)
{
	const char *paths[] = {"/proc/self", "/proc/sys/kernel", "/proc/version", "/tmp", file};
	int before = open_fds();
	struct llruleset *other = with_abi(0, 0);

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		int pin;

		cr_assert_eq(llruleset_allow_path(other, paths[i], LLR_READ_FILE), 0);
		pin = llruleset_rule(other, i)->pin;
		cr_expect_eq(pin >= 0, i < 3, "%s", paths[i]);
		if (pin >= 0)
			cr_expect(fcntl(pin, F_GETFD) & FD_CLOEXEC);
	}
	cr_expect_eq(llruleset_allow_path(other, paths[0], LLR_READ_DIR), 0);
	cr_expect(fcntl(llruleset_fd(other), F_GETFD) & FD_CLOEXEC);
	llruleset_free(other);
	cr_expect_eq(open_fds(), before, "a descriptor was left open");
	llruleset_free(NULL);
}

Test(llruleset, labels_are_copied_and_the_first_stays)
{
	char label[] = "first";
	int fd = open(file, O_PATH | O_CLOEXEC);

	cr_assert_eq(llruleset_allow_fd(rs, fd, LLR_READ_FILE), 0);
	cr_expect_null(llruleset_rule(rs, 0)->label);
	cr_assert_eq(llruleset_allow_fd_as(rs, fd, LLR_WRITE_FILE, label), 0);
	label[0] = '#';
	cr_assert_eq(llruleset_allow_fd_as(rs, fd, LLR_EXECUTE, "second"), 0);
	cr_expect_eq(llruleset_count(rs), 1);
	cr_expect_str_eq(llruleset_rule(rs, 0)->label, "first");
	cr_expect_eq(llruleset_rule(rs, 0)->rights, LLR_READ_FILE | LLR_WRITE_FILE | LLR_EXECUTE);
	close(fd);
}

Test(llruleset, older_abis_handle_less_and_say_so)
{
	static const struct {
		int abi;
		uint64_t unenforced;
	} table[] = {
		{1, LLR_REFER | LLR_TRUNCATE | LLR_IOCTL_DEV},
		{2, LLR_TRUNCATE | LLR_IOCTL_DEV},
		{3, LLR_IOCTL_DEV},
		{4, LLR_IOCTL_DEV},
		{5, 0},
		{6, 0},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct llruleset *old;

		if (table[i].abi > llabi_probe())
			break;
		old = with_abi(table[i].abi, ALL_SCOPES);
		cr_expect_eq(llruleset_handled(old), llright_supported(table[i].abi));
		cr_expect_eq(llruleset_unenforced(old), table[i].unenforced, "abi %d",
			     table[i].abi);
		cr_expect_eq(llruleset_scoped(old), table[i].abi < 6 ? 0 : ALL_SCOPES);
		cr_expect_eq(llruleset_abi(old)->abi, table[i].abi);
		cr_expect_eq(llruleset_allow_path(old, dir, LLR_ALL), 0);
		cr_expect_eq(llruleset_rule(old, 0)->rights, llright_supported(table[i].abi));
		llruleset_free(old);
	}
}

Test(llruleset, no_abi_no_ruleset)
{
	struct llabi none = llabi_of(0);
	struct llruleset *made = (void *)&none;

	cr_expect_eq(llruleset_new(&none, 0, &made), -EINVAL);
	cr_expect_eq(made, (void *)&none, "the result is untouched on failure");
}

Test(llruleset, ten_thousand_rules_are_found)
{
	enum { N = 10000 };
	int base = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[16];
	struct stat st;

	for (int i = 0; i < N; i++) {
		int fd;

		snprintf(name, sizeof(name), "f%d", i);
		fd = openat(base, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		cr_assert_eq(llruleset_allow_fd(rs, fd, i % 2 ? LLR_READ_FILE : LLR_WRITE_FILE), 0);
		close(fd);
	}
	cr_expect_eq(llruleset_count(rs), N);
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		cr_assert_eq(fstatat(base, name, &st, 0), 0);
		cr_assert_eq(llruleset_lookup(rs, st.st_dev, st.st_ino),
			     i % 2 ? LLR_READ_FILE : LLR_WRITE_FILE);
		cr_assert_eq(llruleset_lookup(rs, st.st_dev + 1, st.st_ino), 0);
		unlinkat(base, name, 0);
	}
	close(base);
}
