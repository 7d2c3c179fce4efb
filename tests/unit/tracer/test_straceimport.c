/* What strace's text tells of names, descriptors and processes: a text in, the events out. */
#include "tracer/straceimport.h"

#include "tests/tempdir.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define CWD "/home/ann"

/* What was read. */
struct told {
	struct buf events;
	struct buf faults;
	bool complete;
	uint64_t fault_count;
};

static void told_free(struct told *t)
{
	buf_free(&t->events);
	buf_free(&t->faults);
}

/* "FILE:LINE:COL: ..." without the file's name. */
static void on_fault(void *arg, const char *text)
{
	struct told *t = arg;
	const char *place = strstr(text, ":");
	while (place && (place[1] < '0' || place[1] > '9'))
		place = strstr(place + 1, ":");
	cr_assert(place, "%s", text);
	buf_addf(&t->faults, "%s\n", place + 1);
}

static void write_event(struct buf *out, const struct trace_event *ev)
{
	buf_addf(out, "%d ", (int)ev->pid);
	if (ev->kind == TRACE_FORK)
		buf_addf(out, "%s %d", ev->thread ? "thread" : "fork", (int)ev->child);
	else if (ev->kind == TRACE_EXEC)
		buf_addf(out, "exec %s", ev->exe ? ev->exe : "?");
	else if (ev->kind == TRACE_EXIT)
		buf_addf(out, "exit %d", ev->status);
	else
		buf_add_str(out, ev->call);
	for (unsigned i = 0; ev->kind == TRACE_CALL && i < ev->paths; i++)
		buf_addf(out, " %s %s", ev->path[i].real ? ev->path[i].real : "?",
			 trace_thing_name(ev->path[i].thing));
	if (ev->kind == TRACE_CALL)
		buf_addf(out, " %lld%s%s", (long long)ev->ret, ev->own_wall ? " walled" : "",
			 ev->anyway ? " anyway" : "");
	for (unsigned i = 0; i < ev->unsure_len; i++)
		buf_addf(out, " ~%s", ev->unsure[i]);
	buf_add_str(out, "\n");
}

static void drain(struct trace_reader *r, struct told *t)
{
	struct trace_event ev;
	struct trace_error error = {0};
	int got = 0;
	while ((got = trace_next(r, &ev, &error)) == 1)
		write_event(&t->events, &ev);
	cr_assert_eq(got, 0, "%s", error.text);
	t->complete = trace_is_complete(r);
	t->fault_count = trace_faults(r);
	trace_close(r);
}

static void read_text(const char *text, size_t len, const char *cwd, struct told *t)
{
	struct trace_options o = {.cwd = cwd, .fault = on_fault, .fault_arg = t};
	struct trace_reader *r = NULL;
	struct trace_error error = {0};
	char name[64];
	int fd AUTOCLOSE = memfd_create("trace", MFD_CLOEXEC);
	cr_assert_eq(write(fd, text, len), (ssize_t)len);
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	cr_assert_eq(trace_open(name, &o, &r, &error), 0, "%s", error.text);
	drain(r, t);
}

struct row {
	const char *what;
	const char *text;
	const char *events;
};

#define FIRST "10 execve(\"/bin/a\", [\"a\"], 0x7f /* 9 vars */) = 0\n10 brk(NULL) = 0x1\n"
#define BEGAN "10 execve /bin/a file 0\n10 exec /bin/a\n"

static const struct row rows[] = {
	{"relative names start in the given directory",
	 FIRST "10 openat(AT_FDCWD, \"x\", O_RDONLY) = 3\n10 unlink(\"../y\") = 0\n",
	 BEGAN "10 openat /home/ann/x unknown 3\n10 unlink /home/y file 0\n"},
	{"chdir and fchdir move it, for one process",
	 FIRST
	 "10 chdir(\"/tmp\") = 0\n10 fork() = 11\n11 chdir(\"sub\") = 0\n"
	 "11 mkdir(\"a\", 0777) = 0\n10 mkdir(\"b\", 0777) = 0\n"
	 "10 open(\"/usr\", O_RDONLY|O_DIRECTORY) = 3\n10 fchdir(3) = 0\n10 rmdir(\"c\") = 0\n",
	 BEGAN "10 fork 11\n11 mkdir /tmp/sub/a absent 0\n10 mkdir /tmp/b absent 0\n"
	       "10 open /usr dir 3\n10 rmdir /usr/c dir 0\n"},
	{"a failed chdir moves nothing",
	 FIRST "10 chdir(\"/root\") = -1 EACCES (Permission denied)\n10 rmdir(\"c\") = 0\n",
	 BEGAN "10 rmdir /home/ann/c dir 0\n"},
	{"threads share it, with the descriptors",
	 FIRST "10 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD, exit_signal=0} => "
	       "{parent_tid=[11]}, "
	       "88) = 11\n11 chdir(\"/tmp\") = 0\n10 rmdir(\"c\") = 0\n"
	       "10 open(\"/usr\", O_RDONLY|O_DIRECTORY) = 3\n11 unlinkat(3, \"x\", 0) = 0\n",
	 BEGAN
	 "10 thread 11\n10 rmdir /tmp/c dir 0\n10 open /usr dir 3\n10 unlinkat /usr/x file 0\n"},
	{"a process has a copy of the descriptors",
	 FIRST
	 "10 open(\"/usr\", O_RDONLY|O_DIRECTORY) = 3\n"
	 "10 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 11\n"
	 "11 close(3) = 0\n10 unlinkat(3, \"x\", 0) = 0\n11 unlinkat(3, \"x\", 0) = -1 EBADF (Bad "
	 "file "
	 "descriptor)\n",
	 BEGAN "10 open /usr dir 3\n10 fork 11\n10 unlinkat /usr/x file 0\n"
	       "11 unlinkat ? unknown -9 ~what the descriptor is that the name starts from is not "
	       "told\n"},
	{"dup, fcntl and close_range are followed",
	 FIRST "10 open(\"/usr\", O_RDONLY|O_DIRECTORY) = 3\n10 dup2(3, 9) = 9\n10 fcntl(9, "
	       "F_DUPFD, 10) = 10\n"
	       "10 close_range(3, 9, 0) = 0\n10 unlinkat(10, \"x\", 0) = 0\n10 unlinkat(9, \"y\", "
	       "0) = -1 EBADF "
	       "(Bad file descriptor)\n",
	 BEGAN "10 open /usr dir 3\n10 unlinkat /usr/x file 0\n"
	       "10 unlinkat ? unknown -9 ~what the descriptor is that the name starts from is not "
	       "told\n"},
	{"an exec closes what is marked so",
	 FIRST
	 "10 open(\"/usr\", O_RDONLY|O_DIRECTORY|O_CLOEXEC) = 3\n10 open(\"/srv\", "
	 "O_RDONLY|O_DIRECTORY) = 4\n"
	 "10 dup3(4, 5, O_CLOEXEC) = 5\n10 fcntl(5, F_SETFD, 0) = 0\n"
	 "10 execve(\"/bin/b\", [\"b\"], 0x7f /* 9 vars */) = 0\n10 unlinkat(5, \"x\", 0) = 0\n"
	 "10 socket(AF_UNIX, SOCK_STREAM, 0) = 3\n",
	 BEGAN "10 open /usr dir 3\n10 open /srv dir 4\n10 execve /bin/b file 0\n10 exec /bin/b\n"
	       "10 unlinkat /srv/x file 0\n"},
	{"a descriptor that is given out twice was closed unseen",
	 FIRST "10 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n10 openat(AT_FDCWD, \"/b\", "
	       "O_RDONLY|O_DIRECTORY) = 3\n"
	       "10 unlinkat(3, \"x\", 0) = 0\n",
	 BEGAN "10 openat /a unknown 3\n10 openat /b dir 3\n10 unlinkat /b/x file 0 ~descriptors "
	       "are not all told: "
	       "the one that the name starts from may be another by now\n"},
	{"not one that another thread closes meanwhile",
	 FIRST
	 "10 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 11\n"
	 "10 openat(AT_FDCWD, \"/a\", O_RDONLY|O_DIRECTORY) = 3\n10 close(3 <unfinished ...>\n"
	 "11 openat(AT_FDCWD, \"/b\", O_RDONLY|O_DIRECTORY) = 3\n10 <... close resumed>) = 0\n"
	 "10 unlinkat(3, \"x\", 0) = 0\n",
	 BEGAN "10 thread 11\n10 openat /a dir 3\n10 openat /b dir 3\n10 unlinkat /b/x file 0\n"},
	{"-y says it all the same",
	 FIRST "10 openat(AT_FDCWD</w>, \"a\", O_RDONLY) = 3</w/a>\n10 openat(AT_FDCWD</w>, \"b\", "
	       "O_RDONLY) = 3</x/b>\n"
	       "10 unlinkat(7</srv>, \"x\", 0) = 0\n10 rmdir(\"r\") = 0\n",
	 BEGAN "10 openat /w/a unknown 3\n10 openat /x/b unknown 3\n10 unlinkat /srv/x file 0\n"
	       "10 rmdir /w/r dir 0\n"},
	{"a name that is cut is unsure",
	 FIRST "10 openat(AT_FDCWD, \"/very/lo\"..., O_RDONLY) = 3\n",
	 BEGAN "10 openat ? unknown 3 ~the name is not told to its end\n"},
	{"so is one that is only a pointer",
	 FIRST "10 openat(AT_FDCWD, 0x7ffd1234, O_RDONLY) = 3\n10 openat(AT_FDCWD, 0x1, O_RDONLY) "
	       "= -1 EFAULT (Bad "
	       "address)\n",
	 BEGAN "10 openat ? unknown 3 ~the name is not told\n"},
	{"and a flag that nobody knows",
	 FIRST "10 openat(AT_FDCWD, \"/a\", O_RDONLY|O_NEWEST) = 3\n",
	 BEGAN "10 openat /a unknown 3 ~a flag of the call is not known\n"},
	{"a symlink is followed where its text was told",
	 FIRST "10 readlink(\"/l\", \"target/dir\", 4095) = 10\n10 unlink(\"/l/x\") = 0\n10 "
	       "unlink(\"/l\") = 0\n"
	       "10 unlink(\"/l/x\") = -1 ENOENT (No such file or directory)\n",
	 BEGAN
	 "10 unlink /target/dir/x file 0\n10 unlink /l symlink 0\n10 unlink /l/x absent -2\n"},
	{"made, moved and absolute ones, too",
	 FIRST "10 symlink(\"/srv/data\", \"/home/ann/l\") = 0\n10 rename(\"l\", \"m\") = 0\n10 "
	       "rmdir(\"m/d\") = 0\n"
	       "10 openat(AT_FDCWD, \"m\", O_RDONLY|O_NOFOLLOW) = -1 ELOOP (Too many levels of "
	       "symbolic links)\n",
	 BEGAN
	 "10 symlink /home/ann/l absent 0\n10 rename /home/ann/l symlink /home/ann/m unknown 0\n"
	 "10 rmdir /srv/data/d dir 0\n10 openat /home/ann/m symlink -40\n"},
	{"one whose text is not told makes what is behind it unsure",
	 FIRST
	 "10 lstat(\"/l\", {st_mode=S_IFLNK|0777, st_size=3, ...}) = 0\n10 unlink(\"/l/x\") = 0\n",
	 BEGAN "10 unlink /l/x file 0 ~a symlink is on the way, and where it leads is not told\n"},
	{"links in a circle lead nowhere",
	 FIRST "10 symlink(\"b\", \"/a\") = 0\n10 symlink(\"a\", \"/b\") = 0\n10 open(\"/a\", "
	       "O_RDONLY) = -1 ELOOP (Too many "
	       "levels of symbolic links)\n",
	 BEGAN "10 symlink /a absent 0\n10 symlink /b absent 0\n10 open ? unknown -40\n"},
	{"what -y resolved is remembered",
	 FIRST "10 openat(AT_FDCWD</>, \"/lib\", O_RDONLY|O_DIRECTORY) = 3</usr/lib>\n10 "
	       "unlink(\"/lib/x\") = 0\n",
	 BEGAN "10 openat /usr/lib dir 3\n10 unlink /usr/lib/x file 0\n"},
	{"getcwd tells where a chdir led",
	 FIRST "10 chdir(\"l\") = 0\n10 getcwd(\"/data/real\", 4096) = 11\n10 rmdir(\"a\") = 0\n",
	 BEGAN "10 rmdir /data/real/a dir 0\n"},
	{"chroot is where names start",
	 FIRST "10 chroot(\"/jail\") = 0\n10 chdir(\"/\") = 0\n10 unlink(\"/etc/x\") = 0\n10 "
	       "unlink(\"../../y\") = 0\n",
	 BEGAN "10 unlink /jail/etc/x file 0\n10 unlink /jail/y file 0\n"},
	{"after a mount names may mean other things",
	 FIRST "10 mount(\"a\", \"/mnt\", \"tmpfs\", 0, NULL) = 0\n10 unlink(\"/mnt/x\") = 0\n",
	 BEGAN "10 mount /mnt unknown 0\n10 unlink /mnt/x file 0 ~mounts were changed: the name "
	       "may be another's "
	       "elsewhere\n"},
	{"/proc/self is the process, and its links its own",
	 FIRST
	 "10 open(\"/proc/self/maps\", O_RDONLY) = 3\n10 close(3) = 0\n10 open(\"/srv/f\", O_RDWR) "
	 "= 3\n"
	 "10 open(\"/proc/self/fd/3\", O_RDONLY) = 4\n10 open(\"/dev/fd/3\", O_RDONLY) = 5\n"
	 "10 open(\"/proc/self/cwd/x\", O_RDONLY) = 6\n10 open(\"/dev/stdin\", O_RDONLY) = 7\n",
	 BEGAN "10 open /proc/10/maps unknown 3\n10 open /srv/f file 3\n10 open /srv/f file 4\n"
	       "10 open /srv/f file 5\n10 open /home/ann/x unknown 6\n"
	       "10 open ? unknown 7 ~where a link of /proc led is not told\n"},
	{"what lay there is told by calls before",
	 FIRST "10 stat(\"/a\", 0x7f) = -1 ENOENT (No such file or directory)\n"
	       "10 open(\"/a\", O_WRONLY|O_CREAT, 0666) = 3\n10 open(\"/a\", O_RDONLY) = 4\n"
	       "10 newfstatat(AT_FDCWD, \"/d\", {st_mode=S_IFDIR|0755, st_size=3, ...}, 0) = 0\n"
	       "10 open(\"/d\", O_RDONLY) = 5\n10 rename(\"/a\", \"/b\") = 0\n10 open(\"/a\", "
	       "O_WRONLY|O_CREAT, 0666) = 6\n",
	 BEGAN "10 open /a absent 3\n10 open /a file 4\n10 open /d dir 5\n10 rename /a file /b "
	       "unknown 0\n"
	       "10 open /a absent 6\n"},
	{"openat2, execveat, linkat and sockets",
	 FIRST "10 openat2(AT_FDCWD, \"x\", {flags=O_RDWR|O_CREAT|O_EXCL, mode=0600}, 24) = 3\n"
	       "10 openat2(3, \"/etc/x\", {flags=O_RDONLY, resolve=RESOLVE_IN_ROOT}, 24) = 4\n"
	       "10 linkat(AT_FDCWD, \"x\", AT_FDCWD, \"y\", 0) = 0\n"
	       "10 bind(5, {sa_family=AF_UNIX, sun_path=\"s\"}, 12) = 0\n"
	       "10 connect(5, {sa_family=AF_UNIX, sun_path=\"/run/x\"}, 12) = -1 ECONNREFUSED "
	       "(Connection refused)\n"
	       "10 connect(5, {sa_family=AF_UNIX, sun_path=@\"abs\"}, 12) = 0\n"
	       "10 connect(5, {sa_family=AF_INET, sin_port=htons(80), "
	       "sin_addr=inet_addr(\"1.2.3.4\")}, 16) = 0\n"
	       "10 execveat(3, \"\", [\"b\"], 0x7f /* 9 vars */, AT_EMPTY_PATH) = 0\n",
	 BEGAN
	 "10 openat2 /home/ann/x absent 3\n10 openat2 /home/ann/x/etc/x unknown 4\n"
	 "10 linkat /home/ann/x file /home/ann/y absent 0\n10 bind /home/ann/s absent 0\n"
	 "10 connect /run/x unknown -111\n10 execveat /home/ann/x file 0\n10 exec /home/ann/x\n"},
	{"by descriptor: ftruncate, and ioctl of devices alone",
	 FIRST
	 "10 open(\"/srv/f\", O_RDWR) = 3\n10 ftruncate(3, 0) = 0\n10 ftruncate(1, 0) = 0\n"
	 "10 ioctl(3, TCGETS, 0x7f) = -1 ENOTTY (Inappropriate ioctl for device)\n"
	 "10 open(\"/dev/tty\", O_RDWR) = 4\n10 ioctl(4, TIOCGWINSZ, {ws_row=24, ws_col=80}) = 0\n"
	 "10 ioctl(1, TIOCGWINSZ, {ws_row=24, ws_col=80}) = 0\n",
	 BEGAN "10 open /srv/f file 3\n10 ftruncate /srv/f file 0\n10 open /dev/tty unknown 4\n"
	       "10 ioctl /dev/tty char 0\n"},
	{"descriptors that came in a message are not told",
	 FIRST
	 "10 recvmsg(4, {msg_name=NULL, msg_iov=[{iov_base=\"x\", iov_len=1}], "
	 "msg_control=[{cmsg_len=20, "
	 "cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[3]}], msg_flags=0}, 0) = 1\n"
	 "10 unlinkat(3, \"x\", 0) = 0\n",
	 BEGAN
	 "10 unlinkat ? file 0 ~what the descriptor is that the name starts from is not told\n"},
	{"lines in two parts, with another's between",
	 FIRST "10 fork() = 11\n10 openat(AT_FDCWD, \"x\",  <unfinished ...>\n11 unlink(\"y\" "
	       "<unfinished ...>\n"
	       "10 <... openat resumed>O_RDONLY) = 3\n11 <... unlink resumed>) = 0\n",
	 BEGAN "10 fork 11\n10 openat /home/ann/x unknown 3\n11 unlink /home/ann/y file 0\n"},
	{"a child speaks before its creator's call returns",
	 FIRST "10 chdir(\"/tmp\") = 0\n10 vfork( <unfinished ...>\n11 unlink(\"y\") = 0\n11 "
	       "exit_group(0) = ?\n"
	       "11 +++ exited with 0 +++\n10 <... vfork resumed>) = 11\n",
	 BEGAN "10 fork 11\n11 unlink /tmp/y file 0\n11 exit 0\n"},
	{"an older strace tells only then that it is a thread",
	 FIRST "10 clone( <unfinished ...>\n11 open(\"y\", O_RDONLY) = 3\n"
	       "10 <... clone resumed> child_stack=0x1, "
	       "flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 11\n"
	       "11 chdir(\"/tmp\") = 0\n10 unlink(\"y\") = 0\n",
	 BEGAN "10 fork 11\n11 open /home/ann/y unknown 3\n10 unlink /tmp/y file 0\n"},
	{"which of two is the creator is not told, but where they agree it is",
	 FIRST "10 fork() = 11\n10 vfork( <unfinished ...>\n11 vfork( <unfinished ...>\n12 "
	       "unlink(\"y\") = 0\n"
	       "11 <... vfork resumed>) = 12\n",
	 BEGAN "10 fork 11\n10 fork 12\n12 unlink /home/ann/y file 0\n"},
	{"where they don't, it is not",
	 FIRST "10 fork() = 11\n11 chdir(\"/tmp\") = 0\n10 vfork( <unfinished ...>\n11 vfork( "
	       "<unfinished ...>\n"
	       "12 unlink(\"y\") = 0\n11 <... vfork resumed>) = 12\n12 unlink(\"z\") = 0\n",
	 BEGAN "10 fork 11\n10 fork 12\n12 unlink ? file 0 ~the working directory of its process "
	       "is not told\n"
	       "12 unlink /tmp/z file 0\n"},
	{"an exec by a thread goes on under its leader's number",
	 FIRST "10 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 11\n"
	       "11 execve(\"/bin/b\", [\"b\"], 0x7f /* 9 vars */ <unfinished ...>\n"
	       "10 +++ superseded by execve in pid 11 +++\n10 <... execve resumed>) = 0\n10 "
	       "unlink(\"y\") = 0\n",
	 BEGAN
	 "10 thread 11\n10 execve /bin/b file 0\n10 exec /bin/b\n10 unlink /home/ann/y file 0\n"},
	{"without -f no line has a number",
	 "execve(\"/bin/a\", [\"a\"], 0x7f /* 9 vars */) = 0\nunlink(\"x\") = 0\nexit_group(1) = "
	 "?\n"
	 "+++ exited with 1 +++\n",
	 "1 execve /bin/a file 0\n1 exec /bin/a\n1 unlink /home/ann/x file 0\n1 exit 256\n"},
	{"on a terminal only where there are several",
	 "execve(\"/bin/a\", [\"a\"], 0x7f /* 9 vars */) = 0\nvfork(strace: Process 11 attached\n "
	 "<unfinished ...>\n"
	 "[pid    11] chdir(\"/tmp\") = 0\n[pid    11] exit_group(0) = ?\n[pid    11] +++ exited "
	 "with 0 +++\n"
	 "<... vfork resumed>) = 11\nunlink(\"x\") = 0\n",
	 "1 execve /bin/a file 0\n1 exec /bin/a\n1 fork 11\n11 exit 0\n1 unlink "
	 "/home/ann/x file 0\n"},
	{"the first process has its number later on",
	 "execve(\"/bin/a\", [\"a\"], 0x7f /* 9 vars */) = 0\nfork(strace: Process 11 attached\n) "
	 "= 11\n"
	 "[pid    10] chdir(\"/srv\") = 0\n[pid    11] unlink(\"x\") = 0\n[pid    10] "
	 "unlink(\"y\") = 0\n"
	 "[pid    11] +++ exited with 0 +++\nunlink(\"z\") = 0\n",
	 "1 execve /bin/a file 0\n1 exec /bin/a\n1 fork 11\n11 unlink /home/ann/x file 0\n"
	 "1 unlink /srv/y file 0\n11 exit 0\n1 unlink /srv/z file 0\n"},
	{"where no process ever moved, one whose fork is left out has not either",
	 FIRST "99 unlink(\"y\") = 0\n", BEGAN "99 unlink /home/ann/y file 0\n"},
	{"in a trace that strace did not begin itself one may be anywhere",
	 "10 unlink(\"x\") = 0\n99 unlink(\"y\") = 0\n",
	 "10 unlink /home/ann/x file 0\n99 unlink ? file 0 ~the working directory of its process "
	 "is not told\n"},
	{"where one moved, one whose fork is left out may be anywhere",
	 FIRST "10 chdir(\"/tmp\") = 0\n99 unlink(\"y\") = 0\n99 unlink(\"/z\") = 0\n",
	 BEGAN "99 unlink ? file 0 ~the working directory of its process is not told\n99 unlink /z "
	       "file 0\n"},
	{"a refusal in a run without a wall is nobody's to lift; in one with, it may be",
	 FIRST "10 open(\"/a\", O_RDONLY) = -1 EACCES (Permission denied)\n10 "
	       "landlock_restrict_self(3, 0) = 0\n"
	       "10 open(\"/b\", O_RDONLY) = -1 EACCES (Permission denied)\n",
	 BEGAN "10 open /a unknown -13 anyway\n10 open /b unknown -13 walled\n"},
	{"who refused is not told where calls are left out",
	 "10 open(\"/a\", O_RDONLY) = -1 EACCES (Permission denied)\n",
	 "10 open /a unknown -13 ~who refused it is not told: the trace leaves calls out\n"},
	{"what did not return is not taken for done",
	 FIRST "10 open(\"/a\", O_RDONLY) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)\n"
	       "10 --- SIGUSR1 {si_signo=SIGUSR1} ---\n10 open(\"/a\", O_RDONLY) = 3\n10 +++ "
	       "killed by SIGKILL +++\n",
	 BEGAN "10 open /a unknown 3\n10 exit 9\n"},
	{"32-bit programs have calls of their own",
	 "10 execve(\"/bin/a\", [\"a\"], 0x7f /* 9 vars */) = 0\n10 [ Process PID=10 runs in 32 "
	 "bit mode. ]\n"
	 "10 brk(NULL) = 0x1\n10 truncate64(\"x\", 5) = 0\n10 fstatat64(AT_FDCWD, \"d\", "
	 "{st_mode=S_IFDIR|0755, ...}, 0) = 0\n"
	 "10 open(\"d\", O_RDONLY|O_LARGEFILE) = 3\n10 chown32(\"x\", 0, 0) = -1 EPERM (Operation "
	 "not permitted)\n",
	 "10 execve /bin/a file 0\n10 exec /bin/a\n10 truncate64 /home/ann/x file 0\n10 open "
	 "/home/ann/d dir 3\n"
	 "10 chown32 /home/ann/x unknown -1 anyway\n"},
	{"process numbers of another namespace",
	 FIRST "10 fork() = 2 /* 11 in strace's PID NS */\n11 unlink(\"x\") = 0\n",
	 BEGAN "10 fork 11\n11 unlink /home/ann/x file 0\n"},
};

Test(straceimport, what_a_text_tells)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct told t = {0};
		read_text(rows[i].text, strlen(rows[i].text), CWD, &t);
		cr_expect_str_eq(buf_str(&t.events), rows[i].events, "%s:\n%swanted:\n%s",
				 rows[i].what, buf_str(&t.events), rows[i].events);
		cr_expect_eq(t.fault_count, 0, "%s: %s", rows[i].what, buf_str(&t.faults));
		told_free(&t);
	}
}

/* What is no line of strace's is passed over, told of by its place, and counted. */
Test(straceimport, faults_have_a_place)
{
	const char *text =
		FIRST "hello from the program\n10 open(\"/a\", O_RDONLY] = 3\n"
		      "10 open(\"/b\",  <unfinished ...>\n10 <... open resumed>O_RDONLY, = 3\n"
		      "10 unlink(\"/c\") = 0\n";
	struct told t = {0};
	read_text(text, strlen(text), CWD, &t);
	cr_expect_str_eq(buf_str(&t.faults),
			 "3:6: \"(\" behind the call's name was expected\n"
			 "4:23: \",\" or \")\" was expected\n"
			 "6:32: an argument was expected\n",
			 "%s", buf_str(&t.faults));
	cr_expect_str_eq(buf_str(&t.events), BEGAN "10 unlink /c file 0\n");
	cr_expect_eq(t.fault_count, 3);
	told_free(&t);
}

/* However early the text breaks off: no fault, and what it tells up to there is a beginning. */
Test(straceimport, cut_anywhere)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t len = strlen(FIRST); len < strlen(rows[i].text); len++) {
			struct told t = {0};
			if (strncmp(rows[i].text, FIRST, strlen(FIRST)) != 0)
				break;
			read_text(rows[i].text, len, CWD, &t);
			size_t whole = strrchr(buf_str(&t.events), '\n') - buf_str(&t.events) + 1;
			cr_expect_eq(t.fault_count, 0, "%s, %zu bytes: %s", rows[i].what, len,
				     buf_str(&t.faults));
			cr_expect(!strncmp(buf_str(&t.events), rows[i].events, whole) ||
					  strstr(buf_str(&t.events), "~"),
				  "%s, %zu bytes:\n%s", rows[i].what, len, buf_str(&t.events));
			told_free(&t);
		}
}

Test(straceimport, a_whole_trace_is_complete)
{
	static const struct {
		const char *text;
		bool complete;
	} ends[] = {
		{FIRST "10 exit_group(0) = ?\n10 +++ exited with 0 +++\n", true},
		{FIRST "10 exit_group(0) = ?\n", true},
		{FIRST "10 unlink(\"/c\") = 0\n", false},
		{FIRST "10 unlink(\"/c", false},
		{"10 open(\"/a\", O_RDONLY) = 3\n", true},
	};
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct told t = {0};
		read_text(ends[i].text, strlen(ends[i].text), CWD, &t);
		cr_expect_eq(t.complete, ends[i].complete, "%s", ends[i].text);
		told_free(&t);
	}
}

Test(straceimport, where_it_started_may_be_unknown)
{
	struct told t = {0};
	const char *text =
		FIRST "10 unlink(\"x\") = 0\n10 getcwd(\"/srv\", 4096) = 5\n10 unlink(\"x\") = 0\n";
	read_text(text, strlen(text), NULL, &t);
	cr_expect_str_eq(buf_str(&t.events),
			 BEGAN
			 "10 unlink ? file 0 ~the working directory of its process is not told\n"
			 "10 unlink /srv/x file 0\n",
			 "%s", buf_str(&t.events));
	told_free(&t);
}

Test(straceimport, where_it_started_is_told_in_any_way)
{
	static const struct {
		const char *cwd;
		const char *real;
	} ways[] = {
		{"/", "/x"},
		{"//srv/./a/", "/srv/a/x"},
		{"/srv/a/../b", "/srv/b/x"},
		{"/../..", "/x"},
		{".", "/usr/x"},
		{"lib/..", "/usr/x"},
		{"../srv", "/srv/x"},
	};
	cr_assert_eq(chdir("/usr"), 0);
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		struct told t = {0};
		char want[64];
		const char *text = "10 unlink(\"x\") = 0\n";
		read_text(text, strlen(text), ways[i].cwd, &t);
		snprintf(want, sizeof(want), "10 unlink %s file 0\n", ways[i].real);
		cr_expect_str_eq(buf_str(&t.events), want, "%s", ways[i].cwd);
		told_free(&t);
	}
}

Test(straceimport, midnight_passes)
{
	const char *text = "10 23:59:59.5 unlink(\"/a\") = 0\n10 00:00:00.75 unlink(\"/b\") = 0\n";
	struct trace_options o = {0};
	struct trace_reader *r = NULL;
	struct trace_error error = {0};
	struct trace_event ev = {0};
	char dir[PATH_MAX];
	tempdir_enter(dir);
	tempdir_file("trace", "%s", text);
	cr_assert_eq(trace_open("trace", &o, &r, &error), 0);
	cr_assert_eq(trace_next(r, &ev, &error), 1);
	cr_assert_eq(trace_next(r, &ev, &error), 1);
	cr_expect_eq(ev.t_ns, 1250000000u, "%llu", (unsigned long long)ev.t_ns);
	trace_close(r);
	tempdir_leave(dir);
}

/* -ff: one file a process. Whoever comes first by name, a child's is read behind its creator's. */
Test(straceimport, a_family_of_files)
{
	static const char *const files[] = {"t.11", "t.12", "t.100"};
	struct trace_options o = {.cwd = CWD};
	struct trace_error error = {0};
	struct trace_reader *r = NULL;
	struct told t = {0};
	char dir[PATH_MAX];
	size_t n = 0;
	tempdir_enter(dir);
	tempdir_file("t.100",
		     "execve(\"/bin/a\", [\"a\"], 0x7f /* 9 vars */) = 0\nchdir(\"/tmp\") = 0\n"
		     "fork() = 12\nchdir(\"/srv\") = 0\n+++ exited with 0 +++\n");
	tempdir_file("t.12", "fork() = 11\nunlink(\"x\") = 0\n+++ exited with 0 +++\n");
	tempdir_file("t.11", "unlink(\"y\") = 0\n+++ exited with 1 +++\n");
	cr_assert_eq(trace_open_first(files, ARRAY_LEN(files), &o, &r, &n, &error), 0);
	cr_expect_eq(n, ARRAY_LEN(files));
	drain(r, &t);
	cr_expect_str_eq(buf_str(&t.events),
			 "100 execve /bin/a file 0\n100 exec /bin/a\n100 fork 12\n100 exit 0\n"
			 "12 fork 11\n12 unlink /tmp/x file 0\n12 exit 0\n11 unlink /tmp/y file "
			 "0\n11 exit 256\n",
			 "%s", buf_str(&t.events));
	cr_expect(t.complete);
	told_free(&t);
	tempdir_leave(dir);
}

Test(straceimport, names_of_a_family)
{
	static const struct {
		const char *file;
		bool is;
		pid_t pid;
		size_t len;
	} names[] = {
		{"out.123", true, 123, 4},
		{"d.x/out.log.7", true, 7, 12},
		{"out", false, 0, 0},
		{"out.", false, 0, 0},
		{"out.12a", false, 0, 0},
		{"d.12/out", false, 0, 0},
		{"out.99999999999", false, 0, 0},
		{"out.0", false, 0, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		pid_t pid = 0;
		size_t len = 0;
		cr_expect_eq(straceimport_family(names[i].file, &pid, &len), names[i].is, "%s",
			     names[i].file);
		cr_expect_eq(pid, names[i].pid, "%s", names[i].file);
		cr_expect_eq(len, names[i].len, "%s", names[i].file);
	}
}

/* What is no family: other names, numbers by chance, a trace of ours. */
Test(straceimport, who_belongs_together)
{
	static const char *const files[] = {"a.1", "a.2", "b.3", "c.1", "c.2", "d.1", "d.2", "e.1"};
	static const size_t together[] = {2, 1, 1, 1, 1, 1, 1, 1};
	char dir[PATH_MAX];
	tempdir_enter(dir);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		tempdir_file(files[i], "%s",
			     *files[i] == 'c'	? "{\"warder_trace\":1}\n"
			     : *files[i] == 'd' ? "7 close(3) = 0\n"
						: "close(3) = 0\n");
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		cr_expect_eq(straceimport_together(files + i, ARRAY_LEN(files) - i), together[i],
			     "%s", files[i]);
	tempdir_leave(dir);
}

static long max_rss_kib(void)
{
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	return used.ru_maxrss;
}

/* Many names, processes and descriptors: memory is what lives at once. */
Test(straceimport, memory_does_not_grow_with_the_text)
{
	char dir[PATH_MAX];
	tempdir_enter(dir);
	FILE *f = fopen("trace", "we");
	cr_assert(f);
	fputs(FIRST, f);
	for (int i = 0; i < 300000; i++) {
		int pid = 20 + i % 30000;
		fprintf(f, "10 symlink(\"/t/%d\", \"/l/%d\") = 0\n10 fork() = %d\n", i, i, pid);
		fprintf(f, "%d stat(\"/n/%d\", 0x7f) = -1 ENOENT (No such file or directory)\n",
			pid, i);
		fprintf(f,
			"%d open(\"/n/%d\", O_WRONLY|O_CREAT, 0666) = 3\n%d +++ exited with 0 "
			"+++\n",
			pid, i, pid);
	}
	fclose(f);
	struct trace_reader *r = NULL;
	struct trace_error error = {0};
	struct trace_event ev;
	struct trace_options o = {.cwd = CWD};
	cr_assert_eq(trace_open("trace", &o, &r, &error), 0);
	long before = 0;
	int got = 0;
	for (int i = 0; (got = trace_next(r, &ev, &error)) == 1; i++)
		if (i == 300000)
			before = max_rss_kib();
	cr_assert_eq(got, 0);
	cr_expect_eq(trace_faults(r), 0);
	cr_assert(before);
#ifndef __SANITIZE_ADDRESS__ /* it keeps what was freed for a while, some hundred MiB of it */
	cr_expect_lt(max_rss_kib() - before, 8192, "it grew by %ld KiB", max_rss_kib() - before);
#endif
	trace_close(r);
	tempdir_leave(dir);
}
