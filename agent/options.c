#include "agent/options.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum option_id {
#define OPTION(ID, ...) OPTION_##ID,
#include "agent/options.def"
#undef OPTION
	OPTION_COUNT,
};

struct row {
	char letter;
	const char *name;
	const char *argument;
	const char *help;
};

static const struct row rows[OPTION_COUNT] = {
#define OPTION(ID, ...) [OPTION_##ID] = {__VA_ARGS__},
#include "agent/options.def"
#undef OPTION
};

/* getopt_long's value for a row: out of the letters' way. */
#define VALUE_BASE 256

/* ---- words to values ---- */

struct word {
	const char *word;
	int value;
};

static const struct word outputs[] = {
	{"text", ONESHOT_TEXT}, {"json", ONESHOT_JSON}, {"stream-json", ONESHOT_STREAM_JSON}, {0}};
static const struct word providers[] = {{"copilot", PROVIDER_COPILOT},
					{"openai", PROVIDER_OPENAI},
					{"script", PROVIDER_SCRIPT},
					{0}};
static const struct word modes[] = {
	{"hold", ENGINE_HOLD}, {"retry", ENGINE_RETRY}, {"report", ENGINE_REPORT}, {0}};
static const struct word askers[] = {{"tty", ENGINE_ASK_TTY}, {"none", ENGINE_ASK_NONE}, {0}};
static const struct word tmps[] = {{"private", false}, {"shared", true}, {0}};

static const char *option_name(enum option_id id)
{
	return rows[id].name ? rows[id].name : "";
}

static int pick(enum option_id id, const struct word *words, const char *arg, int *ret,
		struct buf *why)
{
	for (const struct word *w = words; w->word; w++) {
		if (strcmp(w->word, arg) != 0)
			continue;
		*ret = w->value;
		return 0;
	}
	buf_addf(why, "--%s: ", option_name(id));
	for (const struct word *w = words; w->word; w++)
		buf_addf(why, "%s%s", w == words ? "" : w[1].word ? ", " : " or ", w->word);
	buf_addf(why, " was expected, not \"%s\"", arg);
	return -EINVAL;
}

static int number(enum option_id id, const char *arg, long least, long most, long *ret,
		  struct buf *why)
{
	char *end;
	errno = 0;
	long n = strtol(arg, &end, 10);
	if (errno || end == arg || *end || n < least || n > most) {
		buf_addf(why, "--%s: a number from %ld to %ld was expected, not \"%s\"",
			 option_name(id), least, most, arg);
		return -EINVAL;
	}
	*ret = n;
	return 0;
}

static int descriptor(enum option_id id, const char *arg, int *ret, struct buf *why)
{
	long n = -1;
	int err = number(id, arg, 0, 1 << 20, &n, why);
	if (err)
		return err;
	if (fcntl((int)n, F_GETFD) < 0) {
		buf_addf(why, "--%s: descriptor %ld is not open", option_name(id), n);
		return -EINVAL;
	}
	/* No tool inherits it. */
	fcntl((int)n, F_SETFD, FD_CLOEXEC);
	*ret = (int)n;
	return 0;
}

/* ---- lists ---- */

static int list_add(struct option_list *l, char *value)
{
	char **item = reallocarray(l->item, l->len + 2, sizeof(*item));
	if (!item)
		return -ENOMEM;
	l->item = item;
	l->item[l->len++] = value;
	l->item[l->len] = NULL;
	return 0;
}

static int rule_add(struct option_list *l, char *line)
{
	int err = line ? list_add(l, line) : -ENOMEM;
	if (err)
		free(line);
	return err;
}

/* A path of the command line is one path, whatever is in it, and relative to where we are. */
static int path_rule(struct option_list *l, const char *words, const char *path)
{
	AUTOFREE
	char *cwd = getcwd(NULL, 0);
	struct buf line = {0};
	if (!cwd)
		return -errno;
	buf_addf(&line, "%s \"", words);
	for (const char *p = path[0] == '/' ? "" : cwd; *p; p++)
		buf_addf(&line, strchr("\"\\$*?", *p) ? "\\%c" : "%c", *p);
	if (path[0] != '/')
		buf_add_char(&line, '/');
	for (const char *p = path; *p; p++)
		buf_addf(&line, strchr("\"\\$*?", *p) ? "\\%c" : "%c", *p);
	buf_add_char(&line, '"');
	int err = rule_add(l, buf_take(&line));
	buf_free(&line);
	return err;
}

void options_release(struct options *o)
{
	for (size_t i = 0; i < o->rules.len; i++)
		free(o->rules.item[i]);
	free(o->rules.item);
	free(o->policies.item);
	free(o->presets.item);
	free(o->no_presets.item);
	*o = (struct options){.events = -1, .answers = -1};
}

/* ---- one option ---- */

static int set_word(struct options *o, enum option_id id, const char *arg, struct buf *why)
{
	static const struct word *const lists[OPTION_COUNT] = {[OPTION_OUTPUT] = outputs,
							       [OPTION_PROVIDER] = providers,
							       [OPTION_ON_DENIAL] = modes,
							       [OPTION_ASK] = askers,
							       [OPTION_TMP] = tmps};
	int value = 0;
	int err = pick(id, lists[id], arg, &value, why);
	if (err)
		return err;
	if (id == OPTION_OUTPUT)
		o->output = (enum oneshot_output)value;
	else if (id == OPTION_PROVIDER)
		o->provider = (enum provider_kind)value;
	else if (id == OPTION_ON_DENIAL)
		o->mode = (enum engine_mode)value;
	else if (id == OPTION_ASK)
		o->ask = (enum engine_ask)value;
	else
		o->tmp_shared = value;
	return 0;
}

static int set_number(struct options *o, enum option_id id, const char *arg, struct buf *why)
{
	long n = 0;
	int err = number(id, arg, 1, 1000000, &n, why);
	if (err)
		return err;
	if (id == OPTION_MAX_STEPS)
		o->max_steps = (unsigned)n;
	else if (id == OPTION_MAX_SECONDS)
		o->max_seconds = (unsigned)n;
	else
		o->answer_timeout_ms = 1000 * (int64_t)n;
	return 0;
}

static int set(struct options *o, enum option_id id, char *arg, struct buf *why)
{
	switch (id) {
	case OPTION_PROMPT:
		o->prompt = arg;
		return 0;
	case OPTION_OUTPUT:
	case OPTION_PROVIDER:
	case OPTION_ON_DENIAL:
	case OPTION_ASK:
	case OPTION_TMP:
		return set_word(o, id, arg, why);
	case OPTION_MAX_STEPS:
	case OPTION_MAX_SECONDS:
	case OPTION_ANSWER_TIMEOUT:
		return set_number(o, id, arg, why);
	case OPTION_MODEL:
		o->model = arg;
		return 0;
	case OPTION_ENDPOINT:
		o->endpoint = arg;
		return 0;
	case OPTION_SCRIPT:
		o->script = arg;
		return 0;
	case OPTION_READ:
		return path_rule(&o->rules, "allow r", arg);
	case OPTION_WRITE:
		return path_rule(&o->rules, "allow rw", arg);
	case OPTION_EXEC:
		return path_rule(&o->rules, "allow rx", arg);
	case OPTION_DENY:
		return path_rule(&o->rules, "forbid", arg);
	case OPTION_RULE:
		return rule_add(&o->rules, strdup(arg));
	case OPTION_POLICY:
		return list_add(&o->policies, arg);
	case OPTION_PRESET:
		return list_add(&o->presets, arg);
	case OPTION_NO_PRESET:
		return list_add(&o->no_presets, arg);
	case OPTION_NO_PRESETS:
		o->no_default_presets = true;
		return 0;
	case OPTION_PROJECT:
		o->project = arg;
		return 0;
	case OPTION_LABEL:
		o->label = arg;
		return 0;
	case OPTION_YES:
		o->yes = true;
		return 0;
	case OPTION_EVENTS:
		return descriptor(id, arg, &o->events, why);
	case OPTION_ANSWERS:
		return descriptor(id, arg, &o->answers, why);
	case OPTION_ALLOW_DEGRADED:
		o->allow_degraded = true;
		return 0;
	case OPTION_VERBOSE:
		o->verbose = true;
		return 0;
	case OPTION_HELP:
		o->help = true;
		return 0;
	case OPTION_COUNT:
		break;
	}
	BUG(true);
}

/* ---- all of them ---- */

static void make_tables(struct option *longs, char *shorts)
{
	*shorts++ = '+';
	*shorts++ = ':';
	for (int i = 0; i < OPTION_COUNT; i++) {
		if (rows[i].name)
			*longs++ = (struct option){
				rows[i].name, rows[i].argument ? required_argument : no_argument,
				NULL, VALUE_BASE + i};
		if (!rows[i].letter)
			continue;
		*shorts++ = rows[i].letter;
		if (rows[i].argument)
			*shorts++ = ':';
	}
	*longs = (struct option){0};
	*shorts = 0;
}

/* OPTION_COUNT: getopt knows none such. */
static int row_of(int c)
{
	if (c >= VALUE_BASE)
		return c - VALUE_BASE;
	for (int i = 0; i < OPTION_COUNT; i++)
		if (rows[i].letter && rows[i].letter == c)
			return i;
	return OPTION_COUNT;
}

static int complain(int c, char **argv, struct buf *why)
{
	if (optopt > 0 && optopt < VALUE_BASE)
		buf_addf(why, c == ':' ? "-%c needs an argument" : "there is no option -%c",
			 optopt);
	else
		buf_addf(why, c == ':' ? "%s needs an argument" : "%s is no option of agent's",
			 argv[optind - 1]);
	return -EINVAL;
}

int options_parse(int argc, char **argv, struct options *ret, struct buf *why)
{
	struct option longs[OPTION_COUNT + 1];
	char shorts[2 * OPTION_COUNT + 3];
	int c, err = 0;
	*ret = (struct options){.events = -1, .answers = -1};
	make_tables(longs, shorts);
	optind = 0; /* glibc: begin anew, the main program used it before */
	opterr = 0;
	while (!err && (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		int row = row_of(c);
		err = row == OPTION_COUNT ? complain(c, argv, why)
					  : set(ret, (enum option_id)row, optarg, why);
	}
	if (!err && optind < argc) {
		buf_addf(why, "\"%s\" is no option; a prompt is given with -p", argv[optind]);
		err = -EINVAL;
	}
	if (!err && ret->output != ONESHOT_TEXT && !ret->prompt && !ret->help) {
		buf_add_str(why, "--output json and stream-json go with -p");
		err = -EINVAL;
	}
	return err;
}

void options_write_help(struct buf *out)
{
	buf_add_str(out, "usage: warder agent [OPTIONS] [-p PROMPT | -p -]\n"
			 "A coding agent whose every tool runs inside the wall.\n");
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct row *r = &rows[i];
		struct buf left = {0};
		if (!r->help)
			continue;
		if (r->letter)
			buf_addf(&left, "-%c", r->letter);
		if (r->name && strcmp(r->name, "prompt") != 0)
			buf_addf(&left, "%s--%s", r->letter ? ", " : "", r->name);
		if (r->argument)
			buf_addf(&left, " %s", r->argument);
		buf_addf(out, "  %-24s %s\n", buf_str(&left), r->help);
		buf_free(&left);
	}
	buf_add_str(out, "examples:\n"
			 "  warder agent -p 'why does make fail?'\n"
			 "  git diff | warder agent -p - --output json\n");
}
