#include "tracer/maps.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096

static char name[PATH_MAX];

/* A file of four pages, with the longest name and a newline in it. */
static int make_file(void)
{
	char directory[] = "/tmp/warder-maps-XXXXXX";

	cr_assert_not_null(mkdtemp(directory));
	int n = snprintf(name, sizeof(name), "%s/", directory);
	memset(name + n, 'x', NAME_MAX);
	/* Read in pieces, some piece of it could look like a line. */
	memcpy(name + n + 10, "\n00400000-00500000 r-xp 00000000 00:00 1 ", 41);
	int fd = open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, 4 * PAGE), 0);
	return fd;
}

static void end_file(int fd)
{
	close(fd);
	unlink(name);
	*strrchr(name, '/') = '\0';
	rmdir(name);
}

static int read_text(uint64_t addr, struct maps_region *ret, uint64_t *ret_base)
{
	int fd = open("/proc/self/maps", O_RDONLY);
	int r = maps_read(fd, addr, ret, ret_base);

	close(fd);
	return r;
}

/* By asking and by reading, which must agree. */
static int find(const void *p, struct maps_region *ret, uint64_t *ret_base)
{
	struct maps_region a, b;
	uint64_t base_a = 1, base_b = 2;
	int r = maps_find(getpid(), (uintptr_t)p, &a, &base_a);

	cr_assert_eq(read_text((uintptr_t)p, &b, &base_b), r);
	if (r < 0)
		return r;
	cr_expect(a.start == b.start && a.end == b.end && a.offset == b.offset);
	cr_expect(a.dev == b.dev && a.ino == b.ino);
	cr_expect(a.exec == b.exec && a.write == b.write && a.shared == b.shared);
	cr_expect_eq(base_a, base_b);
	*ret = a;
	*ret_base = base_a;
	return 0;
}

Test(maps, a_files_pages)
{
	int fd = make_file();
	struct stat st;
	struct maps_region r;
	uint64_t base;
	char *p = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

	cr_assert_neq(p, MAP_FAILED);
	cr_assert_eq(mprotect(p + PAGE, PAGE, PROT_READ | PROT_EXEC), 0);
	cr_assert_eq(mprotect(p + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	fstat(fd, &st);
	cr_assert_eq(find(p + PAGE + 7, &r, &base), 0);
	cr_expect_eq(r.start, (uintptr_t)p + PAGE);
	cr_expect_eq(r.end, (uintptr_t)p + 2 * PAGE);
	cr_expect_eq(r.offset, (uint64_t)PAGE);
	cr_expect_eq(r.ino, st.st_ino);
	cr_expect_eq(r.dev, st.st_dev);
	cr_expect(r.exec && !r.write && !r.shared);
	cr_expect_eq(base, (uintptr_t)p);
	cr_assert_eq(find(p + 2 * PAGE, &r, &base), 0);
	cr_expect(!r.exec && r.write && !r.shared);

	/* Without its first page; with another file's first page there. */
	munmap(p, PAGE);
	cr_assert_eq(find(p + PAGE, &r, &base), 0);
	cr_expect_eq(base, 0u);
	munmap(p, 4 * PAGE);
	end_file(fd);
}

Test(maps, shared_and_none)
{
	int fd = make_file();
	struct maps_region r;
	uint64_t base;
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char *anonymous = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_eq(find(p, &r, &base), 0);
	cr_expect(r.shared && r.write);
	cr_assert_eq(find(anonymous, &r, &base), 0);
	cr_expect_eq(r.ino, 0u);
	cr_expect_eq(base, 0u);
	cr_expect_eq(find(NULL, &r, &base), -ENOENT);
	cr_expect_eq(maps_find(-1, 0, &r, &base), -ENOENT);
	munmap(anonymous, PAGE);
	munmap(p, PAGE);
	end_file(fd);
}

/* Segments whose pages do not lie as in the file: the text of maps knows the first. */
Test(maps, segments_that_were_moved)
{
	int fd = make_file();
	struct maps_region r;
	uint64_t base;
	char *p = mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_eq(mmap(p + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0), p + PAGE);
	cr_assert_eq(
		mmap(p + 9 * PAGE, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, PAGE),
		p + 9 * PAGE);
	cr_assert_eq(find(p + 9 * PAGE, &r, &base), 0);
	cr_expect_eq(base, (uintptr_t)p + PAGE);
	munmap(p, 16 * PAGE);
	end_file(fd);
}
