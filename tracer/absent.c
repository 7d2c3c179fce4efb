#include "tracer/absent.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

/* The same names: neither chroot nor another root of its mount namespace. */
static bool has_our_root(pid_t tid)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", tid);
	return stat(path, &theirs) == 0 && stat("/", &ours) == 0 && ours.st_ino == theirs.st_ino &&
	       ours.st_dev == theirs.st_dev;
}

bool absent_surely(pid_t tid, const char *path)
{
	/* A magic link would lead us to something of ours. */
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_CACHED | RESOLVE_NO_MAGICLINKS};

	if (path[0] != '/')
		return false;
	int fd AUTOCLOSE = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	return fd < 0 && errno == ENOENT && has_our_root(tid);
}
