/* Rulesets in force: in forked children, which report by their exit status. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "landlock/llright.h"
#include "landlock/llruleset.h"
#include "landlock/llsys.h"

#define NOBODY	   65534
#define NO_BEGIN   200 /* the child could not be restricted */
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
#define ALL_SCOPES (LLR_SCOPE_ABSTRACT_UNIX_SOCKET | LLR_SCOPE_SIGNAL)

static char dir[] = "/tmp/warder-llruleset-XXXXXX";
static char inside[sizeof(dir) + 16], outside[sizeof(dir) + 16];
static struct llabi here;

static void setup(void)
{
	if (llabi_detect(&here) < 0)
		cr_skip_test("no Landlock here");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chmod(dir, 0755), 0);
	snprintf(inside, sizeof(inside), "%s/inside", dir);
	snprintf(outside, sizeof(outside), "%s/outside", dir);
	cr_assert_eq(close(open(inside, O_CREAT | O_WRONLY | O_CLOEXEC, 0644)), 0);
	cr_assert_eq(close(open(outside, O_CREAT | O_WRONLY | O_CLOEXEC, 0644)), 0);
}

static void teardown(void)
{
	unlink(inside);
	unlink(outside);
	rmdir(dir);
}

/* A skipped test never reaches its teardown. */
static void skip(const char *why)
{
	teardown();
	cr_skip_test("%s", why);
}

TestSuite(landlock_ruleset, .init = setup, .fini = teardown, .timeout = 60);

static struct llruleset *fresh(uint64_t scopes)
{
	struct llruleset *rs = NULL;

	cr_assert_eq(llruleset_new(&here, scopes, &rs), 0);
	return rs;
}

static int try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int exit_of(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "status %x", (unsigned int)status);
	return WEXITSTATUS(status);
}

static int drop_to_nobody(void)
{
	if (geteuid() != 0)
		return 0;
	return setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	       setresuid(NOBODY, NOBODY, NOBODY);
}

/* The errno of an open in a restricted child. */
static int opened_under(const struct llruleset *rs, const char *path, int flags, bool drop)
{
	pid_t pid = fork();

	if (pid == 0) {
		if ((drop && drop_to_nobody()) || llruleset_restrict(rs) < 0)
			_exit(NO_BEGIN);
		_exit(try_open(path, flags));
	}
	return exit_of(pid);
}

Test(landlock_ruleset, only_what_was_allowed_and_the_parent_stays_free)
{
	for (int drop = 0; drop < 2; drop++) {
		struct llruleset *rs = fresh(0);

		cr_assert_eq(llruleset_allow_path(rs, inside, LLR_READ_FILE), 0);
		cr_expect_eq(opened_under(rs, inside, O_RDONLY, drop), 0);
		cr_expect_eq(opened_under(rs, inside, O_WRONLY, drop), EACCES);
		cr_expect_eq(opened_under(rs, outside, O_RDONLY, drop), EACCES);
		cr_expect_eq(opened_under(rs, dir, O_RDONLY | O_DIRECTORY, drop), EACCES);
		cr_expect_eq(try_open(outside, O_RDWR), 0, "the parent is restricted");
		cr_expect_eq(try_open(dir, O_RDONLY), 0);
		llruleset_free(rs);
	}
	cr_expect_eq(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0, "the parent's no_new_privs");
}

/* What a policy's broad word means for one thing is masked, never refused. */
Test(landlock_ruleset, whole_words_on_files_devices_and_directories)
{
	static const struct {
		const char *path;
		int flags;
	} table[] = {
		{"/dev/null", O_RDWR},
		{"/dev/zero", O_RDONLY},
		{"/dev/ptmx", O_RDWR | O_NOCTTY},
		{"/dev", O_RDONLY | O_DIRECTORY},
		{"/proc/version", O_RDONLY},
		{"/etc/passwd", O_RDONLY},
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		struct llruleset *rs = fresh(0);

		if (access(table[i].path, F_OK) == 0) {
			cr_expect_eq(opened_under(rs, table[i].path, table[i].flags, false), EACCES,
				     "%s", table[i].path);
			cr_expect_eq(llruleset_allow_path(rs, table[i].path, LLR_ALL), 0);
			cr_expect_eq(opened_under(rs, table[i].path, table[i].flags, false), 0,
				     "%s", table[i].path);
		}
		llruleset_free(rs);
	}
}

Test(landlock_ruleset, every_abi_up_to_this_one_can_be_applied)
{
	for (int abi = 1; abi <= here.abi; abi++) {
		struct llabi old = llabi_of(abi);
		struct llruleset *rs = NULL;

		cr_assert_eq(llruleset_new(&old, ALL_SCOPES, &rs), 0, "abi %d", abi);
		cr_assert_eq(llruleset_allow_path(rs, "/", LLR_ALL & ~LLR_TRUNCATE), 0);
		cr_expect_eq(opened_under(rs, inside, O_RDWR, false), 0);
		/* Before ABI 3 nothing can keep it from truncating: that is what is unenforced. */
		cr_expect_eq(opened_under(rs, inside, O_WRONLY | O_TRUNC, false),
			     llruleset_unenforced(rs) & LLR_TRUNCATE ? 0 : EACCES, "abi %d", abi);
		llruleset_free(rs);
	}
}

Test(landlock_ruleset, a_program_that_is_executed_stays_restricted)
{
	struct llruleset *rs = fresh(0);
	int codes[2];

	cr_assert_eq(llruleset_allow_path(rs, "/", LLR_EXECUTE), 0);
	for (const char *const *p = (const char *[]){"/usr", "/lib", "/lib64", "/etc", "/bin",
						     "/dev/null", inside, NULL};
	     *p; p++)
		if (access(*p, F_OK) == 0)
			cr_assert_eq(llruleset_allow_path(
					     rs, *p, LLR_READ_FILE | LLR_READ_DIR | LLR_WRITE_FILE),
				     0);
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

			if (llruleset_restrict(rs) < 0 || dup2(null, 2) < 0)
				_exit(NO_BEGIN);
			execl("/bin/cat", "cat", i ? outside : inside, (char *)NULL);
			_exit(NO_BEGIN);
		}
		codes[i] = exit_of(pid);
	}
	cr_expect_eq(codes[0], 0);
	cr_expect_eq(codes[1], 1, "cat read what it may not");
	llruleset_free(rs);
}

static int child_bad_descriptor(const struct llruleset *rs)
{
	close(llruleset_fd(rs));
	if (llruleset_restrict(rs) != -EBADF)
		return 1;
	if (dup2(STDERR_FILENO, llruleset_fd(rs)) < 0)
		return 2;
	return llruleset_restrict(rs) == -EBADFD ? 0 : 3;
}

static int child_seventeenth_layer(const struct llruleset *rs)
{
	for (int i = 0; i < 16; i++)
		if (llruleset_restrict(rs) < 0)
			return 1;
	return llruleset_restrict(rs) == -E2BIG ? 0 : 2;
}

static int child_no_new_privs(const struct llruleset *rs)
{
	if (drop_to_nobody())
		return NO_BEGIN;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0)
		return 1;
	if (llruleset_restrict(rs) < 0)
		return 2;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 3;
}

Test(landlock_ruleset, what_can_not_be_applied_is_an_error)
{
	static int (*const cases[])(const struct llruleset *) = {
		child_bad_descriptor,
		child_seventeenth_layer,
		child_no_new_privs,
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct llruleset *rs = fresh(0);
		pid_t pid = fork();

		if (pid == 0)
			_exit(cases[i](rs));
		cr_expect_eq(exit_of(pid), 0, "case %zu", i);
		llruleset_free(rs);
	}
}

/* Two children of ours: one to be signalled, one that is restricted and tries. */
static int signal_under(uint64_t scopes)
{
	struct llruleset *rs = fresh(scopes);
	pid_t target = fork(), pid;
	int code;

	if (target == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	pid = fork();
	if (pid == 0) {
		if (llruleset_restrict(rs) < 0)
			_exit(NO_BEGIN);
		_exit(kill(target, 0) < 0 ? errno : 0);
	}
	code = exit_of(pid);
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	llruleset_free(rs);
	return code;
}

static int abstract_connect_under(uint64_t scopes)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	socklen_t len = offsetof(struct sockaddr_un, sun_path) + 1 + (socklen_t)strlen(dir);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), code;
	struct llruleset *rs = fresh(scopes);
	pid_t pid;

	memcpy(addr.sun_path + 1, dir, strlen(dir));
	cr_assert_eq(bind(listener, (struct sockaddr *)&addr, len), 0);
	cr_assert_eq(listen(listener, 1), 0);
	pid = fork();
	if (pid == 0) {
		int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (llruleset_restrict(rs) < 0)
			_exit(NO_BEGIN);
		_exit(connect(s, (struct sockaddr *)&addr, len) < 0 ? errno : 0);
	}
	code = exit_of(pid);
	close(listener);
	llruleset_free(rs);
	return code;
}

Test(landlock_ruleset, scopes_as_asked_for)
{
	if (here.abi < 6)
		skip("no scopes before ABI 6");
	cr_expect_eq(signal_under(0), 0);
	cr_expect_eq(signal_under(LLR_SCOPE_ABSTRACT_UNIX_SOCKET), 0);
	cr_expect_eq(signal_under(LLR_SCOPE_SIGNAL), EPERM);
	cr_expect_eq(abstract_connect_under(0), 0);
	cr_expect_eq(abstract_connect_under(LLR_SCOPE_SIGNAL), 0);
	cr_expect_eq(abstract_connect_under(LLR_SCOPE_ABSTRACT_UNIX_SOCKET), EPERM);
}

/* Forget what the kernel remembers of names: procfs then makes its inodes anew. */
static int drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	int r = 0;

	if (fd < 0)
		return -errno;
	for (int i = 0; r == 0 && i < 3; i++)
		r = pwrite(fd, "2", 1, 0) == 1 ? 0 : -errno;
	close(fd);
	return r;
}

/* The same rule twice: through the ruleset, which pins, and without a pin. The second shows that
 * there was something to guard against. */
Test(landlock_ruleset, a_rule_on_procfs_outlives_reclaim)
{
	struct llsys_ruleset_attr attr = {.handled_access_fs = here.fs};
	int bare, code, fd;
	struct llruleset *rs;
	char path[64];
	pid_t target, pid;

	if (geteuid() != 0)
		skip("only root can make the kernel forget");
	bare = llsys_create_ruleset(&attr, sizeof(attr), 0);
	rs = fresh(0);
	target = fork();
	if (target == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	snprintf(path, sizeof(path), "/proc/%d", target);
	cr_assert_eq(llruleset_allow_path(rs, path, LLR_READ_FILE | LLR_READ_DIR), 0);
	fd = open("/proc/sys/kernel/random", O_PATH | O_CLOEXEC);
	cr_assert_eq(llsys_add_path_rule(bare, fd, LLR_READ_FILE), 0);
	close(fd);
	snprintf(path, sizeof(path), "/proc/%d/status", target);
	cr_assert_eq(drop_caches(), 0);
	cr_expect_eq(opened_under(rs, path, O_RDONLY, false), 0);
	pid = fork();
	if (pid == 0) {
		if (llsys_restrict_self(bare, 0) < 0)
			_exit(NO_BEGIN);
		_exit(try_open("/proc/sys/kernel/random/uuid", O_RDONLY));
	}
	code = exit_of(pid);
	cr_log_info("without a pin: %s", code ? strerror(code) : "still there");
	cr_expect_neq(code, NO_BEGIN);
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	close(bare);
	llruleset_free(rs);
}
