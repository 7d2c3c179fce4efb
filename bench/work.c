/*
 * bench_work: the tracees of the benchmark that are no everyday program. Prints what it did, which
 * must be the same however it is watched, and never how long it took.
 *
 *   bench_work opens N FILE         N times open and close; refused or not
 *   bench_work reads N FILE         N times open, five preads, close
 *   bench_work spawns N PROGRAM     N times fork, exec, wait
 *   bench_work threads T N FILE     T threads at once, each N times open and close
 *   bench_work wall DIR PROGRAM...  PROGRAM behind Landlock, which asks about every right and
 * grants them all, below DIR by one rule and below / by another: what the kernel's own part costs
 *   bench_work least DIR PROGRAM... the same, and its attribute calls are told to a supervisor that
 * has nothing to say about them (bench/least.h)
 */
#include "bench/least.h"
#include "landlock/llsys.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREADS	    5
#define THREADS_MAX 64
#define RIGHTS	    0xffff /* on files, of ABI 5; older ones lack the last */

static int fail(const char *what)
{
	fprintf(stderr, "bench_work: %s: %s\n", what, strerror(errno));
	return 1;
}

/* A refused open is as good as any here: what a denial costs is measured with this as well. */
static int opens(long n, const char *file)
{
	for (long i = 0; i < n; i++) {
		int fd = open(file, O_RDONLY | O_CLOEXEC);
		if (fd < 0 && errno != EACCES)
			return fail(file);
		if (fd >= 0)
			close(fd);
	}
	printf("%ld opens\n", n);
	return 0;
}

static int reads(long n, const char *file)
{
	char text[64];
	long bytes = 0;
	for (long i = 0; i < n; i++) {
		int fd = open(file, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return fail(file);
		for (int k = 0; k < PREADS; k++)
			bytes += pread(fd, text, sizeof(text), k);
		close(fd);
	}
	printf("%ld opens, %ld bytes\n", n, bytes);
	return 0;
}

static int spawns(long n, char *program)
{
	char *argv[] = {program, NULL};
	long good = 0;
	for (long i = 0; i < n; i++) {
		int status;
		pid_t pid = fork();
		if (pid < 0)
			return fail("fork");
		if (pid == 0) {
			execv(program, argv);
			_exit(127);
		}
		if (waitpid(pid, &status, 0) != pid)
			return fail("waitpid");
		good += status == 0;
	}
	printf("%ld of %ld ended well\n", good, n);
	return good == n ? 0 : 1;
}

struct thread {
	pthread_t id;
	const char *file;
	long n, opened;
};

static void *open_in_thread(void *arg)
{
	struct thread *t = arg;
	for (long i = 0; i < t->n; i++) {
		int fd = open(t->file, O_RDONLY | O_CLOEXEC);
		t->opened += fd >= 0;
		if (fd >= 0)
			close(fd);
	}
	return NULL;
}

static int threads(long count, long n, const char *file)
{
	struct thread thread[THREADS_MAX] = {0};
	long opened = 0;
	if (count > THREADS_MAX)
		count = THREADS_MAX;
	for (long i = 0; i < count; i++) {
		thread[i] = (struct thread){.file = file, .n = n};
		errno = pthread_create(&thread[i].id, NULL, open_in_thread, &thread[i]);
		if (errno)
			return fail("pthread_create");
	}
	for (long i = 0; i < count; i++) {
		pthread_join(thread[i].id, NULL);
		opened += thread[i].opened;
	}
	printf("%ld threads, %ld opens\n", count, opened);
	return opened == count * n ? 0 : 1;
}

/* The ruleset that has every right this kernel knows. */
static int new_ruleset(uint64_t *ret_rights)
{
	for (*ret_rights = RIGHTS;; *ret_rights >>= 1) {
		struct llsys_ruleset_attr attr = {.handled_access_fs = *ret_rights};
		int ruleset = llsys_create_ruleset(&attr, sizeof(attr), 0);
		if (ruleset != -EINVAL || *ret_rights == 1)
			return ruleset;
	}
}

static int allow_all(int ruleset, const char *dir, uint64_t rights)
{
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int err = fd < 0 ? -errno : llsys_add_path_rule(ruleset, fd, rights);
	if (fd >= 0)
		close(fd);
	return err;
}

/* As Landlock alone would: everything is allowed, and asked about. 0 or -errno. */
static int confine(void *dir)
{
	uint64_t rights;
	int ruleset = new_ruleset(&rights);
	int err = ruleset < 0 ? ruleset : allow_all(ruleset, "/", rights);
	if (!err)
		err = allow_all(ruleset, dir, rights);
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	return err ? err : llsys_restrict_self(ruleset, 0);
}

static int wall(char *dir, char **program)
{
	int err = confine(dir);
	if (err) {
		errno = -err;
		return fail("Landlock");
	}
	execvp(program[0], program);
	return fail(program[0]);
}

static int least(char *dir, char **program)
{
	int status = least_run(confine, dir, program);
	if (status >= 0)
		return status;
	errno = -status;
	return fail("a supervisor");
}

static bool parse_count(const char *text, long *ret)
{
	char *end;
	*ret = strtol(text, &end, 10);
	return end != text && !*end && *ret > 0;
}

int main(int argc, char **argv)
{
	long n = 0, each = 0;
	const char *what = argc > 3 ? argv[1] : "";
	if (!strcmp(what, "wall"))
		return wall(argv[2], argv + 3);
	if (!strcmp(what, "least"))
		return least(argv[2], argv + 3);
	if (argc > 3 && parse_count(argv[2], &n)) {
		if (!strcmp(what, "opens"))
			return opens(n, argv[3]);
		if (!strcmp(what, "reads"))
			return reads(n, argv[3]);
		if (!strcmp(what, "spawns"))
			return spawns(n, argv[3]);
		if (!strcmp(what, "threads") && argc > 4 && parse_count(argv[3], &each))
			return threads(n, each, argv[4]);
	}
	fputs("Usage: bench_work opens|reads|spawns N PATH | threads T N PATH | "
	      "wall|least DIR PROGRAM...\n",
	      stderr);
	return 2;
}
