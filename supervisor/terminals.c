#include "supervisor/terminals.h"

#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Unix98 slaves (Documentation/admin-guide/devices.txt); devpts gives all of them the first. */
#define PTS_MAJOR_FIRST 136
#define PTS_MAJOR_LAST	143

#define TREE_MAX 4096 /* processes looked through */

static bool is_pts(dev_t dev)
{
	return major(dev) >= PTS_MAJOR_FIRST && major(dev) <= PTS_MAJOR_LAST;
}

static unsigned pts_index(dev_t dev)
{
	return (major(dev) - PTS_MAJOR_FIRST) * 256 + minor(dev);
}

/* The name that udev or devtmpfs gave a terminal that is no pseudo-terminal. */
static bool sysfs_name(dev_t dev, char *ret, size_t cap)
{
	char file[64], line[PATH_MAX];
	bool found = false;
	snprintf(file, sizeof file, "/sys/dev/char/%u:%u/uevent", major(dev), minor(dev));
	FILE *f = fopen(file, "re");
	while (f && !found && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = '\0';
		found = !strncmp(line, "DEVNAME=", 8) &&
			snprintf(ret, cap, "/dev/%s", line + 8) < (int)cap;
	}
	if (f)
		fclose(f);
	return found;
}

static bool name_of(dev_t dev, char *ret, size_t cap)
{
	if (!is_pts(dev))
		return sysfs_name(dev, ret, cap);
	return snprintf(ret, cap, "/dev/pts/%u", pts_index(dev)) < (int)cap;
}

int terminals_forbid_ours(struct policy *p)
{
	char name[PATH_MAX], origin[] = "the terminal you sit at";
	unsigned dev;
	int fd AUTOCLOSE = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	/* TIOCGDEV: the real device behind /dev/tty, in the kernel's 32-bit form (Linux 2.6.39). */
	if (fd < 0 || ioctl(fd, TIOCGDEV, &dev) || !name_of(dev, name, sizeof name))
		return 0;
	struct rule rule = {.effect = EFFECT_FORBID,
			    .kind = RULE_EXACT,
			    .source = RULE_BUILTIN,
			    .access = ACCESS_ALL,
			    .path = name,
			    .origin = origin};
	return policy_add(p, &rule);
}

static struct rule own_rule(char *name)
{
	static char origin[] = "the command's terminal";
	return (struct rule){.effect = EFFECT_ALLOW,
			     .kind = RULE_EXACT,
			     .source = RULE_ANSWER,
			     .access = ACCESS_READ | ACCESS_WRITE | ACCESS_META | ACCESS_IOCTL,
			     .path = name,
			     .origin = origin};
}

int terminals_own(struct policy *p, const int slaves[TERMINALS_OWN], struct terminals *ret)
{
	*ret = (struct terminals){0};
	for (size_t i = 0; i < TERMINALS_OWN; i++) {
		struct stat st;
		if (slaves[i] < 0 || fstat(slaves[i], &st) || !is_pts(st.st_rdev) ||
		    !name_of(st.st_rdev, ret->name[i], sizeof ret->name[i]))
			continue;
		struct rule rule = own_rule(ret->name[i]);
		int err = policy_add(p, &rule);
		if (err)
			return err;
	}
	return 0;
}

void terminals_disown(struct policy *p, struct terminals *t)
{
	for (size_t i = 0; i < TERMINALS_OWN; i++) {
		struct rule rule = own_rule(t->name[i]);
		if (t->name[i][0])
			policy_remove(p, &rule);
		t->name[i][0] = '\0';
	}
}

/* Does this descriptor's fdinfo tell of the master with that index (drivers/tty/tty_io.c)? */
static bool is_master_of(int fdinfo_dir, const char *fd_name, unsigned index)
{
	char text[512];
	int fd AUTOCLOSE = openat(fdinfo_dir, fd_name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	const char *line = strstr(text, "tty-index:");
	unsigned long found;
	return line && sscanf(line + strlen("tty-index:"), "%lu", &found) == 1 && found == index;
}

static bool holds_master(pid_t pid, unsigned index)
{
	char dir[64];
	snprintf(dir, sizeof dir, "/proc/%d/fdinfo", pid);
	DIR *d = opendir(dir);
	bool found = false;
	for (const struct dirent *e; d && !found && (e = readdir(d));)
		found = e->d_name[0] != '.' && is_master_of(dirfd(d), e->d_name, index);
	if (d)
		closedir(d);
	return found;
}

bool terminals_is_the_trees(const struct tracer *t, const struct path_at *at)
{
	if (!at->exists || !S_ISCHR(at->st.st_mode) || !is_pts(at->st.st_rdev))
		return false;
	pid_t *pids AUTOFREE = calloc(TREE_MAX, sizeof *pids);
	size_t n = pids ? tracer_processes(t, pids, TREE_MAX) : 0;
	for (size_t i = 0; i < n && i < TREE_MAX; i++)
		if (holds_master(pids[i], pts_index(at->st.st_rdev)))
			return true;
	return false;
}
