#include "tracer/mem.h"

#include "tracer/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Pages are of 4, 16 or 64 KiB: the smallest is right for all. */
#define PAGE	   4096u
#define FIRST_READ 256u /* most paths end within it */

int mem_read_pieces(pid_t tid, const struct iovec *piece, size_t n, void *buf)
{
	struct iovec ours = {buf, 0};

	for (size_t i = 0; i < n; i++)
		ours.iov_len += piece[i].iov_len;
	ssize_t got = process_vm_readv(tid, &ours, 1, piece, n, 0);
	if (got < 0)
		return -errno;
	return (size_t)got == ours.iov_len ? 0 : -EFAULT;
}

int mem_read(pid_t tid, uint64_t addr, void *buf, size_t n)
{
	return mem_read_pieces(tid, &(struct iovec){(void *)(uintptr_t)addr, n}, 1, buf);
}

int mem_write(pid_t tid, uint64_t addr, const void *buf, size_t n)
{
	struct iovec ours = {(void *)(uintptr_t)buf, n};
	struct iovec theirs = {(void *)(uintptr_t)addr, n};
	ssize_t got = process_vm_writev(tid, &ours, 1, &theirs, 1, 0);

	if (got < 0)
		return -errno;
	return (size_t)got == n ? 0 : -EFAULT;
}

static size_t next_chunk(uint64_t addr, size_t have, size_t max)
{
	size_t n = PAGE - ((addr + have) & (PAGE - 1));

	if (have == 0 && n > FIRST_READ)
		n = FIRST_READ;
	return n < max - have ? n : max - have;
}

int mem_read_str(pid_t tid, uint64_t addr, size_t max, char **ret)
{
	char *s AUTOFREE = malloc(max);

	if (!s)
		return -ENOMEM;
	for (size_t have = 0; have < max;) {
		size_t n = next_chunk(addr, have, max);
		int r = mem_read(tid, addr + have, s + have, n);
		if (r < 0)
			return r;
		char *end = memchr(s + have, '\0', n);
		if (end) {
			char *fit = realloc(s, (size_t)(end - s) + 1);
			*ret = fit ? fit : s;
			s = NULL;
			return 0;
		}
		have += n;
	}
	return -ENAMETOOLONG;
}
