/* The walk, with this process as the tracee. */
#include "tracer/path.h"

#include "tracer/pathname.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

static char dir[] = "/tmp/warder-path-XXXXXX";
static char *base; /* dir, resolved */

static void make_file(const char *name)
{
	int fd AUTOCLOSE = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	cr_assert(fd >= 0);
}

static void set_up(void)
{
	static const struct {
		const char *text, *name;
	} links[] = {
		{"file", "to_file"},
		{"sub", "to_sub"},
		{"sub/", "to_sub_slash"},
		{"absent", "dangling"},
		{"sub/absent", "dangling2"},
		{"nowhere/absent", "dangling3"},
		{"loop", "loop"},
		{"/", "to_root"},
		{"../..", "sub/up2"},
		{"/proc/self/cwd", "cwd"},
		{"dangling", "chain"},
		{"sub/deep/..", "dots"},
	};

	cr_assert(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	base = getcwd(NULL, 0);
	cr_assert_eq(mkdir("sub", 0755), 0);
	cr_assert_eq(mkdir("sub/deep", 0755), 0);
	make_file("file");
	make_file("sub/inner");
	make_file("odd \n\x1b\xff name");
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		cr_assert_eq(symlink(links[i].text, links[i].name), 0);
}

static void tear_down(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(chdir("/"), 0);
	cr_assert_eq(system(command), 0);
	free(base);
}

TestSuite(path, .init = set_up, .fini = tear_down);

static bool is_same_parent(const struct path_at *a, const struct path_at *b)
{
	struct stat x, y;

	if (a->parent < 0 || b->parent < 0)
		return a->parent == b->parent;
	return fstat(a->parent, &x) == 0 && fstat(b->parent, &y) == 0 && x.st_ino == y.st_ino;
}

/* What names are remembered, and that the thing alone counts, changes nothing but the way. */
static void check_thing(int dirfd, const char *given, unsigned flags, int r,
			const struct path_at *at)
{
	static struct pathname_memory *names;
	struct path_at thing;

	if (!names) {
		names = pathname_memory_new();
		pathname_memory_allow(names, ".");
	}
	const struct path_view view = {(pid_t)syscall(SYS_gettid), names};
	cr_expect_eq(path_resolve_with(&view, dirfd, given, flags | PATH_THING, &thing), r, "%s",
		     given);
	if (r < 0)
		return;
	cr_expect_eq(thing.exists, at->exists, "%s", given);
	cr_expect_eq(thing.trailing, at->trailing, "%s", given);
	cr_expect_eq(thing.unreachable, at->unreachable, "%s", given);
	cr_expect_eq(thing.magic, at->magic, "%s", given);
	cr_expect_eq(thing.linked, at->linked, "%s", given);
	cr_expect_eq(thing.st.st_ino, at->st.st_ino, "%s", given);
	cr_expect_str_eq(thing.name, at->name, "%s", given);
	cr_expect_str_eq(thing.real ? thing.real : "", at->real ? at->real : "", "%s", given);
	cr_expect(is_same_parent(&thing, at), "%s", given);
	path_release(&thing);
}

static int resolve(int dirfd, const char *given, unsigned flags, struct path_at *at)
{
	int r = path_resolve((pid_t)syscall(SYS_gettid), dirfd, given, flags, at);

	check_thing(dirfd, given, flags, r, at);
	return r;
}

/* `real` begins with "/" or is below base. */
static bool is_real(const struct path_at *at, const char *real)
{
	char want[PATH_MAX];

	if (real[0] == '/')
		snprintf(want, sizeof(want), "%s", real);
	else
		snprintf(want, sizeof(want), "%s%s%s", base, real[0] ? "/" : "", real);
	return at->real && strcmp(at->real, want) == 0;
}

Test(path, what_is_there)
{
	static const struct {
		const char *given;
		unsigned flags;
		const char *real, *name;
	} rows[] = {
		{"file", 0, "file", "file"},
		{"./file", 0, "file", "file"},
		{".//sub///inner", 0, "sub/inner", "inner"},
		{"sub/../file", 0, "file", "file"},
		{"sub/deep/../../file", 0, "file", "file"},
		{"sub//deep/..//inner", 0, "sub/inner", "inner"},
		{"sub/deep//", 0, "sub/deep", "deep"},
		{"to_sub/deep/../inner", 0, "sub/inner", "inner"},
		{"sub/deep/../../to_sub/deep", 0, "sub/deep", "deep"},
		{"sub/../../../tmp/..", 0, "/", ""},
		{"sub", 0, "sub", "sub"},
		{"sub/", 0, "sub", "sub"},
		{"sub/.", 0, "sub", ""},
		{"sub/..", 0, "", ""},
		{".", 0, "", ""},
		{"/", 0, "/", ""},
		{"/..", 0, "/", ""},
		{"/../../tmp/..", 0, "/", ""},
		{"to_file", 0, "to_file", "to_file"},
		{"to_file", PATH_FOLLOW, "file", "file"},
		{"to_sub/inner", 0, "sub/inner", "inner"},
		{"to_sub/", 0, "sub", "sub"},
		{"to_sub/", PATH_ENTRY, "to_sub", "to_sub"},
		{"to_file/", PATH_ENTRY, "to_file", "to_file"},
		{"to_sub/deep/", PATH_ENTRY, "sub/deep", "deep"},
		{"file/", PATH_ENTRY, "file", "file"},
		{"to_sub_slash", PATH_FOLLOW, "sub", "sub"},
		{"to_sub_slash/inner", 0, "sub/inner", "inner"},
		{"dots/inner", 0, "sub/inner", "inner"},
		{"dots", PATH_FOLLOW, "sub", ""},
		{"to_root/tmp", 0, "/tmp", "tmp"},
		{"cwd/file", 0, "file", "file"},
		{"/proc/self/cwd/file", 0, "file", "file"},
		{"/proc/thread-self/cwd/sub/inner", 0, "sub/inner", "inner"},
		{"/proc/self/root/tmp", 0, "/tmp", "tmp"},
		{"dangling", 0, "dangling", "dangling"},
		{"loop", 0, "loop", "loop"},
		{"odd \n\x1b\xff name", 0, "odd \n\x1b\xff name", "odd \n\x1b\xff name"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct path_at at;
		int r = resolve(AT_FDCWD, rows[i].given, rows[i].flags, &at);
		cr_assert_eq(r, 0, "%s: %s", rows[i].given, strerror(-r));
		cr_expect(at.exists && at.object >= 0, "%s", rows[i].given);
		cr_expect(is_real(&at, rows[i].real), "%s is %s", rows[i].given, at.real);
		cr_expect_str_eq(at.name, rows[i].name, "%s has name %s", rows[i].given, at.name);
		cr_expect_eq(at.parent >= 0, rows[i].name[0] != '\0', "%s", rows[i].given);
		path_release(&at);
	}
}

Test(path, what_is_absent)
{
	static const struct {
		const char *given;
		unsigned flags;
		const char *real, *name;
		bool trailing;
	} rows[] = {
		{"absent", 0, "absent", "absent", false},
		{"absent/", 0, "absent", "absent", true},
		{"sub/absent", PATH_FOLLOW, "sub/absent", "absent", false},
		{"/absent", 0, "/absent", "absent", false},
		{"dangling", PATH_FOLLOW | PATH_CREATE, "absent", "absent", false},
		{"dangling2", PATH_FOLLOW | PATH_CREATE, "sub/absent", "absent", false},
		{"chain", PATH_FOLLOW | PATH_CREATE, "absent", "absent", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct path_at at;
		int r = resolve(AT_FDCWD, rows[i].given, rows[i].flags, &at);
		cr_assert_eq(r, 0, "%s: %s", rows[i].given, strerror(-r));
		cr_expect(!at.exists && at.object < 0 && at.parent >= 0, "%s", rows[i].given);
		cr_expect(is_real(&at, rows[i].real), "%s is %s", rows[i].given, at.real);
		cr_expect_str_eq(at.name, rows[i].name);
		cr_expect_eq(at.trailing, rows[i].trailing);
		path_release(&at);
	}
}

Test(path, what_is_wrong)
{
	char long_name[300], long_path[PATH_MAX + 2];
	const struct {
		int dirfd;
		const char *given;
		unsigned flags;
		int error;
	} rows[] = {
		{AT_FDCWD, "", 0, -ENOENT},
		{AT_FDCWD, "absent/file", 0, -ENOENT},
		{AT_FDCWD, "dangling", PATH_FOLLOW, -ENOENT},
		{AT_FDCWD, "dangling3", PATH_FOLLOW | PATH_CREATE, -ENOENT},
		{AT_FDCWD, "dangling/", PATH_FOLLOW, -ENOENT},
		{AT_FDCWD, "file/x", 0, -ENOTDIR},
		{AT_FDCWD, "file/", 0, -ENOTDIR},
		{AT_FDCWD, "to_file/", PATH_FOLLOW, -ENOTDIR},
		{AT_FDCWD, "file/.", 0, -ENOTDIR},
		{AT_FDCWD, "file/..", 0, -ENOTDIR},
		{AT_FDCWD, "loop", PATH_FOLLOW, -ELOOP},
		{AT_FDCWD, "loop/x", 0, -ELOOP},
		{AT_FDCWD, long_name, 0, -ENAMETOOLONG},
		{AT_FDCWD, long_path, 0, -ENAMETOOLONG},
		{987, "file", 0, -EBADF},
		{-7, "file", 0, -EBADF},
		{987, "", PATH_EMPTY, -EBADF},
	};

	memset(long_name, 'x', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
	memset(long_path, '/', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct path_at at = {.object = -5};
		int r = resolve(rows[i].dirfd, rows[i].given, rows[i].flags, &at);
		cr_expect_eq(r, rows[i].error, "row %zu: %s", i, strerror(-r));
		cr_expect_eq(at.object, -5, "row %zu: touched", i);
	}
}

Test(path, by_descriptor)
{
	struct path_at at;
	int sub AUTOCLOSE = open("sub", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int file AUTOCLOSE = open("file", O_RDONLY | O_CLOEXEC);

	cr_assert_eq(link("file", "sub/second"), 0);
	cr_assert_eq(resolve(sub, "second", 0, &at), 0);
	cr_expect(is_real(&at, "sub/second"));
	path_release(&at);
	cr_assert_eq(resolve(sub, "inner", 0, &at), 0);
	cr_expect(is_real(&at, "sub/inner"));
	path_release(&at);
	cr_assert_eq(resolve(sub, "../file", 0, &at), 0);
	cr_expect(is_real(&at, "file"));
	path_release(&at);
	cr_assert_eq(resolve(sub, "/tmp", 0, &at), 0);
	cr_expect(is_real(&at, "/tmp"));
	path_release(&at);
	cr_assert_eq(resolve(file, "", PATH_EMPTY, &at), 0);
	cr_expect(is_real(&at, "file") && at.parent < 0);
	path_release(&at);
	cr_assert_eq(resolve(AT_FDCWD, "", PATH_EMPTY, &at), 0);
	cr_expect(is_real(&at, ""));
	path_release(&at);
	cr_expect_eq(resolve(file, "x", 0, &at), -ENOTDIR);
	/* Only the low half of a descriptor counts: that is the caller's cast, AT_FDCWD included.
	 */
	cr_assert_eq(resolve((int)0xffffffffffffff9cull, "file", 0, &at), 0);
	path_release(&at);
}

/* The kernel wants another try where anything was renamed or mounted meanwhile (openat2(2)). */
static int open_scoped(int at, const char *name, const struct open_how *how)
{
	int fd = -1;

	for (int n = 0; n == 0 || (fd < 0 && errno == EAGAIN && n < 1000); n++)
		fd = (int)syscall(SYS_openat2, at, name, how, sizeof(*how));
	return fd;
}

/* Every row is asked of the kernel's openat2 too: the same error, or the same inode. */
Test(path, scopes_as_openat2)
{
	static const struct {
		unsigned flag;
		uint64_t resolve;
	} scopes[] = {
		{0, 0},
		{PATH_IN_ROOT, RESOLVE_IN_ROOT},
		{PATH_BENEATH, RESOLVE_BENEATH},
		{PATH_NO_SYMLINKS | PATH_NO_MAGIC, RESOLVE_NO_SYMLINKS},
		{PATH_NO_MAGIC, RESOLVE_NO_MAGICLINKS},
		{PATH_NO_XDEV, RESOLVE_NO_XDEV},
	};
	static const char *const names[] = {
		"inner",
		"/inner",
		"/",
		"..",
		"../file",
		"../../../inner",
		"up2/file",
		"/up2",
		"deep/..",
		"deep/../inner",
		"to_parent",
		"to_parent/file",
		"/proc/self/cwd/file",
		"absolute",
		"self_link",
		".",
		"absent/x",
		"../to_file",
		"../loop",
		"/dev/null",
		"/proc/self/exe",
	};
	int sub AUTOCLOSE = open("sub", O_PATH | O_DIRECTORY | O_CLOEXEC);

	cr_assert_eq(symlink("..", "sub/to_parent"), 0);
	cr_assert_eq(symlink("/inner", "sub/absolute"), 0);
	cr_assert_eq(symlink("inner", "sub/self_link"), 0);
	for (size_t i = 0; i < ARRAY_LEN(scopes) * ARRAY_LEN(names); i++) {
		const char *name = names[i % ARRAY_LEN(names)];
		size_t scope = i / ARRAY_LEN(names);
		/* Linux 6.18 takes every absolute link for a crossing, before it knows the root. */
		if (scopes[scope].flag == PATH_NO_XDEV && strcmp(name, "absolute") == 0)
			continue;
		struct open_how how = {.flags = O_PATH | O_CLOEXEC,
				       .resolve = scopes[scope].resolve};
		struct path_at at;
		struct stat st;
		int fd AUTOCLOSE = open_scoped(sub, name, &how);
		int want = fd < 0 ? -errno : 0;
		int got = resolve(sub, name, PATH_FOLLOW | scopes[scope].flag, &at);
		if (got == 0 && !at.exists) {
			path_release(&at);
			got = -ENOENT;
		}
		cr_expect_eq(got, want, "scope %zu %s: %s, not %s", scope, name, strerror(-got),
			     strerror(-want));
		if (got < 0 || want < 0)
			continue;
		cr_assert_eq(fstat(fd, &st), 0);
		cr_expect(st.st_ino == at.st.st_ino && st.st_dev == at.st.st_dev,
			  "scope %zu %s is %s", scope, name, at.real);
		path_release(&at);
	}
}

/* Links to what has no name: pipes, sockets, memory, deleted files. */
Test(path, magic_links)
{
	char name[64];
	int pipes[2];
	struct path_at at;
	int mem AUTOCLOSE = memfd_create("x", MFD_CLOEXEC);
	int gone AUTOCLOSE = open("gone", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	int file AUTOCLOSE = open("file", O_RDONLY | O_CLOEXEC);

	cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
	cr_assert_eq(unlink("gone"), 0);
	const int nameless[] = {pipes[0], mem, gone};
	const char *const told[] = {"pipe:[", "/memfd:x (deleted)", "/gone (deleted)"};
	for (size_t i = 0; i < ARRAY_LEN(nameless); i++) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", nameless[i]);
		cr_assert_eq(resolve(AT_FDCWD, name, PATH_FOLLOW, &at), 0);
		cr_expect(at.magic && at.exists && at.unreachable && !at.real && at.parent < 0);
		cr_expect(at.told && strstr(at.told, told[i]), "%s", at.told);
		path_release(&at);
	}
	snprintf(name, sizeof(name), "/dev/fd/%d", file);
	cr_assert_eq(resolve(AT_FDCWD, name, PATH_FOLLOW, &at), 0);
	cr_expect(at.magic && is_real(&at, "file"));
	path_release(&at);
	/* Not followed, it is a symlink on procfs. */
	cr_assert_eq(resolve(AT_FDCWD, name, 0, &at), 0);
	cr_expect(!at.magic && S_ISLNK(at.st.st_mode));
	path_release(&at);
	close(pipes[0]);
	close(pipes[1]);
}

/* A name that another file has taken is not this file's name. */
Test(path, a_forged_name_is_no_name)
{
	char *real = NULL;
	int fd AUTOCLOSE = open("taken", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	cr_assert_eq(path_of_fd(fd, &real), 0);
	free(real);
	real = NULL;
	cr_assert_eq(unlink("taken"), 0);
	make_file("taken (deleted)");
	cr_expect_eq(path_of_fd(fd, &real), -ENOENT);
	cr_expect_null(real);
}

/* ---- a tracee with another view: a child of ours ---- */

struct other {
	pid_t pid;
	int ready;
};

static void other_main(int (*f)(void), int say)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	char c = f() == 0 ? 'y' : 'n';

	if (write(say, &c, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* The child's answer to f(): false where this machine does not let it. */
static bool other_start(struct other *o, int (*f)(void))
{
	int pipes[2];
	char c = 'n';

	cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
	o->pid = fork();
	if (o->pid == 0)
		other_main(f, pipes[1]);
	close(pipes[1]);
	cr_assert_eq(read(pipes[0], &c, 1), 1);
	close(pipes[0]);
	return c == 'y';
}

static void other_end(struct other *o)
{
	kill(o->pid, SIGKILL);
	cr_assert_eq(waitpid(o->pid, NULL, 0), o->pid);
}

static int go_chroot(void)
{
	return chroot("sub") < 0 || chdir("/deep") < 0 ? -1 : 0;
}

Test(path, a_chrooted_tracee)
{
	static const struct {
		const char *given, *real;
	} rows[] = {
		{"/inner", "sub/inner"},	 {"../inner", "sub/inner"},
		{"../../../inner", "sub/inner"}, {"/../inner", "sub/inner"},
		{"/up2/inner", "sub/inner"},	 {"/", "sub"},
	};
	struct other o;

	if (!other_start(&o, go_chroot)) {
		other_end(&o);
		cr_skip("chroot needs privilege");
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct path_at at;
		int r = path_resolve(o.pid, AT_FDCWD, rows[i].given, 0, &at);
		cr_expect_eq(r, 0, "%s: %s", rows[i].given, strerror(-r));
		if (r < 0)
			continue;
		cr_expect(is_real(&at, rows[i].real), "%s is %s", rows[i].given, at.real);
		path_release(&at);
	}
	other_end(&o);
}

static int go_deleted(void)
{
	return mkdir("doomed", 0755) < 0 || chdir("doomed") < 0 || rmdir("../doomed") < 0 ? -1 : 0;
}

Test(path, a_deleted_cwd)
{
	struct path_at at;
	struct other o;

	cr_assert(other_start(&o, go_deleted));
	cr_assert_eq(path_resolve(o.pid, AT_FDCWD, "x", 0, &at), 0);
	cr_expect(!at.exists && at.unreachable && !at.real);
	cr_expect(at.told && strstr(at.told, "/doomed (deleted)/x"), "%s", at.told);
	path_release(&at);
	cr_assert_eq(path_resolve(o.pid, AT_FDCWD, "../file", 0, &at), 0);
	cr_expect(is_real(&at, "file"));
	path_release(&at);
	other_end(&o);
}

/* /proc/self is the tracee's, not ours. */
static int go_elsewhere(void)
{
	return chdir("sub");
}

Test(path, self_is_the_tracee)
{
	static const char *const names[] = {"/proc/self/cwd/inner", "/proc/thread-self/cwd/inner",
					    "inner", "/proc/self/root/proc/self/cwd/inner"};
	struct path_at at;
	struct other o;

	cr_assert(other_start(&o, go_elsewhere));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		cr_assert_eq(path_resolve(o.pid, AT_FDCWD, names[i], 0, &at), 0, "%s", names[i]);
		cr_expect(is_real(&at, "sub/inner"), "%s is %s", names[i], at.real);
		path_release(&at);
	}
	other_end(&o);
	cr_expect_lt(path_resolve(o.pid, AT_FDCWD, "inner", 0, &at), 0);
}
