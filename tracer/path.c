#include "tracer/path.h"

#include "tracer/pathname.h"
#include "tracer/procfs.h"
#include "tracer/told.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define O_STEP (O_PATH | O_NOFOLLOW | O_CLOEXEC)

#define SCOPED (PATH_IN_ROOT | PATH_BENEATH)

/* Where the walk stands, and what is left to walk. */
struct walk {
	pid_t tid;
	struct pathname_memory *names;
	unsigned flags;
	int root;	/* the tracee's root, or what takes its place; -1 until root_of() */
	int cur;	/* the directory reached so far */
	char *todo;	/* owned: the text still to be walked */
	char *at;	/* the place in it */
	int links;	/* symlinks followed */
	bool dangled;	/* the last component comes out of a symlink */
	uint64_t mount; /* of what was looked at last */
	struct path_at *ret;
};

/* A component of the text: [name, name+len), and whether it is the last, and a slash follows. */
struct step {
	char name[NAME_MAX + 1];
	bool last;
	bool slash;
};

/* Field by field: of the name its end is enough, and it is by far the most of it. */
void path_init(struct path_at *at)
{
	at->object = at->parent = -1;
	at->dir = NULL;
	at->name[0] = '\0';
	at->real = at->told = NULL;
	at->exists = at->trailing = at->unreachable = at->magic = at->linked = false;
	at->st = (struct stat){0};
}

void path_release(struct path_at *at)
{
	if (at->object >= 0)
		close(at->object);
	if (at->dir)
		pathname_dir_leave(at->dir);
	else
		util_close(&at->parent);
	free(at->real);
	free(at->told);
	path_init(at);
}

/* The descriptor, or -errno. */
static int open_step(int dir, const char *name, int flags)
{
	int fd = openat(dir, name, flags | O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* ---- the beginning ---- */

static int open_root(struct pathname_memory *names, pid_t tid)
{
	return pathname_open_proc(names, tid, "root");
}

/* Most walks never come to it, and procfs is slow. A loan, or -errno. */
static int root_of(struct walk *w)
{
	if (w->root < 0)
		w->root = open_root(w->names, w->tid);
	return w->root;
}

static int open_base(struct walk *w, int dirfd, const char *given)
{
	char name[32];

	if (given[0] == '/' && !(w->flags & SCOPED))
		return open_root(w->names, w->tid);
	if (dirfd == AT_FDCWD)
		return pathname_open_proc(w->names, w->tid, "cwd");
	if (dirfd < 0)
		return -EBADF;
	/* By the thread: its descriptor table need not be the leader's (CLONE_FILES). */
	snprintf(name, sizeof(name), "fd/%d", dirfd);
	int fd = pathname_open_proc(w->names, w->tid, name);
	return fd == -ENOENT ? -EBADF : fd;
}

/* ---- steps ---- */

static uint64_t mount_of(int fd)
{
	struct statx x = {0};

	/* STATX_MNT_ID is of 5.8; ids begin at 1. */
	return statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) == 0 ? x.stx_mnt_id : 0;
}

/* May the walk go to fd? */
static int check_mount(const struct walk *w, int fd)
{
	bool crosses = (w->flags & PATH_NO_XDEV) && mount_of(fd) != mount_of(w->cur);

	return crosses ? -EXDEV : 0;
}

/* Takes fd, a result of open_step(). 0, or its error. */
static int move_to(struct walk *w, int fd)
{
	if (fd < 0)
		return fd;
	if (check_mount(w, fd) < 0) {
		close(fd);
		return -EXDEV;
	}
	close(w->cur);
	w->cur = fd;
	return 0;
}

static int move_to_root(struct walk *w)
{
	if (w->flags & PATH_BENEATH)
		return -EXDEV;
	int root = root_of(w);
	return root < 0 ? root : move_to(w, open_step(root, ".", 0));
}

static bool same_place(int a, int b)
{
	struct statx x, y;
	unsigned mask = STATX_INO | STATX_MNT_ID;

	return statx(a, "", AT_EMPTY_PATH, mask, &x) == 0 &&
	       statx(b, "", AT_EMPTY_PATH, mask, &y) == 0 && x.stx_ino == y.stx_ino &&
	       x.stx_dev_major == y.stx_dev_major && x.stx_dev_minor == y.stx_dev_minor &&
	       x.stx_mnt_id == y.stx_mnt_id;
}

bool path_has_our_root(pid_t tid)
{
	int root AUTOCLOSE = open_root(NULL, tid);
	int ours AUTOCLOSE = open_step(AT_FDCWD, "/", 0);

	return root >= 0 && ours >= 0 && same_place(root, ours);
}

static int step_up(struct walk *w)
{
	int root = root_of(w);

	if (root < 0)
		return root;
	if (same_place(w->cur, root))
		return w->flags & PATH_BENEATH ? -EXDEV : 0;
	return move_to(w, open_step(w->cur, "..", O_DIRECTORY));
}

/* Put `text` before what is left. */
static int put_before(struct walk *w, const char *text)
{
	size_t head = strlen(text);
	size_t tail = strlen(w->at);
	char *joined = malloc(head + 1 + tail + 1);

	if (!joined)
		return -ENOMEM;
	memcpy(joined, text, head);
	memcpy(joined + head, w->at, tail + 1); /* begins with a slash, or is empty */
	free(w->todo);
	w->todo = w->at = joined;
	return 0;
}

static int read_link(int fd, char *text, size_t n)
{
	ssize_t got = readlinkat(fd, "", text, n - 1);

	if (got < 0)
		return -errno;
	if (got == 0)
		return -ENOENT;
	text[got] = '\0';
	return 0;
}

/* ---- the end ---- */

static int name_absent(struct walk *w)
{
	struct path_at *at = w->ret;
	char *dir AUTOFREE = NULL;
	struct stat st;
	int r = pathname_stat(at->parent, &st, &w->mount);

	if (r == 0)
		r = pathname_of(w->names, at->parent, &st, w->mount, &dir);

	if (r == -ENOMEM)
		return r;
	at->unreachable = r < 0;
	if (r < 0)
		return told_of(-1, at->parent, at->name, &at->told);
	const char *slash = strcmp(dir, "/") == 0 ? "" : "/";
	if (asprintf(&at->real, "%s%s%s", dir, slash, at->name) < 0) {
		at->real = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int name_object(struct walk *w)
{
	struct path_at *at = w->ret;

	at->exists = true;
	int r = pathname_of(w->names, at->object, &at->st, w->mount, &at->real);
	at->unreachable = r < 0;
	if (r == 0 || r == -ENOMEM)
		return r;
	return told_of(at->object, at->parent, at->name, &at->told);
}

/*
 * The walk ends at `object` (taken), below w->cur by `name`, or with no name of its own. `st` of
 * the object, which w->mount is of, too; or NULL: not looked at yet.
 */
static int finish(struct walk *w, int object, const char *name, const struct stat *st)
{
	struct path_at *at = w->ret;

	at->object = object;
	int r = 0;
	if (st)
		at->st = *st;
	else
		r = pathname_stat(object, &at->st, &w->mount);
	if (r < 0)
		return r;
	at->linked = w->links > 0;
	if (w->cur >= 0 && check_mount(w, object) < 0)
		return -EXDEV;
	if (name) {
		snprintf(at->name, sizeof(at->name), "%s", name);
		at->parent = TAKE_FD(w->cur);
	}
	r = name_object(w);
	bool directory = S_ISDIR(at->st.st_mode) || S_ISLNK(at->st.st_mode);
	if (r == 0 && at->trailing && !directory && !(w->flags & PATH_ENTRY))
		return -ENOTDIR;
	return r;
}

static int finish_absent(struct walk *w, const struct step *s)
{
	struct path_at *at = w->ret;

	if (w->dangled && !(w->flags & PATH_CREATE))
		return -ENOENT;
	snprintf(at->name, sizeof(at->name), "%s", s->name);
	at->linked = w->links > 0;
	at->parent = TAKE_FD(w->cur);
	return name_absent(w);
}

/* ---- the walk ---- */

static int next_step(struct walk *w, struct step *s)
{
	size_t len = strcspn(w->at, "/");

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(s->name, w->at, len);
	s->name[len] = '\0';
	w->at += len;
	s->slash = *w->at == '/';
	s->last = w->at[strspn(w->at, "/")] == '\0';
	return 0;
}

/* A plain symlink: its text takes its place. */
static int follow(struct walk *w, const struct step *s, const char *text)
{
	if (s->last)
		w->dangled = true;
	int r = put_before(w, text);
	if (r < 0 || text[0] != '/')
		return r;
	return move_to_root(w);
}

static int follow_magic(struct walk *w, const struct step *s, bool *ret_done)
{
	if (w->flags & PATH_NO_MAGIC)
		return -ELOOP;
	if (w->flags & SCOPED)
		return -EXDEV;
	int r = procfs_check_owner(w->cur, w->tid);
	if (r < 0)
		return r;
	int target = open_step(w->cur, s->name, 0);
	if (target < 0)
		return target;
	if (!s->last)
		return move_to(w, target);
	*ret_done = true;
	w->ret->magic = true;
	w->ret->trailing = s->slash;
	return finish(w, target, NULL, NULL);
}

static int take_link(struct walk *w, const struct step *s, int link, bool *ret_done)
{
	char text[PATH_MAX];

	if (++w->links > PATH_LINKS_MAX || (w->flags & PATH_NO_SYMLINKS))
		return -ELOOP;
	if (procfs_is(w->cur)) {
		int self = procfs_self(w->cur, s->name, w->tid, text, sizeof(text));
		if (self != 0)
			return self < 0 ? self : follow(w, s, text);
		if (procfs_is_magic(w->cur, s->name))
			return follow_magic(w, s, ret_done);
	}
	int r = read_link(link, text, sizeof(text));
	return r < 0 ? r : follow(w, s, text);
}

/* Does the walk go on behind a symlink that it meets here? */
static bool goes_through(const struct walk *w, const struct step *s)
{
	if (!s->last)
		return true;
	return !(w->flags & PATH_ENTRY) && (s->slash || (w->flags & PATH_FOLLOW));
}

static int take_name(struct walk *w, const struct step *s, bool *ret_done)
{
	struct stat st;
	int fd AUTOCLOSE = open_step(w->cur, s->name, O_NOFOLLOW);

	if (fd == -ENOENT && s->last) {
		*ret_done = true;
		w->ret->trailing = s->slash;
		return finish_absent(w, s);
	}
	if (fd < 0)
		return fd;
	int r = pathname_stat(fd, &st, &w->mount);
	if (r < 0)
		return r;
	if (S_ISLNK(st.st_mode) && goes_through(w, s))
		return take_link(w, s, fd, ret_done);
	if (!s->last) {
		if (!S_ISDIR(st.st_mode))
			return -ENOTDIR;
		return move_to(w, TAKE_FD(fd));
	}
	*ret_done = true;
	w->ret->trailing = s->slash;
	return finish(w, TAKE_FD(fd), s->name, &st);
}

static int walk_on(struct walk *w)
{
	struct step s;
	bool done = false;

	while (!done) {
		w->at += strspn(w->at, "/");
		if (!*w->at) /* "/", or it ended in "." or ".." */
			return finish(w, TAKE_FD(w->cur), NULL, NULL);
		int r = next_step(w, &s);
		if (r < 0)
			return r;
		if (strcmp(s.name, ".") == 0)
			r = faccessat(w->cur, ".", F_OK, 0) < 0 ? -errno : 0;
		else if (strcmp(s.name, "..") == 0)
			r = step_up(w);
		else
			r = take_name(w, &s, &done);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * All but the last component in one step, where no symlink stands on the way and none of it leads
 * up from here. Where one does, or anything is wrong, the walk tells which step it was.
 */
static void leap(struct walk *w)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
	char *from = w->at + strspn(w->at, "/");
	char *end = from + strlen(from);

	while (end > from && end[-1] == '/')
		end--;
	char *slash = memrchr(from, '/', (size_t)(end - from));
	if (!slash || (w->flags & PATH_NO_XDEV))
		return;
	*slash = '\0';
	int dir = (int)syscall(SYS_openat2, w->cur, from, &how, sizeof(how));
	*slash = '/';
	if (dir < 0)
		return;
	close(w->cur);
	w->cur = dir;
	w->at = slash;
}

static bool ends_in_dots(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *last = slash ? slash + 1 : path;

	return strcmp(last, ".") == 0 || strcmp(last, "..") == 0;
}

/*
 * All of it in one step, in the same way: a thing that has a name by which it lies in a directory.
 * Of anything else the walk has more to say. Was it done?
 */
static bool leap_to_thing(struct walk *w)
{
	struct open_how how = {.flags = O_STEP, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
	struct path_at *at = w->ret;
	const char *from = w->at + strspn(w->at, "/");
	size_t n = strlen(from);

	if (!(w->flags & PATH_THING) || (w->flags & ~(PATH_THING | PATH_FOLLOW | PATH_EMPTY)) ||
	    !w->names || !n || from[n - 1] == '/' || ends_in_dots(from))
		return false;
	at->object = (int)syscall(SYS_openat2, w->cur, from, &how, sizeof(how));
	if (at->object >= 0 && pathname_fill(w->names, at) == 0 && at->dir &&
	    !(S_ISLNK(at->st.st_mode) && (w->flags & PATH_FOLLOW)))
		return true;
	path_release(at);
	return false;
}

/* openat2 with a scope: dirfd takes the root's place. */
static int enter_scope(struct walk *w, const char *given)
{
	if (!(w->flags & SCOPED))
		return 0;
	int top = open_step(w->cur, ".", 0);
	if (top < 0)
		return top;
	if (w->root >= 0)
		close(w->root);
	w->root = top;
	return given[0] == '/' ? move_to_root(w) : 0;
}

static int walk_from(struct walk *w, int dirfd, const char *given)
{
	w->cur = open_base(w, dirfd, given);
	if (w->cur < 0)
		return w->cur;
	if (!*given)
		return finish(w, TAKE_FD(w->cur), NULL, NULL);
	w->todo = w->at = strdup(given);
	if (!w->todo)
		return -ENOMEM;
	int r = enter_scope(w, given);
	if (r < 0)
		return r;
	if (leap_to_thing(w))
		return 0;
	leap(w);
	return walk_on(w);
}

int path_of_fd(int fd, char **ret)
{
	struct stat st;
	uint64_t mount;
	int r = pathname_stat(fd, &st, &mount);

	return r < 0 ? r : pathname_of(NULL, fd, &st, mount, ret);
}

int path_resolve(pid_t tid, int dirfd, const char *given, unsigned flags, struct path_at *ret)
{
	return path_resolve_with(&(struct path_view){.tid = tid}, dirfd, given, flags, ret);
}

int path_resolve_with(const struct path_view *view, int dirfd, const char *given, unsigned flags,
		      struct path_at *ret)
{
	struct path_at at;
	struct walk w = {.tid = view->tid,
			 .names = view->names,
			 .flags = flags,
			 .root = -1,
			 .cur = -1,
			 .ret = &at};

	if (!*given && !(flags & PATH_EMPTY))
		return -ENOENT;
	if (strlen(given) >= PATH_MAX)
		return -ENAMETOOLONG;
	path_init(&at);
	int r = walk_from(&w, dirfd, given);
	if (w.root >= 0)
		close(w.root);
	if (w.cur >= 0)
		close(w.cur);
	free(w.todo);
	if (r < 0)
		path_release(&at);
	else
		*ret = at;
	return r;
}
