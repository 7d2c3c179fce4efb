#include "agent/options.h"

#include "supervisor/nearname.h"
#include "tracer/buf.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum option_key {
#define OPTION(KEY, ...) OPT_##KEY,
#include "agent/options.def"
#undef OPTION
	OPT_COUNT,
};

struct row {
	const char *name;
	char letter;
	const char *value;
	const char *help;
};

static const struct row rows[OPT_COUNT] = {
#define OPTION(KEY, ...) [OPT_##KEY] = {__VA_ARGS__},
#include "agent/options.def"
#undef OPTION
};

/* ---- values ---- */

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

static bool pick(enum option_key key, const struct word *words, const char *value, int *ret)
{
	struct buf expected = {0};
	for (const struct word *w = words; w->word; w++) {
		if (!strcmp(w->word, value)) {
			*ret = w->value;
			buf_free(&expected);
			return true;
		}
		buf_addf(&expected, "%s%s", w == words ? "" : w[1].word ? ", " : " or ", w->word);
	}
	cli_complain("--%s: expected %s, not '%s'", rows[key].name, buf_str(&expected), value);
	buf_free(&expected);
	return false;
}

#define NUMBER_MAX 100000000

static bool take_number(enum option_key key, const char *value, unsigned *ret)
{
	char *end;
	errno = 0;
	long n = strtol(value, &end, 10);
	if (errno || end == value || *end || n < 1 || n > NUMBER_MAX) {
		cli_complain("--%s: expected a number from 1 to %d, not '%s'", rows[key].name,
			     NUMBER_MAX, value);
		return false;
	}
	*ret = (unsigned)n;
	return true;
}

static bool apply(struct options *o, enum option_key key, const char *v)
{
	int value = 0;
	switch (key) {
	case OPT_PROMPT:
		o->prompt = v;
		return true;
	case OPT_OUTPUT:
		if (!pick(key, outputs, v, &value))
			return false;
		o->output = (enum oneshot_output)value;
		return true;
	case OPT_PROVIDER:
		if (!pick(key, providers, v, &value))
			return false;
		o->provider = (enum provider_kind)value;
		return true;
	case OPT_MODEL:
		o->model = v;
		return true;
	case OPT_ENDPOINT:
		o->endpoint = v;
		return true;
	case OPT_SCRIPT:
		o->script = v;
		return true;
	case OPT_RESUME:
		o->resume = v;
		return true;
	case OPT_CONTEXT:
		return take_number(key, v, &o->context);
	case OPT_MAX_STEPS:
		return take_number(key, v, &o->max_steps);
	case OPT_MAX_SECONDS:
		return take_number(key, v, &o->max_seconds);
	case OPT_STALL_TIMEOUT:
		return take_number(key, v, &o->stall_timeout);
	case OPT_VERBOSE:
		o->verbose = true;
		return true;
	case OPT_COUNT:
		break;
	}
	BUG(true);
}

/* ---- words ---- */

/* The row of --name, --name=value, -p or -pvalue, and where the value stands in the word (or NULL).
 */
static enum option_key find(const char *word, const char **ret_value)
{
	bool is_long = word[1] == '-';
	size_t len = is_long ? strcspn(word + 2, "=") : 0;
	for (size_t k = 0; k < OPT_COUNT; k++) {
		const struct row *r = &rows[k];
		if (is_long && strlen(r->name) == len && !strncmp(r->name, word + 2, len)) {
			*ret_value = word[2 + len] ? word + 3 + len : NULL;
			return (enum option_key)k;
		}
		if (!is_long && r->letter && r->letter == word[1]) {
			*ret_value = word[2] ? word + 2 : NULL;
			return (enum option_key)k;
		}
	}
	return OPT_COUNT;
}

static enum cli_parse take_own(struct options *o, enum option_key key, const char *value, int argc,
			       char **argv, int *i)
{
	const char *word = argv[(*i)++];
	if (!rows[key].value && value) {
		cli_complain("%s: it takes no value", word);
		return CLI_WRONG;
	}
	bool optional = rows[key].value && rows[key].value[0] == '[';
	if (optional && !value && (*i >= argc || argv[*i][0] == '-'))
		value = "";
	if (rows[key].value && !value && *i >= argc) {
		cli_complain("%s needs a value: %s", word, rows[key].value);
		return CLI_WRONG;
	}
	if (rows[key].value && !value)
		value = argv[(*i)++];
	return apply(o, key, value) ? CLI_PARSED : CLI_WRONG;
}

static void try_own(struct nearname *near)
{
	for (size_t k = 0; k < OPT_COUNT; k++)
		nearname_try(near, rows[k].name);
}

static enum cli_parse take(struct options *o, int argc, char **argv, int *i)
{
	const char *value = NULL;
	bool known = argv[*i][0] == '-' && argv[*i][1];
	if (!known) {
		cli_complain("'%s' is no option; a prompt is given with -p", argv[*i]);
		return CLI_WRONG;
	}
	enum option_key key = find(argv[*i], &value);
	if (key != OPT_COUNT)
		return take_own(o, key, value, argc, argv, i);
	enum cli_parse p = cli_option(&o->shared, argc, argv, i, true, &known);
	if (!known)
		cli_unknown_option(argv[*i], true, try_own, "agent");
	return p;
}

enum cli_parse options_parse(int argc, char **argv, struct options *ret)
{
	*ret = (struct options){0};
	cli_options_init(&ret->shared);
	for (int i = 1; i < argc;) {
		enum cli_parse p = take(ret, argc, argv, &i);
		ret->help_all = p == CLI_HELP && cli_help_of_all(argc, argv, i);
		if (p != CLI_PARSED)
			return p;
	}
	if (ret->output != ONESHOT_TEXT && !ret->prompt) {
		cli_complain("--output json and stream-json go with -p");
		return CLI_WRONG;
	}
	return CLI_PARSED;
}

void options_release(struct options *o)
{
	cli_options_release(&o->shared);
}

/* ---- help ---- */

static void add_shared(struct buf *out, const char *name, char letter, const char *value,
		       size_t *column)
{
	struct buf word = {0};
	if (letter)
		buf_addf(&word, " -%c", letter);
	else
		buf_addf(&word, " --%s", name);
	if (value)
		buf_addf(&word, " %s", value);
	if (*column + word.len > 78) {
		buf_add_str(out, "\n ");
		*column = 1;
	}
	*column += word.len;
	buf_add_str(out, buf_str(&word));
	buf_free(&word);
}

/* A line each would not fit a screen. */
static void print_all_shared(void)
{
	enum { RUN, BOTH };
	size_t column = 1;
	struct buf out = {0};
	buf_add_char(&out, ' ');
#define OPTION(KEY, name, letter, value, who, screen, help)                                        \
	if ((who) == BOTH)                                                                         \
		add_shared(&out, name, letter, value, &column);
#include "supervisor/options.def"
#undef OPTION
	puts(buf_str(&out));
	buf_free(&out);
}

void options_help(bool all)
{
	puts("Usage: warder agent [OPTIONS] [-p PROMPT | -p -]\n"
	     "A coding agent, its tools behind the wall. Account: warder login, or a key.");
	for (size_t k = 0; k < OPT_COUNT; k++) {
		char left[64], letter[8] = "    ";
		if (rows[k].letter)
			snprintf(letter, sizeof(letter), "-%c, ", rows[k].letter);
		snprintf(left, sizeof(left), "%s--%s %s", letter, rows[k].name,
			 rows[k].value ? rows[k].value : "");
		printf("  %-34s %s\n", left, rows[k].help);
	}
	if (all) {
		cli_options_help(true, true);
		putchar('\n');
	} else {
		puts("and, for its tools, as `warder agent --help all` explains them:");
		print_all_shared();
	}
	puts("Status: 0 done, 1 the turn failed, 2 usage, 125 could not.\n\n"
	     "  warder agent -p 'why does make fail?'\n"
	     "  git diff | warder agent --output json -p -");
}
