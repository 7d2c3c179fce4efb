/*
 * What the fuzz targets share. A target is one file, fuzz_NAME.c: fuzz_one() gives its bytes to a
 * reader, and whatever it answers is fine that is no crash, no leak and no endless wait. Corpora
 * are in corpus/NAME, one input a file. Two ways to run it: libFuzzer (./dev fuzz), and over the
 * corpus alone in every build (label unit).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* libFuzzer's own name for it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* For readers of files: the bytes as one, by a name of /proc/self/fd. The caller closes it. */
static inline int fuzz_file(const uint8_t *data, size_t size, char ret_name[64])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0)
		abort();
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, data + done, size - done);
		if (n <= 0)
			abort();
		done += (size_t)n;
	}
	if (lseek(fd, 0, SEEK_SET) != 0)
		abort();
	snprintf(ret_name, 64, "/proc/self/fd/%d", fd);
	return fd;
}
