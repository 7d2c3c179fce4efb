#include "agent/cli_agent.h"

#include "agent/agent.h"
#include "agent/demo.h"
#include "agent/http.h"
#include "agent/interrupt.h"
#include "agent/libmd4c.h"
#include "agent/login.h"
#include "agent/oneshot.h"
#include "agent/opening.h"
#include "agent/options.h"
#include "agent/repl.h"
#include "supervisor/cli.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A prompt read from stdin. */
#define PROMPT_MAX (4u << 20)

/* ---- the prompt ---- */

/* 0 and the words (owned), or a status. */
static int read_prompt(const char *option, char **ret)
{
	struct buf text = {.max = PROMPT_MAX};
	char chunk[4096];
	size_t n;
	if (strcmp(option, "-") != 0)
		buf_add_str(&text, option);
	else
		while ((n = fread(chunk, 1, sizeof(chunk), stdin)))
			buf_add(&text, chunk, n);
	int err = ferror(stdin) ? -EIO : buf_error(&text);
	char *words = err ? NULL : buf_take(&text);
	buf_free(&text);
	if (err)
		return opening_trouble("the prompt on stdin", err);
	if (!words)
		return opening_trouble("the prompt", -ENOMEM);
	if (!words[strspn(words, " \t\r\n")]) {
		free(words);
		cli_complain("the prompt is empty");
		return CLI_EXIT_USAGE;
	}
	*ret = words;
	return 0;
}

/* ---- the provider ---- */

/* Where `warder login` keeps its token; where our files can't be had there is none. */
static int set_stored_token(struct provider_config *c)
{
	struct store store = {0};
	struct policy_error why = {0};
	if (store_open(environ, &store, &why))
		return 0; /* the session, which needs them more, tells it */
	c->stored_token_path = login_token_path(&store);
	store_release(&store);
	return c->stored_token_path ? 0 : -ENOMEM;
}

/*
 * The demonstration answers a person who looks on, or who asked for it by name; a script that gave
 * a prompt would take its words for a model's.
 */
static bool may_demonstrate(const struct options *o)
{
	return o->provider == PROVIDER_SCRIPT || (!o->prompt && isatty(STDIN_FILENO));
}

static int configure(struct agent *a, const struct options *o)
{
	struct provider_config *c = &a->config;
	int err = provider_config_from_env(c);
	err = err ?: set_stored_token(c);
	if (!err && o->model)
		err = provider_config_set(&c->model, o->model);
	if (!err && o->endpoint)
		err = provider_config_set(&c->endpoint, o->endpoint);
	if (!err && o->script)
		err = provider_config_set(&c->script_path, o->script);
	if (err)
		return err;
	c->kind = o->provider;
	c->stall_timeout_s = o->stall_timeout;
	if (c->kind == PROVIDER_AUTO && o->endpoint)
		c->kind = PROVIDER_OPENAI;
	c->script_text = may_demonstrate(o) ? demo_script : NULL;
	a->kind = c->kind = provider_pick(c);
	if (c->model)
		a->model = strdup(c->model);
	return c->model && !a->model ? -ENOMEM : 0;
}

static void tell_demonstration(const struct agent *a, const struct options *o)
{
	bool named = o->provider == PROVIDER_SCRIPT;
	if (a->kind != PROVIDER_SCRIPT || a->config.script_path)
		return;
	cli_complain("%s%sthis is the built-in demonstration, a script that answers in a model's "
		     "place (a model: warder login, or --endpoint URL)",
		     named ? "" : provider_no_account(&a->config), named ? "" : ": ");
}

static int open_provider(struct agent *a, const struct options *o)
{
	struct provider_error error = {0};
	int err = configure(a, o);
	if (err)
		return opening_trouble("the provider", err);
	err = provider_open(&a->config, &a->provider, &error);
	if (err) {
		cli_complain("%s", error.text[0] ? error.text : strerror(-err));
		return error.kind == PROVIDER_FAIL_CONFIG ? CLI_EXIT_USAGE : CLI_EXIT_TROUBLE;
	}
	tell_demonstration(a, o);
	return 0;
}

/* ---- the session ---- */

static int resume(struct agent *a, const char *id)
{
	struct policy_error why = {0};
	if (!agent_resume(a, *id ? id : NULL, &why))
		return 0;
	cli_complain("%s", why.text);
	return CLI_EXIT_TROUBLE;
}

static int open_tools(struct agent *a, const struct options *o)
{
	int status = opening_tools(&o->shared, a->session, &a->tools);
	if (status)
		return status;
	a->tools.color = a->color;
	int err = chatlog_init(&a->log, session_store(a->session)->state_dir, &a->convo);
	if (!err)
		err = agent_start_convo(a);
	if (err)
		return opening_trouble("the conversation", err);
	a->log.project = session_project(a->session)->dir;
	a->log.cwd = a->tools.cwd;
	a->log.provider = a->provider->ops->name;
	a->log.model = (const char *const *)&a->model;
	return o->resume ? resume(a, o->resume) : 0;
}

static bool wants_color(int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	return isatty(fd) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

static int run(struct agent *a, struct options *o)
{
	AUTOFREE
	char *words = NULL;
	int status = o->prompt ? read_prompt(o->prompt, &words) : 0;
	if (!status)
		status = open_provider(a, o);
	opening_hide_secrets();
	if (!status)
		status = opening_session(&o->shared, !o->prompt, &a->session);
	a->color = wants_color(o->prompt ? STDERR_FILENO : STDOUT_FILENO);
	a->max_steps = o->max_steps;
	a->max_seconds = o->max_seconds;
	a->context = o->context;
	if (!status)
		status = open_tools(a, o);
	if (status == OPENING_DECLINED)
		return interrupt_ending() ? -interrupt_ending() : 0;
	if (status)
		return status;
	return words ? oneshot_run(a, words, o->output, o->verbose) : repl_run(a);
}

static int parse_and_run(int argc, char **argv, struct options *o, struct agent *a)
{
	switch (options_parse(argc, argv, o)) {
	case CLI_HELP:
		options_help(o->help_all);
		return 0;
	case CLI_WRONG:
		return CLI_EXIT_USAGE;
	case CLI_PARSED:
		break;
	}
	int err = interrupt_install();
	return err ? opening_trouble("signals", err) : run(a, o);
}

int cli_agent(int argc, char **argv)
{
	struct options o;
	struct agent a = {.tools = {.tmp_fd = -1, .events = -1, .answers = -1},
			  .usage = {-1, -1, -1}};
	opening_locale();
	/*
	 * That may name a place where a tool's command writes: nothing is loaded once one has run
	 * (supervisor/engine.c). What is missing is said when it is needed.
	 */
	if (getenv("LD_LIBRARY_PATH")) {
		(void)http_missing();
		(void)libmd4c_get();
	}
	int status = parse_and_run(argc, argv, &o, &a);
	agent_release(&a);
	options_release(&o);
	if (status < 0)
		interrupt_die(-status);
	return status < 0 ? 128 - status : status;
}
