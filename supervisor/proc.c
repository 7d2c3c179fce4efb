#include "supervisor/proc.h"

#include "supervisor/redact.h"
#include "tracer/buf.h"
#include "tracer/status.h"
#include "tracer/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *proc_link(pid_t pid, const char *what)
{
	char file[64], text[PATH_MAX];
	snprintf(file, sizeof file, "/proc/%d/%s", pid, what);
	ssize_t n = readlink(file, text, sizeof text - 1);
	return strndup(n < 0 ? "" : text, n < 0 ? 0 : (size_t)n);
}

char *proc_absolute(pid_t tid, int dirfd, const char *given)
{
	char what[32] = "cwd";
	if (given[0] == '/')
		return strdup(given);
	if (dirfd != AT_FDCWD)
		snprintf(what, sizeof what, "fd/%d", dirfd);
	char *base AUTOFREE = proc_link(tid, what);
	if (!base)
		return NULL;
	while (given[0] == '.' && (given[1] == '/' || !given[1]))
		for (given++; *given == '/';)
			given++;
	struct buf path = {0};
	buf_add_str(&path, base);
	if (given[0] && base[0] && base[1])
		buf_add_char(&path, '/');
	buf_add_str(&path, given);
	return buf_take(&path);
}

char *proc_comm(pid_t pid)
{
	char file[64], text[64];
	snprintf(file, sizeof file, "/proc/%d/comm", pid);
	int fd AUTOCLOSE = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);
	return strndup(text, n < 1 ? 0 : (size_t)n - 1); /* its newline */
}

#define CMDLINE_MAX 65536

/* How many words, without the empty ones at the end: a title that was written over arguments
 * leaves what it does not fill; a single one may be meant. */
static size_t without_padding(const struct buf *text, size_t words)
{
	size_t empty = 0;
	while (empty < words && empty < text->len && !text->data[text->len - 1 - empty])
		empty++;
	/* One NUL ends the last word that says something. */
	return empty > 2 ? words - (empty - 1) : words;
}

char **proc_argv(pid_t pid)
{
	char file[64];
	struct buf text = {.max = CMDLINE_MAX};
	char chunk[4096];
	ssize_t n;
	snprintf(file, sizeof file, "/proc/%d/cmdline", pid);
	int fd AUTOCLOSE = open(file, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && text.len + sizeof chunk < CMDLINE_MAX &&
	       (n = read(fd, chunk, sizeof chunk)) > 0)
		buf_add(&text, chunk, (size_t)n);
	size_t words = 0;
	for (size_t i = 0; i < text.len; i++)
		words += !text.data[i];
	words = without_padding(&text, words);
	char **raw = calloc(words + 1, sizeof *raw);
	for (size_t i = 0, w = 0; raw && w < words; w++) {
		raw[w] = text.data + i;
		i += strlen(raw[w]) + 1;
	}
	char **argv = raw ? redact_argv(raw) : NULL;
	free(raw);
	buf_free(&text);
	return argv;
}

unsigned proc_filters(pid_t tid)
{
	struct status s;
	int count = 0;
	if (!status_of(tid, &s))
		status_number(&s, "Seccomp_filters", &count);
	return (unsigned)count;
}

#define BIT(sig) (1ULL << ((sig)-1))

/* Those whose default action ends a process. */
static const uint64_t ending_signals = BIT(SIGHUP) | BIT(SIGINT) | BIT(SIGQUIT) | BIT(SIGTERM) |
				       BIT(SIGALRM) | BIT(SIGUSR1) | BIT(SIGUSR2) | BIT(SIGPIPE) |
				       BIT(SIGVTALRM) | BIT(SIGPROF) | BIT(SIGXCPU);

bool proc_signal_waits(pid_t tid, bool *ret_ends)
{
	struct status s;
	*ret_ends = false;
	if (status_of(tid, &s))
		return false;
	uint64_t pending = status_mask(&s, "SigPnd") | status_mask(&s, "ShdPnd");
	uint64_t open = pending & ~status_mask(&s, "SigBlk") & ~status_mask(&s, "SigIgn");
	uint64_t caught = status_mask(&s, "SigCgt");
	*ret_ends = open & ~caught & ending_signals;
	return open & (caught | ending_signals);
}

/* The open flags of one descriptor, from /proc/PID/fdinfo/N. */
static bool open_flags(int fdinfo, const char *name, unsigned *ret)
{
	char text[256];
	int fd AUTOCLOSE = openat(fdinfo, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	const char *line = strstr(text, "flags:");
	return line && sscanf(line + strlen("flags:"), "%o", ret) == 1;
}

static bool gives(unsigned have, uint64_t want)
{
	unsigned accmode = want & O_ACCMODE;
	/* Emptying a file is writing, and not by appending: O_RDONLY | O_TRUNC does it as well. */
	bool writes = accmode != O_RDONLY || (want & O_TRUNC);
	bool anywhere = (want & O_TRUNC) || (writes && !(want & O_APPEND));
	if (have & O_PATH)
		return false;
	if ((have & O_ACCMODE) != O_RDWR && (have & O_ACCMODE) != accmode)
		return false;
	if (writes && (have & O_ACCMODE) == O_RDONLY)
		return false;
	return !anywhere || !(have & O_APPEND);
}

bool proc_holds_open(pid_t pid, dev_t dev, ino_t ino, uint64_t flags)
{
	char path[64];
	bool found = false;
	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	DIR *fds = opendir(path);
	snprintf(path, sizeof path, "/proc/%d/fdinfo", pid);
	int fdinfo AUTOCLOSE = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (const struct dirent *e; fds && fdinfo >= 0 && !found && (e = readdir(fds));) {
		struct stat st;
		unsigned have;
		found = e->d_name[0] != '.' && !fstatat(dirfd(fds), e->d_name, &st, 0) &&
			st.st_dev == dev && st.st_ino == ino &&
			open_flags(fdinfo, e->d_name, &have) && gives(have, flags);
	}
	if (fds)
		closedir(fds);
	return found;
}
