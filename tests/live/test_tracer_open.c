#include "tests/live/tracer_help.h"

#include <limits.h>
#include <sys/resource.h>

static char *fixture(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", FIXTURES, name);
	return path;
}

/* Younger machines have openat for both. */
#ifdef SYS_open
#define OLD(name) name
#else
#define OLD(name) "openat"
#endif

struct told {
	char call[32];
	char real[PATH_MAX];
	bool exists;
	int error;
	int grant; /* hand this over; -1: deny */
};

/* Refusals of our own file are noted and answered; any other is the loader's, and denied. */
static void on_refused(struct run *run, const struct tracer_event *e)
{
	struct told *told = run->arg;

	if (e->kind != TRACER_REFUSED)
		return;
	call_resolve(e->call, (struct call_view){.tid = e->who.tid, .tgid = e->pid});
	struct call_path *p = &e->call->path[0];
	if (p->given && strstr(p->given, "secret")) {
		snprintf(told->call, sizeof(told->call), "%s", e->call->ent->name);
		snprintf(told->real, sizeof(told->real), "%s", p->at.real ? p->at.real : "");
		told->exists = p->at.exists;
		told->error = p->error;
		if (told->grant >= 0) {
			int fd = fcntl(told->grant, F_DUPFD_CLOEXEC, 3);
			lseek(fd, 0, SEEK_SET);
			tracer_hand_over(run->tracer, e->who, fd,
					 strcmp(told->call, "openat2") == 0);
			return;
		}
	}
	tracer_deny(run->tracer, e->who);
}

static const char *run_opener(const char *mode, const char *path, const char *count,
			      struct told *told, struct run *run)
{
	int wall AUTOCLOSE = wall_new();
	char *argv[] = {fixture("opener"), (char *)mode, (char *)path, (char *)count, NULL};

	if (wall < 0)
		return "landlock";
	if (write_file("secret", "the content") < 0)
		return "write";
	*run = (struct run){.on_event = on_refused, .arg = told};
	return run_command(run, wall, argv);
}

static const char *denied(void)
{
	static const struct {
		const char *mode, *path, *call;
	} rows[] = {
		{"read", "secret", "openat"},
		{"creat", "secret", OLD("creat")},
		{"open2", "./secret", "openat2"},
		{"i386", "secret", OLD("open")},
		{"read", "/proc/self/cwd/secret", "openat"},
	};
	char want[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct told told = {.grant = -1};
		struct run run;
		const char *wrong = run_opener(rows[i].mode, rows[i].path, NULL, &told, &run);
		if (wrong)
			return wrong;
		if (strcmp(buf_str(&run.out), "errno 13\n") != 0)
			return failf("%s printed %s", rows[i].mode, buf_str(&run.out));
		char *cwd AUTOFREE = getcwd(NULL, 0);
		snprintf(want, sizeof(want), "%s/secret", cwd);
		if (strcmp(told.call, rows[i].call) != 0 || strcmp(told.real, want) != 0 ||
		    !told.exists || told.error != 0)
			return failf("row %zu: %s %s exists %d error %d", i, told.call, told.real,
				     told.exists, told.error);
		run_end(&run);
	}
	return NULL;
}

static const char *granted(void)
{
	static const struct {
		const char *mode, *want;
	} rows[] = {
		{"read", "ok 3 the content\n"},	 {"open2", "ok 3c the content\n"},
		{"i386", "ok 3 the content\n"},	 {"regs", "ok 3 the content\n"},
		{"creat", "ok 3 the content\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (write_file("secret", "the content") < 0)
			return "write";
		int fd AUTOCLOSE = open("secret", O_RDONLY | O_CLOEXEC);
		struct told told = {.grant = fd};
		struct run run;
		const char *wrong = run_opener(rows[i].mode, "secret", NULL, &told, &run);
		if (wrong)
			return wrong;
		if (strcmp(buf_str(&run.out), rows[i].want) != 0)
			return failf("%s printed %s", rows[i].mode, buf_str(&run.out));
		if (tracer_counts(run.tracer).handed != 1)
			return failf("%s: handed %llu", rows[i].mode,
				     (unsigned long long)tracer_counts(run.tracer).handed);
		run_end(&run);
	}
	return NULL;
}

/* No signal can interrupt a granted open, and none is lost; nor can job control. */
static const char *granted_under_signals(void)
{
	static const struct {
		const char *mode;
		int count;
		const char *want;
	} rows[] = {
		{"timer", 5000, "eintr 0 failed 0 alarms many blocked 0\n"},
		{"queue", 5000, "failed 0 got 2000 in order 2000\n"},
		{"stops", 500, "failed 0\n"},
	};

	if (write_file("secret", "the content") < 0)
		return "write";
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int fd AUTOCLOSE = open("secret", O_RDONLY | O_CLOEXEC);
		struct told told = {.grant = fd};
		struct run run;
		char count[16];
		snprintf(count, sizeof(count), "%d", rows[i].count / case_slow());
		const char *wrong = run_opener(rows[i].mode, "secret", count, &told, &run);
		if (wrong)
			return wrong;
		if (strcmp(buf_str(&run.out), rows[i].want) != 0)
			return failf("%s printed %s", rows[i].mode, buf_str(&run.out));
		uint64_t handed = tracer_counts(run.tracer).handed;
		if (handed != (uint64_t)atoi(count))
			return failf("%s: handed %llu", rows[i].mode, (unsigned long long)handed);
		run_end(&run);
	}
	return NULL;
}

/* Many threads at once, and a program with a filter of its own. */
static const char *granted_to_programs(void)
{
	static const struct {
		char *args[4];
		const char *want;
		uint64_t handed;
	} rows[] = {
		{{"threads", "8", "200", "secret"}, "errors 0\n", 1600},
		{{"filter", "secret"}, "opened\n", 1},
	};

	if (write_file("secret", "the content") < 0)
		return "write";
	int fd AUTOCLOSE = open("secret", O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int wall AUTOCLOSE = wall_new();
		struct told told = {.grant = fd};
		struct run run = {.on_event = on_refused, .arg = &told};
		char *argv[6] = {fixture("procs")};
		memcpy(argv + 1, rows[i].args, sizeof(rows[i].args));
		const char *wrong = run_command(&run, wall, argv);
		if (wrong)
			return wrong;
		if (strcmp(buf_str(&run.out), rows[i].want) != 0)
			return failf("%s printed %s", argv[1], buf_str(&run.out));
		if (tracer_counts(run.tracer).handed != rows[i].handed)
			return failf("%s: handed %llu", argv[1],
				     (unsigned long long)tracer_counts(run.tracer).handed);
		run_end(&run);
	}
	return NULL;
}

/* Stopped by job control while held: the grant waits for SIGCONT, and then is as good. */
static void stop_then_grant(struct run *run, const struct tracer_event *e)
{
	if (e->kind == TRACER_STOPPED)
		kill(e->pid, SIGCONT);
	if (e->kind == TRACER_REFUSED)
		kill(e->pid, SIGSTOP);
	on_refused(run, e);
}

static const char *granted_across_a_stop(void)
{
	if (write_file("secret", "the content") < 0)
		return "write";
	int fd AUTOCLOSE = open("secret", O_RDONLY | O_CLOEXEC);
	int wall AUTOCLOSE = wall_new();
	struct told told = {.grant = fd};
	struct run run = {.on_event = stop_then_grant, .arg = &told};
	char *argv[] = {fixture("opener"), "regs", "secret", NULL};
	const char *wrong = run_command(&run, wall, argv);
	if (!wrong && strcmp(buf_str(&run.out), "ok 3 the content\n") != 0)
		wrong = failf("printed %s", buf_str(&run.out));
	if (!wrong && (run.seen[TRACER_STOPPED] != 1 || run.seen[TRACER_CONTINUED] != 1))
		wrong = failf("stopped %u continued %u", run.seen[TRACER_STOPPED],
			      run.seen[TRACER_CONTINUED]);
	run_end(&run);
	return wrong;
}

/* A full descriptor table is the tracee's own error. */
static void limit_files(struct run *run, const struct tracer_event *e)
{
	struct rlimit none = {3, 3};

	if (e->kind == TRACER_REFUSED)
		prlimit(e->pid, RLIMIT_NOFILE, &none, NULL);
	on_refused(run, e);
}

static const char *granted_to_a_full_table(void)
{
	if (write_file("secret", "the content") < 0)
		return "write";
	int fd AUTOCLOSE = open("secret", O_RDONLY | O_CLOEXEC);
	int wall AUTOCLOSE = wall_new();
	struct told told = {.grant = fd};
	struct run run = {.on_event = limit_files, .arg = &told};
	char *argv[] = {fixture("opener"), "read", "secret", NULL};
	const char *wrong = run_command(&run, wall, argv);
	if (!wrong && strcmp(buf_str(&run.out), "errno 24\n") != 0)
		wrong = failf("printed %s", buf_str(&run.out));
	run_end(&run);
	return wrong;
}

Test(tracer_open, denied)
{
	case_both(denied);
}

Test(tracer_open, granted)
{
	case_both(granted);
}

Test(tracer_open, granted_under_signals)
{
	case_both(granted_under_signals);
}

Test(tracer_open, granted_to_a_full_table)
{
	case_both(granted_to_a_full_table);
}

Test(tracer_open, granted_to_programs)
{
	case_both(granted_to_programs);
}

Test(tracer_open, granted_across_a_stop)
{
	case_both(granted_across_a_stop);
}
