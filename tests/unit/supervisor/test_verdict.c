/* Who refused a call, with this process as the tracee and rulesets made by hand. */
#include "landlock/llright.h"
#include "supervisor/verdict.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define P(s) ((uint64_t)(uintptr_t)(s))

static struct llruleset *rules;

static struct llabi kernel(void)
{
	struct llabi abi;
	if (llabi_detect(&abi))
		cr_skip("no Landlock here");
	return abi;
}

/* What the ruleset of such a kernel grants on one path; NULL: nothing anywhere. */
static void allow_in(const struct llabi *abi, const char *path, uint64_t rights)
{
	llruleset_free(rules);
	rules = NULL;
	cr_assert_eq(llruleset_new(abi, 0, &rules), 0);
	if (path)
		cr_assert_eq(llruleset_allow_path(rules, path, rights), 0);
}

static void allow(const char *path, uint64_t rights)
{
	const struct llabi abi = kernel();
	allow_in(&abi, path, rights);
}

static struct verdict_result judge(const char *name, const uint64_t args[6], int error)
{
	static struct call c;
	struct call_view view = {.tid = getpid(), .tgid = getpid()};
	struct identity self;
	struct verdict_result result;
	call_release(&c);
	c = (struct call){.ent = sysent_by_name(name), .result = -error};
	cr_assert_not_null(c.ent, "%s", name);
	memcpy(c.args, args, sizeof c.args);
	cr_assert_eq(call_decode(&c, view), 0);
	cr_assert_eq(call_resolve(&c, view), 0);
	cr_assert_eq(identity_self(&self), 0);
	struct verdict_input in = {
		.call = &c, .view = view, .as = &self, .self = &self, .ruleset = rules};
	cr_assert_eq(verdict_of(&in, &result), 0);
	return result;
}

/* A call of this row about one path, whatever its shape. */
static void about(const struct sysent *ent, const char *path, uint64_t args[6])
{
	for (int i = 0; i < 6; i++)
		args[i] = ent->arg[i] == ARG_DIRFD  ? (uint64_t)AT_FDCWD
			  : ent->arg[i] == ARG_PATH ? P(path)
			  : ent->arg[i] == ARG_TEXT ? P(path)
						    : 0;
}

static char *made_file(char room[PATH_MAX])
{
	snprintf(room, PATH_MAX, "/tmp/warder-verdict-XXXXXX");
	int fd = mkstemp(room);
	cr_assert_geq(fd, 0);
	close(fd);
	return room;
}

Test(verdict, what_only_looks_is_never_the_sandbox)
{
	unsigned seen = 0;
	char file[PATH_MAX];
	allow(NULL, 0);
	made_file(file);
	for (const struct sysent *ent = sysents; ent < sysents + SYS_ID_COUNT; ent++) {
		uint64_t args[6];
		if (ent->group != SYS_GROUP_LOOK || ent->need[0] == CALL_NEED_NONE)
			continue;
		about(ent, file, args);
		struct verdict_result r = judge(ent->name, args, EACCES);
		cr_expect_eq(r.verdict, VERDICT_PERMISSIONS, "%s: %d", ent->name, r.verdict);
		cr_expect_eq(r.need[0].access, 0u, "%s", ent->name);
		verdict_release(&r);
		seen++;
	}
	cr_expect_gt(seen, 15);
	unlink(file);
}

Test(verdict, no_grant_helps_a_mount)
{
	unsigned seen = 0;
	allow("/", LLR_READ_FILE);
	for (const struct sysent *ent = sysents; ent < sysents + SYS_ID_COUNT; ent++) {
		uint64_t args[6];
		if (ent->group != SYS_GROUP_MOUNT)
			continue;
		about(ent, "/", args);
		struct verdict_result r = judge(ent->name, args, EPERM);
		cr_expect_eq(r.verdict, VERDICT_OTHER, "%s: %d", ent->name, r.verdict);
		cr_expect(r.note && strstr(r.note, "no path grant can help"), "%s", ent->name);
		verdict_release(&r);
		seen++;
	}
	cr_expect_gt(seen, 8);
}

/* The right was the descriptor's when it was opened; what is said is the path's. */
Test(verdict, a_descriptor_without_truncate)
{
	static const struct {
		uint64_t rights;
		enum verdict want;
	} rows[] = {
		{LLR_WRITE_FILE | LLR_READ_FILE, VERDICT_SANDBOX},
		{LLR_WRITE_FILE | LLR_TRUNCATE, VERDICT_OTHER},
	};
	char file[PATH_MAX];
	int fd = open(made_file(file), O_RDWR);
	for (size_t i = 0; i < 2; i++) {
		allow("/tmp", rows[i].rights);
		struct verdict_result r =
			judge("ftruncate", (uint64_t[6]){(uint64_t)fd, 7}, EACCES);
		cr_expect_eq(r.verdict, rows[i].want, "row %zu: %d", i, r.verdict);
		cr_expect_eq(r.need[0].access, ACCESS_WRITE);
		cr_assert_not_null(r.need[0].at);
		cr_expect_str_eq(r.need[0].at->real, file);
		verdict_release(&r);
	}
	close(fd);
	unlink(file);
}

/* Opened for ioctls alone it is neither read nor written. */
Test(verdict, the_fourth_access_mode)
{
	char file[PATH_MAX];
	allow(NULL, 0);
	made_file(file);
	struct verdict_result r = judge("open", (uint64_t[6]){P(file), O_ACCMODE}, EACCES);
	cr_expect_eq(r.verdict, VERDICT_OTHER, "%d", r.verdict);
	cr_expect_eq(r.need[0].access, 0u);
	verdict_release(&r);
	r = judge("open", (uint64_t[6]){P(file), O_ACCMODE | O_TRUNC}, EACCES);
	cr_expect_eq(r.verdict, VERDICT_SANDBOX, "%d", r.verdict);
	verdict_release(&r);
	unlink(file);
}

Test(verdict, a_whiteout_is_what_the_kernel_takes_it_for)
{
	static const struct {
		bool fixed;
		uint64_t rights;
		enum verdict want;
	} rows[] = {
		{true, LLR_MAKE_REG, VERDICT_OTHER},
		{true, LLR_MAKE_CHAR, VERDICT_SANDBOX},
		{false, LLR_MAKE_REG, VERDICT_SANDBOX},
		{false, LLR_MAKE_CHAR, VERDICT_OTHER},
	};
	const uint64_t args[6] = {P("/tmp/warder-no-such-name"), S_IFCHR | 0600, 0};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct llabi abi = kernel();
		abi.errata = rows[i].fixed ? abi.errata | LLABI_ERRATUM_WHITEOUT
					   : abi.errata & ~LLABI_ERRATUM_WHITEOUT;
		allow_in(&abi, "/tmp", rows[i].rights);
		struct verdict_result r = judge("mknod", args, EACCES);
		cr_expect_eq(r.verdict, rows[i].want, "row %zu: %d", i, r.verdict);
		verdict_release(&r);
	}
}

Test(verdict, an_ioctl_of_a_device_and_of_a_file)
{
	char file[PATH_MAX];
	const struct {
		const char *path;
		uint64_t rights;
		enum verdict want;
	} rows[] = {
		{"/dev/null", LLR_READ_FILE | LLR_WRITE_FILE, VERDICT_SANDBOX},
		{"/dev/null", LLR_READ_FILE | LLR_IOCTL_DEV, VERDICT_OTHER},
		{made_file(file), LLR_READ_FILE, VERDICT_PERMISSIONS},
	};
	for (size_t i = 0; i < 3; i++) {
		int fd = open(rows[i].path, O_RDONLY);
		allow(rows[i].path, rows[i].rights);
		struct verdict_result r =
			judge("ioctl", (uint64_t[6]){(uint64_t)fd, RNDGETENTCNT}, EACCES);
		cr_expect_eq(r.verdict, rows[i].want, "row %zu: %d", i, r.verdict);
		cr_expect_eq(r.need[0].access, ACCESS_IOCTL);
		verdict_release(&r);
		close(fd);
	}
	unlink(file);
}

/* Overlayfs and btrfs answer EXDEV within one mount. */
Test(verdict, exdev_that_landlock_would_not_give)
{
	char file[PATH_MAX], to[PATH_MAX + 8];
	made_file(file);
	snprintf(to, sizeof to, "%s.to", file);
	for (int granted = 0; granted < 2; granted++) {
		allow("/tmp", granted ? LLR_REFER | LLR_MAKE_REG | LLR_REMOVE_FILE : LLR_READ_DIR);
		struct verdict_result r = judge("rename", (uint64_t[6]){P(file), P(to)}, EXDEV);
		cr_expect_eq(r.verdict, granted ? VERDICT_CROSS_DEVICE : VERDICT_SANDBOX);
		verdict_release(&r);
	}
	unlink(file);
}
