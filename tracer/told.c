#include "tracer/told.h"

#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* d_path's words. 0, -ENAMETOOLONG, -ENOMEM or another -errno. */
static int by_kernel(int fd, char **ret)
{
	char link[40];
	char text[PATH_MAX + 1];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

static bool is_entry_of(int dir, const struct dirent *e, const struct stat *want)
{
	struct stat st;

	return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
	       (e->d_ino == want->st_ino || e->d_type == DT_DIR) &&
	       fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_dev == want->st_dev && st.st_ino == want->st_ino;
}

/* The name in `up` of the directory that is *want. */
static bool find_name(int up, const struct stat *want, char name[NAME_MAX + 1])
{
	int fd = openat(up, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	bool found = false;

	if (!d && fd >= 0)
		close(fd);
	for (const struct dirent *e; d && !found && (e = readdir(d));) {
		found = is_entry_of(fd, e, want);
		if (found)
			snprintf(name, NAME_MAX + 1, "%s", e->d_name);
	}
	if (d)
		closedir(d);
	return found;
}

/* *text becomes "NAME/TEXT"; NULL: "NAME". */
static int put_before(const char *name, char **text)
{
	char *joined;

	if (asprintf(&joined, "%s%s%s", name, *text ? "/" : "", *text ? *text : "") < 0)
		return -ENOMEM;
	free(*text);
	*text = joined;
	return 0;
}

/* One directory up: *fd moves there, its name goes before *below. 0 or -errno. */
static int climb(int *fd, char **below)
{
	char name[NAME_MAX + 1];
	struct stat st;
	int up AUTOCLOSE = openat(*fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (up < 0 || fstat(*fd, &st) < 0)
		return -errno;
	if (!find_name(up, &st, name))
		return -ENOENT;
	close(*fd);
	*fd = TAKE_FD(up);
	return put_before(name, below);
}

static int of_directory(int dir, char **ret)
{
	char *below AUTOFREE = NULL, *above AUTOFREE = NULL;
	int fd AUTOCLOSE = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	int r = fd < 0 ? -errno : by_kernel(fd, &above);

	for (int i = 0; r == -ENAMETOOLONG && i < TOLD_LEVELS_MAX; i++) {
		r = climb(&fd, &below);
		if (r == 0)
			r = by_kernel(fd, &above);
	}
	if (r == 0)
		r = below ? put_before(above, &below) : 0;
	if (r == 0)
		*ret = below ? TAKE_PTR(below) : TAKE_PTR(above);
	return r;
}

int told_of(int object, int parent, const char *name, char **ret)
{
	char *text AUTOFREE = NULL, *dir AUTOFREE = NULL;
	int r = object < 0 ? -ENAMETOOLONG : by_kernel(object, &text);

	if (r == -ENAMETOOLONG && parent >= 0) {
		r = of_directory(parent, &dir);
		text = r == 0 ? strdup(name) : NULL;
		if (r == 0)
			r = text ? put_before(dir, &text) : -ENOMEM;
	} else if (r == -ENAMETOOLONG) {
		r = object < 0 ? 0 : of_directory(object, &text);
	}
	if (text && r == 0)
		*ret = TAKE_PTR(text);
	return r == -ENOMEM ? r : 0;
}
