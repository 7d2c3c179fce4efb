#include "agent/slash.h"

#include "agent/chatlist.h"
#include "agent/interrupt.h"
#include "agent/pager.h"
#include "agent/termwidth.h"
#include "agent/trust.h"
#include "landlock/llabi.h"
#include "supervisor/escape.h"
#include "supervisor/nearname.h"
#include "supervisor/progname.h"
#include "supervisor/why.h"
#include "tracer/util.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void put(struct buf *b)
{
	pager_put(b);
	buf_free(b);
}

/* Words to be read: on a terminal wrapped between them. */
static void put_prose(struct buf *b)
{
	struct buf out = {0};
	termwidth_wrap(&out, b, STDOUT_FILENO);
	put(&out);
	buf_free(b);
}

static void say(const char *line)
{
	printf("%s\n", line);
	fflush(stdout);
}

/* ---- what there is ---- */

struct command {
	const char *word, *argument, *help;
	bool (*run)(struct agent *a, const char *argument);
};

#define SLASH(word, ...) static bool run_##word(struct agent *a, const char *argument);
#include "agent/slash.def"
#undef SLASH

static const struct command commands[] = {
#define SLASH(word_, argument_, help_)                                                             \
	{.word = #word_, .argument = argument_, .help = help_, .run = run_##word_},
#include "agent/slash.def"
#undef SLASH
};

static bool run_help(struct agent *a, const char *argument)
{
	struct buf out = {0};
	(void)a;
	(void)argument;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		char left[48];
		snprintf(left, sizeof(left), "/%s %s", commands[i].word, commands[i].argument);
		buf_addf(&out, "  %-28s %s\n", left, commands[i].help);
	}
	buf_add_str(&out,
		    "Alt-Enter, or \\ at a line's end, goes on in the next line; Tab completes "
		    "commands and paths.\nCtrl-C clears the line, or stops what runs. The model's "
		    "tools, each behind the wall: ");
	for (size_t i = 0; i < TOOL_COUNT; i++)
		buf_addf(&out, "%s%s", i ? ", " : "", tools_at((enum tool_id)i)->name);
	buf_add_str(&out, ".\n");
	put_prose(&out);
	return true;
}

static bool run_quit(struct agent *a, const char *argument)
{
	(void)a;
	(void)argument;
	return false;
}

static bool run_clear(struct agent *a, const char *argument)
{
	(void)argument;
	int err = agent_start_convo(a);
	if (err)
		printf("not cleared: %s\n", strerror(-err));
	else
		say("The conversation is forgotten.");
	return true;
}

/* ---- models ---- */

static bool run_model(struct agent *a, const char *argument)
{
	struct buf out = {0};
	if (*argument) {
		char *name = strdup(argument);
		if (!name) {
			say("not changed: no memory");
			return true;
		}
		free(a->model);
		a->model = name;
	}
	buf_addf(&out, "%s, model ", a->provider->ops->name);
	escape_add_str(&out, a->model ? a->model : "of the provider's choice");
	buf_add_char(&out, '\n');
	put(&out);
	return true;
}

static void add_model(struct buf *out, const struct provider_model *m)
{
	buf_addf(out, "%c ", m->preferred ? '*' : m->usable ? ' ' : '-');
	escape_add_fit(out, m->id, 40);
	if (strcmp(m->id, m->name) != 0) {
		buf_add_str(out, "  ");
		escape_add_fit(out, m->name, 40);
	}
	if (m->context > 0)
		buf_addf(out, "  %lldk", (long long)m->context / 1000);
	if (m->needs_enabling)
		buf_add_str(out, "  (its terms: /models enable)");
	else if (!m->usable)
		buf_add_str(out, "  (no chat with tools)");
	buf_add_char(out, '\n');
}

static void add_failure(struct buf *out, int err, const struct provider_error *error)
{
	buf_add_str(out, "warder: ");
	escape_add_str(out, error->text[0] ? error->text : strerror(-err));
	buf_add_char(out, '\n');
}

/* What the model's page in the account's settings does. */
static bool enable_model(struct agent *a, const char *model)
{
	const struct provider_ops *ops = a->provider->ops;
	struct provider_error error = {0};
	struct buf out = {0};
	int err =
		ops->enable ? ops->enable(a->provider, model, interrupt_flag(), &error) : -ENOTSUP;
	if (err == -ENOTSUP)
		buf_add_str(&out, "This provider's models have no terms to accept.\n");
	else if (err)
		add_failure(&out, err, &error);
	else
		buf_add_str(&out, "Its terms are accepted for the account.\n");
	put_prose(&out);
	if (!interrupt_ending())
		interrupt_clear();
	return true;
}

static bool run_models(struct agent *a, const char *argument)
{
	struct provider_models models = {0};
	struct provider_error error = {0};
	struct buf out = {0};
	bool all = !strcmp(argument, "all");
	if (!strncmp(argument, "enable ", 7))
		return enable_model(a, argument + 7 + strspn(argument + 7, " "));
	int err = a->provider->ops->models(a->provider, interrupt_flag(), &models, &error);
	if (err)
		add_failure(&out, err, &error);
	for (size_t i = 0; !err && i < models.n; i++)
		if (all || !models.items[i].hidden)
			add_model(&out, &models.items[i]);
	if (!err && !models.n)
		buf_add_str(&out, "This provider lists none.\n");
	put_prose(&out);
	provider_models_free(&models);
	if (!interrupt_ending())
		interrupt_clear();
	return true;
}

/* ---- the wall ---- */

static const struct {
	const char *word;
	enum engine_mode mode;
	const char *help;
} modes[] = {
	{"auto", ENGINE_MODE_AUTO, "hold where there is somebody to ask, else report"},
	{"hold", ENGINE_HOLD,
	 "the thread waits in the refused call, you are asked, it goes on in place"},
	{"retry", ENGINE_RETRY, "the call fails; you are asked at the end, and it runs again"},
	{"report", ENGINE_REPORT, "the call fails; you are told, never asked"},
};

static const char *wall(struct buf *b)
{
	struct llabi abi;
	int err = llabi_detect(&abi);
	if (err)
		buf_addf(b, "none: %s; tools are not run", strerror(-err));
	else
		buf_addf(b, "Landlock ABI %d; nothing can loosen it for a tool that runs", abi.abi);
	return buf_str(b);
}

static bool run_detect(struct agent *a, const char *argument)
{
	struct buf out = {0}, landlock = {0};
	size_t now = 0, wanted = ARRAY_LEN(modes);
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (!strcmp(argument, modes[i].word))
			wanted = i;
	if (*argument && wanted == ARRAY_LEN(modes)) {
		say("/detect takes auto, hold, retry or report.");
		return true;
	}
	if (*argument)
		a->tools.mode = modes[wanted].mode;
	while (modes[now].mode != a->tools.mode)
		now++;
	buf_addf(&out, "wall:      %s\n", wall(&landlock));
	buf_add_str(&out, "detection: ptrace sees each refused call, with its path and errno;\n"
			  "           what programs print is never read for it\n");
	buf_addf(&out, "on denial: %s: %s\n", modes[now].word, modes[now].help);
	buf_addf(&out, "questions: %s\n",
		 a->tools.answers >= 0		     ? "on --events, answered on --answers"
		 : a->tools.ask == ENGINE_ASK_NONE   ? "nowhere (--ask none)"
		 : a->tools.ask == ENGINE_ASK_SOCKET ? "in another terminal, by warder ask"
						     : "on this terminal");
	if (a->tools.yes)
		buf_add_str(&out,
			    "           --yes: \"once\" to everything that is not sensitive\n");
	put_prose(&out);
	buf_free(&landlock);
	return true;
}

static void add_rule(struct buf *out, const struct rule *rule)
{
	struct buf line = {0}, origin = {0};
	policy_format_rule(&line, rule);
	escape_add_str(out, buf_str(&line));
	buf_addf(out, "%*s  # ", line.len < 44 ? (int)(44 - line.len) : 0, "");
	buf_add_str(&origin, rule->origin);
	if (rule->line)
		buf_addf(&origin, ":%u", rule->line);
	escape_add_str(out, buf_str(&origin));
	buf_add_char(out, '\n');
	buf_free(&line);
	buf_free(&origin);
}

enum which { WHICH_DECIDING, WHICH_SENSITIVE, WHICH_ANSWERS };

static bool is_one(const struct rule *r, enum which which)
{
	if (which == WHICH_ANSWERS)
		return r->source == RULE_ANSWER;
	return r->sensitive == (which == WHICH_SENSITIVE);
}

/* How many there are; `none` is said where there is none. */
static size_t list_rules(const struct agent *a, enum which which, const char *none)
{
	const struct policy *p = session_policy(a->session);
	struct buf out = {0};
	size_t n = 0;
	for (size_t i = 0; i < policy_len(p); i++) {
		if (!is_one(policy_at(p, i), which))
			continue;
		add_rule(&out, policy_at(p, i));
		n++;
	}
	if (!n)
		buf_addf(&out, "%s\n", none);
	put(&out);
	return n;
}

static bool run_policy(struct agent *a, const char *argument)
{
	if (!strcmp(argument, "sensitive")) {
		list_rules(a, WHICH_SENSITIVE, "No path is marked as sensitive.");
		return true;
	}
	list_rules(a, WHICH_DECIDING, "There is no rule: everything is asked.");
	say("What no rule names is asked. /policy sensitive lists what is marked as sensitive.");
	return true;
}

static bool run_trust(struct agent *a, const char *argument)
{
	enum trust t = *argument ? trust_parse(argument) : trust_recall(a->session);
	int err = *argument && t ? trust_remember(a->session, t) : 0;
	if (*argument && !t)
		say("/trust takes read, write or ask.");
	else if (err)
		printf("not saved: %s\n", strerror(-err));
	else if (t)
		printf("%s: %s%s\n", trust_name(t), trust_help(t),
		       *argument ? " (from the next start on)" : "");
	else
		say("It was not asked yet; the project is open as for warder run.");
	fflush(stdout);
	return true;
}

static void add_denial(struct buf *out, const struct denial *d)
{
	access_format(out, d->access);
	buf_add_char(out, ' ');
	escape_add_str(out, d->path);
	if (d->path2) {
		buf_add_str(out, " -> ");
		escape_add_str(out, d->path2);
	}
	buf_addf(out, "  (%s by ", d->call);
	escape_add_str(out, progname_of(d->argv0, d->exe));
	buf_addf(out, ", %s", verdict_name(d->verdict));
	if (d->verdict == VERDICT_SANDBOX)
		buf_addf(out, ", %s %s", d->allowed ? "allowed by" : "refused by",
			 d->by == BY_NONE ? "default: nobody to ask" : answered_by_name(d->by));
	if (d->allowed)
		buf_addf(out, ", %s", lifetime_name(d->lifetime));
	if (d->count > 1)
		buf_addf(out, ", %llu times", (unsigned long long)d->count);
	buf_add_str(out, ")\n");
}

static bool list_denials(const struct agent *a, bool allowed)
{
	struct buf out = {0};
	for (size_t i = 0; i < a->denials.len; i++)
		if (a->denials.item[i].allowed == allowed)
			add_denial(&out, &a->denials.item[i]);
	bool any = out.len;
	put_prose(&out);
	return any;
}

static bool run_grants(struct agent *a, const char *argument)
{
	(void)argument;
	bool any = list_denials(a, true);
	if (any)
		say("Rules from your answers:");
	list_rules(a, WHICH_ANSWERS,
		   any ? "none; the grants were for once" : "Nothing was granted yet.");
	return true;
}

static bool run_denials(struct agent *a, const char *argument)
{
	(void)argument;
	if (!list_denials(a, false))
		say("Nothing was refused yet.");
	return true;
}

/* As the user wrote it: relative to here, ~/ too; through all symlinks. Owned, or NULL. */
static char *resolve(const struct agent *a, const char *word)
{
	struct buf full = {0};
	char *path = NULL;
	bool home = word[0] == '~' && (!word[1] || word[1] == '/');
	if (home)
		buf_addf(&full, "%s%s", session_store(a->session)->home, word + 1);
	else
		buf_addf(&full, "%s%s%s", *word == '/' ? "" : a->tools.cwd, *word == '/' ? "" : "/",
			 word);
	if (buf_error(&full) || policyfile_canonical(buf_str(&full), &path))
		path = NULL;
	buf_free(&full);
	return path;
}

static void tell_why(const struct agent *a, const char *path, uint32_t mask)
{
	struct buf out = {0};
	struct why w = {.path = path,
			.policy = session_policy(a->session),
			.home = session_store(a->session)->home};
	if (why_ask(&w, mask))
		buf_add_str(&out, "warder: not enough memory\n");
	else
		why_format(&w, &out);
	why_release(&w);
	put(&out);
}

static const struct denial *last_refusal(const struct agent *a)
{
	for (size_t i = a->denials.len; i-- > 0;)
		if (!a->denials.item[i].allowed)
			return &a->denials.item[i];
	return NULL;
}

static bool run_why(struct agent *a, const char *argument)
{
	size_t at, n = strcspn(argument, " \t");
	const char *access = argument + n + strspn(argument + n, " \t");
	const struct denial *last = last_refusal(a);
	uint32_t mask = 0;
	AUTOFREE
	char *word = strndup(argument, n);
	AUTOFREE
	char *path = word && *word ? resolve(a, word) : NULL;
	if (*access && access_parse(access, strlen(access), &mask, &at))
		say("Expected an access such as r, rw or read,list after the path.");
	else if (path)
		tell_why(a, path, mask);
	else if (n)
		say("This path can't be resolved.");
	else if (last)
		tell_why(a, last->path, last->access);
	else
		say("Nothing was refused yet.");
	return true;
}

/* Where the provider knows what is left. */
static void say_quota(struct agent *a)
{
	const struct provider_ops *ops = a->provider->ops;
	struct provider_error error = {0};
	struct buf line = {0}, out = {0};
	int err = ops->quota ? ops->quota(a->provider, interrupt_flag(), &line, &error) : -ENOTSUP;
	if (err && err != -ENOTSUP)
		add_failure(&out, err, &error);
	else if (!err) {
		escape_add_str(&out, buf_str(&line));
		buf_add_char(&out, '\n');
	}
	put_prose(&out);
	buf_free(&line);
	if (!interrupt_ending())
		interrupt_clear();
}

static bool run_usage(struct agent *a, const char *argument)
{
	(void)argument;
	printf("%u turn%s", a->turns, a->turns == 1 ? "" : "s");
	if (a->usage.prompt >= 0)
		printf(", %lld tokens in", (long long)a->usage.prompt);
	if (a->usage.cached >= 0)
		printf(" (%lld cached)", (long long)a->usage.cached);
	if (a->usage.completion >= 0)
		printf(", %lld tokens out", (long long)a->usage.completion);
	printf("\nthe conversation takes about %lld tokens",
	       (long long)compact_estimate(&a->gauge, &a->convo));
	if (a->gauge.context)
		printf(" of %lld", (long long)a->gauge.context);
	printf("%s%s\n", a->log.id ? "; session " : "", a->log.id ? a->log.id : "");
	fflush(stdout);
	say_quota(a);
	return true;
}

/* ---- sessions ---- */

static bool run_sessions(struct agent *a, const char *argument)
{
	struct buf out = {0};
	bool all = !strcmp(argument, "all");
	int err = chatlist_write(a->log.dir, all ? NULL : a->log.project,
				 termwidth(STDOUT_FILENO) - 1, &out);
	if (err)
		buf_addf(&out, "the saved sessions can't be read: %s\n", strerror(-err));
	else if (!out.len)
		buf_addf(&out, "No session%s is saved yet.\n", all ? "" : " of this project");
	put(&out);
	return true;
}

static void say_error(const char *words)
{
	struct buf out = {0};
	buf_add_str(&out, "warder: ");
	escape_add_str(&out, words);
	buf_add_char(&out, '\n');
	put(&out);
}

static bool run_resume(struct agent *a, const char *argument)
{
	struct policy_error why = {0};
	if (*argument && a->log.id && !strcmp(argument, a->log.id))
		say("That is this session.");
	else if (agent_resume(a, *argument ? argument : NULL, &why))
		say_error(why.text);
	else {
		printf("This is session %s now; it has %zu message%s.\n", a->log.id, a->convo.n,
		       a->convo.n == 1 ? "" : "s");
		fflush(stdout);
	}
	return true;
}

static bool run_compact(struct agent *a, const char *argument)
{
	struct provider_error error = {0};
	int64_t before = compact_estimate(&a->gauge, &a->convo);
	(void)argument;
	if (a->convo.n <= 2)
		say("There is nothing to make short yet.");
	else if (agent_compact(a, &error))
		say_error(error.text[0] ? error.text : "not enough memory");
	else {
		printf("About %lld tokens became %lld.\n", (long long)before,
		       (long long)compact_estimate(&a->gauge, &a->convo));
		fflush(stdout);
	}
	if (!interrupt_ending())
		interrupt_clear();
	return true;
}

static bool run_details(struct agent *a, const char *argument)
{
	struct buf out = {0};
	char *end;
	unsigned long n = strtoul(argument, &end, 10);
	if (*end || *argument == '-' || !details_write(&a->details, n, &out))
		say(a->details.n ? "There is no tool call with this number."
				 : "No tool was called yet.");
	put(&out);
	return true;
}

/* ---- which ---- */

static size_t word_len(const char *line)
{
	size_t n = 1;
	while (isalpha((unsigned char)line[n]))
		n++;
	return n;
}

const char *const *slash_words(void)
{
	static const char *const words[] = {
#define SLASH(word, ...) "/" #word,
#include "agent/slash.def"
#undef SLASH
		NULL};
	return words;
}

bool slash_is_command(const char *line)
{
	char after = line[word_len(line)];
	return !after || isspace((unsigned char)after);
}

bool slash_run(struct agent *a, const char *line)
{
	size_t n = word_len(line);
	const char *argument = line + n + strspn(line + n, " \t");
	if (n == 5 && !strncmp(line, "/exit", n)) /* what other programs call it */
		return run_quit(a, argument);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (strlen(commands[i].word) == n - 1 &&
		    !strncmp(commands[i].word, line + 1, n - 1))
			return commands[i].run(a, argument);
	AUTOFREE
	char *word = strndup(line + 1, n - 1);
	struct nearname near = nearname_begin(word ? word : "");
	struct buf out = {0};
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		nearname_try(&near, commands[i].word);
	buf_add_str(&out, "There is no ");
	escape_add(&out, line, n);
	nearname_add(&out, &near, "/");
	buf_addf(&out, "%s /help lists the commands.\n", near.best ? "" : ";");
	put(&out);
	return true;
}
