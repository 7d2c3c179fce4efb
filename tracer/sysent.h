/*
 * sysent: the rows of syscalls.def as data: enum, names, numbers, argument kinds.
 * To add a call, add a row there; everything else (decoding, BPF filter, names, docs) derives.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum sys_arch { SYS_ARCH_X86_64, SYS_ARCH_I386, SYS_ARCH_AARCH64, SYS_ARCH_COUNT };

/* What an argument is. */
enum arg_kind {
	ARG_NONE,
	ARG_INT,
	ARG_FD,
	ARG_FILE,  /* a descriptor that stands for a path: what is done is done to its file */
	ARG_DIRFD, /* belongs to the next ARG_PATH; the low 32 bits, AT_FDCWD or a descriptor */
	ARG_PATH,
	ARG_TEXT,   /* a string that is not looked up (symlink's target) */
	ARG_OFLAGS, /* O_* */
	ARG_HOW,    /* struct open_how * */
	ARG_MODE,
	ARG_DEV,
	ARG_ATFLAGS, /* AT_* or RENAME_* */
	ARG_LENGTH,
	ARG_PTR,
	ARG_SIZE,
	ARG_SOCKADDR,
	ARG_KIND_COUNT,
};

/* What a call does to the thing its path names (the policy's accesses follow from it). */
enum call_need {
	CALL_NEED_NONE,
	CALL_NEED_OPEN, /* by the open flags */
	CALL_NEED_EXEC,
	CALL_NEED_TRUNCATE,
	CALL_NEED_MKDIR,
	CALL_NEED_MKNOD, /* by the mode's type */
	CALL_NEED_SYMLINK,
	CALL_NEED_BIND,
	CALL_NEED_UNLINK, /* a file, or with AT_REMOVEDIR a directory */
	CALL_NEED_RMDIR,
	CALL_NEED_MOVE_FROM,
	CALL_NEED_MOVE_TO,
	CALL_NEED_LINK_FROM,
	CALL_NEED_LINK_TO,
	CALL_NEED_IOCTL,
	CALL_NEED_META,
	CALL_NEED_CONNECT,
	CALL_NEED_LOOK, /* stat, access, readlink, chdir: Landlock never refuses it */
	CALL_NEED_COUNT,
};

/* Which calls a filter watches; a row is in exactly one. */
enum sys_group {
	SYS_GROUP_WALL,	   /* Landlock can refuse it by path: always watched */
	SYS_GROUP_META,	   /* changes attributes: no Landlock right */
	SYS_GROUP_CONNECT, /* unix sockets by path: no Landlock right before ABI 9 */
	SYS_GROUP_LOOK,	   /* never refused by Landlock; watched for recording only */
	SYS_GROUP_MOUNT,   /* EPERM in any Landlock domain that handles files */
	SYS_GROUP_QUEUE,   /* POSIX message queues: EACCES in any such domain */
	SYS_GROUP_GUARD,   /* not about paths: the supervisor must see or refuse it (clone,
			      io_uring_setup, ptrace...) */
	SYS_GROUP_COUNT,
};

enum sys_id {
#define SC(name, ...) SYS_ID_##name,
#include "tracer/syscalls.def"
#undef SC
	SYS_ID_COUNT,
};

struct sysent {
	const char *name;
	const char *help;
	int16_t nr[SYS_ARCH_COUNT]; /* -1: the architecture has no such call */
	uint8_t group;
	uint8_t arg[6];
	uint8_t need[2]; /* of the first and second path */
	int8_t mark;	 /* the int argument whose upper half the kernel never reads; -1: none */
};

extern const struct sysent sysents[SYS_ID_COUNT];

/* The row of a number, or NULL. */
const struct sysent *sysent_by_nr(enum sys_arch arch, int64_t nr);
const struct sysent *sysent_by_name(const char *name);
enum sys_id sysent_id(const struct sysent *ent);

/* What i386's socketcall(2) is by its first argument; only those that some group watches. */
struct sysent_part {
	uint32_t number;
	enum sys_id id;
	unsigned args; /* 32-bit words in memory, at socketcall's second argument */
};

#define SYSENT_PARTS 7
extern const struct sysent_part sysent_parts[SYSENT_PARTS];
