#include "landlock/llwalk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "landlock/llescape.h"

#define NODE_FIELDS (STATX_TYPE | STATX_MODE | STATX_INO | STATX_MNT_ID)

/* So many steps are taken from one descriptor before the next is opened. */
#define STEPS_MAX 64u
#define UP_4	  "../../../../"
#define UP_16	  UP_4 UP_4 UP_4 UP_4
static const char up_steps[] = UP_16 UP_16 UP_16 UP_16;

_Static_assert(sizeof(up_steps) - 1 == 3 * STEPS_MAX, "three bytes a step");

static const char *steps(unsigned int n)
{
	return up_steps + 3 * (size_t)(STEPS_MAX - n);
}

static int look_at(int fd, const char *path, struct llwalk_node *ret)
{
	struct statx sx;

	if (statx(fd, path, AT_EMPTY_PATH, NODE_FIELDS, &sx) < 0)
		return -errno;
	*ret = (struct llwalk_node){
		.dev = makedev(sx.stx_dev_major, sx.stx_dev_minor),
		.ino = sx.stx_ino,
		.mnt = sx.stx_mnt_id,
		.mode = sx.stx_mode,
		.rdev = makedev(sx.stx_rdev_major, sx.stx_rdev_minor),
		.mount_root = sx.stx_attributes & STATX_ATTR_MOUNT_ROOT,
	};
	return 0;
}

int llwalk_look(int fd, struct llwalk_node *ret)
{
	return look_at(fd, "", ret);
}

bool llwalk_same(const struct llwalk_node *a, const struct llwalk_node *b)
{
	return a->ino == b->ino && a->dev == b->dev && a->mnt == b->mnt;
}

struct climb {
	int fd;
	bool opened;	 /* fd is ours */
	unsigned int up; /* so many steps above it is here */
	struct llwalk_node here;
};

static int climb_begin(int fd, struct climb *ret)
{
	*ret = (struct climb){.fd = fd};
	return llwalk_look(fd, &ret->here);
}

static void climb_end(struct climb *c)
{
	if (c->opened)
		close(c->fd);
}

/* 1: one directory higher, 0: this is the root. ".." steps from a mount's root to the mount point's
 * parent and stays where it is at the real root, just as the kernel's walk does. */
static int climb_step(struct climb *c)
{
	struct llwalk_node above;
	int r;

	if (c->up == STEPS_MAX) {
		int fd = openat(c->fd, steps(c->up), O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0)
			return -errno;
		climb_end(c);
		*c = (struct climb){.fd = fd, .opened = true, .here = c->here};
	}
	r = look_at(c->fd, steps(c->up + 1), &above);
	if (r < 0)
		return r;
	if (llwalk_same(&c->here, &above))
		return 0;
	if (above.mnt != c->here.mnt && !c->here.mount_root)
		return -ESTALE;
	c->here = above;
	c->up++;
	return 1;
}

/* From the climb's beginning to the real root: *compared ends without the last one's rule. */
static int to_the_root(const struct lldomain *d, struct climb *c, struct lldomain_rights *all,
		       struct lldomain_rights *compared)
{
	int r;

	do {
		*compared = *all;
		lldomain_join(d, c->here.dev, c->here.ino, all);
		r = climb_step(c);
	} while (r > 0);
	return r;
}

static int to_the_mounts_root(const struct lldomain *d, struct climb *c,
			      struct lldomain_rights *all)
{
	int r = 1;

	while (r > 0) {
		lldomain_join(d, c->here.dev, c->here.ino, all);
		r = c->here.mount_root ? 0 : climb_step(c);
	}
	return r;
}

/* First the directories up to the filesystem's own root, then the mount that it was opened in. If
 * it was not this directory that was moved away but a mount point further up, then mountinfo does
 * not list the mount, and that is the end. */
static int walk_apart(const struct lldomain *d, int dir_fd, struct llwalk *walk)
{
	struct climb c;
	int fd, r;

	walk->all = (struct lldomain_rights){0};
	r = llescape_reopen(dir_fd, walk->start.dev, &fd);
	if (r < 0)
		return r;
	r = climb_begin(fd, &c);
	if (r == 0)
		r = to_the_mounts_root(d, &c, &walk->all);
	climb_end(&c);
	close(fd);
	if (r < 0)
		return r;
	walk->access = walk->all;
	r = llescape_mount_root(walk->start.mnt, &fd);
	if (r < 0)
		return r;
	r = climb_begin(fd, &c);
	if (r == 0)
		r = to_the_root(d, &c, &walk->all, &walk->compared);
	climb_end(&c);
	close(fd);
	if (d->errata & LLABI_ERRATUM_DISCONNECTED)
		walk->access = walk->all;
	return r;
}

int llwalk_up(const struct lldomain *d, int dir_fd, struct llwalk *ret)
{
	struct llwalk walk = {0};
	struct climb c;
	int r;

	r = climb_begin(dir_fd, &c);
	if (r < 0)
		return r;
	walk.start = c.here;
	r = S_ISDIR(c.here.mode) ? to_the_root(d, &c, &walk.all, &walk.compared) : -ENOTDIR;
	climb_end(&c);
	if (r == -ENOENT) {
		r = walk_apart(d, dir_fd, &walk);
	} else {
		walk.access = walk.all;
		/* chroot(2) into a plain directory: the kernel goes on above, to the real root. */
		if (c.here.mnt == walk.start.mnt || !c.here.mount_root)
			walk.compared = walk.all;
	}
	if (r < 0)
		return r;
	*ret = walk;
	return 0;
}
