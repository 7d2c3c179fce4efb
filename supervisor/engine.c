#include "supervisor/run.h"

#include "landlock/llright.h"
#include "supervisor/command.h"
#include "supervisor/compile.h"
#include "supervisor/devices.h"
#include "supervisor/environ.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t run_now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void run_say(struct run *r, const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (r->command->hooks.say)
		r->command->hooks.say(r->command->hooks.arg, line);
}

void run_fail(struct run *r, int err, const char *what)
{
	if (!r->out->error) {
		r->out->error = err;
		snprintf(r->out->why.text, sizeof r->out->why.text, "%s: %s", what, strerror(-err));
	}
	r->end = RUN_KILLED;
	if (r->tracer)
		tracer_kill_all(r->tracer);
}

/* ---- what this machine and this command allow ---- */

static int refuse_to_run(struct run *r, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse_to_run(struct run *r, int err, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(r->out->why.text, sizeof r->out->why.text, fmt, ap);
	va_end(ap);
	r->out->error = err;
	return err;
}

bool engine_is_traced(void)
{
	char text[4096];
	int fd AUTOCLOSE = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return false; /* spawn finds out */
	text[n] = '\0';
	const char *line = strstr(text, "TracerPid:");
	return line && atoi(line + strlen("TracerPid:")) > 0;
}

static int check_kernel(struct run *r)
{
	if (engine_is_traced())
		return refuse_to_run(
			r, -EPERM,
			"this process is traced already (a debugger, strace or another "
			"warder): the command would not be supervised");
	int err = llabi_detect(&r->abi);
	if (err == -ENOSYS)
		return refuse_to_run(r, err, "this kernel has no Landlock: nothing was run");
	if (err == -EOPNOTSUPP)
		return refuse_to_run(r, err,
				     "Landlock is not enabled on this kernel (add landlock to the "
				     "lsm= boot parameter): nothing was run");
	return err ? refuse_to_run(r, err, "Landlock: %s", strerror(-err)) : 0;
}

static int find_command(struct run *r, struct command *found)
{
	int err = command_find(r->command->argv[0], r->command->env, r->cwd, found);
	if (err)
		return refuse_to_run(r, err, "%s", strerror(-err));
	r->out->not_found = found->not_found;
	r->out->not_executable = found->not_executable;
	if (found->not_found)
		return refuse_to_run(r, -ENOENT, "command not found");
	if (found->not_executable)
		return refuse_to_run(r, -EACCES, "found, but it can't be executed");
	r->file = found->file;
	unsigned before = (unsigned)policy_len(r->session->policy);
	err = command_allow(found->file, r->cwd, r->session->policy);
	if (policy_len(r->session->policy) != before)
		r->session->policy_version++;
	return err ? refuse_to_run(r, err, "%s", strerror(-err)) : 0;
}

/* ---- whom to ask ---- */

static bool in_foreground(void)
{
	int fd AUTOCLOSE = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	return fd >= 0 && tcgetpgrp(fd) == getpgrp();
}

static bool has_asker(const struct run *r)
{
	const struct engine_command *c = r->command;
	if (c->answers >= 0)
		return true;
	if (c->ask == ENGINE_ASK_NONE)
		return false;
	if (c->ask == ENGINE_ASK_AUTO && environ_get(c->env, "CI"))
		return false;
	return in_foreground();
}

static enum engine_mode pick_mode(const struct run *r)
{
	if (r->command->mode == ENGINE_PERMISSIVE)
		return ENGINE_PERMISSIVE;
	if (r->command->yes)
		return ENGINE_HOLD;
	if (r->command->answers >= 0 && r->command->mode != ENGINE_RETRY)
		return ENGINE_HOLD;
	if (r->command->mode != ENGINE_MODE_AUTO)
		return r->command->mode;
	return has_asker(r) ? ENGINE_HOLD : ENGINE_REPORT;
}

static const char *mode_name(enum engine_mode m)
{
	switch (m) {
	case ENGINE_HOLD:
		return "hold";
	case ENGINE_RETRY:
		return "retry";
	case ENGINE_PERMISSIVE:
		return "permissive";
	case ENGINE_REPORT:
	case ENGINE_MODE_AUTO:
		break;
	}
	return "report";
}

static void interrupt_command(void *arg)
{
	struct run *r = arg;
	if (r->main_ended)
		raise(SIGINT); /* it is gone: to us, and so to what we wait for */
	else if (r->pty)
		pty_interrupt(r->pty);
	else if (r->command->own_terminal)
		kill(r->main, SIGINT);
	else
		raise(SIGINT); /* as if typed at the agent's terminal */
}

static bool may_ask(const struct run *r)
{
	return r->mode == ENGINE_HOLD || r->mode == ENGINE_RETRY;
}

bool run_has_answerer(const struct run *r)
{
	return r->ask && (r->prompt || r->command->answers >= 0);
}

static int open_prompt(struct run *r)
{
	struct prompt_options o = {.home = r->session->home,
				   .color = r->command->color,
				   .interrupt = interrupt_command,
				   .arg = r};
	if (r->prompt || !r->ask || r->command->answers >= 0 || !has_asker(r))
		return 0;
	return prompt_new(r->loop, r->ask, r->pty, &o, &r->prompt);
}

static void close_prompt(struct run *r)
{
	prompt_free(r->prompt);
	r->prompt = NULL;
}

/* A front that only listens: the caller keeps its own words off the terminal meanwhile. */
static void tell_caller(struct run *r, bool open)
{
	const struct engine_hooks *h = &r->command->hooks;
	if (h->asking && ask_len(r->ask) == (open ? 1 : 0))
		h->asking(h->arg, open);
}

static void on_asked(void *self, const struct question *q)
{
	(void)q;
	tell_caller(self, true);
}

static void on_cancelled(void *self, const struct question *q, const char *reason)
{
	(void)q;
	(void)reason;
	tell_caller(self, false);
}

static void on_settled(void *self, const struct question *q, const struct answer *a)
{
	(void)q;
	(void)a;
	tell_caller(self, false);
}

static int open_questions(struct run *r)
{
	const struct ask_front caller = {
		.self = r, .asked = on_asked, .cancelled = on_cancelled, .settled = on_settled};
	const struct engine_command *c = r->command;
	if (!may_ask(r) && c->events < 0)
		return 0;
	int err = ask_new(r->loop, c->answer_timeout_ms, refusal_answered, r, &r->ask);
	if (!err)
		ask_set_stack(r->ask, caller_of_question);
	if (!err)
		err = ask_add_front(r->ask,
				    &caller); /* the first: before the terminal is painted */
	if (err)
		return err;
	if (c->events < 0 && c->answers < 0)
		return 0;
	struct protocol_options o = {.events = c->events,
				     .answers = c->answers,
				     .run = r->session->run,
				     .label = r->session->label,
				     .command = r->out->report.command};
	return protocol_new(r->loop, r->ask, &o, &r->protocol);
}

/* ---- events ---- */

static void spawn_failed(struct run *r, const struct tracer_event *ev)
{
	if (ev->stage == TRACER_STAGE_EXEC) {
		r->out->not_found = ev->error == -ENOENT;
		r->out->not_executable = !r->out->not_found;
		refuse_to_run(r, ev->error, "can't be executed: %s", strerror(-ev->error));
		return;
	}
	if (ev->stage == TRACER_STAGE_FILTER && ev->error == -EBUSY) {
		refuse_to_run(r, ev->error,
			      "another supervisor (of a container, or of a sandbox) has the one "
			      "seccomp listener that a process can have; nothing was run");
		return;
	}
	refuse_to_run(r, ev->error, "the sandbox could not be set up (%s): %s; nothing was run",
		      ev->stage == TRACER_STAGE_PREPARE	 ? "Landlock"
		      : ev->stage == TRACER_STAGE_FILTER ? "seccomp"
							 : "start",
		      strerror(-ev->error));
}

static void changed(struct run *r, const struct tracer_event *ev)
{
	struct call_view view = {ev->who.tid, ev->pid};
	if (!call_resolve(ev->call, view))
		changes_add(&r->changes, ev->call, r->session->tmpdir);
	tracer_deny(r->tracer, ev->who);
}

static void execed(struct run *r, const struct tracer_event *ev)
{
	if (ev->pid == r->main)
		r->out->ran = true;
	ruling_once_execed(r, ev->pid);
	notice_exec(r, ev->pid);
	walk_execed(r, ev->who, ev->call ? ev->call->path[0].given : NULL);
	permissive_execed(r, ev->who);
}

static void exited(struct run *r, const struct tracer_event *ev)
{
	ruling_once_forget(r, ev->pid);
	walk_ended(r, ev->pid);
	denial_ended(&r->out->report.denials, ev->pid, ev->status);
	denial_ended(&r->unasked, ev->pid, ev->status);
	if (ev->pid == r->main)
		lifecycle_main_ended(r, ev->status);
}

static void dispatch(struct run *r, const struct tracer_event *ev)
{
	switch (ev->kind) {
	case TRACER_REFUSED:
		refusal_begin(r, ev);
		break;
	case TRACER_WAITS:
		refusal_at_door(r, ev);
		break;
	case TRACER_CHANGED:
		changed(r, ev);
		break;
	case TRACER_ENTERS:
		permissive_enters(r, ev);
		break;
	case TRACER_LEFT:
		permissive_left(r, ev);
		break;
	case TRACER_EXECED:
		execed(r, ev);
		break;
	case TRACER_EXITED:
		exited(r, ev);
		break;
	case TRACER_GONE:
		refusal_gone(r, ev->who);
		permissive_gone(r, ev->who);
		break;
	case TRACER_STOPPED:
		lifecycle_stopped(r, ev);
		break;
	case TRACER_NOTICED:
		notice_call(r, ev);
		break;
	case TRACER_SPAWN_FAILED:
		spawn_failed(r, ev);
		break;
	case TRACER_CONTINUED:
		if (ev->pid == r->main)
			r->main_stopped = false;
		break;
	case TRACER_FORKED:
		break;
	}
}

static void pump(struct run *r)
{
	struct tracer_event ev;
	int n;
	if (!r->tracer)
		return; /* between two runs: a late SIGCHLD is about nobody of ours */
	while ((n = tracer_next(r->tracer, &ev)) > 0)
		dispatch(r, &ev);
	if (n == -ECHILD)
		loop_stop(r->loop);
	else if (n < 0)
		run_fail(r, n, "the tracer");
}

static void on_child(void *arg, const struct signalfd_siginfo *info)
{
	(void)info;
	pump(arg);
}

static void on_door(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	pump(arg);
}

static void on_broker(void *arg, int fd, uint32_t events)
{
	struct run *r = arg;
	struct broker_done done;
	(void)fd;
	(void)events;
	while (broker_next(r->broker, &done))
		refusal_act_done(r, &done);
	pump(r);
}

/* ---- one run of the command ---- */

static int build_wall(struct run *r)
{
	struct compile_stats stats;
	llruleset_free(r->ruleset);
	r->ruleset = NULL;
	/* Each scope the kernel has: signals and abstract sockets stay inside the tree. */
	struct compile_spares spares = {.like = r->session->project.dir};
	struct pool *pool = r->mode == ENGINE_PERMISSIVE ? NULL : session_pool(r->session);
	if (pool)
		spares.len = pool_fill(pool, &spares.fd);
	int err = compile_with_spares(r->session->policy, &r->abi, &spares, &r->ruleset, &stats);
	if (pool)
		pool_ruled(pool, !err && spares.ruled ? &spares.class : NULL);
	if (err)
		return refuse_to_run(r, err, "the policy could not be compiled: %s",
				     strerror(-err));
	bool open = r->mode == ENGINE_PERMISSIVE; /* the ruleset is for the model alone */
	uint64_t missing = open ? 0 : llruleset_unenforced(r->ruleset);
	if (missing && !r->session->allow_degraded) {
		char names[256];
		llright_format(missing, names, sizeof names);
		return refuse_to_run(r, -EOPNOTSUPP,
				     "this kernel's Landlock (ABI %d) can't enforce %s; "
				     "--allow-degraded runs all the same",
				     r->abi.abi, names);
	}
	r->confine =
		(struct confine){.ruleset = r->ruleset, .files = r->files_before, .open = open};
	return 0;
}

static int spawn(struct run *r)
{
	struct tracer_options options = {.see_changes = may_ask(r),
					 .native = r->mode == ENGINE_PERMISSIVE,
					 .fast = !r->command->slow && r->mode != ENGINE_PERMISSIVE};
	enum tracer_stage stage = TRACER_STAGE_SETUP;
	int err = tracer_new(&options, &r->tracer);
	if (err)
		return refuse_to_run(r, err, "the tracer: %s", strerror(-err));
	struct tracer_spawn s = {
		.file = r->file,
		.argv = r->command->argv,
		.envp = r->env,
		.stdio = {r->command->stdio[0], r->command->stdio[1], r->command->stdio[2]},
		.ctty = -1,
		.new_session = !r->command->own_terminal,
		.see_terminals = r->ruleset && devices_lack_ioctl(r->ruleset),
		.keep_from = r->command->keep_from,
		.keep_to = r->command->keep_to,
		.keep_len = r->command->keep_len,
		.cwd = r->command->cwd,
		.sigmask = loop_original_mask(r->loop),
		.ignored = &r->ignored_before,
		.prepare = confine_prepare,
		.prepare_arg = &r->confine};
	if (r->pty)
		pty_child_stdio(r->pty, s.stdio, &s.ctty);
	err = tracer_spawn(r->tracer, &s, &r->main, &stage);
	if (r->pty)
		pty_spawned(r->pty);
	if (err) {
		struct tracer_event ev = {.error = err, .stage = stage};
		spawn_failed(r, &ev);
		return err;
	}
	int door = tracer_fd(r->tracer);
	if (door >= 0)
		err = loop_add_fd(r->loop, door, EPOLLIN, on_door, r, &r->door_watch);
	return err ? refuse_to_run(r, err, "the door: %s", strerror(-err)) : 0;
}

/* Nobody is there to answer any more; the kernel's SIGHUP reaches us by itself and is passed on. */
static void terminal_gone(void *arg)
{
	refusal_give_up(arg);
}

/* The command's inner terminal is its own; who asks sits at the real one. */
static int open_terminal(struct run *r)
{
	const struct pty_hooks hooks = {.arg = r, .hangup = terminal_gone};
	int err = r->command->own_terminal ? pty_open(r->loop, &hooks, &r->pty) : 0;
	if (!err && r->pty) {
		int stdio[3], ctty;
		pty_child_stdio(r->pty, stdio, &ctty);
		const int slaves[TERMINALS_OWN] = {ctty, stdio[2]};
		err = terminals_own(r->session->policy, slaves, &r->terminals);
		r->session->policy_version++;
	}
	return err ? err : open_prompt(r);
}

static void close_terminal(struct run *r)
{
	pty_close(r->pty);
	r->pty = NULL;
	terminals_disown(r->session->policy, &r->terminals);
	r->session->policy_version++;
}

static int supervise(struct run *r)
{
	r->main = 0;
	r->main_ended = r->main_stopped = false;
	r->rerun_useful = false;
	int err = open_terminal(r);
	if (err)
		refuse_to_run(r, err, "the terminal: %s", strerror(-err));
	if (!err)
		err = build_wall(r);
	if (!err)
		err = spawn(r);
	if (!err) {
		lifecycle_spawned(r);
		pump(r);
		err = loop_run(r->loop);
	}
	struct tracer_counts counts =
		r->tracer ? tracer_counts(r->tracer) : (struct tracer_counts){0};
	r->out->report.engine.stops += counts.stops;
	r->out->report.engine.unwound += counts.unwound;
	r->out->report.engine.patched += counts.patched;
	loop_remove(r->loop, r->door_watch);
	close_prompt(r);
	tracer_free(r->tracer);
	r->tracer = NULL;
	walk_ended(r, 0);
	permissive_release(r);
	refusal_release(r);
	lifecycle_release(r);
	close_terminal(r);
	return err;
}

/* A held call costs a few descriptors, and a thousand may be held: as many as we may have. */
static void raise_limit(struct run *r)
{
	struct rlimit all;
	if (getrlimit(RLIMIT_NOFILE, &r->files_before))
		return;
	all = r->files_before;
	all.rlim_cur = all.rlim_max;
	setrlimit(RLIMIT_NOFILE, &all);
	r->limit_raised = true;
}

static int remember_stdin(struct run *r)
{
	struct stat st;
	int fd = r->command->stdio[0] >= 0 ? r->command->stdio[0] : STDIN_FILENO;
	r->stdin_at = !fstat(fd, &st) && S_ISREG(st.st_mode) ? lseek(fd, 0, SEEK_CUR) : -1;
	return 0;
}

static void run_until_done(struct run *r)
{
	for (r->number = 1;; r->number++) {
		r->out->report.runs = r->number;
		if (supervise(r) || !r->out->ran || r->out->error)
			return;
		if (open_prompt(r))
			run_say(r, "there is no terminal to ask on any more");
		bool again = rerun_wanted(r);
		close_prompt(r);
		if (!again)
			return;
		changes_release(&r->changes);
		if (r->protocol)
			protocol_event(r->protocol, "rerun", NULL, NULL);
	}
}

/* ---- before and after ---- */

/*
 * An ordinary user's tree can't become anybody else: it runs with no_new_privs, and without
 * capabilities of our own user namespace no id or group can be changed.
 */
static bool has_one_identity(const struct identity *self)
{
	uid_t uid[3];
	gid_t gid[3];
	return !self->caps && !getresuid(&uid[0], &uid[1], &uid[2]) && uid[0] == uid[1] &&
	       uid[1] == uid[2] && !getresgid(&gid[0], &gid[1], &gid[2]) && gid[0] == gid[1] &&
	       gid[1] == gid[2];
}

static int set_up(struct run *r, struct command *found)
{
	struct report *rep = &r->out->report;
	memcpy(rep->run, r->session->run, sizeof rep->run);
	rep->label = r->session->label;
	clock_gettime(CLOCK_REALTIME, &rep->started);
	rep->command = r->command->argv;
	rep->cwd = r->cwd ? r->cwd : r->session->cwd;
	r->started_ms = run_now_ms();
	r->mode = pick_mode(r);
	if (may_ask(r) && !r->command->yes && !has_asker(r))
		run_say(r,
			"nobody can be asked here: what the policy does not allow stays refused");
	int err = check_kernel(r);
	if (!err)
		err = find_command(r, found);
	if (err)
		return err;
	remember_stdin(r);
	raise_limit(r);
	r->env = environ_make(r->command->env, r->command->scrub, r->command->scrub_secrets,
			      r->session->tmpdir);
	err = r->env ? identity_self(&r->self) : -ENOMEM;
	r->one_identity = !err && has_one_identity(&r->self);
	if (!err)
		err = broker_new(&r->broker);
	if (!err)
		err = loop_add_fd(r->loop, broker_fd(r->broker), EPOLLIN, on_broker, r,
				  &r->broker_watch);
	if (!err)
		err = loop_take_signal(r->loop, SIGCHLD, on_child, r);
	if (!err)
		err = lifecycle_begin(r);
	if (!err)
		err = open_questions(r);
	/* Orphans of the tree come to us, so that they are reaped and counted as leftovers. */
	if (!err && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		err = -errno;
	return err ? refuse_to_run(r, err, "%s", strerror(-err)) : 0;
}

static void fill_engine(struct run *r)
{
	struct report *rep = &r->out->report;
	rep->engine.landlock_abi = r->abi.abi;
	rep->engine.mode = mode_name(r->mode);
	rep->engine.fast = !r->command->slow;
	rep->engine.brokered = r->brokered;
	notice_report(r);
}

static int copy_sources(const struct session *s, struct report *rep)
{
	rep->sources = calloc(s->sources_len + 1, sizeof *rep->sources);
	if (!rep->sources)
		return -ENOMEM;
	for (size_t i = 0; i < s->sources_len; i++) {
		rep->sources[i] = s->sources[i];
		rep->sources[i].path = strdup(s->sources[i].path);
		rep->sources_len++;
		if (!rep->sources[i].path)
			return -ENOMEM;
	}
	return 0;
}

static void error_event(struct jsonw *w, const void *arg)
{
	const struct engine_outcome *o = arg;
	jsonw_kstr(w, "message", o->why.text);
}

static void exit_event(struct jsonw *w, const void *arg)
{
	const struct engine_outcome *o = arg;
	if (o->report.exited)
		jsonw_kint(w, "exit", o->report.exit_code);
	else if (o->report.signal)
		jsonw_kint(w, "signal", o->report.signal);
}

static int finish(struct run *r)
{
	struct engine_outcome *o = r->out;
	struct report *rep = &o->report;
	rep->wall_ms = run_now_ms() - r->started_ms;
	if (o->ran) {
		rep->exited = WIFEXITED(r->main_status);
		rep->exit_code = rep->exited ? WEXITSTATUS(r->main_status) : 0;
		rep->signal = WIFSIGNALED(r->main_status) ? WTERMSIG(r->main_status) : 0;
	} else {
		rep->exited = true;
		rep->exit_code = engine_exit_status(o, false);
	}
	fill_engine(r);
	int err = copy_sources(r->session, rep);
	if (!err)
		err = plan_mark_closed(&rep->denials, r->session->policy);
	if (!err)
		err = plan_suggest(&rep->denials, r->session->home, &rep->suggested);
	if (r->protocol && o->error)
		protocol_event(r->protocol, "error", error_event, o);
	if (r->protocol)
		protocol_event(r->protocol, "exit", exit_event, o);
	return err;
}

static void tear_down(struct run *r)
{
	static const int taken[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,	SIGQUIT, SIGWINCH,
				    SIGCONT, SIGTSTP, SIGUSR1, SIGUSR2, SIGALRM};
	close_prompt(r);
	protocol_free(r->protocol);
	ask_free(r->ask);
	loop_remove(r->loop, r->broker_watch);
	broker_free(r->broker);
	guard_free(r->guard);
	free(r->open_dir.path);
	llruleset_free(r->ruleset);
	denial_list_release(&r->unasked);
	changes_release(&r->changes);
	notice_release(r);
	environ_free(r->env);
	if (r->limit_raised)
		setrlimit(RLIMIT_NOFILE, &r->files_before);
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		loop_give_signal(r->loop, taken[i]);
	lifecycle_end(r);
	if (r->owed_signal)
		raise(r->owed_signal);
}

int engine_run(struct session *s, const struct engine_command *c, struct engine_outcome *ret)
{
	struct command found = {0};
	*ret = (struct engine_outcome){0};
	struct run r = {.session = s, .command = c, .out = ret, .loop = s->loop, .cwd = c->cwd};
	if (!set_up(&r, &found))
		run_until_done(&r);
	int err = finish(&r);
	tear_down(&r);
	command_release(&found);
	return err;
}

static bool stayed_refused(const struct report *rep)
{
	for (size_t i = 0; i < rep->denials.len; i++)
		if (rep->denials.item[i].verdict == VERDICT_SANDBOX &&
		    !rep->denials.item[i].allowed)
			return true;
	return false;
}

int engine_exit_status(const struct engine_outcome *o, bool fail_on_denial)
{
	if (o->not_found)
		return 127;
	if (o->not_executable)
		return 126;
	if (!o->ran || o->error)
		return 125;
	if (o->timed_out)
		return 124;
	if (!o->report.exited)
		return -o->report.signal;
	if (fail_on_denial && !o->report.exit_code && stayed_refused(&o->report))
		return 123;
	return o->report.exit_code;
}
