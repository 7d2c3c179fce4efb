#include "tests/live/tracer_help.h"

#include <limits.h>
#include <sys/prctl.h>

#define ARGS_MAX 6

static char procs_path[] = FIXTURES "/procs";

/* Run `procs ARGS...` and compare its output (NULL: any) and its wait status. */
static const char *expect(struct run *run, char *const *args, const char *out, int status)
{
	int wall AUTOCLOSE = wall_new();
	char *argv[ARGS_MAX + 2] = {procs_path};

	if (wall < 0)
		return "landlock";
	wall_allow(wall, "fifo", WALL_RX | LANDLOCK_ACCESS_FS_WRITE_FILE);
	for (int i = 0; i < ARGS_MAX && args[i]; i++)
		argv[i + 1] = args[i];
	const char *wrong = run_command(run, wall, argv);
	if (wrong)
		return wrong;
	if (!run->ended || run->status != status)
		return failf("%s: ended %d, status %x; it printed %s", args[0], run->ended,
			     run->status, buf_str(&run->out));
	if (out && strcmp(buf_str(&run->out), out) != 0)
		return failf("%s printed %s", args[0], buf_str(&run->out));
	if (tracer_processes(run->tracer, NULL, 0) != 0)
		return "processes are left";
	return NULL;
}

static const char *plain_cases(void)
{
	static const struct {
		char *args[ARGS_MAX];
		const char *out;
		int status;
		unsigned forked, execed, exited;
	} rows[] = {
		{{"threads", "8", "200", "secret"}, "errors 1600\n", 0, 0, 1, 1},
		{{"exec-thread", procs_path, "vfork", "1"}, "done\n", 0, 1, 3, 2},
		{{"leader-exit"}, "outlived\n", 7 << 8, 0, 1, 1},
		{{"vfork", "20"}, "done\n", 0, 20, 21, 21},
		{{"storm", "100"}, "bad 0\n", 0, 200, 1, 201},
		{{"fifo", "fifo"}, "Interrupted system call\nopened\n", 0, 1, 1, 2},
		{{"filter", "/dev/null"}, "opened\n", 0, 0, 1, 1},
		{{"parent"}, "made one\n", 0, 1, 1, 2},
		{{"guards"},
		 "io_uring 38\nclone3 38\ntiocsti 1\ntiocsti-high 1\ntraceme 1\n"
#ifdef __x86_64__
		 "x32 38\nsocketcall 14\nsocketcall 22\n"
#endif
		 "none 38\n",
		 0,
		 0,
		 1,
		 1},
	};

	if (write_file("secret", "x") < 0 || mkfifo("fifo", 0600) < 0)
		return "write";
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct run run = {0};
		const char *wrong = expect(&run, rows[i].args, rows[i].out, rows[i].status);
		if (wrong)
			return wrong;
		if (run.seen[TRACER_FORKED] != rows[i].forked ||
		    run.seen[TRACER_EXECED] != rows[i].execed ||
		    run.seen[TRACER_EXITED] != rows[i].exited)
			return failf("%s: forked %u execed %u exited %u", rows[i].args[0],
				     run.seen[TRACER_FORKED], run.seen[TRACER_EXECED],
				     run.seen[TRACER_EXITED]);
		run_end(&run);
	}
	return NULL;
}

static const char *guards_are_noticed(void)
{
	struct run run = {0};
	char *args[ARGS_MAX] = {"guards"};
	const char *wrong = expect(&run, args, NULL, 0);

	if (!wrong && run.seen[TRACER_NOTICED] != 2) /* io_uring_setup, ptrace */
		wrong = failf("noticed %u", run.seen[TRACER_NOTICED]);
	run_end(&run);
	return wrong;
}

/* ---- a held thread ---- */

static void hold_it(struct run *run, const struct tracer_event *e)
{
	if (e->kind == TRACER_REFUSED)
		*(struct tracee_name *)run->arg = e->who; /* and no answer */
}

static void hold_and_kill(struct run *run, const struct tracer_event *e)
{
	hold_it(run, e);
	if (e->kind == TRACER_REFUSED)
		kill(e->pid, SIGKILL);
}

static const char *killed_while_held(void)
{
	struct tracee_name who = {0};
	struct run run = {.on_event = hold_and_kill, .arg = &who};
	char *args[ARGS_MAX] = {"open", "secret"};

	if (write_file("secret", "x") < 0)
		return "write";
	const char *wrong = expect(&run, args, "", SIGKILL);
	if (wrong)
		return wrong;
	if (run.seen[TRACER_GONE] != 1)
		return failf("gone %u", run.seen[TRACER_GONE]);
	if (tracer_is_held(run.tracer, who) || tracer_deny(run.tracer, who) != -ESRCH ||
	    tracer_hand_over(run.tracer, who, open("secret", O_RDONLY), false) != -ESRCH)
		return "the name still stands for something";
	run_end(&run);
	return NULL;
}

/* The held leader vanishes when another thread execs. */
static const char *exec_while_held(void)
{
	struct tracee_name who = {0};
	struct run run = {.on_event = hold_it, .arg = &who};
	char *args[ARGS_MAX] = {"held-exec", "secret", procs_path, "vfork", "1"};

	if (write_file("secret", "x") < 0)
		return "write";
	const char *wrong = expect(&run, args, "done\n", 0);
	if (wrong)
		return wrong;
	if (run.seen[TRACER_GONE] != 1 || tracer_is_held(run.tracer, who))
		return failf("gone %u", run.seen[TRACER_GONE]);
	run_end(&run);
	return NULL;
}

static void set_result(struct run *run, const struct tracer_event *e)
{
	if (e->kind == TRACER_REFUSED)
		tracer_set_result(run->tracer, e->who, -ENOTDIR);
}

static const char *result_is_set(void)
{
	struct run run = {.on_event = set_result};
	char *args[ARGS_MAX] = {"open", "secret"};

	if (write_file("secret", "x") < 0)
		return "write";
	const char *wrong = expect(&run, args, "errno 20\n", 0);
	run_end(&run);
	return wrong;
}

static void once_again(struct run *run, const struct tracer_event *e)
{
	if (e->kind != TRACER_REFUSED)
		return;
	if (run->seen[TRACER_REFUSED] < 5)
		tracer_again(run->tracer, e->who);
	else
		tracer_deny(run->tracer, e->who);
}

static const char *call_runs_again(void)
{
	struct run run = {.on_event = once_again};
	char *args[ARGS_MAX] = {"open", "secret"};

	if (write_file("secret", "x") < 0)
		return "write";
	const char *wrong = expect(&run, args, "errno 13\n", 0);
	if (!wrong && run.seen[TRACER_REFUSED] != 5)
		wrong = failf("refused %u", run.seen[TRACER_REFUSED]);
	run_end(&run);
	return wrong;
}

#ifdef __x86_64__

/* x leads to where it may be opened. */
static void lead_to(const char *dir)
{
	(void)unlink("x");
	if (symlink(dir, "x") < 0)
		abort();
}

static void once_possible(struct run *run, const struct tracer_event *e)
{
	if (e->kind != TRACER_REFUSED)
		return;
	bool by_x = e->call->path[0].given && e->call->path[0].given[0] == 'x';
	lead_to(by_x ? "open" : "shut");
	if (by_x)
		tracer_again(run->tracer, e->who);
	else
		tracer_deny(run->tracer, e->who);
}

/* Refused at a stub's report, the call is made again from the program's own code. */
static const char *call_runs_again_natively(void)
{
	struct tracer_options options = {.fast = true};
	struct run run = {.on_event = once_possible};
	int wall AUTOCLOSE = wall_new();
	char *argv[] = {FIXTURES "/fast_corners", "again", "x/f", "shut/f", "200", NULL};

	if (mkdir("open", 0755) < 0 || mkdir("shut", 0755) < 0 || write_file("open/f", "x") < 0 ||
	    write_file("shut/f", "x") < 0 || tracer_new(&options, &run.tracer) < 0)
		return "set up";
	lead_to("shut");
	wall_allow(wall, "open", WALL_RX);
	const char *wrong = run_command(&run, wall, argv);
	if (!wrong && strcmp(buf_str(&run.out), "wrong 0\n") != 0)
		wrong = failf("it printed %s, status %x", buf_str(&run.out), run.status);
	if (!wrong && run.seen[TRACER_REFUSED] != 400)
		wrong = failf("refused %u", run.seen[TRACER_REFUSED]);
	struct tracer_counts counts = tracer_counts(run.tracer);
	if (!wrong && (!counts.patched || counts.stops > 200 + 200 * 4 + 100))
		wrong = failf("%lu sites changed, %lu stops", counts.patched, counts.stops);
	run_end(&run);
	return wrong;
}

#endif

/* ---- what was changed, and what may not run ---- */

static void note_change(struct run *run, const struct tracer_event *e)
{
	struct buf *seen = run->arg;

	if (e->kind == TRACER_ENTERS)
		tracer_go_on(run->tracer, e->who); /* a rename, whose end is a LEFT */
	bool left = e->kind == TRACER_LEFT, changed = left ? e->changed : e->kind == TRACER_CHANGED;
	if (!left && !changed && e->kind != TRACER_REFUSED)
		return;
	if (changed && e->call->path[0].given && e->call->path[0].given[0] != '/')
		buf_addf(seen, "%s %s\n", e->call->ent->name, e->call->path[0].given);
	tracer_deny(run->tracer, e->who);
}

static const char *changes_are_seen(void)
{
	struct tracer_options options = {.see_changes = true};
	struct buf seen = {0};
	struct run run = {.on_event = note_change, .arg = &seen};
	int wall AUTOCLOSE = wall_new();
	char *argv[] = {"/bin/sh", "-c",
			"mkdir d; cat f; echo x > d/f; mv d/f d/g; rm d/g; rmdir d", NULL};
	/* f is read only: no change. mkdir and its like use whichever call the C library has. */
	static const char *const want[] = {"mkdir", "open", "rename", "unlink", "rmdir"};

	if (write_file("f", "") < 0 || tracer_new(&options, &run.tracer) < 0)
		return "set up";
	wall_allow(wall, ".", WALL_RIGHTS);
	const char *wrong = run_command(&run, wall, argv);
	if (wrong)
		return wrong;
	const char *at = buf_str(&seen);
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		const char *line =
			strstr(at, i == 4 && !strstr(at, "rmdir") ? "unlinkat d" : want[i]);
		if (!line)
			return failf("no %s in %s", want[i], buf_str(&seen));
		at = line;
	}
	if (strstr(buf_str(&seen), " f\n"))
		return failf("a read in %s", buf_str(&seen));
	buf_free(&seen);
	run_end(&run);
	return NULL;
}

/* The command itself may not run: its execve is refused, and the spawn has failed. */
static void note_exec(struct run *run, const struct tracer_event *e)
{
	if (e->kind == TRACER_SPAWN_FAILED)
		*(int *)run->arg = e->error;
	if (e->kind != TRACER_REFUSED)
		return;
	if (strcmp(e->call->ent->name, "execve") != 0 || e->pid != run->pid)
		*(int *)run->arg = 1;
	tracer_deny(run->tracer, e->who);
}

static const char *exec_is_refused(void)
{
	int error = 0;
	struct run run = {.on_event = note_exec, .arg = &error};
	int wall AUTOCLOSE = wall_new();
	char *argv[] = {"./program", NULL};

	if (write_file("program", "#!/bin/sh\n") < 0 || chmod("program", 0755) < 0)
		return "set up";
	const char *wrong = run_command(&run, wall, argv);
	if (!wrong && (error != -EACCES || run.seen[TRACER_REFUSED] != 1 || run.status != 127 << 8))
		wrong = failf("error %d refused %u status %x", error, run.seen[TRACER_REFUSED],
			      run.status);
	run_end(&run);
	return wrong;
}

/* A filter of the program's own stands in the way of the calls that run a copy. */
static void run_a_copy(struct run *run, const struct tracer_event *e)
{
	if (e->kind == TRACER_REFUSED && strcmp(e->call->ent->name, "execve") == 0)
		tracer_exec_fd(run->tracer, e->who, open("/bin/true", O_RDONLY | O_CLOEXEC));
	else if (e->kind == TRACER_REFUSED)
		tracer_deny(run->tracer, e->who);
}

static const char *copy_is_refused(void)
{
	struct run run = {.on_event = run_a_copy};
	char *args[ARGS_MAX] = {"filter-exec", "./program"};

	if (write_file("program", "#!/bin/sh\n") < 0 || chmod("program", 0755) < 0)
		return "set up";
	const char *wrong = expect(&run, args, "errno 1 blocked 0\n", 0);
	run_end(&run);
	return wrong;
}

/* Whatever they are doing, tracer_free() ends them all. */
static void leave_soon(struct run *run, const struct tracer_event *e)
{
	if (e->kind == TRACER_REFUSED) /* the loader's, or a held one that stays so */
		return;
	run->stop = run->seen[TRACER_FORKED] > 30;
}

static unsigned count_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static const char *freed_in_a_storm(void)
{
	char *rows[][3] = {{"storm", "300"}, {"vfork", "300"}};
	unsigned descriptors = count_descriptors();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct run run = {.on_event = leave_soon};
		int wall AUTOCLOSE = wall_new();
		char *argv[] = {procs_path, rows[i][0], rows[i][1], NULL};
		run_command(&run, wall, argv);
		if (!run.stop)
			return "it was over before";
		run_end(&run);
		if (waitpid(-1, NULL, __WALL | WNOHANG) != -1 || errno != ECHILD)
			return "children are left";
	}
	if (count_descriptors() != descriptors)
		return "descriptors are left";
	return NULL;
}

/* ---- job control ---- */

static char state_of(pid_t pid)
{
	char name[32], text[256] = "";

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	int fd AUTOCLOSE = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return '?';
	const char *end = strrchr(text, ')');
	return end ? end[2] : '?';
}

/* It stays stopped until somebody continues it. */
static void continue_it(struct run *run, const struct tracer_event *e)
{
	if (e->kind != TRACER_STOPPED)
		return;
	usleep(50000);
	*(char *)run->arg = state_of(e->pid);
	kill(e->pid, SIGCONT);
}

static const char *stops_and_goes_on(void)
{
	char state = '?';
	struct run run = {.on_event = continue_it, .arg = &state};
	char *args[ARGS_MAX] = {"stop"};
	const char *wrong = expect(&run, args, "stopping\nwent on\n", 0);

	if (!wrong && state != 'T' && state != 't')
		wrong = failf("its state was %c", state);
	if (!wrong && (run.seen[TRACER_STOPPED] != 1 || run.seen[TRACER_CONTINUED] != 1))
		wrong = failf("stopped %u continued %u", run.seen[TRACER_STOPPED],
			      run.seen[TRACER_CONTINUED]);
	run_end(&run);
	return wrong;
}

/* ---- what the command starts with ---- */

static const char *clean_state(void)
{
	struct run run = {0};
	char *args[ARGS_MAX] = {"state"};
	int leak AUTOCLOSE = open("/dev/null", O_RDONLY); /* not CLOEXEC */

	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR1, SIG_DFL);
	const char *wrong = expect(&run, args,
				   "fd 0\nfd 1\nfd 2\nSigBlk:\t0000000000000000\n"
				   "SigIgn:\t0000000000001000\nNoNewPrivs:\t1\n",
				   0);
	if (leak < 0)
		wrong = "open";
	run_end(&run);
	return wrong;
}

/* ---- a spawn that fails ---- */

static int refuse(void *arg)
{
	(void)arg;
	return -EXDEV;
}

static const char *spawn_fails(void)
{
	struct tracer_options options = {0};
	struct tracer *tracer;
	struct tracer_event e;
	enum tracer_stage stage;
	pid_t pid;
	char *argv[] = {"nowhere", NULL};
	struct tracer_spawn spawn = {.file = "/nowhere",
				     .argv = argv,
				     .envp = environ,
				     .stdio = {-1, -1, -1},
				     .ctty = -1,
				     .prepare = refuse};

	if (tracer_new(&options, &tracer) < 0)
		return "tracer_new";
	int r = tracer_spawn(tracer, &spawn, &pid, &stage);
	if (r != -EXDEV || stage != TRACER_STAGE_PREPARE || tracer_next(tracer, &e) != -ECHILD)
		return failf("prepare: %d in stage %d", r, (int)stage);
	spawn.prepare = NULL;
	if (tracer_spawn(tracer, &spawn, &pid, &stage) < 0)
		return "spawn";
	bool failed = false;
	while ((r = tracer_next(tracer, &e)) != -ECHILD) {
		if (r == 1 && e.kind == TRACER_SPAWN_FAILED)
			failed = e.error == -ENOENT && e.pid == pid;
		usleep(1000);
	}
	tracer_free(tracer);
	return failed ? NULL : "no word of the failed exec";
}

static int tell(void *arg, uint32_t mark)
{
	const int *pipe = arg;

	return mark && write(pipe[1], "e", 1) == 1 ? 0 : -EPIPE;
}

static int refuse_to_enter(void *arg, uint32_t mark)
{
	(void)arg;
	return mark ? -EXDEV : 0;
}

/* How it ended: its status; or what a failed start said, with *ret_stage. */
static int end_of(struct tracer *tracer, pid_t pid, enum tracer_stage *ret_stage)
{
	struct tracer_event e;
	int r, error = 0, status = -1;

	while ((r = tracer_next(tracer, &e)) != -ECHILD) {
		if (r == 1 && e.kind == TRACER_SPAWN_FAILED && e.pid == pid) {
			error = e.error;
			*ret_stage = e.stage;
		}
		if (r == 1 && e.kind == TRACER_EXITED)
			status = e.status;
		usleep(1000);
	}
	return error ? error : status;
}

static bool is_empty(const int *pipe)
{
	char byte;

	return read(pipe[0], &byte, 1) < 0 && errno == EAGAIN;
}

/* What was begun enters its sandbox, and runs, when it is told to; and never by itself. */
static const char *spawn_begun(void)
{
	struct tracer_options options = {0};
	struct tracer *tracer;
	enum tracer_stage stage;
	int pipe[2];
	pid_t pid;
	char byte, *argv[] = {"true", NULL};
	struct tracer_spawn spawn = {.file = "/bin/true",
				     .argv = argv,
				     .envp = environ,
				     .stdio = {-1, -1, -1},
				     .ctty = -1,
				     .enter = tell,
				     .prepare_arg = pipe};

	if (pipe2(pipe, O_CLOEXEC | O_NONBLOCK) < 0 || tracer_new(&options, &tracer) < 0)
		return "tracer_new";
	tracer_begin(tracer, &spawn);
	usleep(20000);
	if (!is_empty(pipe))
		return "it did not wait";
	tracer_free(tracer);
	if (waitpid(-1, NULL, 0) != -1 || errno != ECHILD || !is_empty(pipe))
		return "it is left over";
	if (tracer_new(&options, &tracer) < 0)
		return "tracer_new";
	/* As it was begun; with another filter; not begun. */
	for (int i = 0; i < 3; i++) {
		spawn.see_terminals = false;
		if (i < 2)
			tracer_begin(tracer, &spawn);
		spawn.see_terminals = i == 1;
		if (tracer_spawn(tracer, &spawn, &pid, &stage) < 0)
			return failf("spawn %d", i);
		int end = end_of(tracer, pid, &stage);
		if (end != 0 || read(pipe[0], &byte, 1) != 1 || !is_empty(pipe))
			return failf("spawn %d: %d", i, end);
	}
	spawn.enter = refuse_to_enter;
	tracer_begin(tracer, &spawn);
	if (tracer_spawn(tracer, &spawn, &pid, &stage) < 0)
		return "spawn that may not enter";
	int end = end_of(tracer, pid, &stage);
	if (end != -EXDEV || stage != TRACER_STAGE_PREPARE)
		return failf("enter: %d in stage %d", end, (int)stage);
	tracer_free(tracer);
	close(pipe[0]);
	close(pipe[1]);
	return NULL;
}

static int die(void *arg)
{
	(void)arg;
	return kill(getpid(), SIGKILL);
}

static int stop(void *arg)
{
	(void)arg;
	return kill(getpid(), SIGSTOP);
}

/* A child that dies or stops in the middle of the handshake does not hang us. */
static const char *handshake_is_disturbed(void)
{
	struct tracer_options options = {0};
	struct tracer_event e;
	struct tracer *tracer;
	enum tracer_stage stage;
	pid_t pid;
	char *argv[] = {"true", NULL};
	struct tracer_spawn spawn = {.file = "/bin/true",
				     .argv = argv,
				     .envp = environ,
				     .stdio = {-1, -1, -1},
				     .ctty = -1,
				     .prepare = die};
	int r, status = -1;

	if (tracer_new(&options, &tracer) < 0)
		return "tracer_new";
	if (tracer_spawn(tracer, &spawn, &pid, &stage) != -ECHILD || waitpid(-1, NULL, 0) != -1)
		return "it died and nobody said so";
	spawn.prepare = stop;
	r = tracer_spawn(tracer, &spawn, &pid, &stage);
	if (r < 0)
		return failf("stopped: %s", strerror(-r));
	while ((r = tracer_next(tracer, &e)) != -ECHILD) {
		if (r == 1 && e.kind == TRACER_EXITED)
			status = e.status;
		usleep(1000);
	}
	tracer_free(tracer);
	return status == 0 ? NULL : "the command did not run";
}

/* cwd, kept descriptors that trade places, and an ignored signal. */
static const char *spawn_options(void)
{
	struct tracer_options options = {0};
	struct run run = {0};
	enum tracer_stage stage;
	sigset_t mask, ignored;
	int pipes[2];
	int wall AUTOCLOSE = wall_new();
	char *envp[] = {"PATH=/usr/bin:/bin", NULL}; /* without HOME bash asks nscd for one */
	char *argv[] = {"/bin/bash", "-c",
			"pwd; cat <&50; cat <&51; grep -E 'SigBlk|SigIgn' /proc/self/status", NULL};

	if (write_file("three", "3\n") < 0 || write_file("four", "4\n") < 0 ||
	    pipe2(pipes, O_CLOEXEC | O_NONBLOCK) < 0 || tracer_new(&options, &run.tracer) < 0)
		return "set up";
	fcntl(pipes[1], F_SETFL, 0);
	int three AUTOCLOSE = open("three", O_RDONLY);
	int four AUTOCLOSE = open("four", O_RDONLY);
	const int from[2] = {51, 50}, to[2] = {50, 51};
	if (dup2(three, from[0]) < 0 || dup2(four, from[1]) < 0)
		return "dup2";
	block_sigchld();
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigemptyset(&ignored);
	sigaddset(&ignored, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	struct tracer_spawn spawn = {.file = argv[0],
				     .argv = argv,
				     .envp = envp,
				     .stdio = {-1, pipes[1], -1},
				     .ctty = -1,
				     .new_session = true,
				     .keep_from = from,
				     .keep_to = to,
				     .keep_len = 2,
				     .cwd = "/usr/lib",
				     .sigmask = &mask,
				     .ignored = &ignored,
				     .prepare = wall_up,
				     .prepare_arg = &wall};
	int r = tracer_spawn(run.tracer, &spawn, &run.pid, &stage);
	if (r < 0)
		return failf("spawn: %s", strerror(-r));
	close(pipes[1]);
	if (run_loop(&run, pipes[0]) < 0)
		return "run_loop";
	const char *want = "/usr/lib\n3\n4\nSigBlk:\t0000000000000200\nSigIgn:\t0000000000000001\n";
	if (strcmp(buf_str(&run.out), want) != 0)
		return failf("printed %s", buf_str(&run.out));
	run_end(&run);
	return NULL;
}

/* Children of the host are not ours to reap, and do not hide ours. */
static const char *foreign_children(void)
{
	struct run run = {0};
	char *args[ARGS_MAX] = {"storm", "20"};
	int status;
	pid_t mine = fork();

	if (mine == 0)
		_exit(42);
	usleep(20000);
	const char *wrong = expect(&run, args, "bad 0\n", 0);
	if (!wrong && (waitpid(mine, &status, 0) != mine || status != 42 << 8))
		wrong = "the host's child was reaped";
	run_end(&run);
	return wrong;
}

/* ---- the supervisor dies ---- */

static void supervise_forever(int out)
{
	struct run run = {0};
	char *args[] = {procs_path, "untraced", NULL};
	int wall = wall_new();

	dup2(out, 1);
	struct tracer_options options = {0};
	struct tracer_spawn spawn = {.file = args[0],
				     .argv = args,
				     .envp = environ,
				     .stdio = {-1, out, -1},
				     .ctty = -1,
				     .prepare = wall_up,
				     .prepare_arg = &wall};
	enum tracer_stage stage;
	struct tracer_event e;
	if (tracer_new(&options, &run.tracer) < 0 ||
	    tracer_spawn(run.tracer, &spawn, &run.pid, &stage) < 0)
		_exit(1);
	for (;;) {
		while (tracer_next(run.tracer, &e) > 0)
			;
		usleep(1000);
	}
}

/* The two pids that `procs untraced` prints; the child must be traced all the same. */
static const char *read_pids(int in, pid_t *parent, pid_t *child)
{
	char text[256] = "";
	size_t have = 0;

	while (have < sizeof(text) - 1 && (!strstr(text, "parent") || !strstr(text, "child"))) {
		ssize_t n = read(in, text + have, sizeof(text) - 1 - have);
		if (n <= 0)
			return failf("only %s", text);
		have += (size_t)n;
	}
	*parent = (pid_t)strtol(strstr(text, "parent") + 6, NULL, 10);
	*child = (pid_t)strtol(strstr(text, "child") + 5, NULL, 10);
	if (strstr(text, "traced"))
		return NULL;
	kill(*child, SIGKILL); /* EXITKILL will not */
	return failf("printed %s", text);
}

static const char *supervisor_is_killed(void)
{
	pid_t parent, child;
	int pipes[2], status;

	if (pipe(pipes) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return "pipe";
	pid_t supervisor = fork();
	if (supervisor == 0) {
		close(pipes[0]);
		supervise_forever(pipes[1]);
	}
	close(pipes[1]);
	const char *wrong = read_pids(pipes[0], &parent, &child);
	kill(supervisor, SIGKILL);
	if (waitpid(supervisor, &status, 0) != supervisor)
		return "supervisor";
	if (wrong)
		return wrong;
	/* Both come to us, killed. */
	for (int i = 0; i < 2; i++) {
		pid_t pid = waitpid(-1, &status, 0);
		if ((pid != parent && pid != child) || status != SIGKILL)
			return failf("pid %d (%d, %d): status %x", pid, parent, child, status);
	}
	return NULL;
}

Test(tracer_procs, plain_cases)
{
	case_both(plain_cases);
}

Test(tracer_procs, guards_are_noticed)
{
	case_both(guards_are_noticed);
}

Test(tracer_procs, killed_while_held)
{
	case_both(killed_while_held);
}

Test(tracer_procs, exec_while_held)
{
	case_both(exec_while_held);
}

Test(tracer_procs, result_is_set)
{
	case_both(result_is_set);
}

Test(tracer_procs, call_runs_again)
{
	case_both(call_runs_again);
}

#ifdef __x86_64__
Test(tracer_procs, call_runs_again_natively)
{
	case_both(call_runs_again_natively);
}
#endif

Test(tracer_procs, stops_and_goes_on)
{
	case_both(stops_and_goes_on);
}

Test(tracer_procs, clean_state)
{
	case_both(clean_state);
}

Test(tracer_procs, spawn_fails)
{
	case_both(spawn_fails);
}

Test(tracer_procs, foreign_children)
{
	case_both(foreign_children);
}

Test(tracer_procs, supervisor_is_killed)
{
	case_both(supervisor_is_killed);
}

Test(tracer_procs, changes_are_seen)
{
	case_both(changes_are_seen);
}

Test(tracer_procs, exec_is_refused)
{
	case_both(exec_is_refused);
}

Test(tracer_procs, copy_is_refused)
{
	case_both(copy_is_refused);
}

Test(tracer_procs, freed_in_a_storm)
{
	case_both(freed_in_a_storm);
}

Test(tracer_procs, spawn_begun)
{
	case_both(spawn_begun);
}

Test(tracer_procs, handshake_is_disturbed)
{
	case_both(handshake_is_disturbed);
}

Test(tracer_procs, spawn_options)
{
	case_both(spawn_options);
}
