#include "tracer/sites.h"

#include "tracer/insn.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CODE_AT 0x800
#define SIZE	0x1000

struct file {
	char path[32];
	uint8_t bytes[SIZE];
};

static Elf64_Ehdr *head_of(struct file *f)
{
	return (Elf64_Ehdr *)f->bytes;
}

static Elf64_Phdr *segment_of(struct file *f)
{
	return (Elf64_Phdr *)(f->bytes + sizeof(Elf64_Ehdr));
}

/* A static program with one segment, and this code in it. */
static void file_new(struct file *f, const char *code, size_t len)
{
	*f = (struct file){.path = "/tmp/warder-sites-XXXXXX"};
	Elf64_Ehdr *head = head_of(f);
	memcpy(head->e_ident, ELFMAG, SELFMAG);
	head->e_ident[EI_CLASS] = ELFCLASS64;
	head->e_machine = EM_X86_64;
	head->e_phoff = sizeof(*head);
	head->e_phentsize = sizeof(Elf64_Phdr);
	head->e_phnum = 1;
	*segment_of(f) = (Elf64_Phdr){.p_type = PT_LOAD,
				      .p_flags = PF_R | PF_X,
				      .p_vaddr = 0x400000,
				      .p_filesz = 0xc00,
				      .p_memsz = 0xc00};
	memset(f->bytes + CODE_AT - 0x100, 0x90, 0x200);
	memcpy(f->bytes + CODE_AT, code, len);
	int fd = mkstemp(f->path);
	cr_assert_geq(fd, 0);
	close(fd);
}

static void put(const struct file *f, const uint8_t *bytes, size_t size)
{
	FILE *out = fopen(f->path, "we");

	cr_assert_not_null(out);
	cr_assert_eq(fwrite(bytes, 1, size, out), size);
	cr_assert_eq(fclose(out), 0);
}

static int count(struct file *f, size_t size, struct sites *ret)
{
	put(f, f->bytes, size);
	int r = sites_count(f->path, ret);
	unlink(f->path);
	return r;
}

#define OPENAT	"\xb8\x01\x01\0\0" /* mov $257,%eax */
#define GETPID	"\xb8\x27\0\0\0"
#define SYSCALL "\x0f\x05"
#define RET	"\xc3"
#define FROM_DI "\x89\xf8"	       /* mov %edi,%eax */
#define STACK	"\x4c\x8b\x4c\x24\x08" /* mov 8(%rsp),%r9 */

Test(sites, counts_by_what_stands_before)
{
	static const struct {
		const char *code;
		size_t len;
		unsigned calls, can, others;
		size_t slow; /* where the first one is that can't be changed */
	} rows[] = {
#define ROW(code, ...) {code, sizeof(code) - 1, __VA_ARGS__}
		ROW(OPENAT SYSCALL RET, 1, 1, 0, 0),
		ROW(OPENAT "\x90" SYSCALL RET, 1, 0, 0, 6), /* too short an instruction between */
		ROW(OPENAT SYSCALL RET OPENAT "\x90" SYSCALL RET, 2, 1, 0, 14),
		ROW(GETPID SYSCALL RET, 0, 0, 0, 0),
		ROW(FROM_DI SYSCALL RET, 0, 0, 1, 0),	     /* who knows what it calls */
		ROW(OPENAT RET "\x90" SYSCALL, 0, 0, 1, 0),  /* that is another block's number */
		ROW(OPENAT FROM_DI SYSCALL RET, 0, 0, 1, 0), /* and that one is not it any more */
		ROW("\xb8" SYSCALL "\0\0" RET, 0, 0, 0, 0),  /* no instruction, a number */
		ROW("\x31\xc0" SYSCALL RET, 0, 0, 0, 0),     /* read(2) */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct file f;
		struct sites s;
		file_new(&f, rows[i].code, rows[i].len);
		cr_assert_eq(count(&f, SIZE, &s), 0, "%zu", i);
		cr_expect_eq(s.calls, rows[i].calls, "%zu: %u", i, s.calls);
		cr_expect_eq(s.can, rows[i].can, "%zu: %u", i, s.can);
		cr_expect_eq(s.others, rows[i].others, "%zu: %u", i, s.others);
		cr_assert_eq(s.left_len, s.calls - s.can, "%zu", i);
		cr_expect_eq(s.room, 6u); /* of 160 bytes, in the page's last 1024 */
		if (s.left_len) {
			cr_expect_eq(s.left[0].offset, CODE_AT + rows[i].slow, "%zu", i);
			cr_expect_str_eq(s.left[0].call, "openat");
		}
	}
}

Test(sites, a_file_that_lies)
{
	for (int what = 0; what < 10; what++) {
		struct file f;
		struct sites s = {.calls = 7};
		size_t size = SIZE;
		file_new(&f, OPENAT SYSCALL RET, 8);
		Elf64_Phdr *ph = segment_of(&f);
		if (what == 0)
			size = 0;
		if (what == 1)
			size = sizeof(Elf64_Ehdr) + 5;
		if (what == 2)
			size = 0x900; /* shorter than its segment */
		if (what == 3)
			head_of(&f)->e_ident[EI_CLASS] = ELFCLASS32;
		if (what == 4)
			head_of(&f)->e_phnum = 0xffff;
		if (what == 5)
			head_of(&f)->e_phoff = UINT64_MAX - 3;
		if (what == 6)
			ph->p_memsz = UINT64_MAX;
		if (what == 7)
			ph->p_filesz = 0x2000; /* more than its memory */
		if (what == 8)
			ph->p_offset = UINT64_MAX - 0xfff;
		if (what == 9)
			ph->p_type = PT_NOTE; /* nothing is loaded */
		cr_expect_eq(count(&f, size, &s), -ENOEXEC, "%d", what);
		cr_expect_eq(s.calls, 7u, "%d", what);
	}
}

/* What lies where the headers should be says something else than they do. */
Test(sites, a_second_header_that_lies, .timeout = 30)
{
	static uint8_t bytes[3 * SIZE];
	const Elf64_Phdr liar = {.p_type = PT_LOAD,
				 .p_offset = SIZE,
				 .p_vaddr = 0x400000,
				 .p_filesz = SIZE,
				 .p_memsz = SIZE,
				 .p_flags = PF_R};
	const Elf64_Phdr text = {.p_type = PT_LOAD,
				 .p_offset = 2 * SIZE,
				 .p_vaddr = 0x401000,
				 .p_filesz = SIZE,
				 .p_memsz = SIZE,
				 .p_flags = PF_R | PF_X};
	struct file f;
	struct sites s = {.calls = 7};

	file_new(&f, OPENAT SYSCALL RET, 8);
	memset(bytes, 0x90, sizeof(bytes));
	for (int i = 0; i < 2; i++) {
		Elf64_Phdr *ph = (Elf64_Phdr *)(bytes + i * SIZE + sizeof(Elf64_Ehdr));
		memcpy(bytes + i * SIZE, f.bytes, sizeof(Elf64_Ehdr));
		((Elf64_Ehdr *)(bytes + i * SIZE))->e_phnum = 2;
		ph[0] = liar;
		ph[1] = text;
		ph[1].p_filesz <<= 16 * i;
	}
	put(&f, bytes, sizeof(bytes));
	cr_expect_eq(sites_count(f.path, &s), -ENOEXEC);
	cr_expect_eq(s.calls, 7u);
	unlink(f.path);
}

/* Each place costs what stands before it: of one that is all places there would be no end. */
Test(sites, a_file_without_measure, .timeout = 60)
{
	struct file f;
	struct sites s = {.calls = 7};
	size_t size = 1 << 20;
	uint8_t *bytes = malloc(size);

	cr_assert_not_null(bytes);
	file_new(&f, SYSCALL, 2);
	segment_of(&f)->p_filesz = segment_of(&f)->p_memsz = size;
	for (size_t i = 0; i < size; i += 2)
		memcpy(bytes + i, SYSCALL, 2);
	memcpy(bytes, f.bytes, 0x100);
	put(&f, bytes, size);
	free(bytes);
	cr_expect_eq(sites_count(f.path, &s), -E2BIG);
	cr_expect_eq(s.calls, 7u);

	/* Nor of one that is nothing but a length. */
	memset(f.bytes + 0x100, 0, SIZE - 0x100);
	segment_of(&f)->p_filesz = segment_of(&f)->p_memsz = 1ull << 31;
	put(&f, f.bytes, SIZE);
	cr_assert_eq(truncate(f.path, 1ll << 31), 0);
	cr_expect_eq(sites_count(f.path, &s), -E2BIG);
	unlink(f.path);
}

/* The file has this length and that by turns, until the process is killed. */
static pid_t cut_for_ever(const char *path, off_t from, off_t to)
{
	pid_t self = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == self)
		if (truncate(path, from) < 0 || truncate(path, to) < 0)
			break;
	_exit(1);
}

/* A program that is being installed while its calls are counted. */
Test(sites, a_file_that_is_cut_off_meanwhile, .timeout = 60)
{
	struct file f;
	size_t size = 4u << 20;
	uint8_t *bytes = calloc(1, size);

	cr_assert_not_null(bytes);
	file_new(&f, OPENAT SYSCALL RET, 8);
	segment_of(&f)->p_filesz = segment_of(&f)->p_memsz = size;
	memcpy(bytes, f.bytes, SIZE);
	put(&f, bytes, size);
	free(bytes);
	pid_t pid = cut_for_ever(f.path, SIZE, (off_t)size);
	cr_assert_gt(pid, 0);
	for (int i = 0; i < 300; i++) {
		struct sites s = {0};
		int r = sites_count(f.path, &s);
		cr_assert(r == 0 || r == -ENOEXEC, "%d", r);
	}
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	struct sites s;
	cr_expect_eq(truncate(f.path, (off_t)size), 0);
	cr_expect_eq(sites_count(f.path, &s), 0);
	cr_expect_eq(s.calls, 1u);
	unlink(f.path);
}

/* What lies across two of the pieces that the text is read in. */
Test(sites, wherever_a_call_is)
{
	static uint8_t bytes[3u << 20];

	for (int shift = -16; shift <= 16; shift++) {
		struct file f;
		struct sites s;
		file_new(&f, "", 0);
		memset(bytes, 0x90, sizeof(bytes));
		segment_of(&f)->p_filesz = segment_of(&f)->p_memsz = sizeof(bytes);
		memcpy(bytes, f.bytes, 0x100);
		for (int i = 1; i < 3; i++)
			memcpy(bytes + (i << 20) + shift, OPENAT SYSCALL, 7);
		put(&f, bytes, sizeof(bytes));
		cr_assert_eq(sites_count(f.path, &s), 0);
		cr_expect_eq(s.calls, 2u, "%d: %u", shift, s.calls);
		unlink(f.path);
	}
}

Test(sites, what_is_no_file)
{
	struct sites s;

	cr_expect_eq(sites_count("/nonexistent/x", &s), -ENOENT);
	cr_expect_eq(sites_count("/tmp", &s), -ENOEXEC);
	cr_expect_eq(sites_count("/dev/null", &s), -ENOEXEC);
}

/* Data between functions does not decode: what follows is found all the same. */
Test(sites, what_does_not_decode_is_left_out)
{
	static const uint8_t code[] = "\x06\x06" OPENAT STACK SYSCALL;
	struct insn_calls c = {.code = code, .len = sizeof(code) - 1};

	cr_assert(insn_next_call(&c));
	cr_expect_eq(c.call, 12u);
	cr_expect_eq(c.nr, 257);
	cr_expect_not(insn_next_call(&c));
}
