/* The model's answer, and what is no matter of Landlock's. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "landlock/llmodel.h"
#include "oracle.h"

static int parent_of(const char *path)
{
	char dir[PATH_MAX];

	oracle_say(dir, sizeof(dir), "%s", path);
	*(strrchr(dir, '/') == dir ? dir + 1 : strrchr(dir, '/')) = '\0';
	return open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int object_at(const char *path)
{
	return open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

static uint64_t open_needs(int flags, mode_t mode, bool exists)
{
	uint64_t needs = 0;
	int how = flags & O_ACCMODE;

	if (flags & O_PATH)
		return 0;
	if (how == O_RDONLY || how == O_RDWR)
		needs |= S_ISDIR(mode) ? LLR_READ_DIR : LLR_READ_FILE;
	if (how == O_WRONLY || how == O_RDWR)
		needs |= LLR_WRITE_FILE;
	if ((flags & O_TRUNC) && S_ISREG(mode) && exists)
		needs |= LLR_TRUNCATE;
	return needs;
}

/* What needs no right on a device: fs/ioctl.c answers it by itself. */
static uint64_t ioctl_needs(const struct oracle_request *q)
{
	bool exempt = q->ioctl == FIOCLEX || q->ioctl == FIONBIO || q->ioctl == FIOASYNC;

	return LLR_READ_FILE | (S_ISCHR(q->mode) && !exempt ? LLR_IOCTL_DEV : 0);
}

static uint64_t needs_of(const struct oracle_world *w, const struct oracle_request *q, mode_t mode)
{
	switch (q->op) {
	case ORACLE_OPEN:
		return open_needs(q->flags, mode, true);
	case ORACLE_CREATE:
		return LLR_MAKE_REG | open_needs(q->flags, S_IFREG, false);
	case ORACLE_TMPFILE:
		return open_needs(q->flags, S_IFREG, false);
	case ORACLE_TRUNCATE:
		return LLR_TRUNCATE;
	case ORACLE_FTRUNCATE:
		return LLR_WRITE_FILE | LLR_TRUNCATE;
	case ORACLE_EXEC:
		return LLR_EXECUTE | LLR_READ_FILE;
	case ORACLE_IOCTL:
		return ioctl_needs(q);
	case ORACLE_MAKE:
		return llmodel_to_make(&w->domain, q->mode, q->dev);
	case ORACLE_SYMLINK:
		return LLR_MAKE_SYM;
	case ORACLE_BIND:
		return LLR_MAKE_SOCK;
	case ORACLE_REMOVE:
		return llright_to_remove(mode);
	case ORACLE_RENAME:
	case ORACLE_LINK:
	case ORACLE_OPS:
		break;
	}
	return 0;
}

/* Is it asked of the directory alone? */
static bool is_of_parent(enum oracle_op op)
{
	return op == ORACLE_CREATE || op == ORACLE_MAKE || op == ORACLE_SYMLINK ||
	       op == ORACLE_BIND || op == ORACLE_REMOVE;
}

static int judge_place(const struct oracle_world *w, const struct oracle_request *q, int object,
		       int parent, int *ret)
{
	bool of_parent = is_of_parent(q->op);
	uint64_t granted, again;
	struct stat st = {0};
	int r;

	if (object >= 0 && fstat(object, &st) < 0)
		return -errno;
	r = llmodel_granted_at(&w->domain, of_parent ? -1 : object, parent, &granted);
	if (r < 0)
		return r;
	*ret = needs_of(w, q, st.st_mode) & ~granted ? -EACCES : 0;
	/* A directory's own ".." leads the same way as the parent it was reached by. */
	if (of_parent || !S_ISDIR(st.st_mode))
		return 0;
	r = llmodel_granted(&w->domain, object, &again);
	return r == 0 && again != granted ? -EUCLEAN : r;
}

/* Through a descriptor: 1, the thing itself; 2, something below it, which needs no realpath (and
 * may have none). */
static int held(const char *path, int *ret_fd)
{
	static const char prefix[] = "/proc/self/fd/";
	char *end;

	if (strncmp(path, prefix, strlen(prefix)) != 0)
		return 0;
	*ret_fd = (int)strtol(path + strlen(prefix), &end, 10);
	return *end ? 2 : 1;
}

/* A thing of which only a descriptor is known. */
static int predict_held(const struct oracle_world *w, const struct oracle_request *q, int fd,
			int *ret)
{
	uint64_t granted;
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : llmodel_granted(&w->domain, fd, &granted);

	if (r == 0)
		*ret = needs_of(w, q, st.st_mode) & ~granted ? -EACCES : 0;
	return r;
}

/* 0 or -EACCES in *ret, for everything that is asked of one place. */
static int predict_place(const struct oracle_world *w, const struct oracle_request *q, int *ret)
{
	bool of_parent = is_of_parent(q->op);
	char real[PATH_MAX];
	int object, parent, r, fd, how = held(q->path, &fd);

	if (how == 1)
		return predict_held(w, q, fd, ret);
	if (of_parent || how == 2)
		oracle_say(real, sizeof(real), "%s", q->path);
	else if (!realpath(q->path, real))
		return -errno;
	object = object_at(real);
	parent = parent_of(real);
	r = judge_place(w, q, object, parent, ret);
	if (object >= 0)
		close(object);
	close(parent);
	return r;
}

static int predict_move(const struct oracle_world *w, const struct oracle_request *q, int *ret)
{
	struct llmodel_move move = {
		.old_dir = parent_of(q->path),
		.old_object = object_at(q->path),
		.new_dir = parent_of(q->path2),
		.new_object = object_at(q->path2),
		.flags = (unsigned int)q->flags,
	};
	int r = q->op == ORACLE_LINK ? llmodel_link(&w->domain, &move, ret)
				     : llmodel_rename(&w->domain, &move, ret);

	close(move.old_dir);
	close(move.old_object);
	close(move.new_dir);
	if (move.new_object >= 0)
		close(move.new_object);
	return r;
}

int oracle_predict(const struct oracle_world *w, const struct oracle_request *q, int *ret)
{
	bool moves = q->op == ORACLE_RENAME || q->op == ORACLE_LINK;

	return moves ? predict_move(w, q, ret) : predict_place(w, q, ret);
}

int oracle_vfs_matter(const struct oracle_request *q)
{
	char a[ORACLE_PATH_BYTES + 1], b[ORACLE_PATH_BYTES + 1];
	struct statx from = {0}, to = {0};
	int dir, dir2;

	if (q->op != ORACLE_RENAME && q->op != ORACLE_LINK)
		return ORACLE_LANDLOCKS;
	dir = parent_of(q->path);
	dir2 = parent_of(q->path2);
	statx(dir, "", AT_EMPTY_PATH, STATX_MNT_ID, &from);
	statx(dir2, "", AT_EMPTY_PATH, STATX_MNT_ID, &to);
	close(dir);
	close(dir2);
	if (from.stx_mnt_id != to.stx_mnt_id)
		return ORACLE_VFS_XDEV;
	oracle_say(a, sizeof(a), "%s/", q->path);
	oracle_say(b, sizeof(b), "%s/", q->path2);
	/* A directory into itself. */
	return strncmp(a, b, strlen(a)) == 0 || strncmp(b, a, strlen(b)) == 0 ? ORACLE_VFS_OTHER
									      : ORACLE_LANDLOCKS;
}
