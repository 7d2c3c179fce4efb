#include "tracer/jobs.h"

#include "tracer/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define STATUS_MAX 4096

static bool is_terminal_stop(int sig)
{
	return sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static uint64_t mask_of(const char *status, const char *key)
{
	uint64_t mask = 0;
	const char *line = strstr(status, key);

	if (line)
		sscanf(line + strlen(key), "%" SCNx64, &mask);
	return mask;
}

static bool has_default_action(pid_t pid, int sig)
{
	char file[64], text[STATUS_MAX];

	snprintf(file, sizeof(file), "/proc/%d/status", pid);
	int fd AUTOCLOSE = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false; /* gone, most likely */
	text[n] = '\0';
	uint64_t other = mask_of(text, "\nSigIgn:") | mask_of(text, "\nSigCgt:");
	return !(other >> (sig - 1) & 1);
}

int jobs_signal(pid_t session, pid_t tgid, int sig)
{
	if (!is_terminal_stop(sig) || session <= 0)
		return sig;
	if (getpgid(tgid) != session || getsid(tgid) != session || !has_default_action(tgid, sig))
		return sig;
	return SIGSTOP;
}
