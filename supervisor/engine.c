/*
 * One command from its start to its end, and once more where that helps.
 */
#include "supervisor/run.h"

#include "supervisor/command.h"
#include "supervisor/devices.h"
#include "supervisor/environ.h"
#include "supervisor/lastreport.h"
#include "tracer/clock.h"
#include "tracer/status.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* ---- who has something to tell ---- */

static void unwatch_door(struct run *r, size_t i)
{
	if (r->door_watch[i])
		loop_remove(r->loop, r->door_watch[i]);
	r->door_watch[i] = 0;
}

static void on_child(void *arg, const struct signalfd_siginfo *info)
{
	struct run *r = arg;
	(void)info;
	if (r->tracer && !loop_is_alone(r->loop)) /* maybe somebody is at the door, too */
		tracer_knocked(r->tracer);
	events_pump(r);
}

static void on_door(void *arg, int fd, uint32_t events)
{
	struct run *r = arg;
	int fds[TRACER_FDS];
	bool alone = loop_is_alone(r->loop);
	if ((events & EPOLLIN) && alone)
		tracer_ready(r->tracer, fd);
	else if (events & EPOLLIN)
		tracer_knocked(r->tracer);
	r->mounts_known = alone;
	events_pump(r);
	r->mounts_known = false;
	size_t n = events & EPOLLHUP ? tracer_fds(r->tracer, fds) : 0;
	/* Nobody is left behind it: it would say so for ever. */
	for (size_t i = 0; i < n; i++)
		if (fds[i] == fd)
			unwatch_door(r, i);
}

static void on_broker(void *arg, int fd, uint32_t events)
{
	struct run *r = arg;
	struct broker_done done;
	(void)fd;
	(void)events;
	while (broker_next(r->broker, &done))
		inplace_done(r, &done);
	events_pump(r);
}

/* Another run of this session's name was given an answer. */
static void on_shared(void *arg, int fd, uint32_t events)
{
	struct run *r = arg;
	(void)fd;
	(void)events;
	int added = session_hear_others(r->session, r->command->env);
	if (added < 0)
		run_say(r, "what the session's other runs were answered can't be read: %s",
			strerror(-added));
	if (added > 0 && r->tracer)
		refusal_reconsider(r);
	if (r->tracer)
		events_pump(r);
}

/* Who looks at names in this very turn has asked, too (run_see_mounts()). */
static void on_mounts(void *arg, int fd, uint32_t events)
{
	struct run *r = arg;
	(void)fd;
	(void)events;
	if (slowfs_renew(r->slowfs))
		pathname_memory_forget(r->names);
}

/* ---- one run of the command ---- */

/* How the command is to be started; all of it is known before the wall is. */
static struct tracer_spawn description(struct run *r)
{
	struct tracer_spawn s = {
		.file = r->file,
		.argv = r->command->argv,
		.envp = r->env,
		.stdio = {r->command->stdio[0], r->command->stdio[1], r->command->stdio[2]},
		.ctty = -1,
		.new_session = !r->command->own_terminal,
		.keep_from = r->command->keep_from,
		.keep_to = r->command->keep_to,
		.keep_len = r->command->keep_len,
		.cwd = r->command->cwd,
		.sigmask = loop_original_mask(r->loop),
		.ignored = &r->ignored_before,
		.prepare = confine_prepare,
		.enter = confine_enter,
		.prepare_arg = &r->confine};
	if (r->pty)
		pty_child_stdio(r->pty, s.stdio, &s.ctty);
	return s;
}

/* The child is on its way while its wall is made (prepare_wall()). */
static int begin(struct run *r)
{
	struct tracer_options options = {.see_changes = asker_is_asked(r),
					 .see_identities = !r->one_identity,
					 .native = r->mode == ENGINE_PERMISSIVE,
					 .record = r->command->trace != NULL,
					 .fast = run_is_fast(r),
					 .state_dir = session_store(r->session)->state_dir};
	int err = tracer_new(&options, &r->tracer);
	/* That may name a place where the command writes: then nothing is loaded once it runs. */
	if (!err && environ_get(environ, "LD_LIBRARY_PATH"))
		err = tracer_prepare(r->tracer);
	if (err)
		return run_refuse(r, err, "the command can't be watched: %s", strerror(-err));
	const struct tracer_spawn s = description(r);
	tracer_begin(r->tracer, &s);
	return 0;
}

static int spawn(struct run *r)
{
	enum tracer_stage stage = TRACER_STAGE_SETUP;
	struct tracer_spawn s = description(r);
	s.see_terminals = devices_lack_ioctl(r->ruleset);
	int err = tracer_spawn(r->tracer, &s, &r->main, &stage);
	if (r->pty)
		pty_spawned(r->pty);
	if (err) {
		struct tracer_event ev = {.error = err, .stage = stage};
		events_spawn_failed(r, &ev);
		return err;
	}
	int fds[TRACER_FDS];
	size_t n = tracer_fds(r->tracer, fds);
	for (size_t i = 0; !err && i < n; i++)
		err = loop_add_fd(r->loop, fds[i], EPOLLIN, on_door, r, &r->door_watch[i]);
	return err ? run_refuse(r, err, "calls can't be made to wait for an answer: %s",
				strerror(-err))
		   : 0;
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
	return err ? err : asker_open_prompt(r);
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
		run_refuse(r, err, "the command can't be given a terminal: %s", strerror(-err));
	if (!err)
		err = prepare_ruleset(r);
	if (!err)
		err = begin(r);
	if (!err)
		err = prepare_wall(r);
	if (!err)
		err = recorder_begin(r);
	if (!err)
		err = spawn(r);
	if (!err)
		err = prepare_guard(r);
	if (!err) {
		lifecycle_spawned(r);
		events_pump(r);
		tracer_warm(r->tracer);
		err = loop_run(r->loop);
	}
	struct tracer_counts counts =
		r->tracer ? tracer_counts(r->tracer) : (struct tracer_counts){0};
	r->out->report.engine.stops += counts.stops;
	r->out->report.engine.unwound += counts.unwound;
	r->out->report.engine.patched += counts.patched;
	r->noticed[RUN_NOTICE_UNWRITABLE] += counts.unwritable;
	for (size_t i = 0; i < TRACER_FDS; i++)
		unwatch_door(r, i);
	asker_close_prompt(r);
	loop_remove(r->loop, r->rest_timer);
	r->rest_timer = 0;
	tracer_free(r->tracer);
	r->tracer = NULL;
	walk_ended(&r->walks, 0);
	recorder_end_run(r);
	permissive_release(r);
	refusal_release(r);
	lifecycle_release(r);
	close_terminal(r);
	return err;
}

static void run_until_done(struct run *r)
{
	for (r->number = 1;; r->number++) {
		r->out->report.runs = r->number;
		if (supervise(r) || !r->out->ran || r->out->error)
			return;
		if (asker_open_prompt(r))
			run_say(r, "there is no terminal to ask on any more");
		bool again = rerun_wanted(r);
		asker_close_prompt(r);
		if (!again)
			return;
		changes_release(&r->changes);
		asker_event(r, "rerun", NULL, NULL);
	}
}

/* ---- before and after ---- */

/* Where names are remembered: on mounts that our own directories keep busy anyway. */
static void remember_names(struct run *r)
{
	const char *const held[] = {"/", ".", r->session->tmpdir};
	r->names = pathname_memory_new();
	for (size_t i = 0; r->names && i < ARRAY_LEN(held); i++)
		if (held[i])
			pathname_memory_allow(r->names, held[i]);
}

static int set_up(struct run *r, struct command *found)
{
	struct report *rep = &r->out->report;
	memcpy(rep->run, r->session->run, sizeof rep->run);
	rep->label = r->session->label;
	clock_gettime(CLOCK_REALTIME, &rep->started);
	rep->command = r->command->argv;
	rep->cwd = r->cwd ? r->cwd : r->session->cwd;
	r->started_ms = clock_ms();
	r->mode = asker_mode(r);
	record_begin(r);
	if (asker_is_asked(r) && !r->command->yes && !asker_is_there(r))
		run_say(r,
			"nobody can be asked here: what the policy does not allow stays refused");
	int err = prepare_ourselves(r);
	if (!err)
		err = prepare_kernel(r);
	if (!err)
		err = prepare_command(r, found);
	if (err)
		return err;
	prepare_stdin(r);
	prepare_limit(r);
	r->env = environ_make(r->command->env, r->command->scrub, r->command->scrub_secrets,
			      r->session->tmpdir);
	r->whose = whose_new();
	r->fds = tracee_fds_new();
	remember_names(r);
	err = r->env && r->whose && r->fds && r->names ? 0 : -ENOMEM;
	if (!err)
		err = slowfs_new(&r->slowfs);
	if (!err)
		err = loop_add_fd(r->loop, slowfs_fd(r->slowfs), EPOLLPRI, on_mounts, r,
				  &r->mounts_watch);
	if (!err)
		err = broker_new(&r->broker);
	if (!err)
		err = loop_add_fd(r->loop, broker_fd(r->broker), EPOLLIN, on_broker, r,
				  &r->broker_watch);
	if (!err)
		err = lifecycle_begin(r, on_child);
	if (!err && r->session->shared_fd >= 0)
		err = loop_add_fd(r->loop, r->session->shared_fd, EPOLLIN, on_shared, r,
				  &r->shared_watch);
	if (!err)
		err = asker_open(r);
	/* Orphans of the tree come to us, so that they are reaped and counted as leftovers. */
	if (!err && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		err = -errno;
	return err ? run_refuse(r, err, "%s", strerror(-err)) : 0;
}

static void tear_down(struct run *r)
{
	asker_close_prompt(r);
	asker_close(r);
	loop_remove(r->loop, r->broker_watch);
	loop_remove(r->loop, r->shared_watch);
	loop_remove(r->loop, r->mounts_watch);
	broker_free(r->broker);
	netdomains_free(r->netdomains);
	slowfs_free(r->slowfs);
	guard_free(r->guard);
	guard_free(r->own.guard);
	whose_free(r->whose);
	tracee_fds_free(r->fds);
	pathname_memory_free(r->names);
	free(r->open_dir.path);
	llruleset_free(r->ruleset);
	denial_list_release(&r->unasked);
	changes_release(&r->changes);
	notice_release(r);
	recorder_release(r);
	environ_free(r->env);
	if (r->limit_raised)
		setrlimit(RLIMIT_NOFILE, &r->files_before);
	loop_give_signals(r->loop);
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
	int err = finish_report(&r);
	int unsaved = !err && ret->ran ? lastreport_save(&s->store, &ret->report) : 0;
	if (unsaved)
		run_say(&r, "the report can't be kept for `warder why --last`: %s",
			strerror(-unsaved));
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
	if (o->error)
		return 125;
	if (o->timed_out)
		return 124;
	if (o->report.signal)
		return -o->report.signal;
	if (!o->ran)
		return 125;
	if (fail_on_denial && !o->report.exit_code && stayed_refused(&o->report))
		return 123;
	return o->report.exit_code;
}

bool engine_is_traced(struct status *ret_self)
{
	pid_t tracer = 0;
	/* Where that can't be read spawn finds out. */
	if (status_self(ret_self)) {
		ret_self->text[0] = '\0';
		ret_self->cut = false;
	}
	return status_number(ret_self, "TracerPid", &tracer) && tracer > 0;
}
