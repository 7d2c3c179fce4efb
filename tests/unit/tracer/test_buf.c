#include "tracer/buf.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

/* A file of n bytes, read from its beginning. */
static int file_of(size_t n)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	for (size_t i = 0; i < n; i++) {
		char c = (char)('a' + i % 26);
		cr_assert_eq(pwrite(fd, &c, 1, (off_t)i), 1);
	}
	return fd;
}

Test(buf, reads_all_that_fits)
{
	static const struct {
		size_t has, max, before; /* bytes of the file, of the buffer at most, and in it */
		int result;
	} rows[] = {
		{0, 0, 0, 0},	   {0, 5, 5, 0},	 {1, 1, 0, 0},
		{1, 5, 5, -EFBIG}, {5, 5, 0, 0},	 {6, 5, 0, -EFBIG},
		{40000, 0, 3, 0},  {40000, 40003, 3, 0}, {40000, 40002, 3, -EFBIG},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf b = {.max = rows[i].max};
		int fd = file_of(rows[i].has);
		buf_add(&b, "xxxxx", rows[i].before);
		cr_expect_eq(buf_read_from(fd, &b), rows[i].result, "%zu", i);
		size_t len = rows[i].before + rows[i].has;
		cr_expect_eq(b.len, rows[i].result ? rows[i].max : len, "%zu: %zu", i, b.len);
		cr_expect_eq(strlen(buf_str(&b)), b.len, "%zu", i);
		for (size_t at = rows[i].before; at < b.len; at++)
			cr_assert_eq(b.data[at], 'a' + (at - rows[i].before) % 26, "%zu", i);
		buf_free(&b);
		close(fd);
	}
}

Test(buf, says_why_it_could_not_read)
{
	struct buf b = {0};
	int fds[2];

	cr_assert_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	cr_assert_eq(write(fds[1], "abc", 3), 3);
	cr_expect_eq(buf_read_from(fds[0], &b), -EAGAIN);
	cr_expect_str_eq(buf_str(&b), "abc");
	cr_expect_eq(buf_read_from(-1, &b), -EBADF);
	close(fds[1]);
	cr_expect_eq(buf_read_from(fds[0], &b), 0);
	cr_expect_str_eq(buf_str(&b), "abc");
	close(fds[0]);
	buf_free(&b);
}
