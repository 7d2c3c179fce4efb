#include "supervisor/slowfs.h"

#include "supervisor/tracee_fd.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SLOW_MAX 256 /* more, and every path counts as slow */

struct slowfs {
	FILE *table;
	int told;     /* the same, opened once more: who polls it takes the news away from others */
	bool is_read; /* most runs never ask */
	bool too_many;
	size_t len;
	dev_t dev[SLOW_MAX];
};

/* Of this machine's memory and disks, and the kernel's own. */
static const char *const quick[] = {
	"ext2",	      "ext3",	   "ext4",     "xfs",	   "btrfs",	  "f2fs",     "tmpfs",
	"ramfs",      "overlay",   "squashfs", "erofs",	   "iso9660",	  "vfat",     "exfat",
	"ntfs3",      "zfs",	   "bcachefs", "proc",	   "sysfs",	  "devtmpfs", "devpts",
	"cgroup",     "cgroup2",   "mqueue",   "debugfs",  "tracefs",	  "bpf",      "pstore",
	"securityfs", "hugetlbfs", "configfs", "efivarfs", "binfmt_misc", "fusectl",  "nsfs",
	"rpc_pipefs", "nfsd",	   "pidfs",    "resctrl",  "selinuxfs",	  "rootfs",
};

static bool is_quick(const char *type)
{
	for (size_t i = 0; i < ARRAY_LEN(quick); i++)
		if (!strcmp(quick[i], type))
			return true;
	return false;
}

/* ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE SOURCE ... (proc_pid_mountinfo(5)) */
static void read_line(struct slowfs *s, const char *line)
{
	unsigned major, minor;
	char type[64], point[64];
	const char *behind = strstr(line, " - ");
	if (!behind || sscanf(behind, " - %63s", type) != 1 ||
	    sscanf(line, "%*d %*d %u:%u %*s %63s", &major, &minor, point) != 3 || is_quick(type))
		return;
	/* On every machine with systemd, which mounts nothing but the kernel's own there. */
	if (!strcmp(type, "autofs") && !strcmp(point, "/proc/sys/fs/binfmt_misc"))
		return;
	if (s->len == SLOW_MAX)
		s->too_many = true;
	else
		s->dev[s->len++] = makedev(major, minor);
}

static void read_table(struct slowfs *s)
{
	char *line = NULL;
	size_t cap = 0;
	s->is_read = true;
	s->len = 0;
	s->too_many = false;
	rewind(s->table);
	while (getline(&line, &cap, s->table) > 0)
		read_line(s, line);
	s->too_many |= ferror(s->table) != 0;
	free(line);
}

int slowfs_new(struct slowfs **ret)
{
	struct slowfs *s = calloc(1, sizeof *s);
	if (!s)
		return -ENOMEM;
	s->told = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	s->table = s->told < 0 ? NULL : fopen("/proc/self/mountinfo", "re");
	if (!s->table) {
		int err = -errno;
		util_close(&s->told);
		free(s);
		return err;
	}
	*ret = s;
	return 0;
}

void slowfs_free(struct slowfs *s)
{
	if (!s)
		return;
	fclose(s->table);
	close(s->told);
	free(s);
}

int slowfs_fd(const struct slowfs *s)
{
	return s->told;
}

bool slowfs_renew(struct slowfs *s)
{
	struct pollfd changed = {.fd = fileno(s->table), .events = POLLPRI};
	if (poll(&changed, 1, 0) <= 0)
		return false;
	s->is_read = false;
	return true;
}

/* Is any mounted? */
static bool any(struct slowfs *s)
{
	if (!s->is_read)
		read_table(s);
	return s->len || s->too_many;
}

bool slowfs_has(struct slowfs *s, int fd)
{
	struct statx st;
	if (!any(s))
		return false;
	if (s->too_many || statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st))
		return true;
	dev_t dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	for (size_t i = 0; i < s->len; i++)
		if (s->dev[i] == dev)
			return true;
	return false;
}

/* Where the walk begins; -1: not known. */
static int open_base(const struct call_path *p, struct call_view view, uint64_t *ret_scope)
{
	char path[64];
	*ret_scope = 0;
	if (p->given[0] == '/') {
		snprintf(path, sizeof path, "/proc/%d/root", view.tid);
		*ret_scope = RESOLVE_IN_ROOT;
	} else if (!path_has_our_root(view.tid)) {
		return -1;
	} else if (p->dirfd == AT_FDCWD) {
		snprintf(path, sizeof path, "/proc/%d/cwd", view.tid);
	} else {
		snprintf(path, sizeof path, "/proc/%d/fd/%d", view.tid, p->dirfd);
	}
	return open(path, O_PATH | O_CLOEXEC);
}

static bool path_concerns(struct slowfs *s, const struct call *c, unsigned i, struct call_view view)
{
	const struct call_path *p = &c->path[i];
	struct open_how how = {.flags = O_PATH | O_CLOEXEC};
	if (!p->given)
		return false;
	uint64_t scope;
	int base AUTOCLOSE = open_base(p, view, &scope);
	if (base < 0 || slowfs_has(s, base))
		return true;
	how.resolve = scope | RESOLVE_CACHED;
	if (!call_follows(c, i))
		how.flags |= O_NOFOLLOW;
	int fd AUTOCLOSE = (int)syscall(SYS_openat2, base, p->given, &how, sizeof how);
	if (fd >= 0)
		return slowfs_has(s, fd);
	/* Not at hand: who has it can't be said yet. */
	return errno == EAGAIN;
}

/* The calls that are about a descriptor have it first (syscalls.def). */
static bool fd_concerns(struct slowfs *s, const struct call *c, struct call_view view)
{
	int kind = c->ent->arg[0];
	if (c->path[0].given || c->ent->group == SYS_GROUP_CONNECT ||
	    (kind != ARG_FD && kind != ARG_FILE && kind != ARG_DIRFD))
		return false;
	int fd AUTOCLOSE = -1;
	return !tracee_fd_take(NULL, view, (int)c->args[0], &fd) && slowfs_has(s, fd);
}

bool slowfs_concerns(struct slowfs *s, const struct call *c, struct call_view view)
{
	if (!any(s))
		return false;
	for (unsigned i = 0; i < CALL_PATHS; i++)
		if (path_concerns(s, c, i, view))
			return true;
	return fd_concerns(s, c, view);
}
