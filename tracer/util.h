/*
 * util: the few words every room above uses: cleanup attributes and BUG().
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void util_free(void *p)
{
	free(*(void **)p);
}

static inline void util_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* char *p AUTOFREE = NULL;  int fd AUTOCLOSE = -1; */
#define AUTOFREE  __attribute__((cleanup(util_free), unused))
#define AUTOCLOSE __attribute__((cleanup(util_close), unused))

/* Give an owned descriptor or pointer away: return TAKE_FD(fd); */
#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})
#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Our own state is wrong: stop, in release builds too (EXITKILL then ends every tracee). */
#define BUG(cond)                                                                                  \
	do {                                                                                       \
		if (cond) {                                                                        \
			fprintf(stderr, "warder: bug at %s:%d: %s\n", __FILE__, __LINE__, #cond);  \
			abort();                                                                   \
		}                                                                                  \
	} while (0)
