#include "supervisor/devices.h"

#include "landlock/llright.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Documentation/admin-guide/devices.txt */
#define PTS_MAJOR_FIRST 136
#define PTS_MAJOR_LAST	143

static bool is_inode(const struct llrule *rule, const struct stat *st)
{
	return rule->dev == st->st_dev && rule->ino == st->st_ino;
}

/* Where device nodes are to be expected. */
struct places {
	struct stat root, dev, pts;
	bool unknown; /* then they may be anywhere */
	bool no_pts;
};

static void find_places(struct places *ret)
{
	ret->unknown = stat("/", &ret->root) || stat("/dev", &ret->dev);
	ret->no_pts = stat("/dev/pts", &ret->pts);
}

/* The root, /dev, or in the file systems of /dev and /dev/pts. */
static bool holds_devices(const struct places *at, const struct llrule *rule)
{
	if (at->unknown || is_inode(rule, &at->root) || is_inode(rule, &at->dev))
		return true;
	dev_t root = at->root.st_dev;
	return (at->dev.st_dev != root && rule->dev == at->dev.st_dev) ||
	       (!at->no_pts && at->pts.st_dev != root && rule->dev == at->pts.st_dev);
}

bool devices_lack_ioctl(const struct llruleset *rs)
{
	const struct llrule *rule;
	struct places at;
	if (!(llruleset_handled(rs) & LLR_IOCTL_DEV))
		return false;
	find_places(&at);
	for (size_t i = 0; (rule = llruleset_rule(rs, i)); i++) {
		if (!(rule->rights & (LLR_READ_FILE | LLR_WRITE_FILE)) ||
		    (rule->rights & LLR_IOCTL_DEV))
			continue;
		if (S_ISCHR(rule->mode) || S_ISBLK(rule->mode) ||
		    (S_ISDIR(rule->mode) && holds_devices(&at, rule)))
			return true;
	}
	return false;
}

bool devices_is_terminal(const struct stat *st)
{
	char file[64], kind[256] = "";
	unsigned number = major(st->st_rdev);
	if (!S_ISCHR(st->st_mode))
		return false;
	if (number >= PTS_MAJOR_FIRST && number <= PTS_MAJOR_LAST)
		return true;
	snprintf(file, sizeof file, "/sys/dev/char/%u:%u/subsystem", number, minor(st->st_rdev));
	if (readlink(file, kind, sizeof kind - 1) < 0)
		return false;
	const char *last = strrchr(kind, '/');
	return last && !strcmp(last, "/tty");
}
