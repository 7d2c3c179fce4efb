/*
 * docs_tables DIR [--check]: the tables of docs/, generated from the .def files.
 * --check compares instead of writing: 1 and one line a stale file.
 */
#include "supervisor/access.h"
#include "tracer/buf.h"
#include "tracer/sysent.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct group {
	enum sys_group group;
	const char *title;
};

static const struct group groups[] = {
	{SYS_GROUP_WALL, "Landlock can refuse these: watched always"},
	{SYS_GROUP_META, "Attributes: no Landlock right"},
	{SYS_GROUP_CONNECT, "Unix sockets by path: no Landlock right before ABI 9"},
	{SYS_GROUP_MOUNT, "Mounts: EPERM in every Landlock domain that handles files"},
	{SYS_GROUP_GUARD, "Not about paths: the supervisor must see or refuse them"},
	{SYS_GROUP_LOOK, "Never refused by Landlock"},
};

static void cell_nr(struct buf *b, int nr)
{
	if (nr < 0)
		buf_add_str(b, " – |");
	else
		buf_addf(b, " %d |", nr);
}

static void syscalls(struct buf *b)
{
	buf_add_str(
		b,
		"# System calls\n\nGenerated from `tracer/syscalls.def` by `./dev docs`. To add a "
		"call, add a row there.\n");
	for (size_t g = 0; g < ARRAY_LEN(groups); g++) {
		buf_addf(b,
			 "\n## %s\n\n| call | x86-64 | i386 | aarch64 | what it does |\n"
			 "|---|---|---|---|---|\n",
			 groups[g].title);
		for (size_t i = 0; i < SYS_ID_COUNT; i++) {
			const struct sysent *e = &sysents[i];
			if (e->group != groups[g].group)
				continue;
			buf_addf(b, "| `%s` |", e->name);
			for (int a = 0; a < SYS_ARCH_COUNT; a++)
				cell_nr(b, e->nr[a]);
			buf_addf(b, " %s |\n", e->help);
		}
	}
}

static void accesses(struct buf *b)
{
	static const struct {
		const char *name;
		char letter;
		const char *help;
	} rows[] = {
#define ACCESS(NAME, name, letter, rights, help) {#name, letter, help},
#include "supervisor/access.def"
#undef ACCESS
	};
	buf_add_str(b, "# Accesses\n\nGenerated from `supervisor/access.def` by `./dev docs`.\n\n"
		       "| access | letter | covers |\n|---|---|---|\n");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		buf_addf(b, "| `%s` | %c | %s |\n", rows[i].name,
			 rows[i].letter ? rows[i].letter : '-', rows[i].help);
}

static void rights(struct buf *b)
{
	buf_add_str(b,
		    "# Landlock rights\n\nGenerated from `landlock/access.def` by `./dev docs`.\n\n"
		    "| right | bit | since ABI | may stand on | group | what it is about |\n"
		    "|---|---|---|---|---|---|\n");
#define LLR(NAME, name, bit, first_abi, kind, group, help)                                         \
	buf_addf(b, "| `%s` | %d | %d | %s | %s | %s |\n", #name, bit, first_abi,                  \
		 !strcmp(#kind, "DIR") ? "directories" : "files and directories",                  \
		 !strcmp(#group, "CONTENT") ? "content" : "structure", help);
#include "landlock/access.def"
#undef LLR
}

static const struct page {
	const char *name;
	void (*write)(struct buf *b);
} pages[] = {{"syscalls.md", syscalls}, {"accesses.md", accesses}, {"rights.md", rights}};

static int read_old(const char *file, struct buf *ret)
{
	char chunk[4096];
	size_t n;
	FILE *f = fopen(file, "re");
	if (!f)
		return -errno;
	while ((n = fread(chunk, 1, sizeof chunk, f)))
		buf_add(ret, chunk, n);
	int err = ferror(f) ? -EIO : buf_error(ret);
	fclose(f);
	return err;
}

static int check(const char *file, const struct buf *want)
{
	struct buf old = {0};
	int err = read_old(file, &old);
	bool same = !err && old.len == want->len && !memcmp(buf_str(&old), buf_str(want), old.len);
	buf_free(&old);
	if (!same)
		fprintf(stderr, "%s is stale: run ./dev docs\n", file);
	return same ? 0 : 1;
}

static int put(const char *file, const struct buf *text)
{
	FILE *f = fopen(file, "we");
	bool ok = f && fwrite(buf_str(text), 1, text->len, f) == text->len;
	if (f && fclose(f))
		ok = false;
	if (!ok)
		fprintf(stderr, "%s: %s\n", file, strerror(errno));
	return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
	bool checking = argc == 3 && !strcmp(argv[2], "--check");
	if (argc != 2 && !checking) {
		fputs("usage: docs_tables DIR [--check]\n", stderr);
		return 2;
	}
	int status = 0;
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		struct buf text = {0}, file = {0};
		pages[i].write(&text);
		buf_addf(&file, "%s/%s", argv[1], pages[i].name);
		status |= checking ? check(buf_str(&file), &text) : put(buf_str(&file), &text);
		buf_free(&text);
		buf_free(&file);
	}
	return status;
}
