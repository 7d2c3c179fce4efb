/*
 * The real thing: `warder run` on a shell that opens a file outside of its project: refused,
 * granted in place, and often enough for the fast path. The runs have directories of their own, so
 * that the user's policies and audit are neither used nor changed.
 */
#include "supervisor/doctor_probes.h"

#include "supervisor/environ.h"
#include "supervisor/rmtree.h"
#include "tracer/clock.h"
#include "tracer/tracer.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#define RUN_LIMIT_MS 30000
#define SECRET_WORD  "seen"

struct attempt {
	char *dir;	       /* owned: the scratch directory, removed at the end */
	char secret[PATH_MAX]; /* a file outside of the project */
	char report[PATH_MAX];
	char project[PATH_MAX];
	int status; /* as waitpid's */
	int64_t took_us;
	struct json *said; /* the report; owned */
};

static int write_text(const char *path, const char *text)
{
	int fd AUTOCLOSE = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	size_t n = strlen(text);
	if (fd < 0)
		return -errno;
	return write(fd, text, n) == (ssize_t)n ? 0 : -EIO;
}

static bool name_in(char *path, const char *dir, const char *name)
{
	return snprintf(path, PATH_MAX, "%s/%s", dir, name) < PATH_MAX;
}

static int set_up(struct attempt *a, char *const *env)
{
	int err = environ_tmpdir_make(env, &a->dir);
	if (err)
		return err;
	if (!name_in(a->secret, a->dir, "secret") || !name_in(a->report, a->dir, "report") ||
	    !name_in(a->project, a->dir, "project"))
		return -ENAMETOOLONG;
	if (mkdir(a->project, 0700))
		return -errno;
	return write_text(a->secret, SECRET_WORD "\n");
}

static void tear_down(struct attempt *a)
{
	json_free(a->said);
	if (a->dir)
		(void)rmtree_remove(a->dir); /* what is left lies in TMPDIR */
	free(a->dir);
}

/* env with our directories in place of the user's; owned (environ_free). */
static char **own_directories(char *const *env, const char *dir)
{
	static const char *const names[] = {"XDG_CONFIG_HOME", "XDG_STATE_HOME"};
	char **own = environ_make(env, (char *[]){(char *)names[0], (char *)names[1], NULL}, false,
				  NULL);
	size_t n = 0;
	while (own && own[n])
		n++;
	char **more = own ? realloc(own, (n + ARRAY_LEN(names) + 1) * sizeof *own) : NULL;
	if (!more) {
		environ_free(own);
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (asprintf(&more[n], "%s=%s/%s", names[i], dir, names[i]) < 0) {
			more[n] = NULL;
			environ_free(more);
			return NULL;
		}
		more[++n] = NULL;
	}
	return more;
}

/* The run has a limit of its own; this one is for a supervisor that hangs. */
static int wait_for(pid_t pid, int *ret_status)
{
	int pidfd AUTOCLOSE = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int late = pidfd < 0 ? 1 : poll(&p, 1, RUN_LIMIT_MS);
	if (late == 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, ret_status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return late == 0 ? -ETIMEDOUT : 0;
}

static int start(const struct attempt *a, char *const *argv, char *const *env, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	int err = posix_spawn_file_actions_init(&actions);
	if (err)
		return -err;
	err = posix_spawn_file_actions_addchdir_np(&actions, a->project);
	for (int fd = 0; !err && fd < 3; fd++)
		err = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	if (!err)
		err = posix_spawn(ret, "/proc/self/exe", &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

static int read_report(struct attempt *a)
{
	struct buf text = {.max = 1u << 20};
	int fd AUTOCLOSE = open(a->report, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int err = fd < 0 ? -errno : buf_read_from(fd, &text);
	if (!err)
		err = json_parse(buf_str(&text), text.len, &a->said, NULL);
	buf_free(&text);
	return err;
}

/* Run the script with $1 the secret; `mode`: an option of run. 0: there is a report. */
static int attempt(const struct doctor *d, const char *mode, const char *script, struct attempt *a)
{
	*a = (struct attempt){0};
	int err = set_up(a, d->env);
	if (err)
		return err;
	char *argv[] = {(char *)"warder",
			(char *)"run",
			(char *)"-q",
			(char *)mode,
			(char *)"--timeout",
			(char *)"20s",
			(char *)"--project",
			(char *)".",
			(char *)"--report",
			a->report,
			(char *)"--",
			(char *)"/bin/sh",
			(char *)"-c",
			(char *)script,
			(char *)"sh",
			a->secret,
			NULL};
	char **env = own_directories(d->env, a->dir);
	if (!env)
		return -ENOMEM;
	pid_t pid;
	int64_t begin = clock_us();
	err = start(a, argv, env, &pid);
	if (!err)
		err = wait_for(pid, &a->status);
	a->took_us = clock_us() - begin;
	environ_free(env);
	return err ? err : read_report(a);
}

static bool exited_well(const struct attempt *a)
{
	return WIFEXITED(a->status) && WEXITSTATUS(a->status) == 0;
}

static int64_t engine_number(const struct attempt *a, const char *key)
{
	int64_t n = 0;
	(void)json_get_int(json_get(a->said, "engine"), key, &n);
	return n;
}

static bool is_refusal_of(const struct json *denial, const char *path)
{
	const char *where = json_get_str(denial, "path"),
		   *verdict = json_get_str(denial, "verdict");
	return where && verdict && !strcmp(where, path) && !strcmp(verdict, "sandbox");
}

static bool was_refused(const struct attempt *a)
{
	const struct json *all = json_get(a->said, "denials");
	for (const struct json *e = json_first(all); e; e = json_next(e))
		if (is_refusal_of(e, a->secret))
			return true;
	return false;
}

static void did_not_run(struct doctor *d, const char *probe, int err)
{
	doctor_fix(d,
		   doctor_find(d, probe, DOCTOR_MISSING, "warder run did not get to its end (%s)",
			       strerror(-err)),
		   "see what is missing above, or try: warder run -- /bin/true");
}

void doctor_probe_refuse(struct doctor *d, const char *probe)
{
	struct attempt a;
	int err = attempt(d, "--on-denial=report", "read word <\"$1\"", &a);
	if (err)
		did_not_run(d, probe, err);
	else if (was_refused(&a) && !exited_well(&a))
		doctor_find(d, probe, DOCTOR_OK,
			    "a test command was refused a file outside of its project, and the "
			    "report names it")
			->took_us = a.took_us;
	else
		doctor_fix(d,
			   doctor_find(d, probe, DOCTOR_MISSING,
				       was_refused(&a) ? "a refused file could be read all the same"
						       : "a refusal was not seen"),
			   "please report this, with the output of warder doctor --json");
	tear_down(&a);
}

void doctor_probe_grant(struct doctor *d, const char *probe)
{
	struct attempt a;
	int err = attempt(d, "--yes", "read word <\"$1\" && test \"$word\" = " SECRET_WORD, &a);
	if (err)
		did_not_run(d, probe, err);
	else if (exited_well(&a) && engine_number(&a, "brokered") > 0)
		doctor_find(d, probe, DOCTOR_OK,
			    "after a yes it had the file at once, without being run again")
			->took_us = a.took_us;
	else
		doctor_fix(d,
			   doctor_find(d, probe, DOCTOR_DEGRADED,
				       "after a yes it did not get the file"),
			   "use --on-denial retry, which asks at the end and runs again");
	tear_down(&a);
}

void doctor_probe_fast(struct doctor *d, const char *probe)
{
	static const char script[] = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); : </dev/null; done";
	struct attempt a;
	int err = attempt(d, "--on-denial=report", script, &a);
	long long stops = err ? 0 : (long long)engine_number(&a, "stops");
	long long sites = err ? 0 : (long long)engine_number(&a, "patched");
	struct utsname u;
	uname(&u);
	if (err)
		did_not_run(d, probe, err);
	else if (!tracer_has_fast())
		doctor_fix(d,
			   doctor_find(d, probe, DOCTOR_DEGRADED,
				       "every file that is opened is slowed (%s has no fast path): "
				       "200 opens, %lld interruptions",
				       u.machine, stops),
			   "nothing to do; it is there on x86_64 only, and nothing is less safe");
	else if (sites > 0 && stops < 200)
		doctor_find(d, probe, DOCTOR_OK,
			    "files are opened at nearly full speed: 200 opens, %lld interruptions, "
			    "%lld places go without",
			    stops, sites)
			->took_us = a.took_us;
	else
		doctor_fix(d,
			   doctor_find(d, probe, DOCTOR_DEGRADED,
				       "every file that is opened is slowed: 200 opens, %lld "
				       "interruptions",
				       stops),
			   "nothing is less safe, only slower; this C library's calls can't be "
			   "changed, or the kernel forbids writing to /proc/PID/mem");
	tear_down(&a);
}
