#include "landlock/llescape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* One line of /proc/PID/mountinfo, as far as it is used here. */
struct mount {
	unsigned long long id;
	dev_t dev;
	bool whole; /* shows the filesystem from its root on */
	char *point;
};

/* mountinfo writes blank, tab, newline and backslash as three octal digits. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		unsigned int byte;

		if (from[0] == '\\' && sscanf(from + 1, "%3o", &byte) == 1) {
			*to = (char)byte;
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* The path in *ret points into the line. */
static bool parse(char *line, struct mount *ret)
{
	unsigned int major, minor;
	int root = 0, root_end = 0, point = 0, point_end = 0;
	unsigned long long id;

	if (sscanf(line, "%llu %*u %u:%u %n%*s%n %n%*s%n", &id, &major, &minor, &root, &root_end,
		   &point, &point_end) != 3 ||
	    !point_end)
		return false;
	line[point_end] = '\0';
	unescape(line + point);
	*ret = (struct mount){
		.id = id,
		.dev = makedev(major, minor),
		.whole = root_end - root == 1 && line[root] == '/',
		.point = line + point,
	};
	return true;
}

/* The mount's root, if nothing hides it. */
static int open_mount(const struct mount *m, int flags, int *ret_fd)
{
	int fd = open(m->point, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct statx sx;

	if (fd < 0)
		return -errno;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &sx) < 0 || sx.stx_mnt_id != m->id) {
		close(fd);
		return -ESTALE;
	}
	*ret_fd = fd;
	return 0;
}

/* The first mount of the filesystem's root (or the mount with this id) that can be opened. */
static int find_mount(dev_t dev, const uint64_t *id_or_null, int flags, int *ret_fd)
{
	FILE *table = fopen("/proc/self/mountinfo", "re");
	int r = -ENOENT;
	char *line = NULL;
	size_t size = 0;
	struct mount m;

	if (!table)
		return -errno;
	while (r < 0 && getline(&line, &size, table) > 0) {
		if (!parse(line, &m))
			continue;
		if (id_or_null ? m.id == *id_or_null : m.dev == dev && m.whole)
			r = open_mount(&m, flags, ret_fd);
	}
	free(line);
	fclose(table);
	return r;
}

int llescape_mount_root(uint64_t mnt, int *ret_fd)
{
	return find_mount(0, &mnt, O_PATH, ret_fd);
}

int llescape_reopen(int dir_fd, dev_t dev, int *ret_fd)
{
	union {
		struct file_handle handle;
		char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} name = {.handle.handle_bytes = MAX_HANDLE_SZ};
	int mount_id, whole, fd, r;

	if (name_to_handle_at(dir_fd, "", &name.handle, &mount_id, AT_EMPTY_PATH) < 0)
		return -errno;
	r = find_mount(dev, NULL, O_RDONLY, &whole);
	if (r < 0)
		return r;
	fd = open_by_handle_at(whole, &name.handle, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = fd < 0 ? -errno : 0;
	close(whole);
	if (r < 0)
		return r;
	*ret_fd = fd;
	return 0;
}
