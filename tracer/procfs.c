#include "tracer/procfs.h"

#include "tracer/status.h"
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

#define PROC_ROOT_INO 1	 /* of the kernel: the root directory of every procfs */
#define LEVELS_MAX    33 /* MAX_PID_NS_LEVEL, and the first */

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

static bool read_numbers(const struct status *s, const char *key, struct numbers *ret)
{
	const char *p = status_line(s, key);
	int taken;

	ret->len = 0;
	for (p = p ? p : ""; ret->len < LEVELS_MAX; p += taken)
		if (sscanf(p, " %d%n", &ret->at[ret->len], &taken) == 1)
			ret->len++;
		else
			break;
	return ret->len > 0;
}

/* A kernel without pid namespaces has the plain lines alone. */
static bool group_numbers(const struct status *s, struct numbers *ret)
{
	return read_numbers(s, "NStgid", ret) || read_numbers(s, "Tgid", ret);
}

static bool thread_numbers(const struct status *s, struct numbers *ret)
{
	return read_numbers(s, "NSpid", ret) || read_numbers(s, "Pid", ret);
}

static bool numbers_of(pid_t tid, struct numbers *ret_tgid, struct numbers *ret_tid)
{
	struct status s;

	return status_of(tid, &s) == 0 && group_numbers(&s, ret_tgid) &&
	       thread_numbers(&s, ret_tid) && ret_tgid->len == ret_tid->len;
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
	char file[32];
	struct status s;
	struct numbers there;

	for (size_t i = 0; i < tgid->len; i++) {
		snprintf(file, sizeof(file), "%d/status", tgid->at[i]);
		if (status_read(dir, file, &s) == 0 && group_numbers(&s, &there) &&
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
	struct status s;
	struct numbers own, tids, there;
	pid_t tracer;

	/* In PID/fd, PID/ns and the like it is one up. */
	if (status_read(dir, "status", &s) < 0 && status_read(dir, "../status", &s) < 0)
		return -EACCES;
	if (!group_numbers(&s, &there) || !status_number(&s, "TracerPid", &tracer))
		return -EACCES;
	if (tracer == gettid())
		return 0;
	return numbers_of(tid, &own, &tids) && is_end_of(&there, &own) ? 0 : -EACCES;
}
