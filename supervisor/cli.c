#include "supervisor/cli.h"

#include "supervisor/escape.h"
#include "supervisor/nearname.h"
#include "supervisor/policy.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>

enum option_key {
#define OPTION(KEY, ...) OPT_##KEY,
#include "supervisor/options.def"
#undef OPTION
	OPT_COUNT,
};

enum option_who { RUN, BOTH };
enum option_screen { FIRST, MORE };

static const struct option_row {
	const char *name;
	char letter;
	const char *value;
	enum option_who who;
	enum option_screen screen;
	const char *help;
} rows[OPT_COUNT] = {
#define OPTION(KEY, name, letter, value, who, screen, help)                                        \
	[OPT_##KEY] = {name, letter, value, who, screen, help},
#include "supervisor/options.def"
#undef OPTION
};

/* Of one trace. */
#define CLI_FAULTS_TOLD 5

/* While the command has its inner terminal the real one is raw: a newline alone only goes down. */
static const char *newline(void)
{
	struct termios t;
	return !tcgetattr(STDERR_FILENO, &t) && !(t.c_oflag & OPOST) ? "\r\n" : "\n";
}

void cli_complain(const char *fmt, ...)
{
	va_list ap;
	struct buf raw = {0}, line = {0};
	va_start(ap, fmt);
	buf_vaddf(&raw, fmt, ap);
	va_end(ap);
	escape_add_str(&line, buf_str(&raw));
	fprintf(stderr, "warder: %s%s", buf_str(&line), newline());
	buf_free(&raw);
	buf_free(&line);
}

void cli_tell_fault(void *arg, const char *text)
{
	unsigned *told = arg;
	if (++*told <= CLI_FAULTS_TOLD)
		cli_complain("%s; the line is passed over%s", text,
			     *told == CLI_FAULTS_TOLD ? ", and others that follow are only counted"
						      : "");
}

bool cli_list_add(struct cli_list *l, const char *text)
{
	char **item = realloc(l->item, (l->len + 2) * sizeof *item);
	char *copy = strdup(text);
	if (item)
		l->item = item;
	if (!item || !copy) {
		free(copy);
		cli_complain("no memory");
		return false;
	}
	l->item[l->len++] = copy;
	l->item[l->len] = NULL;
	return true;
}

void cli_list_release(struct cli_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		free(l->item[i]);
	free(l->item);
}

void cli_options_init(struct cli_options *o)
{
	*o = (struct cli_options){.events = -1, .answers = -1};
}

void cli_options_release(struct cli_options *o)
{
	cli_list_release(&o->rules);
	cli_list_release(&o->policies);
	cli_list_release(&o->presets);
	cli_list_release(&o->no_presets);
	cli_list_release(&o->scrub);
}

/* ---- values ---- */

bool cli_duration(const char *text, int64_t *ret_ms)
{
	char *end;
	errno = 0;
	double n = strtod(text, &end);
	double unit = 1000;
	if (end == text || errno || !(n >= 0))
		return false;
	if (*end == 'm')
		unit = 60000;
	else if (*end == 'h')
		unit = 3600000;
	else if (*end == 'd')
		unit = 86400000;
	else if (*end && *end != 's')
		return false;
	if ((*end && end[1]) || n * unit > 1e15)
		return false;
	*ret_ms = (int64_t)(n * unit + 0.5);
	if (n > 0 && !*ret_ms)
		*ret_ms = 1;
	return true;
}

static bool wrong(const char *option, const char *value, const char *expected)
{
	cli_complain("--%s: expected %s, not '%s'", option, expected, value);
	return false;
}

static bool take_duration(const char *option, const char *value, int64_t *ret)
{
	return cli_duration(value, ret) ? true
					: wrong(option, value, "a duration such as 10s or 5m");
}

/* A path on the command line is relative to the current directory, in a policy to the project. */
static char *absolute(const char *path)
{
	struct buf b = {0};
	char cwd[PATH_MAX];
	if (path[0] != '/') {
		if (!getcwd(cwd, sizeof cwd))
			return NULL;
		buf_addf(&b, "%s/", strcmp(cwd, "/") != 0 ? cwd : "");
	}
	buf_add_str(&b, path);
	return buf_take(&b);
}

static bool add_path_rule(struct cli_options *o, enum effect effect, uint32_t access,
			  const char *path)
{
	struct buf line = {0};
	char *abs AUTOFREE = *path ? absolute(path) : NULL;
	if (!abs) {
		cli_complain(*path ? "the current directory can't be told" : "a path is empty");
		return false;
	}
	struct rule rule = {.effect = effect, .kind = RULE_TREE, .access = access, .path = abs};
	policy_format_rule(&line, &rule);
	bool ok = cli_list_add(&o->rules, buf_str(&line));
	buf_free(&line);
	return ok;
}

static bool take_mode(struct cli_options *o, const char *value)
{
	static const struct {
		const char *name;
		enum engine_mode mode;
	} modes[] = {{"hold", ENGINE_HOLD}, {"retry", ENGINE_RETRY}, {"report", ENGINE_REPORT}};
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (!strcmp(modes[i].name, value)) {
			o->mode = modes[i].mode;
			return true;
		}
	return wrong("on-denial", value, "hold, retry or report");
}

static bool take_ask(struct cli_options *o, const char *value)
{
	if (!strcmp(value, "tty"))
		o->ask = ENGINE_ASK_TTY;
	else if (!strcmp(value, "socket"))
		o->ask = ENGINE_ASK_SOCKET;
	else if (!strcmp(value, "none"))
		o->ask = ENGINE_ASK_NONE;
	else
		return wrong("ask", value, "tty, socket or none");
	return true;
}

static bool take_choice(const char *option, const char *value, const char *no, const char *yes,
			bool *ret)
{
	if (strcmp(value, no) != 0 && strcmp(value, yes) != 0) {
		cli_complain("--%s: expected %s or %s, not '%s'", option, no, yes, value);
		return false;
	}
	*ret = !strcmp(value, yes);
	return true;
}

/* Our copy, so that the given number can be closed in the command. */
static bool take_fd(const char *option, const char *value, int *ret)
{
	char *end;
	long n = strtol(value, &end, 10);
	if (end == value || *end || n < 0 || n > INT_MAX)
		return wrong(option, value, "the number of an open descriptor");
	*ret = fcntl((int)n, F_DUPFD_CLOEXEC, 3);
	if (*ret < 0) {
		cli_complain("--%s: descriptor %ld: %s", option, n, strerror(errno));
		return false;
	}
	if (n > 2)
		fcntl((int)n, F_SETFD, FD_CLOEXEC);
	return true;
}

static bool connect_socket(const char *path, int *ret)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof to.sun_path)
		return wrong("events", path, "a socket's path of at most 107 bytes");
	memcpy(to.sun_path, path, strlen(path) + 1);
	*ret = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*ret < 0 || connect(*ret, (const struct sockaddr *)&to, sizeof to)) {
		cli_complain("--events: %s: %s", path, strerror(errno));
		return false;
	}
	return true;
}

static bool take_events(const char *value, int *ret)
{
	return strspn(value, "0123456789") == strlen(value) ? take_fd("events", value, ret)
							    : connect_socket(value, ret);
}

static bool apply(struct cli_options *o, enum option_key key, const char *v)
{
	switch (key) {
	case OPT_READ:
		return add_path_rule(o, EFFECT_ALLOW, ACCESS_R, v);
	case OPT_WRITE:
		return add_path_rule(o, EFFECT_ALLOW, ACCESS_R | ACCESS_W, v);
	case OPT_EXEC:
		return add_path_rule(o, EFFECT_ALLOW, ACCESS_R | ACCESS_X, v);
	case OPT_RULE:
		return cli_list_add(&o->rules, v);
	case OPT_DENY:
		return add_path_rule(o, EFFECT_FORBID, ACCESS_ALL, v);
	case OPT_POLICY:
		return cli_list_add(&o->policies, v);
	case OPT_PRESET:
		return cli_list_add(&o->presets, v);
	case OPT_NO_PRESET:
		return cli_list_add(&o->no_presets, v);
	case OPT_NO_PRESETS:
		o->no_default_presets = true;
		return true;
	case OPT_PROJECT:
		o->project = v;
		return true;
	case OPT_ON_DENIAL:
		return take_mode(o, v);
	case OPT_ASK:
		return take_ask(o, v);
	case OPT_ANSWER_TIMEOUT:
		return take_duration("answer-timeout", v, &o->answer_timeout_ms);
	case OPT_YES:
		o->yes = true;
		return true;
	case OPT_EVENTS:
		return take_events(v, &o->events);
	case OPT_ANSWERS:
		return take_fd("answers", v, &o->answers);
	case OPT_REPORT:
		o->report = v;
		return true;
	case OPT_TRACE:
		o->trace = v;
		return true;
	case OPT_JSON:
		o->json = true;
		return true;
	case OPT_SESSION:
		o->session = v;
		return true;
	case OPT_LABEL:
		o->label = v;
		return true;
	case OPT_TMP:
		return take_choice("tmp", v, "private", "shared", &o->tmp_shared);
	case OPT_FAST:
		return take_choice("fast", v, "on", "off", &o->slow);
	case OPT_SCRUB:
		return cli_list_add(&o->scrub, v);
	case OPT_SCRUB_SECRETS:
		o->scrub_secrets = true;
		return true;
	case OPT_FAIL_ON_DENIAL:
		o->fail_on_denial = true;
		return true;
	case OPT_STACKS:
		o->stacks = true;
		return true;
	case OPT_PERMISSIVE:
		o->permissive = true;
		return true;
	case OPT_ALLOW_DEGRADED:
		o->allow_degraded = true;
		return true;
	case OPT_NO_REDACT:
		o->no_redact = true;
		return true;
	case OPT_TIMEOUT:
		return take_duration("timeout", v, &o->timeout_ms);
	case OPT_KILL_AFTER:
		return take_duration("kill-after", v, &o->kill_after_ms);
	case OPT_LEFTOVERS:
		return take_choice("leftovers", v, "end", "wait", &o->leftovers_wait);
	case OPT_QUIET:
		o->quiet = true;
		return true;
	case OPT_VERBOSE:
		o->verbose = true;
		return true;
	case OPT_HELP:
	case OPT_COUNT:
		break;
	}
	return false;
}

/* ---- words ---- */

static bool usable(size_t k, bool agent)
{
	return !agent || rows[k].who == BOTH;
}

/* --name, --name=value: the row, and where the value stands in the word (or NULL). */
static int find_long(const char *word, bool agent, const char **ret_value)
{
	size_t len = strcspn(word, "=");
	*ret_value = word[len] ? word + len + 1 : NULL;
	for (size_t k = 0; k < OPT_COUNT; k++)
		if (usable(k, agent) && strlen(rows[k].name) == len &&
		    !strncmp(rows[k].name, word, len))
			return (int)k;
	return -1;
}

static int find_short(const char *word, bool agent, const char **ret_value)
{
	*ret_value = word[1] ? word + 1 : NULL;
	for (size_t k = 0; k < OPT_COUNT; k++)
		if (usable(k, agent) && rows[k].letter && rows[k].letter == word[0])
			return (int)k;
	return -1;
}

enum cli_parse cli_option(struct cli_options *o, int argc, char **argv, int *i, bool agent,
			  bool *ret_known)
{
	const char *word = argv[*i], *value;
	bool is_long = word[1] == '-';
	int key =
		is_long ? find_long(word + 2, agent, &value) : find_short(word + 1, agent, &value);
	*ret_known = key >= 0;
	if (key < 0)
		return CLI_WRONG;
	if (key == OPT_HELP)
		return CLI_HELP;
	++*i;
	if (!rows[key].value) {
		if (value) {
			if (is_long)
				cli_complain("%s: it takes no value", word);
			else
				cli_complain("%s: short options can't be joined: write -%c and "
					     "the others apart",
					     word, word[1]);
			return CLI_WRONG;
		}
		return apply(o, (enum option_key)key, NULL) ? CLI_PARSED : CLI_WRONG;
	}
	if (!value) {
		if (*i >= argc) {
			cli_complain("%s needs a value: %s", word, rows[key].value);
			return CLI_WRONG;
		}
		value = argv[(*i)++];
	}
	return apply(o, (enum option_key)key, value) ? CLI_PARSED : CLI_WRONG;
}

char *cli_option_name(const char *word)
{
	return word[0] == '-' && word[1] == '-' ? strndup(word + 2, strcspn(word + 2, "=")) : NULL;
}

void cli_complain_of_option(const char *word, const struct nearname *near, const char *where)
{
	struct buf meant = {0};
	nearname_add(&meant, near, "--");
	cli_complain("unknown option '%s'%s%s see warder %s --help", word, buf_str(&meant),
		     near->best ? "" : ";", where);
	buf_free(&meant);
}

void cli_unknown_option(const char *word, bool agent, void (*more)(struct nearname *n),
			const char *where)
{
	AUTOFREE
	char *name = cli_option_name(word);
	struct nearname near = nearname_begin(name ? name : "");
	for (size_t k = 0; k < OPT_COUNT; k++)
		if (usable(k, agent))
			nearname_try(&near, rows[k].name);
	if (more)
		more(&near);
	cli_complain_of_option(word, &near, where);
}

static void print_option(size_t k)
{
	char left[64], letter[8] = "    ";
	if (rows[k].letter)
		snprintf(letter, sizeof letter, "-%c, ", rows[k].letter);
	snprintf(left, sizeof left, "%s--%s%s%s", letter, rows[k].name, rows[k].value ? " " : "",
		 rows[k].value ? rows[k].value : "");
	printf("  %-33s %s\n", left, rows[k].help);
}

void cli_options_help(bool agent, bool all)
{
#define OPTION_GROUP(heading)                                                                      \
	if (all)                                                                                   \
		puts("\n" heading ":");
#define OPTION(KEY, name, letter, value, who, screen, help)                                        \
	if (usable(OPT_##KEY, agent) && (all || (screen) == FIRST))                                \
		print_option(OPT_##KEY);
#include "supervisor/options.def"
#undef OPTION
}

bool cli_help_of_all(int argc, char **argv, int i)
{
	return !strcmp(argv[i], "--help=all") || (i + 1 < argc && !strcmp(argv[i + 1], "all"));
}

void cli_session_options(const struct cli_options *o, char *const *env, struct session_options *ret)
{
	*ret = (struct session_options){.env = env,
					.project = o->project,
					.policy_files = o->policies.item,
					.presets = o->presets.item,
					.no_presets = o->no_presets.item,
					.no_default_presets = o->no_default_presets,
					.rule_lines = o->rules.item,
					.tmp_shared = o->tmp_shared,
					.allow_degraded = o->allow_degraded,
					.label = o->label,
					.name = o->session};
}

void cli_engine_command(const struct cli_options *o, struct engine_command *ret)
{
	*ret = (struct engine_command){.stdio = {-1, -1, -1},
				       .scrub = o->scrub.item,
				       .scrub_secrets = o->scrub_secrets,
				       .mode = o->permissive ? ENGINE_PERMISSIVE : o->mode,
				       .ask = o->ask,
				       .yes = o->yes,
				       .stacks = o->stacks,
				       .events = o->events,
				       .answers = o->answers,
				       .answer_timeout_ms = o->answer_timeout_ms,
				       .timeout_ms = o->timeout_ms,
				       .kill_after_ms = o->kill_after_ms,
				       .leftovers_wait = o->leftovers_wait,
				       .slow = o->slow};
}
