/*
 * llright: Landlock's rights as masks, generated from access.def. Pure: no system call, no memory.
 *
 * Rights travel as uint64_t masks of LLR_* bits with the kernel's own bit numbers. The constants
 * are ours because the system's <linux/landlock.h> may be years older than the running kernel
 * (Debian 12's stops at ABI 2).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* The newest ABI that access.def describes. */
#define LLRIGHT_ABI_MAX 10

enum llright {
#define LLR(NAME, name, bit, first_abi, kind, group, help) LLR_##NAME = 1 << (bit),
#define LLR_NET(NAME, name, bit, first_abi, help)	   LLR_NET_##NAME = 1 << (bit),
#define LLR_SCOPE(NAME, name, bit, first_abi, help)	   LLR_SCOPE_##NAME = 1 << (bit),
#include "landlock/access.def"
};

/* Helpers of the masks below: a row's bit if the row is of that group, else 0. */
#define LLRIGHT_IF_CONTENT_CONTENT(bit)	    (1 << (bit))
#define LLRIGHT_IF_CONTENT_STRUCTURE(bit)   0
#define LLRIGHT_IF_STRUCTURE_CONTENT(bit)   0
#define LLRIGHT_IF_STRUCTURE_STRUCTURE(bit) (1 << (bit))

enum {
	/* Every right on files that the table knows. */
	LLR_ALL = 0
#define LLR(NAME, name, bit, first_abi, kind, group, help) | (1 << (bit))
#include "landlock/access.def"
	,
	/* What is done with one file or directory: read, list, write, execute, … */
	LLR_CONTENT = 0
#define LLR(NAME, name, bit, first_abi, kind, group, help) | LLRIGHT_IF_CONTENT_##group(bit)
#include "landlock/access.def"
	,
	/* Which names exist: make_*, remove_*, refer. */
	LLR_STRUCTURE = 0
#define LLR(NAME, name, bit, first_abi, kind, group, help) | LLRIGHT_IF_STRUCTURE_##group(bit)
#include "landlock/access.def"
	,
};

/* The rights on files, the rights on ports and the scopes that an ABI has; 0 for an abi < 1. */
uint64_t llright_supported(int abi);
uint64_t llright_net_supported(int abi);
uint64_t llright_scope_supported(int abi);

/* The rights that a rule on a non-directory may carry. The kernel counts the same ones when a
 * non-directory is moved to another directory (security/landlock/fs.c, ACCESS_FILE). */
uint64_t llright_for_file(void);

/* The right over the directory that making or removing a thing of this type needs. A mode without
 * a type means a regular file, as in mknod(2). 0 for a type that Landlock does not know. */
uint64_t llright_to_make(mode_t mode);
uint64_t llright_to_remove(mode_t mode);

/* The first ABI with this right on files, 0 if `bit` is not exactly one known right. */
int llright_first_abi(uint64_t bit);

/* Static texts, NULL if `bit` is not exactly one known right (or scope). */
const char *llright_name(uint64_t bit);
const char *llright_help(uint64_t bit);
const char *llright_scope_name(uint64_t bit);

/* Write the names of the rights on files in `mask`, comma separated in the order of their bits,
 * and bits the table does not know as one hexadecimal number; "none" for 0. Always terminated when
 * n > 0. Returns the length of the whole text, as snprintf does: >= n means it was cut. */
size_t llright_format(uint64_t mask, char *buf, size_t n);
