#include "tracer/status.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int status_read(int dir, const char *file, struct status *ret)
{
	int fd AUTOCLOSE = openat(dir, file, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	/* All of it comes at once where there is room (single_open of fs/seq_file.c). */
	ssize_t n = read(fd, ret->text, STATUS_MAX - 1);
	if (n < 0)
		return -errno;
	size_t len = (size_t)n;
	ret->text[len] = '\0';
	ret->cut = len == STATUS_MAX - 1;
	return 0;
}

int status_of(pid_t tid, struct status *ret)
{
	char file[32];

	snprintf(file, sizeof(file), "/proc/%d/status", tid);
	return status_read(AT_FDCWD, file, ret);
}

int status_self(struct status *ret)
{
	return status_read(AT_FDCWD, "/proc/thread-self/status", ret);
}

const char *status_line(const struct status *s, const char *key)
{
	size_t n = strlen(key);

	for (const char *line = s->text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, n) == 0 && line[n] == ':')
			return line + n + 1 + strspn(line + n + 1, "\t ");
	}
	return NULL;
}

bool status_number(const struct status *s, const char *key, int *ret)
{
	const char *line = status_line(s, key);

	return line && sscanf(line, "%d", ret) == 1;
}

uint64_t status_mask(const struct status *s, const char *key)
{
	const char *line = status_line(s, key);
	uint64_t mask = 0;

	if (line)
		sscanf(line, "%" SCNx64, &mask);
	return mask;
}
