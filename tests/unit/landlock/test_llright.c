/* The table's own consistency, and what derives from it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "landlock/llright.h"

struct row {
	int bit;
	int first_abi;
	int on_file;
	int content;
	const char *name;
};

#define KIND_BOTH	1
#define KIND_DIR	0
#define GROUP_CONTENT	1
#define GROUP_STRUCTURE 0

static const struct row fs_rows[] = {
#define LLR(NAME, name, bit, first_abi, kind, group, help)                                         \
	{bit, first_abi, KIND_##kind, GROUP_##group, #name},
#include "landlock/access.def"
};
static const struct row net_rows[] = {
#define LLR_NET(NAME, name, bit, first_abi, help) {bit, first_abi, 0, 0, #name},
#include "landlock/access.def"
};
static const struct row scope_rows[] = {
#define LLR_SCOPE(NAME, name, bit, first_abi, help) {bit, first_abi, 0, 0, #name},
#include "landlock/access.def"
};

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static void dense(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		cr_expect_eq(rows[i].bit, (int)i, "%s stands at bit %d, not %zu", rows[i].name,
			     rows[i].bit, i);
		cr_expect(rows[i].first_abi >= 1 && rows[i].first_abi <= LLRIGHT_ABI_MAX);
		if (i > 0)
			cr_expect_geq(rows[i].first_abi, rows[i - 1].first_abi, "%s", rows[i].name);
		for (size_t j = 0; j < i; j++)
			cr_expect_str_neq(rows[i].name, rows[j].name);
	}
}

Test(llright, bits_are_dense_and_abis_never_decrease)
{
	dense(fs_rows, COUNT(fs_rows));
	dense(net_rows, COUNT(net_rows));
	dense(scope_rows, COUNT(scope_rows));
}

/* The kernel's numbers, written once more by hand from its header. */
Test(llright, the_kernels_numbers)
{
	static const struct {
		int abi;
		uint64_t fs, net, scoped;
	} table[] = {
		{0, 0, 0, 0},	       {1, 0x1fff, 0, 0},     {2, 0x3fff, 0, 0},
		{3, 0x7fff, 0, 0},     {4, 0x7fff, 0x3, 0},   {5, 0xffff, 0x3, 0},
		{6, 0xffff, 0x3, 0x3}, {7, 0xffff, 0x3, 0x3}, {8, 0xffff, 0x3, 0x3},
		{9, 0x1ffff, 0x3, 3},  {10, 0x1ffff, 0xf, 3}, {99, 0x1ffff, 0xf, 3},
		{-1, 0, 0, 0},
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		cr_expect_eq(llright_supported(table[i].abi), table[i].fs, "abi %d", table[i].abi);
		cr_expect_eq(llright_net_supported(table[i].abi), table[i].net);
		cr_expect_eq(llright_scope_supported(table[i].abi), table[i].scoped);
	}
	cr_expect_eq(LLR_EXECUTE, 1);
	cr_expect_eq(LLR_READ_FILE, 4);
	cr_expect_eq(LLR_MAKE_REG, 0x100);
	cr_expect_eq(LLR_REFER, 0x2000);
	cr_expect_eq(LLR_TRUNCATE, 0x4000);
	cr_expect_eq(LLR_SCOPE_SIGNAL, 2);
	cr_expect_eq(LLR_NET_CONNECT_TCP, 2);
}

Test(llright, masks_follow_the_table)
{
	uint64_t all = 0, file = 0, content = 0;

	for (size_t i = 0; i < COUNT(fs_rows); i++) {
		uint64_t bit = 1ULL << fs_rows[i].bit;

		all |= bit;
		file |= fs_rows[i].on_file ? bit : 0;
		content |= fs_rows[i].content ? bit : 0;
		cr_expect_str_eq(llright_name(bit), fs_rows[i].name);
		cr_expect_not_null(llright_help(bit));
		cr_expect_eq(llright_first_abi(bit), fs_rows[i].first_abi);
	}
	cr_expect_eq(LLR_ALL, all);
	cr_expect_eq(llright_for_file(), file);
	cr_expect_eq(LLR_CONTENT, content);
	cr_expect_eq(LLR_STRUCTURE, all & ~content);
	cr_expect_eq(llright_supported(LLRIGHT_ABI_MAX), all);
	cr_expect_eq(LLR_CONTENT, LLR_EXECUTE | LLR_WRITE_FILE | LLR_READ_FILE | LLR_READ_DIR |
					  LLR_TRUNCATE | LLR_IOCTL_DEV | LLR_RESOLVE_UNIX);
	cr_expect_eq(llright_for_file(), (uint64_t)(LLR_CONTENT & ~LLR_READ_DIR));
}

Test(llright, names_of_one_bit_only)
{
	cr_expect_null(llright_name(0));
	cr_expect_null(llright_name(LLR_READ_FILE | LLR_READ_DIR));
	cr_expect_null(llright_name(1ULL << 63));
	cr_expect_null(llright_help(0));
	cr_expect_eq(llright_first_abi(0), 0);
	cr_expect_str_eq(llright_scope_name(LLR_SCOPE_SIGNAL), "signal");
	cr_expect_null(llright_scope_name(3));
}

Test(llright, what_making_and_removing_needs)
{
	static const struct {
		mode_t mode;
		uint64_t make, remove;
	} table[] = {
		{0644, LLR_MAKE_REG, LLR_REMOVE_FILE},
		{S_IFREG | 0644, LLR_MAKE_REG, LLR_REMOVE_FILE},
		{S_IFDIR | 0755, LLR_MAKE_DIR, LLR_REMOVE_DIR},
		{S_IFLNK, LLR_MAKE_SYM, LLR_REMOVE_FILE},
		{S_IFCHR, LLR_MAKE_CHAR, LLR_REMOVE_FILE},
		{S_IFBLK, LLR_MAKE_BLOCK, LLR_REMOVE_FILE},
		{S_IFIFO, LLR_MAKE_FIFO, LLR_REMOVE_FILE},
		{S_IFSOCK, LLR_MAKE_SOCK, LLR_REMOVE_FILE},
		{S_IFMT, 0, LLR_REMOVE_FILE},
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		cr_expect_eq(llright_to_make(table[i].mode), table[i].make, "%o", table[i].mode);
		cr_expect_eq(llright_to_remove(table[i].mode), table[i].remove, "%o",
			     table[i].mode);
	}
}

Test(llright, format)
{
	static const struct {
		uint64_t mask;
		const char *text;
	} table[] = {
		{0, "none"},
		{LLR_READ_FILE, "read_file"},
		{LLR_READ_DIR | LLR_EXECUTE, "execute,read_dir"},
		{LLR_REFER | 1ULL << 40, "refer,0x10000000000"},
		{1ULL << 63, "0x8000000000000000"},
	};
	char buf[256];

	for (size_t i = 0; i < COUNT(table); i++) {
		size_t len = llright_format(table[i].mask, buf, sizeof(buf));

		cr_expect_str_eq(buf, table[i].text);
		cr_expect_eq(len, strlen(table[i].text));
	}
}

Test(llright, format_never_writes_past_the_end)
{
	char whole[512], buf[512];
	size_t len = llright_format(UINT64_MAX, whole, sizeof(whole));

	cr_assert_lt(len, sizeof(whole));
	cr_expect_eq(len, strlen(whole));
	for (size_t n = 0; n <= len + 1; n++) {
		memset(buf, '#', sizeof(buf));
		cr_expect_eq(llright_format(UINT64_MAX, buf, n), len);
		for (size_t i = n; i < sizeof(buf); i++)
			cr_assert_eq(buf[i], '#', "n %zu wrote at %zu", n, i);
		if (n > 0) {
			cr_expect_eq(strlen(buf), n - 1);
			cr_expect_eq(strncmp(buf, whole, n - 1), 0);
		}
	}
	cr_expect_eq(llright_format(LLR_EXECUTE, NULL, 0), strlen("execute"));
}
