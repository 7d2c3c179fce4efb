#include "supervisor/tmpdirs.h"

#include "supervisor/escape.h"
#include "supervisor/rmtree.h"
#include "tracer/outfile.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DIRECTORY "tmpdirs"
#define NOTE_MAX  (PATH_MAX + 256)
#define DRAFT_AGE 60 /* seconds: long enough for a note to be made */

/* A hostname has no blank; "-" where it has none at all. */
static void our_host(char ret[HOST_NAME_MAX + 1])
{
	if (gethostname(ret, HOST_NAME_MAX + 1) || !ret[0] || strpbrk(ret, " \n"))
		strcpy(ret, "-");
	ret[HOST_NAME_MAX] = '\0';
}

/* ---- ours ---- */

static int write_note(int fd, const char *dir)
{
	char host[HOST_NAME_MAX + 1];
	struct stat st;
	struct buf text = {0};
	if (lstat(dir, &st))
		return -errno;
	our_host(host);
	buf_addf(&text, "%s %ju %ju %s", host, (uintmax_t)st.st_dev, (uintmax_t)st.st_ino, dir);
	int err = buf_error(&text);
	ssize_t n = err ? 0 : write(fd, buf_str(&text), text.len);
	if (!err && n != (ssize_t)text.len)
		err = n < 0 ? -errno : -ENOSPC;
	buf_free(&text);
	return err;
}

static int join(const char *dir, const char *before, const char *name, char **ret)
{
	if (asprintf(ret, "%s/%s%s", dir, before, name) < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* Under a name that nobody looks at, until it is locked and whole. */
static int make_note(const char *draft, const char *file, const char *dir, int *ret)
{
	int fd AUTOCLOSE = outfile_open(draft, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return fd;
	int err = flock(fd, LOCK_EX | LOCK_NB) ? -errno : write_note(fd, dir);
	if (!err && rename(draft, file))
		err = -errno;
	if (err) {
		(void)unlink(draft);
		return err;
	}
	*ret = TAKE_FD(fd);
	return 0;
}

int tmpdirs_note(const char *state_dir, const char *id, const char *dir, struct tmpdirs_note *ret)
{
	char *all AUTOFREE = NULL, *draft AUTOFREE = NULL, *file AUTOFREE = NULL;
	int err = join(state_dir, "", DIRECTORY, &all);
	*ret = (struct tmpdirs_note){.fd = -1};
	if (!err)
		err = join(all, ".", id, &draft);
	if (!err)
		err = join(all, "", id, &file);
	if (!err && mkdir(all, 0700) && errno != EEXIST)
		err = -errno;
	if (!err)
		err = make_note(draft, file, dir, &ret->fd);
	if (!err)
		ret->file = TAKE_PTR(file);
	return err;
}

void tmpdirs_forget(struct tmpdirs_note *n)
{
	if (n->file)
		(void)unlink(n->file);
	free(n->file);
	util_close(&n->fd);
	*n = (struct tmpdirs_note){.fd = -1};
}

/* ---- those that others left ---- */

/* False: it is no note of this host's. path: into the text. */
static bool read_note(char *text, struct rmtree_only *ret, const char **ret_path)
{
	char host[HOST_NAME_MAX + 1];
	uintmax_t dev, ino;
	int at = 0;
	our_host(host);
	size_t n = strlen(host);
	if (strncmp(text, host, n) != 0 || sscanf(text + n, " %ju %ju %n", &dev, &ino, &at) != 2)
		return false;
	const char *path = text + n + at, *name = strrchr(path, '/');
	/* As environ_tmpdir_make() names them. */
	if (!at || path[0] != '/' || strncmp(name, "/warder-", strlen("/warder-")) != 0)
		return false;
	*ret = (struct rmtree_only){
		.dev = (dev_t)dev, .ino = (ino_t)ino, .entries = TMPDIRS_ENTRIES};
	*ret_path = path;
	return true;
}

static void say(struct buf *lines, const char *path, int err)
{
	escape_add_str(lines, path);
	buf_addf(lines, ", left behind by a warder that was killed, can't be removed: %s\n",
		 strerror(-err));
}

/*
 * A note that nobody holds. False: it is to be kept, for what is left of its directory, or as it is
 * not ours to judge.
 */
static bool clear(int fd, uint64_t *left, struct buf *lines)
{
	char text[NOTE_MAX];
	struct rmtree_only only;
	const char *path;
	ssize_t n = read(fd, text, sizeof text - 1);
	if (n < 0)
		return false;
	text[n] = '\0';
	if (!read_note(text, &only, &path))
		return false;
	only.entries = *left;
	int err = rmtree_remove_only(path, &only);
	*left = only.entries;
	if (err == -EAGAIN)
		return false;
	/* Gone by itself, another's, or another thing by now: nothing of ours is there. */
	if (err && err != -ENOENT && err != -ENOTDIR && err != -ELOOP && err != -ESTALE)
		say(lines, path, err);
	return true;
}

/* A note to come has another name until it is locked and whole. */
static bool is_draft(const char *name)
{
	return name[0] == '.';
}

/* May it be locked? A draft that is being made is not locked yet, and would not be any more. */
static bool may_be_left(int fd, const char *name)
{
	struct stat st;
	return !is_draft(name) || (!fstat(fd, &st) && time(NULL) - st.st_mtime > DRAFT_AGE);
}

static void look_at(int dir, const char *name, uint64_t *left, struct buf *lines)
{
	struct stat st;
	int fd AUTOCLOSE = ownfile_open_at(dir, name, O_RDONLY);
	if (fd < 0 || !may_be_left(fd, name) || flock(fd, LOCK_EX | LOCK_NB))
		return;
	/* Another may have been faster, and the name be anybody's since. */
	if (fstat(fd, &st) || !st.st_nlink)
		return;
	if (clear(fd, left, lines) || (is_draft(name) && !st.st_size))
		(void)unlinkat(dir, name, 0);
}

int tmpdirs_sweep(const char *state_dir, struct buf *ret_lines)
{
	char *all AUTOFREE = NULL;
	uint64_t left = TMPDIRS_ENTRIES;
	int err = join(state_dir, "", DIRECTORY, &all);
	int fd AUTOCLOSE = err ? err : outfile_open(all, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	DIR *d = fdopendir(fd);
	if (!d)
		return -errno;
	(void)TAKE_FD(fd);
	const struct dirent *e;
	for (unsigned i = 0; i < TMPDIRS_LOOKED_AT && left && (e = readdir(d));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
			look_at(dirfd(d), e->d_name, &left, ret_lines);
			i++;
		}
	closedir(d);
	return buf_error(ret_lines);
}
