#include "tracer/sysent.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The table's numbers against a kernel header's, name by name. */
static void compare(const char *header, const char *prefix, enum sys_arch arch, unsigned at_least)
{
	char line[256], name[64], want[64];
	unsigned found = 0;
	int nr;
	FILE *f = fopen(header, "re");

	if (!f)
		cr_skip("no %s here", header);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "#define %63s %d", name, &nr) != 2 ||
		    strncmp(name, prefix, 5) != 0)
			continue;
		snprintf(want, sizeof(want), "%s", name + strlen(prefix));
		const struct sysent *ent = sysent_by_name(want);
		if (!ent || (arch == SYS_ARCH_AARCH64 && strstr(want, "time64")))
			continue;
		cr_expect_eq(ent->nr[arch], nr, "%s is %d, not %d", want, nr, ent->nr[arch]);
		found++;
	}
	fclose(f);
	cr_expect(found >= at_least, "only %u calls found", found);
}

Test(sysent, numbers_of_x86_64)
{
	compare("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "__NR_", SYS_ARCH_X86_64, 80);
}

Test(sysent, numbers_of_i386)
{
	compare("/usr/include/x86_64-linux-gnu/asm/unistd_32.h", "__NR_", SYS_ARCH_I386, 90);
}

/* arm64 has the generic numbers, without those for 32-bit machines (its asm/unistd.h). */
Test(sysent, numbers_of_aarch64)
{
	compare("/usr/include/asm-generic/unistd.h", "__NR_", SYS_ARCH_AARCH64, 55);
}

Test(sysent, by_number_and_by_name)
{
	for (int arch = 0; arch < SYS_ARCH_COUNT; arch++) {
		for (int id = 0; id < SYS_ID_COUNT; id++) {
			const struct sysent *ent = &sysents[id];
			cr_expect_eq(sysent_by_name(ent->name), ent);
			cr_expect_eq((int)sysent_id(ent), id);
			if (ent->nr[arch] >= 0)
				cr_expect_eq(sysent_by_nr((enum sys_arch)arch, ent->nr[arch]), ent);
		}
		cr_expect_null(sysent_by_nr((enum sys_arch)arch, -1));
		cr_expect_null(sysent_by_nr((enum sys_arch)arch, 512));
		cr_expect_null(sysent_by_nr((enum sys_arch)arch, 1ll << 40));
	}
	cr_expect_null(sysent_by_nr(SYS_ARCH_X86_64, 0)); /* read */
	cr_expect_null(sysent_by_nr(SYS_ARCH_COUNT, 2));
	cr_expect_null(sysent_by_name("read"));
}

static unsigned count(const struct sysent *ent, enum arg_kind kind)
{
	unsigned n = 0;

	for (int i = 0; i < 6; i++)
		n += ent->arg[i] == kind;
	return n;
}

/* What decoding and the filter rely on in every row. */
Test(sysent, rows_are_whole)
{
	for (int id = 0; id < SYS_ID_COUNT; id++) {
		const struct sysent *ent = &sysents[id];
		unsigned paths =
			count(ent, ARG_PATH) + count(ent, ARG_SOCKADDR) + count(ent, ARG_FILE);
		unsigned needs =
			(ent->need[0] != CALL_NEED_NONE) + (ent->need[1] != CALL_NEED_NONE);

		cr_expect_eq(paths, needs, "%s: %u paths, %u needs", ent->name, paths, needs);
		cr_expect(ent->help[0] != '\0', "%s", ent->name);
		cr_expect(ent->mark < 6, "%s", ent->name);
		if (ent->mark >= 0) {
			int kind = ent->arg[ent->mark];
			cr_expect(kind == ARG_INT || kind == ARG_FD || kind == ARG_DIRFD ||
					  kind == ARG_OFLAGS || kind == ARG_MODE ||
					  kind == ARG_ATFLAGS,
				  "%s: the kernel reads all of argument %d", ent->name, ent->mark);
		}
		for (int i = 0; i < 5; i++)
			if (ent->arg[i] == ARG_DIRFD)
				cr_expect_eq(ent->arg[i + 1], ARG_PATH, "%s", ent->name);
	}
}
