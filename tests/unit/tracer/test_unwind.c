#include "tracer/ehscan.h"
#include "tracer/elfsym.h"
#include "tracer/objmap.h"
#include "tracer/unwind.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

TestSuite(unwind, .timeout = 60);

/* ---- symbols ---- */

__attribute__((noinline)) int a_function_of_this_test(int n);
__attribute__((noinline)) int a_function_of_this_test(int n)
{
	return n * 3;
}

static int first_bias(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = info->dlpi_addr;
	return 1;
}

static uint64_t own_bias(void)
{
	uint64_t bias = 0;
	dl_iterate_phdr(first_bias, &bias);
	return bias;
}

Test(unwind, names_come_from_the_symbol_table)
{
	int fd AUTOCLOSE = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const struct elfsym_image image = {.fd = fd};
	uint64_t start = (uint64_t)&a_function_of_this_test - own_bias();
	struct elfsym_want want[] = {
		{.addr = start + 1}, {.addr = 0}, {.addr = UINT64_MAX}, {.addr = start}};
	elfsym_find(&image, want, ARRAY_LEN(want));
	for (size_t i = 0; i < ARRAY_LEN(want); i += 3) {
		cr_assert(want[i].found);
		cr_assert_str_eq(want[i].name, "a_function_of_this_test");
		cr_assert_eq(want[i].start, start);
	}
	cr_assert(!want[1].found && !want[2].found);
	uint64_t addr = 0, size = 0;
	cr_assert(elfsym_section(&image, ".text", &addr, &size));
	cr_assert(start >= addr && start < addr + size);
	cr_assert(!elfsym_section(&image, ".none", &addr, &size));
}

/* The header and the section headers decide where everything is looked for: each with other bytes.
 */
Test(unwind, a_spoiled_file_is_survived)
{
	static char file[8u << 20];
	unsigned seed = 7;
	int own AUTOCLOSE = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t n = pread(own, file, sizeof(file), 0);
	cr_assert_gt(n, 4096);
	struct stat st;
	cr_assert_eq(fstat(own, &st), 0);
	int fd AUTOCLOSE = memfd_create("spoiled", MFD_CLOEXEC);
	const struct elfsym_image image = {.fd = fd};
	cr_assert_eq(pwrite(fd, file, (size_t)n, 0), n);
	cr_assert_eq(ftruncate(fd, st.st_size), 0);
	const ElfW(Ehdr) *h = (void *)file;
	char headers[64 * 64], good[sizeof(headers)];
	size_t headers_len = (size_t)h->e_shnum * sizeof(ElfW(Shdr));
	cr_assert_leq(headers_len, sizeof(good));
	cr_assert_eq(pread(own, good, headers_len, (off_t)h->e_shoff), (ssize_t)headers_len);
	for (int i = 0; i < 300; i++) {
		char ehdr[sizeof(*h)];
		struct elfsym_want want = {.addr = (uint64_t)&a_function_of_this_test - own_bias()};
		uint64_t addr, size;
		memcpy(ehdr, file, sizeof(ehdr));
		memcpy(headers, good, headers_len);
		for (int k = 0; k < 1 + i % 4; k++) {
			headers[(size_t)rand_r(&seed) % headers_len] = (char)rand_r(&seed);
			if (i % 3 == 0)
				ehdr[16 + rand_r(&seed) % 48] = (char)rand_r(&seed);
		}
		cr_assert_eq(pwrite(fd, ehdr, sizeof(ehdr), 0), (ssize_t)sizeof(ehdr));
		cr_assert_eq(pwrite(fd, headers, headers_len, (off_t)h->e_shoff),
			     (ssize_t)headers_len);
		elfsym_find(&image, &want, 1);
		cr_assert(!want.found || memchr(want.name, '\0', sizeof(want.name)));
		elfsym_section(&image, ".eh_frame", &addr, &size);
	}
}

Test(unwind, the_cache_is_bounded_and_knows_a_changed_file)
{
	struct elfsym_cache *c AUTOFREE = calloc(1, sizeof(*c));
	struct elfsym_known k = {.id = {1, 2, 3, 4}, .name = "f"};
	for (uint64_t i = 0; i < ELFSYM_CACHE_SIZE + 10; i++) {
		k.addr = i;
		elfsym_cache_add(c, &k);
	}
	cr_assert_null(elfsym_cache_find(c, &k.id, 9), "the oldest went");
	cr_assert(elfsym_cache_find(c, &k.id, 10) && elfsym_cache_find(c, &k.id, k.addr));
	struct elfsym_id changed = k.id;
	changed.changed_ns++;
	cr_assert_null(elfsym_cache_find(c, &changed, k.addr));
	k.id.ino = 0;
	k.addr = 1u << 20;
	elfsym_cache_add(c, &k);
	cr_assert_null(elfsym_cache_find(c, &k.id, k.addr), "no file, nothing to know it by");
}

/* ---- mappings ---- */

Test(unwind, mappings_and_the_file_behind_them)
{
	struct objmap *m AUTOFREE = calloc(1, sizeof(*m));
	struct stat st, own;
	cr_assert_eq(objmap_read(m, getpid()), 0);
	objmap_open_files(m, getpid());
	const struct objmap_code *c = objmap_find(m, (uint64_t)&a_function_of_this_test);
	cr_assert(c && c->object >= 0);
	const struct objmap_object *o = &m->object[c->object];
	cr_assert_eq(o->base, own_bias());
	cr_assert(!fstat(o->fd, &st) && !stat("/proc/self/exe", &own) && st.st_ino == own.st_ino);
	cr_assert_null(objmap_find(m, (uint64_t)&st), "the stack is no code");
	cr_assert_null(objmap_find(m, 0));
	cr_assert_eq(objmap_read(m, 1 << 30), -ESRCH);
}

/* ---- unwind entries without an index ---- */

struct bytes {
	unsigned char at[4096];
	size_t len;
};

#define BYTES_AT 0x10000u

static bool read_bytes(void *arg, uint64_t addr, void *buf, size_t n)
{
	const struct bytes *b = arg;
	if (addr < BYTES_AT || addr - BYTES_AT > b->len || n > b->len - (addr - BYTES_AT))
		return false;
	memcpy(buf, b->at + (addr - BYTES_AT), n);
	return true;
}

static void put(struct bytes *b, const void *bytes, size_t n)
{
	memcpy(b->at + b->len, bytes, n);
	b->len += n;
}

static void put_word(struct bytes *b, uint32_t word)
{
	put(b, &word, sizeof(word));
}

/* A CIE with this augmentation and data, and an FDE for 0x20000-0x20040. */
static void put_pair(struct bytes *b, const char *letters, const void *data, size_t n)
{
	uint32_t cie = (uint32_t)b->len;
	unsigned char head[] = {1}, tail[] = {1, 0x78, 16, (unsigned char)n};
	size_t size = 4 + 1 + strlen(letters) + 1 + sizeof(tail) + n;
	put_word(b, (uint32_t)((size + 3) / 4 * 4));
	put_word(b, 0);
	put(b, head, 1);
	put(b, letters, strlen(letters) + 1);
	put(b, tail, sizeof(tail));
	put(b, data, n);
	put(b, "\0\0\0", (size + 3) / 4 * 4 - size);
	put_word(b, 12);
	put_word(b, (uint32_t)b->len - cie);
	put_word(b, 0x20000 - (BYTES_AT + (uint32_t)b->len));
	put_word(b, 0x40);
}

Test(unwind, an_entry_is_found_without_an_index)
{
	static const struct {
		const char *letters;
		const char *data;
		size_t len;
		bool found;
	} rows[] = {
		{"zR", "\x1b", 1, true},
		{"zPLR", "\x9b\1\2\3\4\x1b\x1b", 7, true},
		{"zPLR", "\x00\1\2\3\4\5\6\7\10\x1b\x1b", 11, true},
		{"zRS", "\x1b", 1, true},
		{"zR", "\x00", 1, false}, /* an encoding that no compiler writes here */
		{"", "", 0, false},
		{"zP", "\x9b", 1, false}, /* cut off */
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bytes b = {0};
		struct ehscan_entry e = {0};
		put_pair(&b, rows[i].letters, rows[i].data, rows[i].len);
		put_word(&b, 0);
		bool found = ehscan_find(read_bytes, &b, BYTES_AT, b.len, 0x2003f, &e);
		cr_expect_eq(found, rows[i].found, "row %zu", i);
		cr_expect(!found || e.start == 0x20000);
		cr_expect(!ehscan_find(read_bytes, &b, BYTES_AT, b.len, 0x20040, &e));
		cr_expect(!ehscan_find(read_bytes, &b, BYTES_AT, b.len, 0x1ffff, &e));
	}
}

Test(unwind, spoiled_entries_are_survived)
{
	unsigned seed = 3;
	for (int i = 0; i < 20000; i++) {
		struct bytes b = {0};
		struct ehscan_entry e;
		for (int k = 0; k < 4; k++)
			put_pair(&b, "zPLR", "\x9b\1\2\3\4\x1b\x1b", 7);
		for (int k = 0; k < 1 + i % 8; k++)
			b.at[(size_t)rand_r(&seed) % b.len] = (unsigned char)rand_r(&seed);
		ehscan_find(read_bytes, &b, BYTES_AT, i % 2 ? b.len : UINT64_MAX, 0x30000, &e);
	}
}
