/*
 * maps: where a tracee's files are mapped (/proc/PID/maps).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct maps_region {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	dev_t dev;
	ino_t ino; /* 0: no file */
	bool exec, write, shared;
};

/*
 * The region that holds addr, and in *ret_base (may be NULL) the lowest address at which the same
 * file's first page is mapped below it; 0 where it is not. 0, -ENOENT, or -errno. A few
 * microseconds where the kernel can be asked (6.11), else the text is read.
 */
int maps_find(pid_t pid, uint64_t addr, struct maps_region *ret, uint64_t *ret_base);
/* Every region in order, with its file's first page as above. 0 or -errno. Reads the text. */
int maps_each(pid_t pid, void (*f)(void *arg, const struct maps_region *where, uint64_t base),
	      void *arg);
/* The same from the text of a maps file, which it reads to the end or to that region. */
int maps_read(int fd, uint64_t addr, struct maps_region *ret, uint64_t *ret_base);
