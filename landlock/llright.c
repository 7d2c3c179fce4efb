#include "landlock/llright.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum kind { KIND_BOTH, KIND_DIR };

struct row {
	uint64_t bit;
	int first_abi;
	enum kind kind;
	const char *name;
	const char *help;
};

static const struct row fs_rows[] = {
#define LLR(NAME, name, bit, first_abi, kind, group, help)                                         \
	{1ULL << (bit), first_abi, KIND_##kind, #name, help},
#include "landlock/access.def"
};

static const struct row net_rows[] = {
#define LLR_NET(NAME, name, bit, first_abi, help)                                                  \
	{1ULL << (bit), first_abi, KIND_BOTH, #name, help},
#include "landlock/access.def"
};

static const struct row scope_rows[] = {
#define LLR_SCOPE(NAME, name, bit, first_abi, help)                                                \
	{1ULL << (bit), first_abi, KIND_BOTH, #name, help},
#include "landlock/access.def"
};

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static uint64_t supported(const struct row *rows, size_t n, int abi)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < n; i++)
		if (rows[i].first_abi <= abi)
			mask |= rows[i].bit;
	return mask;
}

static const struct row *find(const struct row *rows, size_t n, uint64_t bit)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].bit == bit)
			return &rows[i];
	return NULL;
}

uint64_t llright_supported(int abi)
{
	return supported(fs_rows, COUNT(fs_rows), abi);
}

uint64_t llright_net_supported(int abi)
{
	return supported(net_rows, COUNT(net_rows), abi);
}

uint64_t llright_scope_supported(int abi)
{
	return supported(scope_rows, COUNT(scope_rows), abi);
}

uint64_t llright_for_file(void)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < COUNT(fs_rows); i++)
		if (fs_rows[i].kind == KIND_BOTH)
			mask |= fs_rows[i].bit;
	return mask;
}

uint64_t llright_to_make(mode_t mode)
{
	switch (mode & S_IFMT) {
	case 0:
	case S_IFREG:
		return LLR_MAKE_REG;
	case S_IFDIR:
		return LLR_MAKE_DIR;
	case S_IFLNK:
		return LLR_MAKE_SYM;
	case S_IFCHR:
		return LLR_MAKE_CHAR;
	case S_IFBLK:
		return LLR_MAKE_BLOCK;
	case S_IFIFO:
		return LLR_MAKE_FIFO;
	case S_IFSOCK:
		return LLR_MAKE_SOCK;
	default:
		return 0;
	}
}

uint64_t llright_to_remove(mode_t mode)
{
	return S_ISDIR(mode) ? LLR_REMOVE_DIR : LLR_REMOVE_FILE;
}

int llright_first_abi(uint64_t bit)
{
	const struct row *row = find(fs_rows, COUNT(fs_rows), bit);

	return row ? row->first_abi : 0;
}

const char *llright_name(uint64_t bit)
{
	const struct row *row = find(fs_rows, COUNT(fs_rows), bit);

	return row ? row->name : NULL;
}

const char *llright_help(uint64_t bit)
{
	const struct row *row = find(fs_rows, COUNT(fs_rows), bit);

	return row ? row->help : NULL;
}

const char *llright_scope_name(uint64_t bit)
{
	const struct row *row = find(scope_rows, COUNT(scope_rows), bit);

	return row ? row->name : NULL;
}

/* Append to what fits; the length counts on regardless. */
static size_t append(char *buf, size_t n, size_t len, const char *word)
{
	const char *comma = len ? "," : "";
	size_t room = len < n ? n - len : 0;

	if (room)
		snprintf(buf + len, room, "%s%s", comma, word);
	return len + strlen(comma) + strlen(word);
}

size_t llright_format(uint64_t mask, char *buf, size_t n)
{
	uint64_t unknown = mask & ~(uint64_t)LLR_ALL;
	size_t len = 0;

	for (size_t i = 0; i < COUNT(fs_rows); i++)
		if (mask & fs_rows[i].bit)
			len = append(buf, n, len, fs_rows[i].name);
	if (unknown) {
		char hex[2 + 16 + 1];

		snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long)unknown);
		len = append(buf, n, len, hex);
	}
	if (mask == 0)
		len = append(buf, n, len, "none");
	return len;
}
