#include "tracer/procfs.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#define PROC_ROOT_INO 1	    /* of the kernel: the root directory of every procfs */
#define LEVELS_MAX    33    /* MAX_PID_NS_LEVEL, and the first */
#define STATUS_MAX    16384 /* thousands of groups have a line of their own */

/* A process's or thread's numbers, from a procfs's own pid namespace down to its own. */
struct numbers {
	pid_t at[LEVELS_MAX];
	size_t len;
};

bool procfs_is(int dir)
{
	struct statfs fs;
	return fstatfs(dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

bool procfs_is_magic(int dir, const char *name)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
	int fd AUTOCLOSE = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));

	return fd < 0 && errno == ELOOP;
}

/* ---- status ---- */

static bool read_status(int dir, const char *file, char text[STATUS_MAX])
{
	int fd AUTOCLOSE = openat(dir, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, STATUS_MAX - 1);

	if (n < 0)
		return false;
	text[n] = '\0';
	return true;
}

static bool status_numbers(const char *text, const char *key, struct numbers *ret)
{
	const char *p = strstr(text, key);
	int taken;

	ret->len = 0;
	for (p = p ? p + strlen(key) : ""; ret->len < LEVELS_MAX; p += taken)
		if (sscanf(p, "%*[\t ]%d%n", &ret->at[ret->len], &taken) == 1)
			ret->len++;
		else
			break;
	return ret->len > 0;
}

/* A kernel without pid namespaces has the plain lines alone. */
static bool group_numbers(const char *text, struct numbers *ret)
{
	return status_numbers(text, "\nNStgid:", ret) || status_numbers(text, "\nTgid:", ret);
}

static bool thread_numbers(const char *text, struct numbers *ret)
{
	return status_numbers(text, "\nNSpid:", ret) || status_numbers(text, "\nPid:", ret);
}

static bool numbers_of(pid_t tid, struct numbers *ret_tgid, struct numbers *ret_tid)
{
	char file[32], text[STATUS_MAX];

	snprintf(file, sizeof(file), "/proc/%d/status", tid);
	return read_status(AT_FDCWD, file, text) && group_numbers(text, ret_tgid) &&
	       thread_numbers(text, ret_tid) && ret_tgid->len == ret_tid->len;
}

/* Are these the last numbers of those? */
static bool is_end_of(const struct numbers *end, const struct numbers *whole)
{
	return end->len <= whole->len && memcmp(whole->at + whole->len - end->len, end->at,
						end->len * sizeof(end->at[0])) == 0;
}

/* ---- self ---- */

/* The namespace whose numbers this procfs has, by its place in the list; -ENOENT: none of them. */
static int level_of(int dir, const struct numbers *tgid)
{
	char file[32], text[STATUS_MAX];
	struct numbers there;

	for (size_t i = 0; i < tgid->len; i++) {
		snprintf(file, sizeof(file), "%d/status", tgid->at[i]);
		if (read_status(dir, file, text) && group_numbers(text, &there) &&
		    there.len == tgid->len - i && is_end_of(&there, tgid))
			return (int)i;
	}
	return -ENOENT;
}

int procfs_self(int dir, const char *name, pid_t tid, char *text, size_t n)
{
	struct numbers tgids, tids;
	struct stat st;

	if (strcmp(name, "self") != 0 && strcmp(name, "thread-self") != 0)
		return 0;
	if (fstat(dir, &st) != 0 || st.st_ino != PROC_ROOT_INO)
		return 0;
	int level = numbers_of(tid, &tgids, &tids) ? level_of(dir, &tgids) : -ENOENT;
	if (level < 0)
		return level;
	if (name[0] == 's')
		snprintf(text, n, "%d", tgids.at[level]);
	else
		snprintf(text, n, "%d/task/%d", tgids.at[level], tids.at[level]);
	return 1;
}

int procfs_check_owner(int dir, pid_t tid)
{
	char text[STATUS_MAX];
	struct numbers own, tids, there, tracer;

	/* In PID/fd, PID/ns and the like it is one up. */
	if (!read_status(dir, "status", text) && !read_status(dir, "../status", text))
		return -EACCES;
	if (!group_numbers(text, &there) || !status_numbers(text, "\nTracerPid:", &tracer))
		return -EACCES;
	if (tracer.at[0] == gettid())
		return 0;
	return numbers_of(tid, &own, &tids) && is_end_of(&there, &own) ? 0 : -EACCES;
}
