#include "agent/cli_agent.h"

#include "agent/agent.h"
#include "agent/demo.h"
#include "agent/interrupt.h"
#include "agent/oneshot.h"
#include "agent/options.h"
#include "agent/repl.h"
#include "supervisor/escape.h"
#include "tracer/util.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_USAGE	 2
#define STATUS_COULD_NOT 125

/* A prompt read from stdin. */
#define PROMPT_MAX (4u << 20)

/* One line on stderr; foreign bytes in it are escaped. */
static int complain(int status, const char *words)
{
	struct buf out = {0};
	escape_add_str(&out, words);
	fprintf(stderr, "warder agent: %s\n", buf_str(&out));
	buf_free(&out);
	return status;
}

static int trouble(const char *what, int err)
{
	fprintf(stderr, "warder agent: %s: %s\n", what, strerror(-err));
	return STATUS_COULD_NOT;
}

/* The editor and the escaping speak UTF-8; in the C locale too. */
static void set_locale(void)
{
	if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C.UTF-8");
}

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
		return trouble("the prompt on stdin", err);
	if (!words)
		return trouble("the prompt", -ENOMEM);
	if (!words[strspn(words, " \t\r\n")]) {
		free(words);
		return complain(STATUS_USAGE, "the prompt is empty");
	}
	*ret = words;
	return 0;
}

/* ---- the provider ---- */

static int configure(struct agent *a, const struct options *o)
{
	struct provider_config *c = &a->config;
	int err = provider_config_from_env(c);
	if (!err && o->model)
		err = provider_config_set(&c->model, o->model);
	if (!err && o->endpoint)
		err = provider_config_set(&c->endpoint, o->endpoint);
	if (!err && o->script)
		err = provider_config_set(&c->script_path, o->script);
	if (err)
		return err;
	c->kind = o->provider;
	if (c->kind == PROVIDER_AUTO && o->endpoint)
		c->kind = PROVIDER_OPENAI;
	c->script_text = demo_script;
	a->kind = c->kind == PROVIDER_AUTO ? provider_pick(c) : c->kind;
	if (c->model)
		a->model = strdup(c->model);
	return c->model && !a->model ? -ENOMEM : 0;
}

static int open_provider(struct agent *a, const struct options *o)
{
	struct provider_error error = {0};
	int err = configure(a, o);
	if (err)
		return trouble("the provider", err);
	err = provider_open(&a->config, &a->provider, &error);
	if (err)
		return complain(error.kind == PROVIDER_FAIL_CONFIG ? STATUS_USAGE
								   : STATUS_COULD_NOT,
				error.text[0] ? error.text : strerror(-err));
	if (a->kind == PROVIDER_SCRIPT && !a->config.script_path)
		fputs("warder agent: no account was found: this is the built-in demonstration, a "
		      "script that answers in a model's place (see --help)\n",
		      stderr);
	return 0;
}

/* ---- the session ---- */

static int open_session(struct agent *a, const struct options *o)
{
	const struct session_options s = {
		.env = environ,
		.project = o->project,
		.policy_files = o->policies.item,
		.presets = o->presets.item,
		.no_presets = o->no_presets.item,
		.no_default_presets = o->no_default_presets,
		.rule_lines = o->rules.item,
		.tmp_shared = o->tmp_shared,
		.allow_degraded = o->allow_degraded,
		.label = o->label,
	};
	struct policy_error why = {0};
	int err = session_new(&s, &a->session, &why);
	if (err) {
		/* Escaped where it was made. */
		fprintf(stderr, "warder agent: %s\n", why.text[0] ? why.text : strerror(-err));
		return STATUS_COULD_NOT;
	}
	for (char *const *note = session_notes(a->session); *note; note++)
		fprintf(stderr, "warder: %s\n", *note);
	return 0;
}

static int open_tools(struct agent *a, const struct options *o)
{
	int err = toolrun_init(&a->tools, a->session, environ);
	if (err)
		return trouble("the tools", err);
	a->tools.mode = o->mode;
	a->tools.ask = o->ask;
	a->tools.yes = o->yes;
	a->tools.color = a->color;
	a->tools.events = o->events;
	a->tools.answers = o->answers;
	a->tools.answer_timeout_ms = o->answer_timeout_ms;
	a->tools.cancel = interrupt_flag();
	if (o->yes)
		fputs("warder agent: --yes: what is not on the sensitive list is answered "
		      "\"once\"\n",
		      stderr);
	err = agent_start_convo(a);
	return err ? trouble("the conversation", err) : 0;
}

static bool wants_color(int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	return isatty(fd) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

static int run(struct agent *a, const struct options *o)
{
	AUTOFREE
	char *words = NULL;
	int status = o->prompt ? read_prompt(o->prompt, &words) : 0;
	if (!status)
		status = open_provider(a, o);
	if (!status)
		status = open_session(a, o);
	a->color = wants_color(o->prompt ? STDERR_FILENO : STDOUT_FILENO);
	a->max_steps = o->max_steps;
	a->max_seconds = o->max_seconds;
	if (!status)
		status = open_tools(a, o);
	if (status)
		return status;
	return words ? oneshot_run(a, words, o->output, o->verbose) : repl_run(a);
}

static int help(void)
{
	struct buf out = {0};
	options_write_help(&out);
	fputs(buf_str(&out), stdout);
	buf_free(&out);
	return 0;
}

int cli_agent_main(int argc, char **argv)
{
	struct options o;
	struct buf why = {0};
	struct agent a = {.tools = {.events = -1, .answers = -1}, .usage = {-1, -1, -1}};
	int status = 0;
	set_locale();
	int err = options_parse(argc, argv, &o, &why);
	if (err)
		status = err == -EINVAL ? complain(STATUS_USAGE, buf_str(&why))
					: trouble("the options", err);
	else if (o.help)
		status = help();
	else if ((err = interrupt_install()))
		status = trouble("signals", err);
	else
		status = run(&a, &o);
	agent_release(&a);
	options_release(&o);
	buf_free(&why);
	if (status < 0)
		interrupt_die(-status);
	return status < 0 ? 128 - status : status;
}
