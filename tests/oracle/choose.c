/* Random requests. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "oracle.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static bool is_dir(const struct oracle_node *n)
{
	return S_ISDIR(n->mode);
}

static bool is_file(const struct oracle_node *n)
{
	return S_ISREG(n->mode) || S_ISLNK(n->mode);
}

static bool is_openable(const struct oracle_node *n)
{
	return !S_ISSOCK(n->mode) && !S_ISBLK(n->mode);
}

/* The first node is the tree's own root. */
static bool is_movable(const struct oracle_node *n)
{
	return !n->mount && strchr(n->path + strlen("/tmp/"), '/');
}

static bool is_movable_dir(const struct oracle_node *n)
{
	return is_dir(n) && is_movable(n);
}

static bool is_linkable(const struct oracle_node *n)
{
	return !S_ISDIR(n->mode) && is_movable(n);
}

/* Found, and what it is once symlinks are followed. A whiteout's own mode lets nobody in. */
static bool choose_target(struct oracle_world *w, struct oracle_request *q,
			  bool (*fits)(const struct oracle_node *), mode_t *ret)
{
	const struct oracle_node *node = oracle_pick(w, fits);
	struct stat st;

	if (!node || stat(node->path, &st) < 0 || (S_ISCHR(st.st_mode) && st.st_rdev == 0))
		return false;
	*ret = st.st_mode;
	return oracle_say(q->path, sizeof(q->path), "%s", node->path);
}

static bool choose_open(struct oracle_world *w, struct oracle_request *q)
{
	static const int modes[] = {O_RDONLY,
				    O_WRONLY,
				    O_RDWR,
				    O_WRONLY | O_TRUNC,
				    O_RDONLY | O_TRUNC,
				    O_WRONLY | O_APPEND,
				    O_WRONLY | O_CREAT,
				    O_RDWR | O_CREAT | O_TRUNC,
				    O_PATH,
				    O_ACCMODE};
	mode_t mode;

	if (!choose_target(w, q, is_openable, &mode) || S_ISSOCK(mode) || S_ISBLK(mode))
		return false;
	q->flags = modes[oracle_below(w, COUNT(modes))];
	/* A FIFO opened for writing alone would wait for a reader or fail. */
	if (S_ISDIR(mode))
		q->flags = O_DIRECTORY | (q->flags & O_PATH);
	else if (S_ISFIFO(mode))
		q->flags = (q->flags & O_ACCMODE) == O_RDONLY ? O_RDONLY : O_RDWR;
	q->flags |= O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
	return true;
}

static bool choose_new(struct oracle_world *w, struct oracle_request *q)
{
	static const mode_t kinds[] = {S_IFREG, S_IFDIR, S_IFIFO, S_IFSOCK,
				       S_IFCHR, S_IFCHR, S_IFBLK, 0};
	static const int modes[] = {O_RDONLY, O_WRONLY | O_TRUNC, O_RDWR | O_EXCL, O_ACCMODE};
	const struct oracle_node *dir = oracle_pick(w, is_dir);
	int kind = oracle_below(w, COUNT(kinds));

	q->mode = kinds[kind];
	/* One of the two character devices is a whiteout. */
	q->dev = kind == 4 ? makedev(0, 0) : makedev(1, 3);
	q->flags = modes[oracle_below(w, COUNT(modes))] | O_CREAT | O_CLOEXEC;
	return dir && oracle_new_name(w, dir->path, q->path);
}

static bool choose_ioctl(struct oracle_world *w, struct oracle_request *q)
{
	static const unsigned long commands[] = {FIONREAD, TCGETS,  TIOCGWINSZ,
						 FIOCLEX,  FIONBIO, FIOASYNC};

	if (oracle_below(w, 4)) {
		q->mode = S_IFCHR;
		oracle_say(q->path, sizeof(q->path), "%s",
			   oracle_below(w, 2) ? "/dev/null" : "/dev/zero");
	} else if (!choose_target(w, q, is_openable, &q->mode) || S_ISDIR(q->mode) ||
		   S_ISSOCK(q->mode) || S_ISBLK(q->mode)) {
		return false;
	}
	q->ioctl = commands[oracle_below(w, COUNT(commands))];
	q->flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
	return true;
}

static bool choose_rename(struct oracle_world *w, struct oracle_request *q)
{
	static const int flags[] = {
		0, 0, 0, RENAME_EXCHANGE, RENAME_EXCHANGE, RENAME_NOREPLACE, RENAME_WHITEOUT};
	/* A directory takes all its rights along, a file but a few: as often the one as the other.
	 */
	const struct oracle_node *from =
		oracle_pick(w, oracle_below(w, 2) ? is_movable : is_movable_dir);
	const struct oracle_node *to;

	q->flags = flags[oracle_below(w, COUNT(flags))];
	if (!from || !oracle_say(q->path, sizeof(q->path), "%s", from->path))
		return false;
	if (q->flags == RENAME_EXCHANGE || (q->flags == 0 && oracle_below(w, 3) == 0)) {
		to = oracle_pick(w, is_movable);
		return to && oracle_say(q->path2, sizeof(q->path2), "%s", to->path);
	}
	to = oracle_pick(w, is_dir);
	return to && oracle_new_name(w, to->path, q->path2);
}

static bool choose_link(struct oracle_world *w, struct oracle_request *q)
{
	const struct oracle_node *from = oracle_pick(w, is_linkable), *to = oracle_pick(w, is_dir);

	return from && to && oracle_say(q->path, sizeof(q->path), "%s", from->path) &&
	       oracle_new_name(w, to->path, q->path2);
}

static bool choose_one(struct oracle_world *w, struct oracle_request *q,
		       bool (*fits)(const struct oracle_node *))
{
	const struct oracle_node *node = oracle_pick(w, fits);

	return node && oracle_say(q->path, sizeof(q->path), "%s", node->path);
}

bool oracle_choose(struct oracle_world *w, struct oracle_request *q)
{
	static const enum oracle_op ops[] = {
		ORACLE_OPEN,   ORACLE_OPEN,   ORACLE_OPEN,   ORACLE_CREATE,    ORACLE_TMPFILE,
		ORACLE_EXEC,   ORACLE_MAKE,   ORACLE_MAKE,   ORACLE_FTRUNCATE, ORACLE_TRUNCATE,
		ORACLE_IOCTL,  ORACLE_BIND,   ORACLE_REMOVE, ORACLE_SYMLINK,   ORACLE_RENAME,
		ORACLE_RENAME, ORACLE_RENAME, ORACLE_RENAME, ORACLE_LINK,      ORACLE_LINK,
	};
	mode_t mode;

	*q = (struct oracle_request){.op = ops[oracle_below(w, COUNT(ops))]};
	switch (q->op) {
	case ORACLE_OPEN:
		return choose_open(w, q);
	case ORACLE_CREATE:
	case ORACLE_MAKE:
	case ORACLE_SYMLINK:
	case ORACLE_BIND:
		return choose_new(w, q);
	case ORACLE_TMPFILE:
		q->flags = O_TMPFILE | O_CLOEXEC | (oracle_below(w, 2) ? O_RDWR : O_WRONLY);
		return choose_one(w, q, is_dir);
	case ORACLE_TRUNCATE:
	case ORACLE_FTRUNCATE:
	case ORACLE_EXEC:
		return choose_target(w, q, is_file, &mode) && S_ISREG(mode);
	case ORACLE_IOCTL:
		return choose_ioctl(w, q);
	case ORACLE_REMOVE:
		return choose_one(w, q, is_movable);
	case ORACLE_RENAME:
		return choose_rename(w, q);
	case ORACLE_LINK:
		return choose_link(w, q);
	case ORACLE_OPS:
		break;
	}
	return false;
}
