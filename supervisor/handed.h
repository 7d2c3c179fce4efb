/*
 * handed: the files behind the descriptors that were opened in a process's place, the last ones.
 *
 * The kernel takes linkat(fd, "", ..., AT_EMPTY_PATH) without a capability only from whoever opened
 * the descriptor (fs/namei.c, LOOKUP_LINKAT_EMPTY, 6.10); ours say ENOENT where the process's own
 * would not. A plain value, no errors; a file that was forgotten keeps that ENOENT.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#define HANDED_MAX 256

struct handed {
	struct handed_file {
		dev_t dev;
		ino_t ino;
	} file[HANDED_MAX];
	unsigned next;
};

/* The descriptor stays the caller's. */
void handed_add(struct handed *h, int fd);
bool handed_has(const struct handed *h, const struct stat *st);
