/*
 * llabi: which Landlock this kernel has. Asks the kernel each time and remembers nothing; never
 * blocks.
 */
#pragma once

#include <stdint.h>

/* Fixed errata, as bits of llabi.errata (Documentation/userspace-api/landlock.rst). A kernel that
 * can't be asked (before ABI 7, unless backported) has none set. */
#define LLABI_ERRATUM_TCP_SOCKET    (1u << 0) /* only TCP sockets count as TCP */
#define LLABI_ERRATUM_SCOPED_SIGNAL (1u << 1) /* threads of one process may signal each other */
#define LLABI_ERRATUM_DISCONNECTED  (1u << 2) /* a disconnected directory's old mount counts */
#define LLABI_ERRATUM_WHITEOUT	    (1u << 3) /* a whiteout needs make_reg */

struct llabi {
	int abi; /* 1…LLRIGHT_ABI_MAX: the kernel's, or the newest we know if that is older */
	uint32_t errata; /* LLABI_ERRATUM_*: fixed in this kernel */
	uint64_t fs;	 /* the rights and scopes that this ABI has */
	uint64_t net;
	uint64_t scoped;
};

/* The kernel's ABI (>= 1, not clamped), -ENOSYS: Landlock is not built into this kernel (or a
 * seccomp filter says so), -EOPNOTSUPP: it is built in but not enabled (lsm= at boot). */
int llabi_probe(void);

/* 0, or -EINVAL: this kernel can't be asked (then none may be assumed to be fixed), or as probe. */
int llabi_errata(uint32_t *ret);

/* What abi N has, without asking the kernel: errata is 0. N is clamped to LLRIGHT_ABI_MAX; N < 1
 * has no rights at all. */
struct llabi llabi_of(int abi);

/* Fill *ret from the running kernel; 0, or the error of llabi_probe and *ret untouched. */
int llabi_detect(struct llabi *ret);
