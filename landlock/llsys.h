/*
 * llsys: Landlock's three system calls and their structures, as the kernel defines them
 * (include/uapi/linux/landlock.h, Linux 7.2). Our own, since the C library wraps none of them and
 * the system's header may be older than the kernel.
 *
 * All return -errno, never block, and are async-signal-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 48 bytes. An older kernel accepts the longer structure as long as what it does not know is 0. */
struct llsys_ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
	uint64_t quiet_access_fs;
	uint64_t quiet_access_net;
	uint64_t quiet_scoped;
};

struct llsys_path_beneath {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

/* Flags of create_ruleset(NULL, 0, flag): the ABI; the fixed errata (ABI 7, backported to some). */
#define LLSYS_CREATE_VERSION 1u
#define LLSYS_CREATE_ERRATA  2u

/* A new ruleset's descriptor (close-on-exec from birth), or, with a flag above, that number.
 * -ENOSYS: not built in. -EOPNOTSUPP: built in, but not enabled at boot. -ENOMSG: nothing handled.
 * -EINVAL: an unknown right or flag. -E2BIG: bytes that this kernel does not know are not 0. */
int llsys_create_ruleset(const struct llsys_ruleset_attr *attr, size_t size, uint32_t flags);

/* -ENOMSG: no rights. -EINVAL: a right that is not handled, or a directory's on a non-directory.
 * -EBADFD: a pipe, memfd or the like, which Landlock does not restrict. -EBADF. */
int llsys_add_path_rule(int ruleset_fd, int path_fd, uint64_t rights);

/* -E2BIG: the 17th layer. -EPERM: neither no_new_privs nor CAP_SYS_ADMIN. -EBADF, -EBADFD. */
int llsys_restrict_self(int ruleset_fd, uint32_t flags);
/* The same, with `mark` in the fifth argument, which the call does not have: for who watches it. */
int llsys_restrict_self_marked(int ruleset_fd, uint32_t flags, uint32_t mark);
