#include "supervisor/broker_now.h"

#include "supervisor/broker_act.h"
#include "supervisor/fsmagic.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static bool is_local(int fd)
{
	struct statfs fs;
	if (fstatfs(fd, &fs))
		return false;
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC: /* ext2 and ext3, too */
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
		return true;
	default:
		return false;
	}
}

/* To give up a large file's blocks takes its time. */
static bool is_quick(const struct call *c, const struct path_at *at)
{
	bool empties = c->open_flags & O_TRUNC;
	return S_ISDIR(at->st.st_mode) || (S_ISREG(at->st.st_mode) && !(empties && at->st.st_size));
}

/* Not to be made, nor found wrong: those are the worker's rows (broker_act.c). */
static bool is_plain(const struct call *c)
{
	return c->path[0].need == CALL_NEED_OPEN && !(c->open_flags & O_CREAT) &&
	       (c->open_flags & O_TMPFILE) != O_TMPFILE;
}

int broker_now_open(const struct call *c, const struct identity *as, const struct identity *self,
		    int *ret_fd)
{
	const struct path_at *at = &c->path[0].at;
	if (!is_plain(c) || !at->exists || !is_quick(c, at) || !identity_same_to_files(as, self) ||
	    !is_local(at->object))
		return -EAGAIN;
	bool waits = S_ISREG(at->st.st_mode) && !(c->open_flags & O_NONBLOCK);
	int fd = broker_act_reopen(at->object, c->open_flags | (waits ? O_NONBLOCK : 0));
	if (fd < 0)
		return fd == -EINTR ? -EAGAIN : fd;
	/* What else can be set so stays as it was opened. */
	if (waits && fcntl(fd, F_SETFL, (int)c->open_flags)) {
		close(fd);
		return -EAGAIN;
	}
	*ret_fd = fd;
	return 0;
}
