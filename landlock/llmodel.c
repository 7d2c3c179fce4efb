#include "landlock/llmodel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "landlock/llright.h"

struct node {
	dev_t dev;
	ino_t ino;
	uint64_t mnt;
	mode_t mode;
	bool mount_root;
};

/* What a walk met. */
struct walk {
	struct node start;
	uint64_t all;	    /* every rule's rights, the real root's included */
	uint64_t below_top; /* the same without the real root's own rule */
	bool one_mount;	    /* the start is on the real root's own mount */
};

static int look(int fd, struct node *ret)
{
	struct statx sx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MODE | STATX_INO | STATX_MNT_ID, &sx) <
	    0)
		return -errno;
	*ret = (struct node){
		.dev = makedev(sx.stx_dev_major, sx.stx_dev_minor),
		.ino = sx.stx_ino,
		.mnt = sx.stx_mnt_id,
		.mode = sx.stx_mode,
		.mount_root = sx.stx_attributes & STATX_ATTR_MOUNT_ROOT,
	};
	return 0;
}

static bool same(const struct node *a, const struct node *b)
{
	return a->ino == b->ino && a->dev == b->dev && a->mnt == b->mnt;
}

static uint64_t rule_of(const struct llruleset *rs, const struct node *node)
{
	return llruleset_lookup(rs, node->dev, node->ino);
}

/* ".." steps from a mount's root to the mount point's parent, over the hidden mount point, and
 * stays where it is at the real root: just as the kernel's walk does. */
static int walk_up(const struct llruleset *rs, int dir_fd, struct walk *ret)
{
	struct walk walk = {0};
	struct node here, up;
	int fd = dir_fd, next, r;

	r = look(fd, &here);
	if (r < 0)
		return r;
	walk.start = here;
	for (;;) {
		walk.below_top = walk.all;
		walk.all |= rule_of(rs, &here);
		next = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (next < 0) {
			r = -errno;
			goto out;
		}
		if (fd != dir_fd)
			close(fd);
		fd = next;
		r = look(fd, &up);
		if (r < 0 || same(&here, &up))
			goto out;
		here = up;
	}
out:
	if (fd != dir_fd)
		close(fd);
	if (r < 0)
		return r;
	walk.one_mount = here.mnt == walk.start.mnt;
	/* chroot(2) into a plain directory: the kernel's walk goes on above, to the real root. */
	if (!here.mount_root)
		walk.below_top = walk.all;
	*ret = walk;
	return 0;
}

/* What a ruleset leaves alone. ABI 1 does not know refer and refuses all reparenting. */
static uint64_t free_rights(const struct llruleset *rs)
{
	uint64_t unhandled = LLR_ALL & ~llruleset_handled(rs);

	return llruleset_abi(rs)->abi < 2 ? unhandled & ~(uint64_t)LLR_REFER : unhandled;
}

/* A memfd is a file without a name on a tmpfs that is mounted nowhere. */
static bool is_memfd(int fd)
{
	static const char prefix[] = "/memfd:";
	char link[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	char name[sizeof(prefix)];
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_nlink != 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, name, sizeof(name)) >= (ssize_t)strlen(prefix) &&
	       memcmp(name, prefix, strlen(prefix)) == 0;
}

/* Filesystems that are mounted nowhere: Landlock lets everything on them pass. */
static int is_internal(int fd, bool *ret)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return -errno;
	switch ((unsigned long)fs.f_type) {
	case 0x50495045: /* pipefs */
	case 0x534f434b: /* sockfs */
	case 0x09041934: /* anon_inodefs */
	case 0x6e736673: /* nsfs */
	case 0x50494446: /* pidfs */
	case 0x444d4142: /* dma-buf */
	case 0x5345434d: /* secretmem */
		*ret = true;
		return 0;
	case 0x01021994: /* tmpfs */
	case 0x958458f6: /* hugetlbfs */
		*ret = is_memfd(fd);
		return 0;
	default:
		*ret = false;
		return 0;
	}
}

int llmodel_granted(const struct llruleset *rs, int fd, uint64_t *ret)
{
	struct walk walk;
	struct node node;
	bool internal = false;
	int r;

	r = look(fd, &node);
	if (r < 0)
		return r;
	if (!S_ISDIR(node.mode)) {
		r = is_internal(fd, &internal);
		if (r < 0)
			return r;
		if (!internal)
			return -ENOTDIR;
		*ret = LLR_ALL;
		return 0;
	}
	r = walk_up(rs, fd, &walk);
	if (r < 0)
		return r;
	*ret = walk.all | free_rights(rs);
	return 0;
}

int llmodel_granted_at(const struct llruleset *rs, int object_fd, int parent_fd, uint64_t *ret)
{
	struct walk walk;
	struct node node;
	uint64_t own = 0;
	int r;

	if (parent_fd < 0)
		return llmodel_granted(rs, object_fd, ret);
	if (object_fd >= 0) {
		r = look(object_fd, &node);
		if (r < 0)
			return r;
		own = rule_of(rs, &node);
	}
	r = walk_up(rs, parent_fd, &walk);
	if (r < 0)
		return r;
	*ret = own | walk.all | free_rights(rs);
	return 0;
}

/* One end of a move. */
struct end {
	struct walk walk;
	uint64_t needs; /* of the directory */
	uint64_t own;	/* the rule on the thing there */
	mode_t mode;	/* its type; 0: there is none */
};

static int look_at_end(const struct llruleset *rs, int dir_fd, int object_fd, struct end *ret)
{
	struct end end = {0};
	struct node node;
	int r;

	if (object_fd >= 0) {
		r = look(object_fd, &node);
		if (r < 0)
			return r;
		end.mode = node.mode;
		end.own = rule_of(rs, &node);
	}
	r = walk_up(rs, dir_fd, &end.walk);
	if (r < 0)
		return r;
	*ret = end;
	return 0;
}

/* Would the thing at `from` gain a right at `to`? A file gains nothing by a directory's right. The
 * kernel (is_access_to_paths_allowed) stops comparing before it looks at the real root's rule,
 * unless that is the root of the very mount, whose rules it has collected before. */
static bool widens(const struct end *from, const struct end *to)
{
	uint64_t counted = S_ISDIR(from->mode) ? (uint64_t)LLR_ALL : llright_for_file();
	uint64_t had = from->walk.one_mount ? from->walk.all : from->walk.below_top;
	uint64_t has = to->walk.one_mount ? to->walk.all : to->walk.below_top;

	return (has & ~(had | from->own) & counted) != 0;
}

static int reparent(const struct llruleset *rs, const struct end *from, const struct end *to,
		    bool exchange)
{
	uint64_t pass = free_rights(rs), handled = llruleset_handled(rs);

	/* ABI 1 refuses before it looks at anything else (Linux 5.13 to 5.18). */
	if (llruleset_abi(rs)->abi < 2)
		return -EXDEV;
	if ((from->needs & ~(from->walk.all | pass)) || (to->needs & ~(to->walk.all | pass)))
		return -EACCES;
	if ((from->walk.all & to->walk.all & handled) == handled)
		return 0;
	if (!(from->walk.all & to->walk.all & LLR_REFER))
		return -EXDEV;
	if (widens(from, to) || (exchange && widens(to, from)))
		return -EXDEV;
	return 0;
}

static int judge(const struct llruleset *rs, const struct end *from, const struct end *to,
		 bool exchange)
{
	uint64_t granted;

	if (!same(&from->walk.start, &to->walk.start))
		return reparent(rs, from, to, exchange);
	granted = from->walk.all | free_rights(rs);
	return (from->needs | to->needs) & ~granted ? -EACCES : 0;
}

int llmodel_rename(const struct llruleset *rs, const struct llmodel_move *move, int *ret)
{
	bool exchange = move->flags & RENAME_EXCHANGE;
	struct end from, to;
	int r;

	if (exchange && move->new_object < 0)
		return -EINVAL;
	r = look_at_end(rs, move->old_dir, move->old_object, &from);
	if (r < 0)
		return r;
	r = look_at_end(rs, move->new_dir, move->new_object, &to);
	if (r < 0)
		return r;
	from.needs = llright_to_remove(from.mode);
	to.needs = llright_to_make(from.mode);
	if (move->new_object >= 0)
		to.needs |= llright_to_remove(to.mode);
	if (exchange)
		from.needs |= llright_to_make(to.mode);
	if ((move->flags & RENAME_WHITEOUT) && (llruleset_abi(rs)->errata & LLABI_ERRATUM_WHITEOUT))
		from.needs |= LLR_MAKE_REG;
	*ret = judge(rs, &from, &to, exchange);
	return 0;
}

int llmodel_link(const struct llruleset *rs, const struct llmodel_move *move, int *ret)
{
	struct end from, to;
	int r;

	r = look_at_end(rs, move->old_dir, move->old_object, &from);
	if (r < 0)
		return r;
	r = look_at_end(rs, move->new_dir, -1, &to);
	if (r < 0)
		return r;
	to.needs = llright_to_make(from.mode);
	*ret = judge(rs, &from, &to, false);
	return 0;
}
