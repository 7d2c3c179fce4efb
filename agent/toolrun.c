#include "agent/toolrun.h"

#include "agent/headtail.h"
#include "agent/spool.h"
#include "agent/toolchild.h"
#include "supervisor/escape.h"
#include "supervisor/plan.h"
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

/* ---- the answer ---- */

static const char *hint_of(const struct denial *d)
{
	switch (d->verdict) {
	case VERDICT_PERMISSIONS:
		return "The file's own mode, owner or ACL refuses this; no grant can help.";
	case VERDICT_CROSS_DEVICE:
		return "The two paths are on different file systems; copy and delete instead.";
	case VERDICT_OTHER:
		return "Another policy of the kernel refuses this.";
	case VERDICT_SANDBOX:
		break;
	}
	switch (d->by) {
	case BY_USER:
		return "The user said no. Find another way, or explain to the user what you need.";
	case BY_POLICY:
		return "The user's policy refuses this. Find another way, or explain what you "
		       "need.";
	case BY_TIMEOUT:
		return "The user was asked and did not answer in time.";
	case BY_NONE:
	case BY_YES:
		break;
	}
	return "It is outside what the sandbox allows, and nobody could be asked.";
}

static void write_access(struct jsonw *w, uint32_t access)
{
	jsonw_key(w, "access");
	jsonw_begin_array(w);
	for (unsigned i = 0; i < ACCESS_COUNT; i++)
		if (access & 1u << i)
			jsonw_str(w, access_name(1u << i));
	jsonw_end_array(w);
}

void toolrun_write_denial(struct jsonw *w, const struct denial *d, bool for_model)
{
	jsonw_begin_object(w);
	jsonw_kpath(w, "path", d->path);
	if (d->path2)
		jsonw_kpath(w, "path2", d->path2);
	write_access(w, d->access);
	jsonw_kstr(w, "call", d->call);
	jsonw_kstr(w, "errno", strerrorname_np(d->error));
	jsonw_kstr(w, "verdict", verdict_name(d->verdict));
	jsonw_kstr(w, "answer", d->allowed ? "allow" : "deny");
	jsonw_kstr(w, "by", answered_by_name(d->by));
	if (for_model) {
		jsonw_kbool(w, "do_not_retry", true);
		jsonw_kstr(w, "hint", hint_of(d));
	} else {
		jsonw_kstr(w, "lifetime", lifetime_name(d->lifetime));
		jsonw_kint(w, "count", (int64_t)d->count);
		jsonw_kstr(w, "exe", d->exe);
		jsonw_kstr(w, "argv0", d->argv0);
	}
	jsonw_end_object(w);
}

/* What the file system answers by itself (a PATH walk meets it every day) is told, not counted. */
static bool is_refusal(const struct denial *d)
{
	return !d->allowed && d->verdict == VERDICT_SANDBOX;
}

static void write_denied(struct jsonw *w, const struct denial_list *l)
{
	uint64_t told = 0, more = l->dropped;
	for (size_t i = 0; i < l->len; i++) {
		if (l->item[i].allowed)
			continue;
		if (told == TOOLRUN_DENIED_MAX) {
			more++;
			continue;
		}
		if (!told++) {
			jsonw_key(w, "denied");
			jsonw_begin_array(w);
		}
		toolrun_write_denial(w, &l->item[i], true);
	}
	if (told)
		jsonw_end_array(w);
	if (more)
		jsonw_kint(w, "denied_more", (int64_t)more);
}

/* What the user could type, as at the end of `warder run`. Nothing where no rule would help. */
static void write_to_allow(struct jsonw *w, const struct toolrun *r, const struct denial_list *l)
{
	char **rules = NULL;
	if (!r->tell_allow || plan_suggest(l, session_store(r->session)->home, &rules))
		return;
	if (rules && *rules) {
		jsonw_key(w, "to_allow");
		jsonw_begin_array(w);
	}
	for (char **rule = rules; rule && *rule; rule++) {
		struct buf command = {0};
		buf_addf(&command, "warder policy %s", *rule);
		jsonw_str(w, buf_str(&command));
		buf_free(&command);
	}
	if (rules && *rules)
		jsonw_end_array(w);
	plan_free_rules(rules);
}

static void write_message(struct jsonw *w, const char *message)
{
	jsonw_key(w, "error");
	jsonw_begin_object(w);
	jsonw_kstr(w, "message", message);
	jsonw_end_object(w);
}

int toolrun_refuse(const char *message, struct tool_result *ret)
{
	struct buf out = {0};
	struct jsonw w;
	jsonw_init(&w, &out);
	jsonw_begin_object(&w);
	write_message(&w, message);
	jsonw_end_object(&w);
	char *answer = buf_take(&out);
	buf_free(&out);
	if (!answer)
		return -ENOMEM;
	*ret = (struct tool_result){.answer = answer, .failed = true, .status = "error"};
	return 0;
}

/* How the tree ended, where that alone is the answer. NULL: it ended by itself. */
static const char *ended_how(const struct toolrun *r, const struct engine_outcome *o)
{
	if (r->cancel && *r->cancel)
		return "cancelled";
	return o->timed_out ? "timed out" : NULL;
}

static void write_shell(struct jsonw *w, const struct toolrun *r, const struct engine_outcome *o,
			struct channels *c, struct tool_result *ret)
{
	const struct report *report = &o->report;
	const char *how = ended_how(r, o);
	headtail_write(w, &c->output);
	spool_write(w, &c->spool);
	if (report->exited) {
		jsonw_kint(w, "exit", report->exit_code);
		snprintf(ret->status, sizeof(ret->status), "exit %d", report->exit_code);
	} else {
		const char *name = sigabbrev_np(report->signal);
		snprintf(ret->status, sizeof(ret->status), "SIG%s", name ? name : "?");
		jsonw_kstr(w, "signal", ret->status);
	}
	if (how)
		snprintf(ret->status, sizeof(ret->status), "%s", how);
	jsonw_kbool(w, "timed_out", o->timed_out);
	if (r->cancel && *r->cancel)
		jsonw_kstr(w, "note", "The user cancelled this.");
	ret->failed = !report->exited || report->exit_code || how;
}

/* The child's members as they are, and what they mean for a human. */
static void copy_members(struct jsonw *w, const struct json *answer, struct tool_result *ret)
{
	const struct json *error = json_get(answer, "error");
	for (const struct json *v = json_first(answer); v; v = json_next(v)) {
		jsonw_key(w, json_key(v));
		json_write(w, v);
	}
	ret->failed = error;
	/* Of a call the kernel's words, as the child has them, which may lie: not as they are. */
	struct buf why = {0};
	if (json_get_str(error, "errno")) /* other messages are for the model, and long */
		escape_add_str(&why, json_get_str(error, "message"));
	int64_t added = 0, removed = 0;
	if (!error && json_get_int(answer, "added", &added) &&
	    json_get_int(answer, "removed", &removed))
		snprintf(ret->status, sizeof(ret->status), "ok, +%lld -%lld", (long long)added,
			 (long long)removed);
	else
		snprintf(ret->status, sizeof(ret->status), "%s",
			 !error	   ? "ok"
			 : why.len ? buf_str(&why)
				   : "error");
	buf_free(&why);
}

static void write_file_tool(struct jsonw *w, const struct toolrun *r,
			    const struct engine_outcome *o, const struct channels *c,
			    struct tool_result *ret)
{
	struct json *answer = NULL;
	const char *how = ended_how(r, o);
	if (!how && !c->answer_too_long &&
	    !json_parse(buf_str(&c->answer), c->answer.len, &answer, NULL)) {
		copy_members(w, answer, ret);
		json_free(answer);
		return;
	}
	char words[128];
	if (c->answer_too_long)
		snprintf(words, sizeof(words), "The tool's answer was too long.");
	else if (how)
		snprintf(words, sizeof(words), "The tool was ended: %s.", how);
	else
		snprintf(words, sizeof(words), "The tool ended without an answer (%s %d).",
			 o->report.exited ? "exit" : "signal",
			 o->report.exited ? o->report.exit_code : o->report.signal);
	write_message(w, words);
	ret->failed = true;
	snprintf(ret->status, sizeof(ret->status), "%s", how ? how : "no answer");
}

/* The user was faster than the start of the command. */
static void write_ended(struct jsonw *w, const char *how, struct tool_result *ret)
{
	struct buf words = {0};
	buf_addf(&words, "Not run: %s.", how);
	write_message(w, buf_str(&words));
	buf_free(&words);
	ret->failed = true;
	snprintf(ret->status, sizeof(ret->status), "%s", how);
}

/* Nothing was run. A wrong cwd is the model's fault; anything else is the machine's. */
static void write_not_run(struct jsonw *w, const struct engine_outcome *o, const char *cwd,
			  struct tool_result *ret)
{
	struct buf words = {0};
	bool by_cwd = cwd && (o->error == -ENOENT || o->error == -ENOTDIR || o->error == -EACCES);
	if (by_cwd)
		buf_addf(&words, "Not run: the directory \"%s\" (cwd): %s.", cwd,
			 strerror(-o->error));
	else
		buf_addf(&words, "Not run: %s.",
			 o->why.text[0] ? o->why.text : strerror(-o->error));
	write_message(w, buf_str(&words));
	buf_free(&words);
	ret->failed = true;
	ret->fatal = !by_cwd;
	snprintf(ret->status, sizeof(ret->status), "not run");
}

static int make_answer(const struct toolrun *r, struct engine_outcome *o, struct channels *c,
		       const char *cwd, struct tool_result *ret)
{
	struct tool_result result = {.held_ms = o->report.held_ms};
	struct buf out = {0};
	struct jsonw w;
	jsonw_init(&w, &out);
	jsonw_begin_object(&w);
	if (!o->ran && ended_how(r, o))
		write_ended(&w, ended_how(r, o), &result);
	else if (!o->ran)
		write_not_run(&w, o, cwd, &result);
	else if (c->shell)
		write_shell(&w, r, o, c, &result);
	else
		write_file_tool(&w, r, o, c, &result);
	write_denied(&w, &o->report.denials);
	write_to_allow(&w, r, &o->report.denials);
	jsonw_end_object(&w);
	result.answer = buf_take(&out);
	buf_free(&out);
	if (!result.answer)
		return -ENOMEM;
	result.denials = o->report.denials;
	o->report.denials = (struct denial_list){0};
	for (size_t i = 0; i < result.denials.len && !result.refused; i++)
		result.refused = is_refusal(&result.denials.item[i]);
	*ret = result;
	return 0;
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
		const char *cwd = c.shell ? json_get_str(args, "cwd") : NULL;
		err = make_answer(r, &outcome, &c, cwd, ret);
		report_release(&outcome.report);
	} else if (err != -ENOMEM) {
		char words[160];
		snprintf(words, sizeof(words), "The tool could not be run: %s.", strerror(-err));
		err = toolrun_refuse(words, ret);
		if (!err)
			ret->fatal = true;
	}
	channels_release(&c);
	return err;
}
