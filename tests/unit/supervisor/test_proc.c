#include "supervisor/proc.h"

#include "supervisor/redact.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* How many arguments are told of a shell with `empty` empty ones at the end. */
static size_t told(size_t empty)
{
	char *argv[16] = {(char *)"sh", (char *)"-c", (char *)"echo; read x", (char *)"",
			  (char *)"name"};
	posix_spawn_file_actions_t files;
	int pair[2];
	char ready;
	pid_t pid;
	for (size_t i = 0; i < empty; i++)
		argv[5 + i] = (char *)"";
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, pair[1], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, pair[1], STDOUT_FILENO);
	cr_assert_eq(posix_spawn(&pid, "/bin/sh", &files, NULL, argv, NULL), 0);
	posix_spawn_file_actions_destroy(&files);
	/* In the midst of its exec it has none. */
	cr_assert_eq(read(pair[0], &ready, 1), 1);
	char **got = proc_argv(pid);
	size_t n = 0;
	while (got && got[n])
		n++;
	for (size_t i = 0; i < n; i++)
		cr_expect_str_eq(got[i], argv[i]);
	redact_free(got);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(pair[0]);
	close(pair[1]);
	return n;
}

Test(proc, empty_words_at_the_end_that_a_title_leaves_are_not_told)
{
	cr_expect_eq(told(0), 5);
	cr_expect_eq(told(1), 6); /* one may be meant */
	cr_expect_eq(told(2), 5);
	cr_expect_eq(told(9), 5);
}

Test(proc, of_who_is_gone_no_argument_is_told)
{
	pid_t pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	char **got = proc_argv(pid);
	cr_assert(got && !got[0]);
	redact_free(got);
}
