#include "agent/ghtoken.h"

#include "supervisor/environ.h"
#include "tracer/buf.h"
#include "tracer/clock.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

#define ANSWER_MAX 4096

char *ghtoken_program(const char *path)
{
	for (const char *at = path; at && *at;) {
		size_t n = strcspn(at, ":");
		char *program = NULL;
		if (*at == '/' && asprintf(&program, "%.*s/gh", (int)n, at) < 0)
			return NULL;
		if (program && !access(program, X_OK))
			return program;
		free(program);
		at += n + (at[n] == ':');
	}
	return NULL;
}

/* Signals as a program expects to be started with; a process group of its own, so that a Ctrl-C
 * that is meant for us does not make it write to the terminal. */
static int spawn(const char *gh, const char *host, char *const *env, int out, pid_t *ret)
{
	char *argv[] = {"gh", "auth", "token", "--hostname", (char *)host, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	int err = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	err = err ?: posix_spawn_file_actions_adddup2(&files, out, 1);
	err = err ?: posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	err = err ?: posix_spawnattr_setsigmask(&attr, &none);
	err = err ?: posix_spawnattr_setsigdefault(&attr, &all);
	err = err
		      ?: posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP |
								 POSIX_SPAWN_SETSIGMASK |
								 POSIX_SPAWN_SETSIGDEF);
	err = err ?: posix_spawn(ret, gh, &files, &attr, argv, env);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return -err;
}

/* Until its end, or the limit. */
static int read_answer(int fd, struct buf *out)
{
	int64_t end = clock_ms() + GHTOKEN_LIMIT_MS;
	char chunk[1024];
	for (int64_t left; (left = end - clock_ms()) > 0;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (poll(&p, 1, (int)left) < 0)
			return -errno; /* Ctrl-C ends the wait */
		ssize_t n = p.revents ? read(fd, chunk, sizeof(chunk)) : -1;
		if (p.revents && n <= 0)
			return n ? -errno : buf_error(out);
		if (n > 0)
			buf_add(out, chunk, (size_t)n);
		explicit_bzero(chunk, sizeof(chunk));
		if (out->failed)
			return buf_error(out);
	}
	return -ETIMEDOUT;
}

static int converse(const char *gh, const char *host, char *const *env, struct buf *out)
{
	int pipe_fd[2], status = 0;
	pid_t pid = 0;
	if (pipe2(pipe_fd, O_CLOEXEC))
		return -errno;
	int err = spawn(gh, host, env, pipe_fd[1], &pid);
	close(pipe_fd[1]);
	if (!err) {
		err = read_answer(pipe_fd[0], out);
		if (err)
			kill(-pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (!err && status)
			err = -ENOENT;
	}
	close(pipe_fd[0]);
	return err;
}

int ghtoken_ask(const char *gh, const char *host, char *const *env, char **ret)
{
	struct buf out = {.max = ANSWER_MAX};
	char **clean = environ_make(env, NULL, true, NULL);
	if (!clean)
		return -ENOMEM;
	int err = converse(gh, host, clean, &out);
	environ_free(clean);
	size_t n = strcspn(buf_str(&out), "\r\n");
	if (!err && !n)
		err = -ENOENT;
	if (!err && !(*ret = strndup(out.data, n)))
		err = -ENOMEM;
	if (out.data)
		explicit_bzero(out.data, out.len);
	buf_free(&out);
	return err;
}
