/*
 * The model against the running kernel: random trees, random rules, random calls made in a child
 * under the ruleset, and for each the answer that llmodel gives beforehand. Zero differences, as
 * root (with a tmpfs and a bind mount inside the tree) and as an ordinary user.
 *
 * WARDER_TEST_SEED=N repeats a run, WARDER_TEST_VERDICTS=N asks for more verdicts.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "landlock/llmodel.h"
#include "landlock/llright.h"

#define NOBODY	     65534
#define VERDICTS     6000L /* of each of the two users */
#define ROUND_OPS    40
#define NODES_MAX    512
#define PATH_BYTES   512
#define NAME_DEPTH   6
#define SETUP_FAILED 3

enum op {
	OP_OPEN,
	OP_CREATE,
	OP_TRUNCATE,
	OP_EXEC,
	OP_MAKE,
	OP_SYMLINK,
	OP_REMOVE,
	OP_RENAME,
	OP_LINK,
	OP_COUNT,
};

static const char *const op_names[OP_COUNT] = {"open",	  "create", "truncate", "exec", "make",
					       "symlink", "remove", "rename",	"link"};

struct request {
	enum op op;
	int flags; /* of open or renameat2 */
	mode_t mode;
	char path[PATH_BYTES];
	char path2[PATH_BYTES];
};

/* What the driver, a process of its own, found; shared with the test. */
struct found {
	long verdicts, ok, eacces, exdev, skipped, mismatches;
	long by_op[OP_COUNT];
	bool mounts;
	char first[2 * PATH_BYTES + 512];
};

struct node {
	char path[PATH_BYTES];
	mode_t mode;
	bool mount; /* a mount point, or what is bound elsewhere: not renamed or removed here */
};

struct world {
	uint64_t random;
	uint64_t seed;
	char root[64];
	struct node nodes[NODES_MAX];
	int count;
	int serial;		/* of new names */
	char focus[PATH_BYTES]; /* only nodes whose paths begin so are picked in this round */
	struct llruleset *rs;
	struct lldomain domain;
	ino_t bound_ino; /* of the directory that is bound elsewhere, while it is */
	struct found *found;
	char rules[4096]; /* what is in force, for a report */
};

/* ---- chance ---- */

static uint64_t draw(struct world *w)
{
	uint64_t z = (w->random += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static int below(struct world *w, int n)
{
	return (int)(draw(w) % (uint64_t)n);
}

/* ---- the tree ---- */

__attribute__((format(printf, 3, 4))) static bool say(char *to, size_t n, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(to, n, fmt, ap);
	va_end(ap);
	return len >= 0 && (size_t)len < n;
}

static void scan(struct world *w, const char *path, dev_t mount_of_parent, int depth)
{
	struct node *node = &w->nodes[w->count];
	struct dirent *entry;
	struct statx sx;
	DIR *dir;

	if (w->count == NODES_MAX || !say(node->path, sizeof(node->path), "%s", path))
		return;
	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_MNT_ID, &sx) < 0)
		return;
	node->mode = sx.stx_mode;
	node->mount = depth > 0 && sx.stx_mnt_id != mount_of_parent;
	/* A bound directory that is gone can't be created in: ENOENT comes first. */
	if (sx.stx_ino == w->bound_ino && sx.stx_mnt_id == mount_of_parent)
		node->mount = true;
	w->count++;
	if (!S_ISDIR(sx.stx_mode) || !(dir = opendir(path)))
		return;
	while ((entry = readdir(dir))) {
		char child[PATH_BYTES];

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (say(child, sizeof(child), "%s/%s", path, entry->d_name))
			scan(w, child, sx.stx_mnt_id, depth + 1);
	}
	closedir(dir);
}

static void rescan(struct world *w)
{
	w->count = 0;
	scan(w, w->root, 0, 0);
}

static struct node *pick(struct world *w, bool (*fits)(const struct node *))
{
	for (int tries = 0; tries < 200; tries++) {
		struct node *node = &w->nodes[below(w, w->count)];

		if (fits(node) && strncmp(node->path, w->focus, strlen(w->focus)) == 0)
			return node;
	}
	return NULL;
}

static bool is_dir(const struct node *n)
{
	return S_ISDIR(n->mode);
}

static bool is_reg(const struct node *n)
{
	return S_ISREG(n->mode);
}

/* The first node is the tree's own root. */
static bool is_movable(const struct node *n)
{
	return !n->mount && strchr(n->path + strlen("/tmp/"), '/');
}

static bool is_openable(const struct node *n)
{
	return S_ISREG(n->mode) || S_ISDIR(n->mode) || S_ISFIFO(n->mode);
}

static bool is_any(const struct node *n)
{
	return n->path[0] == '/';
}

static bool is_linkable(const struct node *n)
{
	return !S_ISDIR(n->mode) && is_movable(n);
}

static int depth_of(const char *path)
{
	int n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

static bool new_name(struct world *w, const char *dir, char path[PATH_BYTES])
{
	if (depth_of(dir) > NAME_DEPTH)
		dir = w->root;
	return say(path, PATH_BYTES, "%s/n%d", dir, w->serial++);
}

static void grow(struct world *w)
{
	static const mode_t kinds[] = {S_IFDIR, S_IFDIR, S_IFDIR, S_IFREG,
				       S_IFREG, S_IFREG, S_IFIFO, S_IFLNK};

	for (int i = 0; i < 30; i++) {
		mode_t kind = kinds[below(w, 8)];
		char path[PATH_BYTES];
		struct node *dir;

		rescan(w);
		dir = pick(w, is_dir);
		if (!dir || !new_name(w, dir->path, path))
			continue;
		/* What can't be made (the tree is full, a name too long) is simply not there. */
		if (kind == S_IFDIR)
			(void)!mkdir(path, 0777);
		else if (kind == S_IFLNK)
			(void)!symlink("nowhere", path);
		else
			(void)!mknod(path, kind | 0777, 0);
	}
	rescan(w);
}

/* Only root has these: a filesystem of its own below the tree, and a second name of a part of it.
 */
static int mount_inside(struct world *w)
{
	char tmpfs[PATH_BYTES], bind[PATH_BYTES], part[PATH_BYTES], deep[PATH_BYTES];
	struct stat st;

	say(tmpfs, sizeof(tmpfs), "%s/tmpfs", w->root);
	say(bind, sizeof(bind), "%s/bind", w->root);
	say(part, sizeof(part), "%s/part", w->root);
	say(deep, sizeof(deep), "%s/part/deep", w->root);
	if (mkdir(tmpfs, 0777) || mkdir(bind, 0777) || mkdir(part, 0777) || mkdir(deep, 0777))
		return -1;
	if (mount("warder-test", tmpfs, "tmpfs", 0, "size=1m,mode=777"))
		return -1;
	if (mount(deep, bind, NULL, MS_BIND, NULL) || stat(deep, &st))
		return -1;
	w->bound_ino = st.st_ino;
	/* Give the new filesystem some depth of its own. */
	say(deep, sizeof(deep), "%s/tmpfs/a", w->root);
	say(part, sizeof(part), "%s/tmpfs/b", w->root);
	return mkdir(deep, 0777) || mkdir(part, 0777) ? -1 : 0;
}

/* ---- the rules ---- */

#define MOVING                                                                                     \
	(LLR_REFER | LLR_MAKE_REG | LLR_MAKE_DIR | LLR_REMOVE_FILE | LLR_REMOVE_DIR |              \
	 LLR_MAKE_FIFO | LLR_MAKE_SYM)

static uint64_t some_rights(struct world *w)
{
	switch (below(w, 7)) {
	case 0:
		return LLR_ALL;
	case 1:
		return draw(w) & LLR_ALL;
	case 2:
		return draw(w) & draw(w) & LLR_ALL;
	case 3:
		return (draw(w) | draw(w)) & LLR_ALL;
	case 4:
		return MOVING;
	case 5:
		return LLR_ALL & ~(1ULL << below(w, 16));
	default:
		return MOVING | (draw(w) & draw(w) & LLR_CONTENT);
	}
}

static int add_rule(struct world *w, const char *path, uint64_t rights)
{
	size_t len = strlen(w->rules);
	char names[256];
	int fd, r;

	fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = llruleset_allow_fd(w->rs, fd, rights);
	close(fd);
	llright_format(rights, names, sizeof(names));
	say(w->rules + len, sizeof(w->rules) - len, "  %s: %s\n", path, names);
	return r;
}

static int make_rules(struct world *w, int abi_max)
{
	struct llabi abi = llabi_of(2 + below(w, abi_max - 1));
	const struct node *node;
	int n = below(w, 12), r;

	r = llruleset_new(&abi, 0, &w->rs);
	if (r < 0)
		return r;
	w->domain = lldomain_of(w->rs);
	/* Half of the rounds stay within the inner mount, where one can move from one place to
	 * another and the real root is another mount's. */
	if (w->bound_ino && below(w, 2))
		say(w->focus, sizeof(w->focus), "%s/tmpfs/", w->root);
	else
		say(w->focus, sizeof(w->focus), "%s", w->root);
	w->rules[0] = '\0';
	say(w->rules, sizeof(w->rules), "  abi %d\n", abi.abi);
	if (below(w, 4) == 0)
		r = add_rule(w, "/", below(w, 2) ? draw(w) & LLR_ALL : some_rights(w));
	if (r == 0 && below(w, 6) == 0)
		r = add_rule(w, "/tmp", some_rights(w));
	if (r == 0 && below(w, 2) == 0)
		r = add_rule(w, w->root, some_rights(w) | (below(w, 2) ? MOVING : 0));
	for (int i = 0; r == 0 && i < n; i++)
		if ((node = pick(w, is_any)))
			r = add_rule(w, node->path, some_rights(w));
	return r;
}

/* ---- what to try ---- */

static bool choose_open(struct world *w, struct request *q)
{
	static const int modes[] = {O_RDONLY,		O_WRONLY,	    O_RDWR,
				    O_WRONLY | O_TRUNC, O_RDONLY | O_TRUNC, O_WRONLY | O_APPEND};
	const struct node *node = pick(w, is_openable);

	if (!node)
		return false;
	q->flags = modes[below(w, 6)];
	/* A FIFO opened for writing alone would wait for a reader or fail. */
	if (S_ISDIR(node->mode))
		q->flags = O_RDONLY | O_DIRECTORY;
	else if (S_ISFIFO(node->mode))
		q->flags = (q->flags & O_ACCMODE) == O_RDONLY ? O_RDONLY : O_RDWR;
	q->flags |= O_NONBLOCK | O_CLOEXEC;
	return say(q->path, PATH_BYTES, "%s", node->path);
}

static bool choose_new(struct world *w, struct request *q)
{
	static const mode_t kinds[] = {S_IFREG, S_IFDIR, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK, 0};
	static const int modes[] = {O_RDONLY, O_WRONLY | O_TRUNC, O_RDWR | O_EXCL};
	const struct node *dir = pick(w, is_dir);

	q->mode = kinds[below(w, 7)];
	q->flags = modes[below(w, 3)] | O_CREAT | O_CLOEXEC;
	return dir && new_name(w, dir->path, q->path);
}

static bool choose_node(struct world *w, struct request *q, bool (*fits)(const struct node *))
{
	const struct node *node = pick(w, fits);

	return node && say(q->path, PATH_BYTES, "%s", node->path);
}

static bool choose_rename(struct world *w, struct request *q)
{
	static const int flags[] = {
		0, 0, 0, RENAME_EXCHANGE, RENAME_EXCHANGE, RENAME_NOREPLACE, RENAME_WHITEOUT};
	const struct node *from = pick(w, is_movable), *to;

	q->flags = flags[below(w, 7)];
	if (!from || !say(q->path, PATH_BYTES, "%s", from->path))
		return false;
	if (q->flags == RENAME_EXCHANGE || (q->flags == 0 && below(w, 3) == 0)) {
		to = pick(w, is_movable);
		return to && say(q->path2, PATH_BYTES, "%s", to->path);
	}
	to = pick(w, is_dir);
	return to && new_name(w, to->path, q->path2);
}

static bool choose_link(struct world *w, struct request *q)
{
	const struct node *from = pick(w, is_linkable), *to = pick(w, is_dir);

	return from && to && say(q->path, PATH_BYTES, "%s", from->path) &&
	       new_name(w, to->path, q->path2);
}

static bool choose(struct world *w, struct request *q)
{
	static const enum op ops[] = {OP_OPEN,	 OP_OPEN,    OP_CREATE, OP_TRUNCATE, OP_EXEC,
				      OP_MAKE,	 OP_SYMLINK, OP_REMOVE, OP_RENAME,   OP_RENAME,
				      OP_RENAME, OP_RENAME,  OP_LINK,	OP_LINK};

	*q = (struct request){.op = ops[below(w, (int)(sizeof(ops) / sizeof(ops[0])))]};
	switch (q->op) {
	case OP_OPEN:
		return choose_open(w, q);
	case OP_CREATE:
	case OP_MAKE:
	case OP_SYMLINK:
		return choose_new(w, q);
	case OP_TRUNCATE:
	case OP_EXEC:
		return choose_node(w, q, is_reg);
	case OP_REMOVE:
		return choose_node(w, q, is_movable);
	case OP_RENAME:
		return choose_rename(w, q);
	case OP_LINK:
		return choose_link(w, q);
	case OP_COUNT:
		break;
	}
	return false;
}

/* ---- the kernel's answer, in the restricted child ---- */

static int try_exec(const char *path)
{
	char *argv[] = {(char *)"x", NULL}, *envp[] = {NULL};

	/* An empty file: the kernel opens it, then finds no format. */
	execve(path, argv, envp);
	return errno == ENOEXEC ? 0 : -errno;
}

static int try_remove(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return -errno;
	return (S_ISDIR(st.st_mode) ? rmdir(path) : unlink(path)) < 0 ? -errno : 0;
}

static int try_open(const char *path, int flags)
{
	int fd = open(path, flags, 0755);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int try(const struct request *q)
{
	switch (q->op) {
	case OP_OPEN:
	case OP_CREATE:
		return try_open(q->path, q->flags);
	case OP_TRUNCATE:
		return truncate(q->path, 0) < 0 ? -errno : 0;
	case OP_EXEC:
		return try_exec(q->path);
	case OP_MAKE:
		if (S_ISDIR(q->mode))
			return mkdir(q->path, 0755) < 0 ? -errno : 0;
		return mknod(q->path, q->mode | 0755, makedev(1, 3)) < 0 ? -errno : 0;
	case OP_SYMLINK:
		return symlink("nowhere", q->path) < 0 ? -errno : 0;
	case OP_REMOVE:
		return try_remove(q->path);
	case OP_RENAME:
		return renameat2(AT_FDCWD, q->path, AT_FDCWD, q->path2, (unsigned int)q->flags) < 0
			       ? -errno
			       : 0;
	case OP_LINK:
		return linkat(AT_FDCWD, q->path, AT_FDCWD, q->path2, 0) < 0 ? -errno : 0;
	case OP_COUNT:
		break;
	}
	return -ENOTSUP;
}

static void serve(const struct world *w, int in, int out)
{
	struct request q;
	int answer;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (llruleset_restrict(w->rs) < 0)
		_exit(SETUP_FAILED);
	while (read(in, &q, sizeof(q)) == sizeof(q)) {
		answer = try(&q);
		if (write(out, &answer, sizeof(answer)) != sizeof(answer))
			break;
	}
	_exit(0);
}

/* ---- the model's answer ---- */

static int parent_of(const char *path)
{
	char dir[PATH_BYTES];

	say(dir, sizeof(dir), "%s", path);
	*strrchr(dir, '/') = '\0';
	return open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int object_at(const char *path)
{
	return open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

static uint64_t open_needs(const struct request *q, mode_t mode)
{
	uint64_t needs = 0;
	int how = q->flags & O_ACCMODE;

	if (how != O_WRONLY)
		needs |= S_ISDIR(mode) ? LLR_READ_DIR : LLR_READ_FILE;
	if (how != O_RDONLY)
		needs |= LLR_WRITE_FILE;
	if ((q->flags & O_TRUNC) && S_ISREG(mode) && !(q->flags & O_CREAT))
		needs |= LLR_TRUNCATE;
	return needs;
}

/* 0 or -EACCES in *ret, for everything that is asked of one place. */
static int model_place(const struct world *w, const struct request *q, int *ret)
{
	bool is_new = q->op == OP_CREATE || q->op == OP_MAKE || q->op == OP_SYMLINK;
	bool of_parent = is_new || q->op == OP_REMOVE;
	int object = is_new ? -1 : object_at(q->path), parent = parent_of(q->path), r;
	uint64_t needs = 0, granted;
	struct stat st = {0};

	if (object >= 0 && fstat(object, &st) < 0)
		return -errno;
	if (q->op == OP_OPEN)
		needs = open_needs(q, st.st_mode);
	else if (q->op == OP_CREATE)
		needs = LLR_MAKE_REG | open_needs(q, S_IFREG);
	else if (q->op == OP_TRUNCATE)
		needs = LLR_TRUNCATE;
	else if (q->op == OP_EXEC)
		needs = LLR_EXECUTE | LLR_READ_FILE;
	else if (q->op == OP_REMOVE)
		needs = llright_to_remove(st.st_mode);
	else
		needs = llright_to_make(q->op == OP_SYMLINK ? S_IFLNK : q->mode);
	r = llmodel_granted_at(&w->domain, of_parent ? -1 : object, parent, &granted);
	if (r == 0)
		*ret = needs & ~granted ? -EACCES : 0;
	/* A directory's own ".." leads the same way as the parent it was reached by. */
	if (r == 0 && !of_parent && S_ISDIR(st.st_mode)) {
		uint64_t again;

		r = llmodel_granted(&w->domain, object, &again);
		if (r == 0 && again != granted)
			r = -EUCLEAN;
	}
	if (object >= 0)
		close(object);
	close(parent);
	return r;
}

static int model_move(const struct world *w, const struct request *q, int *ret)
{
	struct llmodel_move move = {
		.old_dir = parent_of(q->path),
		.old_object = object_at(q->path),
		.new_dir = parent_of(q->path2),
		.new_object = object_at(q->path2),
		.flags = (unsigned int)q->flags,
	};
	int r = q->op == OP_LINK ? llmodel_link(&w->domain, &move, ret)
				 : llmodel_rename(&w->domain, &move, ret);

	close(move.old_dir);
	close(move.old_object);
	close(move.new_dir);
	if (move.new_object >= 0)
		close(move.new_object);
	return r;
}

/* What the VFS answers before Landlock is asked: not the model's to say. */
static bool is_vfs_matter(const struct request *q, const char *path2_or_null)
{
	char a[PATH_BYTES + 1], b[PATH_BYTES + 1];
	struct statx from, to;
	int dir = parent_of(q->path), dir2;

	if (!path2_or_null) {
		close(dir);
		return false;
	}
	dir2 = parent_of(path2_or_null);
	statx(dir, "", AT_EMPTY_PATH, STATX_MNT_ID, &from);
	statx(dir2, "", AT_EMPTY_PATH, STATX_MNT_ID, &to);
	close(dir);
	close(dir2);
	say(a, sizeof(a), "%s/", q->path);
	say(b, sizeof(b), "%s/", path2_or_null);
	return from.stx_mnt_id != to.stx_mnt_id || strncmp(a, b, strlen(a)) == 0 ||
	       strncmp(b, a, strlen(b)) == 0;
}

/* ---- one against the other ---- */

static void differ(struct world *w, const struct request *q, int model, int kernel)
{
	char text[sizeof(w->found->first) + sizeof(w->rules)];

	say(text, sizeof(text), "seed %llu: %s %s %s flags %#x mode %o: model %d, kernel %d\n",
	    (unsigned long long)w->seed, op_names[q->op], q->path, q->path2, (unsigned int)q->flags,
	    q->mode, model, kernel);
	if (w->found->mismatches++ == 0)
		say(w->found->first, sizeof(w->found->first), "%s", text);
	if (w->found->mismatches <= 3)
		fprintf(stderr, "%srules\n%s", text, w->rules);
}

static void count(struct found *f, const struct request *q, int kernel)
{
	f->verdicts++;
	f->by_op[q->op]++;
	f->ok += kernel == 0;
	f->eacces += kernel == -EACCES;
	f->exdev += kernel == -EXDEV;
}

/* A refusal by Landlock is exactly what the model says; any other error is somebody else's. */
static void compare(struct world *w, const struct request *q, int model, int kernel)
{
	int landlock = kernel == -EACCES || kernel == -EXDEV ? kernel : 0;

	if (model != landlock)
		differ(w, q, model, kernel);
	count(w->found, q, kernel);
}

static int ask(struct world *w, int to, int from)
{
	bool moves;
	struct request q;
	int model = 1, kernel, r;

	if (!choose(w, &q))
		return 0;
	moves = q.op == OP_RENAME || q.op == OP_LINK;
	if (is_vfs_matter(&q, moves ? q.path2 : NULL)) {
		w->found->skipped++;
		return 0;
	}
	r = moves ? model_move(w, &q, &model) : model_place(w, &q, &model);
	if (write(to, &q, sizeof(q)) != sizeof(q) ||
	    read(from, &kernel, sizeof(kernel)) != sizeof(kernel))
		return -EPIPE;
	if (r < 0)
		differ(w, &q, r, kernel);
	else
		compare(w, &q, model, kernel);
	if (kernel == 0 && q.op != OP_OPEN)
		rescan(w);
	return 0;
}

static int round_of(struct world *w, int abi_max)
{
	int to[2], from[2], status, r;
	pid_t pid;

	r = make_rules(w, abi_max);
	if (r < 0)
		return r;
	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(to[1]);
		close(from[0]);
		serve(w, to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	for (int i = 0; r == 0 && pid > 0 && i < ROUND_OPS; i++)
		r = ask(w, to[1], from[0]);
	close(to[1]);
	close(from[0]);
	llruleset_free(w->rs);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return -ECHILD;
	return r;
}

static void clear(const struct world *w)
{
	for (int i = w->count; i > 1; i--)
		if (!w->nodes[i - 1].mount)
			remove(w->nodes[i - 1].path);
}

static void become(uid_t uid)
{
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		_exit(SETUP_FAILED);
}

static void drive(struct world *w, long verdicts, bool drop)
{
	struct llabi here;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	umask(0);
	if (llabi_detect(&here) < 0)
		_exit(SETUP_FAILED);
	if (geteuid() == 0) {
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount_inside(w))
			_exit(SETUP_FAILED);
		w->found->mounts = true;
	}
	if (drop)
		become(NOBODY);
	while (w->found->verdicts < verdicts && w->found->mismatches < 20) {
		say(w->focus, sizeof(w->focus), "%s", w->root);
		grow(w);
		if (round_of(w, here.abi) < 0)
			_exit(SETUP_FAILED);
		rescan(w);
		if (w->count > NODES_MAX / 4)
			clear(w);
	}
	rescan(w);
	clear(w);
	_exit(0);
}

static long number_from(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 10) : otherwise;
}

static void model_agrees(bool drop)
{
	struct found *found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	long verdicts = number_from("WARDER_TEST_VERDICTS", VERDICTS);
	struct world *w = calloc(1, sizeof(*w));
	struct llabi here;
	int status;
	pid_t pid;

	if (llabi_detect(&here) < 0 || here.abi < 2)
		cr_skip_test("no Landlock with refer here");
	cr_assert(found != MAP_FAILED && w);
	w->found = found;
	w->seed = (uint64_t)number_from("WARDER_TEST_SEED", (long)time(NULL) * 1000 + getpid());
	w->random = w->seed;
	strcpy(w->root, "/tmp/warder-llmodel-XXXXXX");
	cr_assert_not_null(mkdtemp(w->root));
	if (drop)
		cr_assert_eq(chown(w->root, NOBODY, NOBODY), 0);
	pid = fork();
	if (pid == 0)
		drive(w, verdicts, drop);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	rescan(w);
	clear(w);
	cr_expect_eq(rmdir(w->root), 0);
	cr_assert_eq(status, 0, "seed %llu", (unsigned long long)w->seed);
	fprintf(stderr, "seed %llu: %ld verdicts (%ld ok, %ld EACCES, %ld EXDEV), %ld skipped\n",
		(unsigned long long)w->seed, found->verdicts, found->ok, found->eacces,
		found->exdev, found->skipped);
	cr_expect_eq(found->mismatches, 0, "%s", found->first);
	cr_expect_geq(found->verdicts, verdicts);
	/* A comparison of nothing but refusals would prove little. */
	cr_expect_gt(found->ok, verdicts / 10);
	cr_expect_gt(found->eacces, verdicts / 10);
	cr_expect_gt(found->exdev, verdicts / 100);
	for (int op = 0; op < OP_COUNT; op++)
		cr_expect_gt(found->by_op[op], verdicts / 100, "%s", op_names[op]);
	free(w);
	munmap(found, sizeof(*found));
}

Test(landlock_model, agrees_with_the_kernel, .timeout = 120)
{
	model_agrees(false);
}

Test(landlock_model, agrees_with_the_kernel_as_an_ordinary_user, .timeout = 120)
{
	if (geteuid() != 0)
		cr_skip_test("we are one already");
	model_agrees(true);
}
