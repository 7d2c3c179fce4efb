#include "tracer/sysent.h"

#include <linux/net.h>
#include <string.h>

/* Highest number in the table; a row above it does not compile (excess index). */
#define SYSENT_NR_MAX 511

const struct sysent sysents[SYS_ID_COUNT] = {
#define SC(name_, x86_64_, i386_, aarch64_, group_, a0, a1, a2, a3, a4, a5, n1, n2, mark_, help_)  \
	[SYS_ID_##name_] = {                                                                       \
		.name = #name_,                                                                    \
		.help = help_,                                                                     \
		.nr = {[SYS_ARCH_X86_64] = x86_64_,                                                \
		       [SYS_ARCH_I386] = i386_,                                                    \
		       [SYS_ARCH_AARCH64] = aarch64_},                                             \
		.group = SYS_GROUP_##group_,                                                       \
		.arg = {ARG_##a0, ARG_##a1, ARG_##a2, ARG_##a3, ARG_##a4, ARG_##a5},               \
		.need = {CALL_NEED_##n1, CALL_NEED_##n2},                                          \
		.mark = mark_,                                                                     \
	},
#include "tracer/syscalls.def"
#undef SC
};

/*
 * Number -> row + 1. A row without a number gets a slot of its own behind the numbers, so a number
 * listed twice, and nothing else, initializes a slot twice (-Werror=override-init).
 */
#define SLOT(name, nr) [(nr) < 0 ? SYSENT_NR_MAX + 1 + SYS_ID_##name : (nr)] = SYS_ID_##name + 1
#define SLOTS	       (SYSENT_NR_MAX + 1 + SYS_ID_COUNT)

static const uint8_t by_nr[SYS_ARCH_COUNT][SLOTS] = {
	[SYS_ARCH_X86_64] =
		{
#define SC(name, x86_64, ...) SLOT(name, x86_64),
#include "tracer/syscalls.def"
#undef SC
		},
	[SYS_ARCH_I386] =
		{
#define SC(name, x86_64, i386, ...) SLOT(name, i386),
#include "tracer/syscalls.def"
#undef SC
		},
	[SYS_ARCH_AARCH64] =
		{
#define SC(name, x86_64, i386, aarch64, ...) SLOT(name, aarch64),
#include "tracer/syscalls.def"
#undef SC
		},
};

_Static_assert(SYS_ID_COUNT < UINT8_MAX, "by_nr needs a wider type");

const struct sysent *sysent_by_nr(enum sys_arch arch, int64_t nr)
{
	if (arch >= SYS_ARCH_COUNT || nr < 0 || nr > SYSENT_NR_MAX)
		return NULL;
	unsigned slot = by_nr[arch][nr];
	return slot ? &sysents[slot - 1] : NULL;
}

const struct sysent *sysent_by_name(const char *name)
{
	for (unsigned i = 0; i < SYS_ID_COUNT; i++)
		if (strcmp(sysents[i].name, name) == 0)
			return &sysents[i];
	return NULL;
}

enum sys_id sysent_id(const struct sysent *ent)
{
	return (enum sys_id)(ent - sysents);
}

const struct sysent_part sysent_parts[SYSENT_PARTS] = {
	{SYS_BIND, SYS_ID_bind, 3},
	{SYS_CONNECT, SYS_ID_connect, 3},
	{SYS_SENDTO, SYS_ID_sendto, 6},
	{SYS_SENDMSG, SYS_ID_sendmsg, 3},
	{SYS_SENDMMSG, SYS_ID_sendmmsg, 4},
	{SYS_SOCKET, SYS_ID_socket, 3},
	{SYS_SOCKETPAIR, SYS_ID_socketpair, 4},
};
