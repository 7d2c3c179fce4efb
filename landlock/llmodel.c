#include "landlock/llmodel.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "landlock/llright.h"
#include "landlock/llwalk.h"

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

/* What every layer grants: of a directory's walk, and of the rule on a thing in it. */
static uint64_t granted_by(const struct lldomain *d, const struct llwalk *walk,
			   const struct lldomain_rights *own)
{
	struct lldomain_rights sum = walk->access;

	for (unsigned int i = 0; i < d->count; i++)
		sum.layer[i] |= own->layer[i];
	return lldomain_granted(d, &sum);
}

int llmodel_granted(const struct lldomain *d, int fd, uint64_t *ret)
{
	static const struct lldomain_rights none;
	struct llwalk_node node;
	bool internal = false;
	struct llwalk walk;
	int r;

	r = llwalk_look(fd, &node);
	if (r == 0 && !S_ISDIR(node.mode)) {
		r = is_internal(fd, &internal);
		if (r < 0)
			return r;
		if (!internal)
			return -ENOTDIR;
		*ret = LLR_ALL;
		return 0;
	}
	if (r == 0)
		r = llwalk_up(d, fd, &walk);
	if (r < 0)
		return r;
	*ret = granted_by(d, &walk, &none);
	return 0;
}

int llmodel_granted_at(const struct lldomain *d, int object_fd, int parent_fd, uint64_t *ret)
{
	struct lldomain_rights own = {0};
	struct llwalk_node node;
	struct llwalk walk;
	int r = 0;

	if (parent_fd < 0)
		return llmodel_granted(d, object_fd, ret);
	if (object_fd >= 0) {
		r = llwalk_look(object_fd, &node);
		if (r < 0)
			return r;
		lldomain_join(d, node.dev, node.ino, &own);
	}
	r = llwalk_up(d, parent_fd, &walk);
	if (r < 0)
		return r;
	*ret = granted_by(d, &walk, &own);
	return 0;
}

uint64_t llmodel_to_make(const struct lldomain *d, mode_t mode, dev_t rdev)
{
	if (S_ISCHR(mode) && rdev == 0 && (d->errata & LLABI_ERRATUM_WHITEOUT))
		return LLR_MAKE_REG;
	return llright_to_make(mode);
}

/* One end of a move. */
struct end {
	struct llwalk walk;
	struct lldomain_rights own; /* the rule on the thing there */
	uint64_t needs;		    /* of the directory */
	uint64_t makes;		    /* what making such a thing elsewhere needs */
	mode_t mode;		    /* its type; 0: there is none */
};

static int look_at_end(const struct lldomain *d, int dir_fd, int object_fd, struct end *ret)
{
	struct llwalk_node node;
	int r;

	*ret = (struct end){0};
	if (object_fd >= 0) {
		r = llwalk_look(object_fd, &node);
		if (r < 0)
			return r;
		ret->mode = node.mode;
		ret->makes = llmodel_to_make(d, node.mode, node.rdev);
		lldomain_join(d, node.dev, node.ino, &ret->own);
	}
	return llwalk_up(d, dir_fd, &ret->walk);
}

/* Would the thing at `from` gain a right at `to` in any layer? A file gains nothing by a
 * directory's right. */
static bool widens(const struct lldomain *d, const struct end *from, const struct end *to)
{
	uint64_t counted = S_ISDIR(from->mode) ? (uint64_t)LLR_ALL : llright_for_file();

	for (unsigned int i = 0; i < d->count; i++) {
		uint64_t had = from->walk.compared.layer[i] | from->own.layer[i];

		if (to->walk.compared.layer[i] & ~had & counted)
			return true;
	}
	return false;
}

/* Does every layer grant all it handles on both sides? */
static bool is_complete(const struct lldomain *d, const struct end *from, const struct end *to)
{
	for (unsigned int i = 0; i < d->count; i++) {
		uint64_t both = from->walk.all.layer[i] & to->walk.all.layer[i];

		if (lldomain_handled(d, i) & ~both)
			return false;
	}
	return true;
}

static int reparent(const struct lldomain *d, const struct end *from, const struct end *to,
		    bool exchange)
{
	uint64_t source = lldomain_granted(d, &from->walk.all);
	uint64_t target = lldomain_granted(d, &to->walk.all);

	/* ABI 1 refuses before it looks at anything else (Linux 5.13 to 5.18). */
	if (d->abi < 2)
		return -EXDEV;
	if ((from->needs & ~source) || (to->needs & ~target))
		return -EACCES;
	if (is_complete(d, from, to))
		return 0;
	if (!(source & target & LLR_REFER))
		return -EXDEV;
	if (widens(d, from, to) || (exchange && widens(d, to, from)))
		return -EXDEV;
	return 0;
}

static int judge(const struct lldomain *d, const struct end *from, const struct end *to,
		 bool exchange)
{
	if (!llwalk_same(&from->walk.start, &to->walk.start))
		return reparent(d, from, to, exchange);
	return (from->needs | to->needs) & ~lldomain_granted(d, &from->walk.access) ? -EACCES : 0;
}

int llmodel_rename(const struct lldomain *d, const struct llmodel_move *move, int *ret)
{
	bool exchange = move->flags & RENAME_EXCHANGE;
	struct end from, to;
	int r;

	if (exchange && move->new_object < 0)
		return -EINVAL;
	r = look_at_end(d, move->old_dir, move->old_object, &from);
	if (r == 0)
		r = look_at_end(d, move->new_dir, move->new_object, &to);
	if (r < 0)
		return r;
	from.needs = llright_to_remove(from.mode);
	to.needs = from.makes;
	if (move->new_object >= 0)
		to.needs |= llright_to_remove(to.mode);
	if (exchange)
		from.needs |= to.makes;
	if ((move->flags & RENAME_WHITEOUT) && (d->errata & LLABI_ERRATUM_WHITEOUT))
		from.needs |= LLR_MAKE_REG;
	*ret = judge(d, &from, &to, exchange);
	return 0;
}

int llmodel_link(const struct lldomain *d, const struct llmodel_move *move, int *ret)
{
	struct end from, to;
	int r;

	r = look_at_end(d, move->old_dir, move->old_object, &from);
	if (r == 0)
		r = look_at_end(d, move->new_dir, -1, &to);
	if (r < 0)
		return r;
	to.needs = from.makes;
	*ret = judge(d, &from, &to, false);
	return 0;
}
