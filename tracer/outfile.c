#include "tracer/outfile.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static bool starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool goes_up(const char *file)
{
	for (const char *at = file; (at = strstr(at, "/..")); at += 3)
		if (!at[3] || at[3] == '/')
			return true;
	return false;
}

/* In /proc only the descriptors: what is below /proc/self/cwd lies anywhere. */
bool outfile_is_device(const char *file)
{
	if (goes_up(file) || strstr(file, "//"))
		return false;
	const char *fd = strstr(file, "/fd/");
	if (starts(file, "/proc/") || starts(file, "/dev/fd/"))
		return fd && !fd[4 + strspn(fd + 4, "0123456789")];
	return starts(file, "/dev/") && !starts(file, "/dev/shm/") && !starts(file, "/dev/mqueue/");
}

int outfile_resolve(const char *file, char **ret)
{
	struct stat st;
	if (outfile_is_device(file)) {
		*ret = realpath(file, NULL);
		if (*ret || errno != ENOENT) /* a pipe's has no name: as it is written */
			return *ret ? 0 : -errno;
	} else if (!lstat(file, &st) && S_ISLNK(st.st_mode)) {
		return -ELOOP;
	}
	const char *slash = strrchr(file, '/');
	char *dir AUTOFREE = slash ? strndup(file, (size_t)(slash - file) + 1) : strdup(".");
	char *real AUTOFREE = dir ? realpath(dir, NULL) : NULL;
	if (!real)
		return dir ? -errno : -ENOMEM;
	const char *base = slash ? slash + 1 : file;
	return asprintf(ret, "%s/%s", strcmp(real, "/") != 0 ? real : "", base) < 0 ? -ENOMEM : 0;
}

static bool is_link(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* Where there is no openat2 (Linux 5.6; valgrind, old containers): a step at a time. */
static int open_by_steps(const char *real, int flags, mode_t mode)
{
	char *path AUTOFREE = strdup(real), *rest = NULL;
	int dir AUTOCLOSE =
		path ? open(*real == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	const char *name = path ? strtok_r(path, "/", &rest) : NULL;

	if (!path)
		return -ENOMEM;
	for (const char *next; dir >= 0 && name; name = next) {
		next = strtok_r(NULL, "/", &rest);
		int fd = openat(dir, name,
				next ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC : flags,
				next ? 0 : mode);
		int err = fd >= 0 ? 0 : errno == ENOTDIR && is_link(dir, name) ? -ELOOP : -errno;
		if (err || !next)
			return err ? err : fd;
		close(dir);
		dir = fd;
	}
	int whole = dir < 0 ? -1 : openat(dir, ".", flags, mode);
	return whole < 0 ? -errno : whole;
}

int outfile_open(const char *real, int flags, mode_t mode)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY),
			       .mode = flags & O_CREAT ? mode : 0,
			       .resolve = RESOLVE_NO_SYMLINKS};
	if (flags & O_PATH)
		how.flags &= ~(uint64_t)O_NOCTTY; /* openat2(2) knows which go together */
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, real, &how, sizeof(how));
	if (fd < 0 && errno == ENOSYS)
		return open_by_steps(real, (int)how.flags, (mode_t)how.mode);
	return fd < 0 ? -errno : fd;
}

int outfile_open_parent(const char *real)
{
	/* The dot: a symlink that is the last component would be opened itself. */
	char *dir AUTOFREE = NULL;
	if (asprintf(&dir, "%.*s/.", (int)(strrchr(real, '/') - real), real) < 0) {
		dir = NULL;
		return -ENOMEM;
	}
	return outfile_open(dir, O_PATH | O_DIRECTORY, 0);
}
