#include "supervisor/named.h"

#include "supervisor/dirwalk.h"
#include "supervisor/environ.h"
#include "supervisor/rmtree.h"
#include "tracer/outfile.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define ANSWERS "answers"
#define TMPDIR	"tmpdir"
#define LOCK	"lock"

static char *join(const char *dir, const char *name)
{
	char *path;
	return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

bool named_is_name(const char *name)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t n = strlen(name);
	return n && n <= NAMED_NAME_MAX && name[0] != '.' && strspn(name, letters) == n;
}

/* ---- one session's files ---- */

static int make_directory(const char *path)
{
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

static int open_lock(const char *dir, int flags)
{
	char *path AUTOFREE = join(dir, LOCK);
	return path ? ownfile_open(path, O_RDWR | flags) : -ENOMEM;
}

static int take_lock(int fd, int how)
{
	int r;
	do
		r = flock(fd, how);
	while (r && errno == EINTR);
	return r ? -errno : 0;
}

/* Who ends a session removes the lock's file while holding it: then there is another one now. */
static bool is_still_there(const char *dir, int lock)
{
	char *path AUTOFREE = join(dir, LOCK);
	struct stat ours, there;
	return path && !fstat(lock, &ours) && !lstat(path, &there) && ours.st_ino == there.st_ino &&
	       ours.st_dev == there.st_dev;
}

/* A descriptor with the shared lock, or -errno. */
static int enter(const char *dir)
{
	for (;;) {
		int err = make_directory(dir);
		int lock AUTOCLOSE = err ? err : open_lock(dir, O_CREAT);
		if (lock == -ENOENT)
			continue; /* ended just now */
		if (lock < 0)
			return lock;
		err = take_lock(lock, LOCK_SH);
		if (err)
			return err;
		if (is_still_there(dir, lock))
			return TAKE_FD(lock);
	}
}

int named_open(const char *state_dir, const char *name, struct named *ret,
	       struct policy_error *ret_error)
{
	struct named n = {.lock = -1};
	if (!named_is_name(name))
		return policyfile_fail(
			ret_error, -EINVAL,
			"a session's name has at most %d letters, digits, '.', '_' and '-', and "
			"no '.' at its beginning",
			NAMED_NAME_MAX);
	char *all AUTOFREE = join(state_dir, NAMED_DIRECTORY);
	int err = all ? make_directory(all) : -ENOMEM;
	n.dir = err ? NULL : join(all, name);
	n.answers = n.dir ? join(n.dir, ANSWERS) : NULL;
	if (!err && !n.answers)
		err = -ENOMEM;
	if (!err && (n.lock = enter(n.dir)) < 0)
		err = n.lock;
	if (err) {
		named_close(&n);
		return policyfile_fail(ret_error, err, "the session %s can't be kept in %s: %s",
				       name, state_dir, ownfile_strerror(err));
	}
	*ret = n;
	return 0;
}

void named_close(struct named *n)
{
	if (n->lock >= 0)
		close(n->lock);
	free(n->answers);
	free(n->dir);
	*n = (struct named){.lock = -1};
}

/* ---- its temporary directory ---- */

/* The path that was noted; owned, or NULL. */
static char *noted_tmpdir(const char *dir)
{
	struct buf text = {.max = PATH_MAX};
	char *path AUTOFREE = join(dir, TMPDIR);
	int err = path ? ownfile_read(path, &text) : -ENOMEM;
	char *noted = !err && text.len && text.data[0] == '/' ? buf_take(&text) : NULL;
	buf_free(&text);
	return noted;
}

/*
 * Its name is known to the tree, and the directory it is in may be anybody's; its mode is whatever
 * a command of ours left it (out parameter). A descriptor (O_PATH), or -errno: not ours, or gone.
 */
static int open_ours(const char *dir, mode_t *ret_mode)
{
	struct stat st;
	int fd AUTOCLOSE = dirwalk_open(dir, &st);
	if (fd < 0)
		return fd;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return -EPERM;
	*ret_mode = st.st_mode & 07777;
	return TAKE_FD(fd);
}

static int note_tmpdir(const char *dir, const char *tmpdir)
{
	char *path AUTOFREE = join(dir, TMPDIR);
	if (!path)
		return -ENOMEM;
	int fd AUTOCLOSE = ownfile_open(path, O_WRONLY | O_CREAT | O_TRUNC);
	size_t n = strlen(tmpdir);
	if (fd < 0)
		return fd;
	return write(fd, tmpdir, n) == (ssize_t)n ? 0 : -EIO;
}

/* The one that there is, private again. 0 or -errno. */
static int use_tmpdir(const char *dir, mode_t *ret_mode)
{
	int fd AUTOCLOSE = open_ours(dir, ret_mode);
	if (fd < 0)
		return fd;
	return *ret_mode != 0700 ? dirwalk_chmod(fd, 0700) : 0;
}

static int find_tmpdir(const struct named *n, char *const *env, char **ret, mode_t *ret_mode)
{
	char *noted AUTOFREE = noted_tmpdir(n->dir);
	if (noted && !use_tmpdir(noted, ret_mode)) {
		*ret = TAKE_PTR(noted);
		return 0;
	}
	char *made AUTOFREE = NULL;
	int err = environ_tmpdir_make(env, &made);
	if (!err)
		err = note_tmpdir(n->dir, made);
	if (err && made)
		(void)rmdir(made);
	if (err)
		return err;
	*ret_mode = 0700;
	*ret = TAKE_PTR(made);
	return 0;
}

int named_tmpdir(const struct named *n, char *const *env, char **ret, mode_t *ret_mode)
{
	/* One run makes it. The directory's own lock: the session's is held by all of them. */
	int dir AUTOCLOSE = outfile_open(n->dir, O_RDONLY | O_DIRECTORY, 0);
	int err = dir < 0 ? dir : take_lock(dir, LOCK_EX);
	return err ? err : find_tmpdir(n, env, ret, ret_mode);
}

/* 0, also where there is none of ours. */
static int remove_tmpdir(const char *dir)
{
	char *noted AUTOFREE = noted_tmpdir(dir);
	mode_t mode;
	int fd AUTOCLOSE = noted ? open_ours(noted, &mode) : -ENOENT;
	return fd < 0 ? 0 : rmtree_remove(noted);
}

/* ---- all of them ---- */

static size_t count_answers(const char *dir)
{
	struct buf text = {.max = POLICYFILE_SIZE_MAX};
	size_t n = 0;
	char *path AUTOFREE = join(dir, ANSWERS);
	const char *at = path && !ownfile_read(path, &text) ? buf_str(&text) : "";
	while (*at) {
		at += strspn(at, " \t");
		n += *at && *at != '\n' && *at != '#';
		at += strcspn(at, "\n");
		at += *at == '\n';
	}
	buf_free(&text);
	return n;
}

static bool is_in_use(const char *dir)
{
	int lock AUTOCLOSE = open_lock(dir, 0);
	return lock >= 0 && take_lock(lock, LOCK_EX | LOCK_NB) == -EWOULDBLOCK;
}

static int tell(const char *all, const char *name, named_fn *fn, void *arg)
{
	struct stat st;
	char *dir AUTOFREE = join(all, name);
	char *lock AUTOFREE = dir ? join(dir, LOCK) : NULL;
	if (!lock)
		return -ENOMEM;
	if (stat(lock, &st))
		return 0; /* ended just now */
	char *tmpdir AUTOFREE = noted_tmpdir(dir);
	const struct named_info info = {.name = name,
					.begun = st.st_mtim, /* the lock is never written to */
					.answers = count_answers(dir),
					.in_use = is_in_use(dir),
					.tmpdir = tmpdir};
	return fn(arg, &info);
}

static int is_session(const struct dirent *e)
{
	return named_is_name(e->d_name);
}

int named_each(const char *state_dir, named_fn *fn, void *arg)
{
	struct dirent **names = NULL;
	char *all AUTOFREE = join(state_dir, NAMED_DIRECTORY);
	int n = all ? scandir(all, &names, is_session, alphasort) : -1;
	int r = 0;
	if (n < 0)
		return all ? errno == ENOENT ? 0 : -errno : -ENOMEM;
	for (int i = 0; i < n; i++) {
		if (!r)
			r = tell(all, names[i]->d_name, fn, arg);
		free(names[i]);
	}
	free(names);
	return r;
}

static int remove_files(const char *dir)
{
	static const char *const files[] = {ANSWERS, TMPDIR, LOCK};
	struct dirent *e;
	DIR *d = opendir(dir);
	int err = 0;
	if (!d)
		return -errno;
	/* Its files by name, and what an interrupted write left beside them. */
	while (!err && (e = readdir(d)))
		for (size_t i = 0; i < ARRAY_LEN(files); i++)
			if (strstr(e->d_name, files[i]) && unlinkat(dirfd(d), e->d_name, 0))
				err = -errno;
	closedir(d);
	return err ? err : rmdir(dir) ? -errno : 0;
}

int named_end(const char *state_dir, const char *name)
{
	if (!named_is_name(name))
		return -ENOENT;
	char *dir AUTOFREE = NULL;
	if (asprintf(&dir, "%s/" NAMED_DIRECTORY "/%s", state_dir, name) < 0) {
		dir = NULL;
		return -ENOMEM;
	}
	int lock AUTOCLOSE = open_lock(dir, 0);
	if (lock < 0)
		return lock;
	int err = take_lock(lock, LOCK_EX | LOCK_NB);
	if (err)
		return err == -EWOULDBLOCK ? -EBUSY : err;
	err = remove_tmpdir(dir);
	return err ? err : remove_files(dir);
}
