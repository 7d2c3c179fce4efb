#include "tracer/ownfile.h"

#include "tracer/outfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static int flags_for(int flags)
{
	return (flags & ~O_TRUNC) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
}

/* Takes fd, or -errno. */
static int check(int fd, int flags)
{
	int own AUTOCLOSE = fd;
	struct stat st;

	if (fd < 0) /* a FIFO that nobody reads, a socket; a directory that is to be written */
		return fd == -ENXIO || fd == -EISDIR ? -EINVAL : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_uid != geteuid())
		return -EPERM;
	if ((flags & O_TRUNC) && ftruncate(fd, 0) < 0)
		return -errno;
	return TAKE_FD(own);
}

int ownfile_open(const char *real, int flags)
{
	return check(outfile_open(real, flags_for(flags), 0600), flags);
}

int ownfile_open_at(int dir, const char *name, int flags)
{
	int fd = openat(dir, name, flags_for(flags), 0600);

	return check(fd < 0 ? -errno : fd, flags);
}

/* Takes fd, or -errno. */
static int read_whole(int fd, struct buf *ret)
{
	int own AUTOCLOSE = fd;

	return fd < 0 ? fd : buf_read_from(fd, ret);
}

int ownfile_read(const char *real, struct buf *ret)
{
	return read_whole(ownfile_open(real, O_RDONLY), ret);
}

int ownfile_read_at(int dir, const char *name, struct buf *ret)
{
	return read_whole(ownfile_open_at(dir, name, O_RDONLY), ret);
}

const char *ownfile_strerror(int err)
{
	switch (-err) {
	case ELOOP:
		return "a symlink is in its place";
	case EINVAL:
		return "what is in its place is no file";
	case EPERM:
		return "it belongs to another user";
	case EFBIG:
		return "it is too large";
	default:
		return strerror(-err);
	}
}
