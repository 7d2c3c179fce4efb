/* Decoding, with this process's own memory as the tracee's. */
#include "tracer/call.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define P(s) ((uint64_t)(uintptr_t)(s))

static struct call decode(const char *name, enum sys_arch arch, const uint64_t args[6])
{
	struct call c = {.ent = sysent_by_name(name), .arch = arch};

	cr_assert_not_null(c.ent);
	memcpy(c.args, args, sizeof(c.args));
	cr_assert_eq(call_decode(&c, (struct call_view){.tid = getpid(), .tgid = getpid()}), 0);
	return c;
}

Test(call, dirfd_is_the_low_half)
{
	const uint64_t fds[] = {0xffffffffffffff9cull, 0x00000000ffffff9cull,
				0x12345678ffffff9cull};

	for (size_t i = 0; i < 3; i++) {
		struct call c = decode("openat", SYS_ARCH_X86_64,
				       (uint64_t[6]){fds[i], P("name"), O_RDWR | 7ull << 32, 0600});
		cr_expect_eq(c.path[0].dirfd, AT_FDCWD);
		cr_expect_str_eq(c.path[0].given, "name");
		cr_expect_eq(c.open_flags, (uint64_t)O_RDWR);
		cr_expect_eq(c.mode, 0600u);
		cr_expect_eq(c.path[1].need, CALL_NEED_NONE);
		call_release(&c);
	}
}

Test(call, the_special_ones)
{
	struct open_how how = {.flags = O_CREAT | O_WRONLY, .mode = 0640, .resolve = 8};
	struct call c;

	c = decode("openat2", SYS_ARCH_X86_64, (uint64_t[6]){7, P("x"), P(&how), sizeof(how)});
	cr_expect(c.open_flags == how.flags && c.mode == 0640 && c.open_resolve == 8);
	cr_expect_eq(c.path[0].dirfd, 7);
	call_release(&c);
	c = decode("creat", SYS_ARCH_X86_64, (uint64_t[6]){P("x"), 0644});
	cr_expect_eq(c.open_flags, (uint64_t)(O_CREAT | O_WRONLY | O_TRUNC));
	call_release(&c);
	c = decode("symlinkat", SYS_ARCH_X86_64, (uint64_t[6]){P("text"), 5, P("x")});
	cr_expect(strcmp(c.target, "text") == 0 && c.path[0].dirfd == 5);
	cr_expect_str_eq(c.path[0].given, "x");
	call_release(&c);
	c = decode("renameat2", SYS_ARCH_X86_64, (uint64_t[6]){5, P("a"), 6, P("b"), 2});
	cr_expect(c.path[0].dirfd == 5 && c.path[1].dirfd == 6 && c.at_flags == 2);
	cr_expect(!strcmp(c.path[0].given, "a") && !strcmp(c.path[1].given, "b"));
	cr_expect(c.path[0].need == CALL_NEED_MOVE_FROM && c.path[1].need == CALL_NEED_MOVE_TO);
	call_release(&c);
	c = decode("truncate64", SYS_ARCH_I386, (uint64_t[6]){P("x"), 0x89abcdef, 0x1234567});
	cr_expect_eq(c.length, 0x123456789abcdefull);
	call_release(&c);
	c = decode("ftruncate64", SYS_ARCH_I386,
		   (uint64_t[6]){7 | 1ull << 32, 0x89abcdef, 0x1234567});
	cr_expect(c.path[0].dirfd == 7 && c.length == 0x123456789abcdefull);
	cr_expect_str_eq(c.path[0].given, "");
	call_release(&c);
	c = decode("openat2", SYS_ARCH_X86_64, (uint64_t[6]){7, P("x"), P(&how), 8});
	cr_expect(c.open_flags == how.flags && c.mode == 0 && c.open_resolve == 0);
	call_release(&c);
	c = decode("open", SYS_ARCH_X86_64, (uint64_t[6]){0, O_RDONLY});
	cr_expect(c.path[0].given == NULL && c.path[0].error == -EFAULT);
	cr_expect_eq(call_resolve(&c, (struct call_view){.tid = getpid(), .tgid = getpid()}), 0);
	call_release(&c);
}

Test(call, addresses)
{
	struct sockaddr_un un = {AF_UNIX, "/tmp/socket"};
	const size_t head = offsetof(struct sockaddr_un, sun_path);
	struct call c;

	c = decode("bind", SYS_ARCH_X86_64, (uint64_t[6]){3, P(&un), sizeof(un)});
	cr_expect_str_eq(c.path[0].given, "/tmp/socket");
	cr_expect_eq(c.path[0].need, CALL_NEED_BIND);
	call_release(&c);
	c = decode("bind", SYS_ARCH_X86_64, (uint64_t[6]){3, P(&un), head + 4}); /* no NUL within */
	cr_expect_str_eq(c.path[0].given, "/tmp");
	call_release(&c);
	un.sun_path[0] = '\0'; /* abstract */
	c = decode("bind", SYS_ARCH_X86_64, (uint64_t[6]){3, P(&un), sizeof(un)});
	cr_expect(c.path[0].given == NULL && c.path[0].need == CALL_NEED_NONE);
	call_release(&c);
	un.sun_family = AF_INET;
	c = decode("bind", SYS_ARCH_X86_64, (uint64_t[6]){3, P(&un), 16});
	cr_expect_eq(c.path[0].need, CALL_NEED_NONE);
	call_release(&c);
	const uint64_t sizes[] = {0, 1, head, 4096, UINT64_MAX};
	for (size_t i = 0; i < 5; i++) {
		c = decode("bind", SYS_ARCH_X86_64, (uint64_t[6]){3, P(&un), sizes[i]});
		cr_expect_eq(c.path[0].need, CALL_NEED_NONE);
		call_release(&c);
	}
}

Test(call, follows)
{
	static const struct {
		const char *name;
		uint64_t flags; /* of open, or AT_* */
		bool first, second;
	} rows[] = {
		{"openat", O_RDONLY, true, false},
		{"openat", O_NOFOLLOW, false, false},
		{"openat", O_CREAT, true, false},
		{"openat", O_CREAT | O_EXCL, false, false},
		{"execve", 0, true, false},
		{"execveat", AT_SYMLINK_NOFOLLOW, false, false},
		{"truncate", 0, true, false},
		{"mkdirat", 0, false, false},
		{"unlinkat", 0, false, false},
		{"renameat2", 0, false, false},
		{"linkat", 0, false, false},
		{"linkat", AT_SYMLINK_FOLLOW, true, false},
		{"symlinkat", 0, false, false},
		{"chmod", 0, true, false},
		{"lchown", 0, false, false},
		{"fchownat", AT_SYMLINK_NOFOLLOW, false, false},
		{"stat", 0, true, false},
		{"lstat", 0, false, false},
		{"readlinkat", 0, false, false},
		{"name_to_handle_at", 0, false, false},
		{"name_to_handle_at", AT_SYMLINK_FOLLOW, true, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct sysent *ent = sysent_by_name(rows[i].name);
		struct call c = {.ent = ent, .open_flags = rows[i].flags};
		c.at_flags = ent->need[0] == CALL_NEED_OPEN ? 0 : (uint32_t)rows[i].flags;
		c.path[0].need = (enum call_need)ent->need[0];
		c.path[1].need = (enum call_need)ent->need[1];
		cr_expect_eq(call_follows(&c, 0), rows[i].first, "row %zu: %s", i, rows[i].name);
		cr_expect_eq(call_follows(&c, 1), rows[i].second, "row %zu: %s", i, rows[i].name);
	}
}
