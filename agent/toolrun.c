#include "agent/toolrun.h"

#include "agent/headtail.h"
#include "agent/spool.h"
#include "agent/toolanswer.h"
#include "agent/toolchild.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Nobody sits at a tool's terminal: no pager, no colours, no password questions. */
static const char *const overrides[] = {"TERM=dumb", "PAGER=cat", "GIT_PAGER=cat",
					"GIT_TERMINAL_PROMPT=0"};
/* Taken out beside what the supervisor knows as secrets: it may hold user info. */
static char *const scrubbed[] = {"OPENAI_BASE_URL", NULL};

static bool is_overridden(const char *entry)
{
	for (size_t i = 0; i < ARRAY_LEN(overrides); i++)
		if (!strncmp(entry, overrides[i], strcspn(overrides[i], "=") + 1))
			return true;
	return false;
}

static char **tool_environment(char *const *env)
{
	size_t n = 0, len = 0;
	while (env[n])
		n++;
	char **list = calloc(n + ARRAY_LEN(overrides) + 1, sizeof(*list));
	for (size_t i = 0; list && i < n; i++)
		if (!is_overridden(env[i]))
			list[len++] = env[i];
	for (size_t i = 0; list && i < ARRAY_LEN(overrides); i++)
		list[len++] = (char *)overrides[i];
	return list;
}

static int own_path(char **ret)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (n < 0)
		return -errno;
	path[n] = 0;
	*ret = strdup(path);
	return *ret ? 0 : -ENOMEM;
}

int toolrun_init(struct toolrun *r, struct session *s, char *const *env)
{
	const char *tmp = session_tmpdir(s);
	*r = (struct toolrun){.session = s, .tmp_fd = -1, .events = -1, .answers = -1};
	if (tmp)
		r->tmp_fd = open(tmp, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r->shell = access("/bin/bash", X_OK) ? "/bin/sh" : "/bin/bash";
	r->env = tool_environment(env);
	r->cwd = getcwd(NULL, 0);
	if (!r->cwd)
		return -errno;
	return r->env ? own_path(&r->self) : -ENOMEM;
}

void toolrun_release(struct toolrun *r)
{
	free(r->env);
	free(r->cwd);
	/* One that was never filled in has 0 there, which is not its own. */
	if (r->self && r->tmp_fd >= 0)
		close(r->tmp_fd);
	free(r->self);
	*r = (struct toolrun){.tmp_fd = -1, .events = -1, .answers = -1};
}

void tool_result_release(struct tool_result *r)
{
	free(r->answer);
	denial_list_release(&r->denials);
	*r = (struct tool_result){0};
}

/* ---- the channels of one run ---- */

struct channels {
	struct loop *loop;
	const struct toolrun_sink *sink;
	int out_read, out_write;   /* run_shell's output, a file tool's answer */
	int args_write, args_read; /* a file tool's arguments */
	uint64_t out_watch, args_watch;
	struct buf args;
	size_t args_done;
	bool shell;
	struct headtail output; /* shell */
	struct spool spool;	/* shell: all of it, where that is more */
	struct spool_place tmp;
	struct buf answer; /* file tool */
	bool answer_too_long;
};

static void channels_release(struct channels *c)
{
	loop_remove(c->loop, c->out_watch);
	loop_remove(c->loop, c->args_watch);
	int *const fds[] = {&c->out_read, &c->out_write, &c->args_write, &c->args_read};
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (*fds[i] >= 0)
			close(TAKE_FD(*fds[i]));
	buf_free(&c->args);
	buf_free(&c->answer);
	headtail_free(&c->output);
	spool_close(&c->spool);
}

/* A file's text grows in JSON; six bytes for each is the worst. */
#define ANSWER_MAX (6u * TOOLCHILD_READ_MAX + (4u << 20))

/* A whole line that is not the answer: what will change. */
static void take_preview(struct channels *c)
{
	const char *newline = c->answer.len ? memchr(c->answer.data, '\n', c->answer.len) : NULL;
	struct json *v = NULL;
	if (!newline)
		return;
	size_t n = (size_t)(newline - c->answer.data) + 1;
	if (!json_parse(c->answer.data, n, &v, NULL)) {
		const char *diff = json_get_str(v, "preview");
		if (diff && c->sink->preview)
			c->sink->preview(c->sink->arg, diff, strlen(diff));
	}
	json_free(v);
	buf_drop(&c->answer, n);
}

static void take_output(struct channels *c, const char *p, size_t n)
{
	if (!c->shell) {
		c->answer_too_long = c->answer_too_long || c->answer.len + n > ANSWER_MAX;
		if (!c->answer_too_long)
			buf_add(&c->answer, p, n);
		take_preview(c);
		return;
	}
	spool_add(&c->spool, &c->tmp, &c->output, p, n);
	headtail_add(&c->output, p, n);
	if (c->sink->output)
		c->sink->output(c->sink->arg, p, n);
}

/* True: there may be more. */
static bool read_some(struct channels *c)
{
	char chunk[16384];
	ssize_t n = read(c->out_read, chunk, sizeof(chunk));
	if (n < 0)
		return errno == EINTR;
	if (n > 0)
		take_output(c, chunk, (size_t)n);
	return n > 0;
}

static void on_output(void *arg, int fd, uint32_t events)
{
	struct channels *c = arg;
	(void)fd;
	(void)events;
	read_some(c);
}

static void args_end(struct channels *c)
{
	loop_remove(c->loop, c->args_watch);
	c->args_watch = 0;
	close(TAKE_FD(c->args_write));
}

/* A socket rather than a pipe: a child that is gone must not cost us a SIGPIPE. */
static void on_args(void *arg, int fd, uint32_t events)
{
	struct channels *c = arg;
	(void)events;
	ssize_t n = send(fd, c->args.data + c->args_done, c->args.len - c->args_done,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->args_done += n > 0 ? (size_t)n : 0;
	if (n < 0 || c->args_done == c->args.len)
		args_end(c);
}

static int channels_open(struct channels *c, const struct json *args)
{
	int pipe_fds[2], pair[2];
	if (pipe2(pipe_fds, O_CLOEXEC))
		return -errno;
	c->out_read = pipe_fds[0];
	c->out_write = pipe_fds[1];
	/* Only our end: the flag belongs to the open file, and the child's end is another. */
	if (fcntl(c->out_read, F_SETFL, O_NONBLOCK))
		return -errno;
	int err = loop_add_fd(c->loop, c->out_read, EPOLLIN, on_output, c, &c->out_watch);
	if (err || c->shell)
		return err;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	c->args_write = pair[0];
	c->args_read = pair[1];
	struct jsonw w;
	jsonw_init(&w, &c->args);
	json_write(&w, args);
	err = buf_error(&c->args);
	if (err)
		return err;
	return loop_add_fd(c->loop, c->args_write, EPOLLOUT, on_args, c, &c->args_watch);
}

/* The tree is gone: what is left in the pipe is all there will be. */
static void channels_drain(struct channels *c)
{
	loop_remove(c->loop, c->out_watch);
	c->out_watch = 0;
	while (read_some(c))
		;
}

/*
 * While a question is open, a command's output waits in its pipe. What was printed before is shown
 * before: as much as a pipe holds, since others of the tree may print on.
 */
static void on_asking(void *arg, bool open)
{
	struct channels *c = arg;
	for (int i = 0; open && i < 8 && read_some(c); i++)
		;
	if (c->sink->asking)
		c->sink->asking(c->sink->arg, open);
	if (c->out_watch)
		loop_change_fd(c->loop, c->out_watch, open ? 0 : EPOLLIN);
}

static void on_say(void *arg, const char *line)
{
	struct channels *c = arg;
	if (c->sink->note)
		c->sink->note(c->sink->arg, line);
}

/* ---- running ---- */

static int64_t timeout_of(const struct channels *c, const struct json *args)
{
	int64_t s = c->shell ? TOOLRUN_TIMEOUT_S : TOOLRUN_FILE_TIMEOUT_S;
	json_get_int(args, "timeout_s", &s);
	int64_t ms = 1000 * (s < TOOLRUN_TIMEOUT_MAX_S ? s : TOOLRUN_TIMEOUT_MAX_S);
	int64_t limit = c->sink->limit_ms;
	return limit > 0 && limit < ms ? limit : ms;
}

static int duplicate(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 10);
}

/* Where a command runs, as an absolute name (owned); nothing is looked up. NULL: where we are. */
static char *directory_of(const struct toolrun *r, const struct channels *c,
			  const struct json *args)
{
	const char *cwd = c->shell ? json_get_str(args, "cwd") : NULL;
	char *full = NULL;
	if (!cwd)
		return NULL;
	if (cwd[0] == '/')
		return strdup(cwd);
	return asprintf(&full, "%s/%s", r->cwd, cwd) < 0 ? NULL : full;
}

static struct engine_command command_of(const struct toolrun *r, const struct json *args,
					struct channels *c)
{
	return (struct engine_command){
		.env = r->env,
		.scrub = scrubbed,
		.scrub_secrets = true,
		.mode = r->mode,
		.ask = r->ask,
		.yes = r->yes,
		.events = duplicate(r->events),
		.answers = duplicate(r->answers),
		.answer_timeout_ms = r->answer_timeout_ms,
		.timeout_ms = timeout_of(c, args),
		.color = r->color,
		.cancel = r->cancel,
		.hooks = {.arg = c, .say = on_say, .asking = on_asking},
	};
}

static int run(const struct toolrun *r, const struct tool *t, const struct json *args,
	       struct channels *c, struct engine_outcome *ret)
{
	int null AUTOCLOSE = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return -errno;
	const int from[] = {c->args_read, c->out_write};
	static const int to[] = {TOOLCHILD_ARGS_FD, TOOLCHILD_ANSWER_FD};
	char *const file_tool[] = {r->self, "tool-child", (char *)t->name, NULL};
	char *const shell[] = {(char *)r->shell, "-c", (char *)json_get_str(args, "command"), NULL};
	struct engine_command command = command_of(r, args, c);
	AUTOFREE
	char *cwd = directory_of(r, c, args);
	command.cwd = cwd;
	command.argv = c->shell ? shell : file_tool;
	if (!c->shell)
		command.title = t->name;
	int out = c->shell ? c->out_write : null;
	memcpy(command.stdio, (int[]){null, out, out}, sizeof(command.stdio));
	if (!c->shell) {
		command.keep_from = from;
		command.keep_to = to;
		command.keep_len = ARRAY_LEN(from);
	}
	return engine_run(r->session, &command, ret);
}

int toolrun_call(const struct toolrun *r, const struct tool *t, const struct json *args,
		 const struct toolrun_sink *sink, struct tool_result *ret)
{
	struct channels c = {.loop = session_loop(r->session),
			     .sink = sink,
			     .out_read = -1,
			     .out_write = -1,
			     .args_write = -1,
			     .args_read = -1,
			     .spool = {.fd = -1},
			     .tmp = {r->tmp_fd, session_tmpdir(r->session)},
			     .shell = t->id == TOOL_RUN_SHELL};
	struct engine_outcome outcome = {0};
	int err = channels_open(&c, args);
	if (!err)
		err = run(r, t, args, &c, &outcome);
	if (!err) {
		channels_drain(&c);
		const struct toolanswer_said said = {.output = c.shell ? &c.output : NULL,
						     .spool = &c.spool,
						     .cwd = c.shell ? json_get_str(args, "cwd")
								    : NULL,
						     .answer = &c.answer,
						     .too_long = c.answer_too_long};
		err = toolanswer_make(r, &outcome, &said, ret);
		report_release(&outcome.report);
	} else if (err != -ENOMEM) {
		char words[160];
		snprintf(words, sizeof(words), "The tool could not be run: %s.", strerror(-err));
		err = toolanswer_refuse(words, ret);
		if (!err)
			ret->fatal = true;
	}
	channels_release(&c);
	return err;
}
