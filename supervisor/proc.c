#include "supervisor/proc.h"

#include "supervisor/redact.h"
#include "tracer/buf.h"
#include "tracer/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STATUS_MAX 8192

char *proc_link(pid_t pid, const char *what)
{
	char file[64], text[PATH_MAX];
	snprintf(file, sizeof file, "/proc/%d/%s", pid, what);
	ssize_t n = readlink(file, text, sizeof text - 1);
	return strndup(n < 0 ? "" : text, n < 0 ? 0 : (size_t)n);
}

#define CMDLINE_MAX 65536

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

/* The signals in the hexadecimal mask of one status line. */
static uint64_t mask_of(const char *status, const char *key)
{
	uint64_t mask = 0;
	const char *line = strstr(status, key);
	if (line)
		sscanf(line + strlen(key), ":%" SCNx64, &mask);
	return mask;
}

#define BIT(sig) (1ULL << ((sig)-1))

/* Those whose default action ends a process. */
static const uint64_t ending_signals = BIT(SIGHUP) | BIT(SIGINT) | BIT(SIGQUIT) | BIT(SIGTERM) |
				       BIT(SIGALRM) | BIT(SIGUSR1) | BIT(SIGUSR2) | BIT(SIGPIPE) |
				       BIT(SIGVTALRM) | BIT(SIGPROF) | BIT(SIGXCPU);

bool proc_signal_waits(pid_t tid, bool *ret_ends)
{
	char file[64], text[STATUS_MAX];
	snprintf(file, sizeof file, "/proc/%d/status", tid);
	int fd AUTOCLOSE = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	*ret_ends = false;
	if (n <= 0)
		return false;
	text[n] = '\0';
	uint64_t pending = mask_of(text, "SigPnd") | mask_of(text, "ShdPnd");
	uint64_t open = pending & ~mask_of(text, "SigBlk") & ~mask_of(text, "SigIgn");
	uint64_t caught = mask_of(text, "SigCgt");
	*ret_ends = open & ~caught & ending_signals;
	return open & (caught | ending_signals);
}
