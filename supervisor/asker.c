/*
 * Whom to ask: the terminal, another program, or nobody.
 */
#include "supervisor/run.h"

#include "supervisor/environ.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool in_foreground(void)
{
	int fd AUTOCLOSE = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	return fd >= 0 && tcgetpgrp(fd) == getpgrp();
}

bool asker_is_there(const struct run *r)
{
	const struct engine_command *c = r->command;
	if (c->answers >= 0 || c->hooks.answer || c->ask == ENGINE_ASK_SOCKET)
		return true;
	if (c->ask == ENGINE_ASK_NONE)
		return false;
	if (c->ask == ENGINE_ASK_AUTO && environ_get(c->env, "CI"))
		return false;
	return in_foreground();
}

enum engine_mode asker_mode(const struct run *r)
{
	if (r->command->mode == ENGINE_PERMISSIVE)
		return ENGINE_PERMISSIVE;
	if (r->command->yes)
		return ENGINE_HOLD;
	if ((r->command->answers >= 0 || r->command->hooks.answer) &&
	    r->command->mode != ENGINE_RETRY)
		return ENGINE_HOLD;
	if (r->command->mode != ENGINE_MODE_AUTO)
		return r->command->mode;
	return asker_is_there(r) ? ENGINE_HOLD : ENGINE_REPORT;
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

bool asker_is_asked(const struct run *r)
{
	return r->mode == ENGINE_HOLD || r->mode == ENGINE_RETRY;
}

bool asker_answers(const struct run *r)
{
	return r->ask &&
	       (r->prompt || r->desk || r->command->answers >= 0 || r->command->hooks.answer);
}

int asker_open_prompt(struct run *r)
{
	extern char **environ; /* the terminal is ours; the command's TERM may be another */
	struct prompt_options o = {.home = r->session->home,
				   .color = r->command->color,
				   .dumb = prompt_is_dumb(environ),
				   .interrupt = interrupt_command,
				   .arg = r};
	const struct engine_command *c = r->command;
	if (r->prompt || !r->ask || r->desk || c->answers >= 0 || c->hooks.answer ||
	    !asker_is_there(r))
		return 0;
	return prompt_new(r->loop, r->ask, r->pty, &o, &r->prompt);
}

void asker_close_prompt(struct run *r)
{
	prompt_free(r->prompt);
	r->prompt = NULL;
}

/* A front that only listens: the caller keeps its own words off the terminal meanwhile. */
static void tell_caller(struct run *r, bool open)
{
	const struct engine_hooks *h = &r->command->hooks;
	if (!h->asking || ask_len(r->ask) != (open ? 1 : 0))
		return;
	run_roam(r);
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

/* ---- the caller answers itself ---- */

static void on_turn(void *arg)
{
	struct run *r = arg;
	const struct question *q;
	r->answer_timer = 0;
	while ((q = ask_first(r->ask))) {
		const struct answer no = {.lifetime = LIFETIME_SESSION, .by = BY_USER};
		struct answer a = no;
		uint64_t id = q->id;
		run_roam(r);
		r->command->hooks.answer(r->command->hooks.arg, q, &a);
		a.by = BY_USER;
		if (ask_answer(r->ask, id, &a))
			ask_answer(r->ask, id, &no);
	}
}

/* Not from inside of the asking: who is held does not stand behind its question yet. */
static void on_asked_by_caller(void *self, const struct question *q)
{
	struct run *r = (struct run *)((char *)self - offsetof(struct run, answer_timer));
	(void)q;
	if (!r->answer_timer && loop_add_timer(r->loop, 0, on_turn, r, &r->answer_timer))
		run_fail(r, -ENOMEM, "nobody can be asked");
}

static int add_caller(struct run *r)
{
	const struct ask_front front = {
		.self = &r->answer_timer, .answers = true, .asked = on_asked_by_caller};
	return r->command->hooks.answer ? ask_add_front(r->ask, &front) : 0;
}

/* ---- --ask socket ---- */

#define TREE_MAX 4096

/*
 * Another run's warder makes its command's connections: it comes for that command, whatever it may
 * be allowed to connect to. Our program visits by itself as `warder ask` alone (agent/main.c). Who
 * can't be looked at is not ours: it belongs to another user, and that can only be root.
 */
static bool comes_for_a_command(pid_t pid)
{
	char path[64], words[PATH_MAX + 16];
	struct stat own, its;
	snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	if (stat("/proc/self/exe", &own) || stat(path, &its) || own.st_dev != its.st_dev ||
	    own.st_ino != its.st_ino)
		return false;
	snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
	int fd AUTOCLOSE = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, words, sizeof words - 1);
	if (n <= 0)
		return true;
	words[n] = '\0';
	size_t second = strlen(words) + 1;
	return second >= (size_t)n || strcmp(words + second, "ask") != 0;
}

/* The tree is not let in, and neither is what a warder would connect in a command's place. */
static bool is_stranger(void *arg, pid_t pid)
{
	const struct run *r = arg;
	pid_t *pids AUTOFREE = calloc(TREE_MAX, sizeof *pids);
	size_t n = pids && r->tracer ? tracer_processes(r->tracer, pids, TREE_MAX) : 0;
	bool found = !pids || n > TREE_MAX || pid == getpid() || comes_for_a_command(pid);
	for (size_t i = 0; !found && i < n; i++)
		found = pids[i] == pid;
	return found;
}

static void say_waits(void *arg)
{
	struct run *r = arg;
	run_say(r, "a question waits; in another terminal: warder ask %.8s", r->session->run);
}

static int open_desk(struct run *r)
{
	const struct desk_options o = {.state_dir = r->session->store.state_dir,
				       .run = r->session->run,
				       .label = r->session->label,
				       .command = r->out->report.command,
				       .is_stranger = is_stranger,
				       .waits = say_waits,
				       .arg = r};
	return desk_open(r->loop, r->ask, &o, &r->desk);
}

/* ---- all of them ---- */

static int open_protocol(struct run *r)
{
	const struct protocol_options o = {.events = r->command->events,
					   .answers = r->command->answers,
					   .run = r->session->run,
					   .label = r->session->label,
					   .command = r->out->report.command};
	return protocol_new(r->loop, r->ask, &o, &r->protocol);
}

int asker_open(struct run *r)
{
	const struct ask_front caller = {
		.self = r, .asked = on_asked, .cancelled = on_cancelled, .settled = on_settled};
	const struct engine_command *c = r->command;
	if (!asker_is_asked(r) && c->events < 0)
		return 0;
	int err = ask_new(r->loop, c->answer_timeout_ms, refusal_answered, r, &r->ask);
	if (!err)
		ask_set_stack(r->ask, caller_of_question);
	if (!err)
		err = ask_add_front(r->ask,
				    &caller); /* the first: before the terminal is painted */
	if (!err && c->ask == ENGINE_ASK_SOCKET && asker_is_asked(r))
		err = open_desk(r);
	if (!err)
		err = add_caller(r);
	if (!err && (c->events >= 0 || c->answers >= 0))
		err = open_protocol(r);
	return err;
}

void asker_event(struct run *r, const char *name, protocol_fill_fn *fill, const void *arg)
{
	if (r->protocol)
		protocol_event(r->protocol, name, fill, arg);
	if (r->desk)
		desk_event(r->desk, name, fill, arg);
}

void asker_close(struct run *r)
{
	asker_close_prompt(r);
	loop_remove(r->loop, r->answer_timer);
	desk_close(r->desk);
	protocol_free(r->protocol);
	ask_free(r->ask);
}
