#include "supervisor/surplus.h"

#include "tracer/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 64 /* also the number of directories open at once */

struct walk {
	const struct surplus_ask *ask;
	struct surplus *result;
	uint64_t left;
	dev_t dev;
	struct buf path; /* of what is looked at */
};

static bool is_asked(const struct walk *w)
{
	for (size_t i = 0; i < ARRAY_LEN(w->ask->asked); i++)
		if (w->ask->asked[i] && !strcmp(w->ask->asked[i], buf_str(&w->path)))
			return true;
	return false;
}

static void count_one(struct walk *w)
{
	if (!is_asked(w))
		w->result->count++;
	if (w->ask->policy && !w->result->sensitive)
		w->result->sensitive =
			policy_sensitive_for(w->ask->policy, buf_str(&w->path), w->ask->access);
}

static DIR *open_dir(const struct walk *w, int parent, const char *name)
{
	struct stat st;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0 ||
	    !S_ISDIR(st.st_mode) || st.st_dev != w->dev)
		return NULL;
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static void walk_dir(struct walk *w, DIR *dir, unsigned depth);

static void walk_entry(struct walk *w, DIR *dir, const struct dirent *e, unsigned depth)
{
	size_t len = w->path.len;
	if (!len || w->path.data[len - 1] != '/')
		buf_add_char(&w->path, '/');
	buf_add_str(&w->path, e->d_name);
	count_one(w);
	if (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) {
		DIR *below = depth < DEPTH_MAX ? open_dir(w, dirfd(dir), e->d_name) : NULL;
		if (below)
			walk_dir(w, below, depth + 1);
		else if (e->d_type == DT_DIR)
			w->result->more = true;
	}
	if (w->path.failed)
		return;
	w->path.len = len;
	w->path.data[len] = 0;
}

/* Takes dir over. */
static void walk_dir(struct walk *w, DIR *dir, unsigned depth)
{
	struct dirent *e;
	while (!w->path.failed && (e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (!w->left) {
			w->result->more = true;
			break;
		}
		w->left--;
		walk_entry(w, dir, e, depth);
	}
	closedir(dir);
}

void surplus_add(const struct surplus_ask *ask, struct surplus *ret)
{
	struct stat st;
	if (fstatat(AT_FDCWD, ask->path, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0 ||
	    !S_ISDIR(st.st_mode))
		return;
	struct walk w = {.ask = ask, .result = ret, .left = ask->max, .dev = st.st_dev};
	buf_add_str(&w.path, ask->path);
	DIR *dir = open_dir(&w, AT_FDCWD, ask->path);
	if (dir)
		walk_dir(&w, dir, 1);
	if (!dir || w.path.failed)
		ret->more = true;
	buf_free(&w.path);
}
