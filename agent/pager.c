#include "agent/pager.h"

#include "agent/hush.h"
#include "agent/interrupt.h"
#include "agent/termwidth.h"
#include "supervisor/escape.h"
#include "tracer/util.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_FOUND 126 /* and 127: what a shell says of a program that it can't run */

/* Would its first line scroll away before the prompt stands below it? */
static bool is_too_long(const struct buf *text)
{
	const size_t columns = termwidth(STDOUT_FILENO), rows = termwidth_rows(STDOUT_FILENO);
	size_t taken = 1;
	for (const char *line = buf_str(text); *line && taken <= rows;) {
		size_t n = strcspn(line, "\n");
		AUTOFREE
		char *one = strndup(line, n);
		size_t width = one ? escape_width(one) : 0;
		taken += width ? (width + columns - 1) / columns : 1;
		line += n + (line[n] == '\n');
	}
	return taken > rows;
}

static const char *wanted(void)
{
	const char *pager = getenv("PAGER");
	if (!termwidth_is_capable(STDIN_FILENO) || !termwidth_is_capable(STDOUT_FILENO))
		return NULL;
	if (!pager)
		return "less";
	return *pager && strcmp(pager, "cat") != 0 ? pager : NULL;
}

/* A file, not a pipe: nobody waits for a pager that reads no further. */
static int put_in_file(const struct buf *text)
{
	int fd = memfd_create("warder", MFD_CLOEXEC);
	for (size_t at = 0; fd >= 0 && at < text->len;) {
		ssize_t n = write(fd, text->data + at, text->len - at);
		if (n > 0)
			at += (size_t)n;
		else if (errno != EINTR)
			close(TAKE_FD(fd));
	}
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

/* The words of the variable are the shell's. Its status, or -1. */
static int run(const char *pager, int in)
{
	struct buf script = {0};
	buf_addf(&script, "LESS=${LESS-FRX} LV=${LV--c}; export LESS LV; %s", pager);
	char *argv[] = {"sh", "-c", (char *)buf_str(&script), NULL};
	posix_spawn_file_actions_t files;
	pid_t pid;
	int status = -1;
	posix_spawn_file_actions_init(&files);
	int err = buf_error(&script) ?: posix_spawn_file_actions_adddup2(&files, in, 0);
	err = err ?: posix_spawn(&pid, "/bin/sh", &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	buf_free(&script);
	if (err)
		return -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

static bool page(const char *pager, const struct buf *text)
{
	int fd AUTOCLOSE = put_in_file(text);
	if (fd < 0)
		return false;
	fflush(stdout);
	bool hushed = hush_end();
	int status = run(pager, fd);
	if (hushed)
		hush_begin();
	/* A Ctrl-C in it was its own. */
	if (!interrupt_ending())
		interrupt_clear();
	return status >= 0 && status < NOT_FOUND;
}

void pager_put(const struct buf *text)
{
	const char *pager = wanted();
	if (pager && is_too_long(text) && page(pager, text))
		return;
	fwrite(buf_str(text), 1, text->len, stdout);
	fflush(stdout);
}
