/* The kernel's answer: the call itself, made in the restricted child. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "oracle.h"

static int answer(int result)
{
	return result < 0 ? -errno : 0;
}

static int try_open(const char *path, int flags)
{
	int fd = open(path, flags, 0755);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int try_exec(const char *path)
{
	char *argv[] = {(char *)"x", NULL}, *envp[] = {NULL};

	/* An empty file: the kernel opens it, then finds no format. */
	execve(path, argv, envp);
	return errno == ENOEXEC ? 0 : -errno;
}

static int try_remove(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return -errno;
	return answer(S_ISDIR(st.st_mode) ? rmdir(path) : unlink(path));
}

static int try_ftruncate(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = answer(ftruncate(fd, 0));
	close(fd);
	return r;
}

static int try_ioctl(const struct oracle_request *q)
{
	char room[256] = {0};
	int fd = open(q->path, q->flags), r;

	if (fd < 0)
		return -errno;
	r = answer(ioctl(fd, q->ioctl, room));
	close(fd);
	return r;
}

/* Through the directory's descriptor: a socket's own path has no room for a long one. */
static int try_bind(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const char *name = strrchr(path, '/') + 1;
	char dir[ORACLE_PATH_BYTES];
	int dir_fd, s, r;

	oracle_say(dir, sizeof(dir), "%.*s", (int)(name - path), path);
	dir_fd = open(dir, O_PATH | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	oracle_say(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/%s", dir_fd, name);
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	r = answer(bind(s, (struct sockaddr *)&addr, sizeof(addr)));
	close(s);
	close(dir_fd);
	return r;
}

int oracle_try(const struct oracle_request *q)
{
	switch (q->op) {
	case ORACLE_OPEN:
	case ORACLE_CREATE:
	case ORACLE_TMPFILE:
		return try_open(q->path, q->flags);
	case ORACLE_TRUNCATE:
		return answer(truncate(q->path, 0));
	case ORACLE_FTRUNCATE:
		return try_ftruncate(q->path);
	case ORACLE_EXEC:
		return try_exec(q->path);
	case ORACLE_IOCTL:
		return try_ioctl(q);
	case ORACLE_MAKE:
		if (S_ISDIR(q->mode))
			return answer(mkdir(q->path, 0755));
		return answer(mknod(q->path, q->mode | 0755, q->dev));
	case ORACLE_SYMLINK:
		return answer(symlink("nowhere", q->path));
	case ORACLE_BIND:
		return try_bind(q->path);
	case ORACLE_REMOVE:
		return try_remove(q->path);
	case ORACLE_RENAME:
		return answer(
			renameat2(AT_FDCWD, q->path, AT_FDCWD, q->path2, (unsigned int)q->flags));
	case ORACLE_LINK:
		return answer(linkat(AT_FDCWD, q->path, AT_FDCWD, q->path2, 0));
	case ORACLE_OPS:
		break;
	}
	return -ENOTSUP;
}
