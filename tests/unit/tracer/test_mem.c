#include "tracer/mem.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

/* Our own memory: three pages, the last one not readable. */
static char *pages(void)
{
	char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	memset(p, 'a', 2 * PAGE);
	cr_assert_eq(mprotect(p + 2 * PAGE, PAGE, PROT_NONE), 0);
	return p;
}

Test(mem, strings_up_to_the_last_readable_byte)
{
	char *p = pages();
	char *s = NULL;

	p[2 * PAGE - 1] = '\0';
	for (int len = 0; len < 2 * PAGE && len < PATH_MAX - 1; len += len < 300 ? 1 : 211) {
		const char *from = p + 2 * PAGE - 1 - len;
		cr_assert_eq(mem_read_str(getpid(), (uintptr_t)from, PATH_MAX, &s), 0, "%d", len);
		cr_assert_eq(strlen(s), (size_t)len);
		free(s);
	}
	s = NULL;
	p[2 * PAGE - 1] = 'a';
	cr_expect_eq(mem_read_str(getpid(), (uintptr_t)(p + 2 * PAGE - 10), PATH_MAX, &s), -EFAULT);
	cr_expect_eq(mem_read_str(getpid(), 0, PATH_MAX, &s), -EFAULT);
	cr_expect_eq(mem_read_str(getpid(), UINT64_MAX, PATH_MAX, &s), -EFAULT);
	cr_expect_null(s);
	munmap(p, 3 * PAGE);
}

/* As getname() of the kernel: PATH_MAX counts the terminating NUL. */
Test(mem, the_limit_counts_the_nul)
{
	char *p = pages();
	char *s = NULL;

	p[PATH_MAX - 1] = '\0';
	cr_expect_eq(mem_read_str(getpid(), (uintptr_t)p, PATH_MAX, &s), 0);
	free(s);
	s = NULL;
	p[PATH_MAX - 1] = 'a';
	p[PATH_MAX] = '\0';
	cr_expect_eq(mem_read_str(getpid(), (uintptr_t)p, PATH_MAX, &s), -ENAMETOOLONG);
	cr_expect_null(s);
	munmap(p, 3 * PAGE);
}

Test(mem, bytes_all_or_nothing)
{
	char *p = pages();
	char got[16];

	cr_expect_eq(mem_read(getpid(), (uintptr_t)p, got, sizeof(got)), 0);
	cr_expect_arr_eq(got, p, sizeof(got));
	cr_expect_eq(mem_read(getpid(), (uintptr_t)(p + 2 * PAGE - 8), got, sizeof(got)), -EFAULT);
	munmap(p, 3 * PAGE);
}

Test(mem, pieces_all_or_nothing)
{
	char *p = pages();
	char got[8];
	struct iovec piece[] = {{p + 100, 3}, {p, 4}, {p + 2 * PAGE - 1, 1}};

	for (int i = 0; i < 200; i++)
		p[i] = (char)i;
	p[2 * PAGE - 1] = 'x';
	cr_expect_eq(mem_read_pieces(getpid(), piece, 3, got), 0);
	cr_expect_arr_eq(got, "def\0\1\2\3x", 8);
	piece[1].iov_base = p + 2 * PAGE - 2;
	cr_expect_eq(mem_read_pieces(getpid(), piece, 3, got), -EFAULT);
	piece[0].iov_base = NULL;
	cr_expect_eq(mem_read_pieces(getpid(), piece, 3, got), -EFAULT);
	munmap(p, 3 * PAGE);
}
