#include "supervisor/rmtree.h"

#include "supervisor/dirwalk.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define NAME_LEN   48
#define PASSES_MAX 100

struct removal {
	int top;
	uint64_t mark;	/* makes our names ones that nothing else has */
	uint64_t moved; /* directories: name_of() each number below */
	int err;	/* the first */
	/* The bounds; where one is reached it is cut off. */
	uint64_t left;	/* entries that may still be looked at */
	uint64_t moves; /* directories that may still be moved up */
	bool cut;	/* by the second; by the first: left is 0 */
	bool got_on;	/* something is gone, or less deep than it was */
};

static void note(struct removal *r, int err)
{
	if (!r->err)
		r->err = err;
}

static void name_of(const struct removal *r, uint64_t number, char ret[NAME_LEN])
{
	snprintf(ret, NAME_LEN, ".warder-%016" PRIx64 "-%" PRIu64, r->mark, number);
}

static bool is_ours(const struct removal *r, const char *name)
{
	char prefix[NAME_LEN];
	int n = snprintf(prefix, sizeof(prefix), ".warder-%016" PRIx64 "-", r->mark);
	return !strncmp(name, prefix, (size_t)n);
}

/*
 * An O_PATH descriptor of a directory, which may be emptied now. -EBUSY: a mount point. only: NULL,
 * or which one it has to be.
 */
static int take_hold(int at, const char *name, const struct rmtree_only *only)
{
	struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS};
	int fd AUTOCLOSE = (int)syscall(SYS_openat2, at, name, &how, sizeof(how));
	struct stat st;
	if (fd < 0 || fstat(fd, &st))
		return errno == EXDEV ? -EBUSY : -errno;
	if (only && (st.st_dev != only->dev || st.st_ino != only->ino || st.st_uid != geteuid()))
		return -ESTALE;
	int err = (st.st_mode & 0700) != 0700 ? dirwalk_chmod(fd, 0700) : 0;
	return err ? err : TAKE_FD(fd);
}

/* A directory that is not empty: out of the one it is in, and up to the top. 0 or -errno. */
static int move_up(struct removal *r, int from, const char *name)
{
	char new[NAME_LEN];
	/* Its own ".." changes, and that is a write to it. */
	int fd AUTOCLOSE = take_hold(from, name, NULL);
	if (fd < 0)
		return fd;
	name_of(r, r->moved, new);
	if (renameat2(from, name, r->top, new, RENAME_NOREPLACE))
		return -errno;
	r->moved++;
	r->moves--;
	r->got_on |= from != r->top;
	return 0;
}

/* 0: it is not there any more. Or -errno. */
static int remove_entry(struct removal *r, int dir, const char *name)
{
	if (!unlinkat(dir, name, 0) || (errno == EISDIR && !unlinkat(dir, name, AT_REMOVEDIR))) {
		r->got_on = true;
		return 0;
	}
	if (errno != ENOTEMPTY)
		return -errno;
	r->cut |= !r->moves;
	return r->moves ? move_up(r, dir, name) : -EAGAIN;
}

/* What is in it, once through. The number of entries that are gone. */
static uint64_t look_through(struct removal *r, DIR *d)
{
	const struct dirent *e;
	uint64_t gone = 0;
	rewinddir(d);
	int err = 0;
	for (errno = 0; r->left && err != -EAGAIN && (e = readdir(d)); errno = 0) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || is_ours(r, e->d_name))
			continue;
		err = remove_entry(r, dirfd(d), e->d_name);
		r->left--;
		if (!err)
			gone++;
		else
			note(r, err);
	}
	if (!r->left)
		note(r, -EAGAIN);
	else if (errno && err != -EAGAIN)
		note(r, -errno);
	return r->left && err != -EAGAIN ? gone : 0;
}

/*
 * Some file systems pass entries over where others are removed meanwhile: until nothing more goes.
 */
static int empty(struct removal *r, int fd)
{
	int dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = dir < 0 ? NULL : fdopendir(dir);
	if (!d) {
		int err = -errno;
		util_close(&dir);
		return err;
	}
	for (int i = 0; i < PASSES_MAX && look_through(r, d); i++)
		;
	closedir(d);
	return 0;
}

/* One that was moved up. */
static int finish_moved(struct removal *r, uint64_t number)
{
	char name[NAME_LEN];
	name_of(r, number, name);
	int fd AUTOCLOSE = take_hold(r->top, name, NULL);
	int err = fd < 0 ? fd : empty(r, fd);
	return unlinkat(r->top, name, AT_REMOVEDIR) ? err ? err : -errno : 0;
}

static int remove_all(struct removal *r, const char *dir, const struct rmtree_only *only)
{
	const char *name = strrchr(dir, '/') + 1;
	int above AUTOCLOSE = dirwalk_open_parent(dir);
	if (above >= 0 && !only && !unlinkat(above, name, AT_REMOVEDIR))
		return 0; /* nothing is in it, as almost always */
	int top AUTOCLOSE = above < 0 ? above : take_hold(above, name, only);
	if (top < 0)
		return top;
	if (getrandom(&r->mark, sizeof(r->mark), 0) != sizeof(r->mark))
		return -EIO;
	r->top = top;
	/* Of the bound a part is for what the moved ones hold: so each time something gets on. */
	uint64_t moves = r->moves;
	int err = empty(r, top);
	r->moves = moves;
	if (err)
		return err;
	for (uint64_t i = 0; i < r->moved && r->left; i++)
		if ((err = finish_moved(r, i)))
			note(r, err);
	return !unlinkat(above, name, AT_REMOVEDIR) ? 0 : r->err ? r->err : -errno;
}

int rmtree_remove(const char *dir)
{
	struct removal r = {.top = -1, .left = UINT64_MAX, .moves = UINT64_MAX};
	return remove_all(&r, dir, NULL);
}

int rmtree_remove_only(const char *dir, struct rmtree_only *only)
{
	struct removal r = {.top = -1, .left = only->entries, .moves = only->entries / 4 + 1};
	int err = remove_all(&r, dir, only);
	bool cut = !r.left || r.cut;
	only->entries = r.left;
	/* Whatever else there was: the next time gets further. */
	return err && cut && r.got_on ? -EAGAIN : err;
}
