#include "supervisor/replaycli.h"

#include "landlock/llright.h"
#include "supervisor/nearname.h"
#include "supervisor/plan.h"
#include "supervisor/presets.h"
#include "supervisor/store.h"
#include "supervisor/tracepolicy.h"
#include "tracer/traceinput.h"
#include "tracer/util.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void help(void)
{
	puts("Usage: warder replay [OPTIONS] TRACE...\n"
	     "Decide a recorded run again, offline: a trace of warder record, or the text of\n"
	     "strace -f. Several are merged. - is standard input.\n\n"
	     "  --policy FILE     what this policy would have refused, in place of the\n"
	     "                    user's, the project's and the command line's (repeatable)\n"
	     "  --preset NAME     and with this preset\n"
	     "  --map FROM=TO     a path of the recording machine, and what it is here\n"
	     "  --cwd DIR         where strace's first process started (default: here)\n"
	     "  --json            the report, as warder run has it\n"
	     "  --ask             ask about what stays refused, as the run would have\n"
	     "  --partial         a result to be merged: replay reads it in a trace's place\n"
	     "  --ruleset         the policy's Landlock ruleset, from this machine's files\n"
	     "  --abi N           for Landlock ABI N\n\n"
	     "Status: 0 nothing was refused, 1 something was, 2 usage, 125 it is no trace.\n\n"
	     "  warder replay run.jsonl                       what was refused, as it was\n"
	     "  warder replay --policy ci.policy --json *.zst what this policy would refuse");
}

/* ---- options ---- */

static bool complain_wrong(const char *option, const char *value, const char *expected)
{
	cli_complain("%s: expected %s, not '%s'", option, expected, value);
	return false;
}

/* FROM=TO, ~ of the TO being our home; FROM is the other machine's and taken as it is. */
static bool take_map(struct replay_cli *c, const char *value)
{
	const char *equals = strchr(value, '=');
	if (!equals || value[0] != '/' || c->maps == REPLAYCLI_MAPS_MAX)
		return complain_wrong("--map", value, "FROM=TO, such as /home/bob=~");
	struct buf to = {0};
	const char *rest = equals + 1;
	if (rest[0] == '~' && (rest[1] == '/' || !rest[1])) {
		buf_add_str(&to, c->home);
		rest++;
	}
	buf_add_str(&to, rest);
	if (to.len > 1 && to.data[to.len - 1] == '/')
		to.data[--to.len] = '\0';
	if (buf_str(&to)[0] != '/') {
		buf_free(&to);
		return complain_wrong("--map", value, "two absolute paths (~ is your home)");
	}
	size_t n = (size_t)(equals - value);
	while (n > 1 && value[n - 1] == '/')
		n--;
	char *from = strndup(value, n), *into = buf_take(&to);
	c->map_text[2 * c->maps] = from;
	c->map_text[2 * c->maps + 1] = into;
	c->map[c->maps++] = (struct replay_map){from, into};
	return from && into;
}

static bool take_abi(struct replay_cli *c, const char *value)
{
	char *end;
	long n = strtol(value, &end, 10);
	if (end == value || *end || n < 1 || n > LLRIGHT_ABI_MAX)
		return complain_wrong("--abi", value, "a Landlock ABI that this warder knows");
	c->abi = (int)n;
	return true;
}

static const struct replay_option {
	const char *name;
	bool valued;
} options[] = {{"policy", true}, {"preset", true}, {"map", true},      {"cwd", true},
	       {"abi", true},	 {"json", false},  {"partial", false}, {"ruleset", false},
	       {"ask", false},	 {"help", false}};

enum { POLICY, PRESET, MAP, CWD, ABI, JSON, PARTIAL, RULESET, ASK, HELP };

static enum cli_parse apply(struct replay_cli *c, size_t which, const char *v)
{
	bool ok = true;
	switch (which) {
	case POLICY:
		ok = cli_list_add(&c->policies, v);
		break;
	case PRESET:
		ok = cli_list_add(&c->presets, v);
		break;
	case MAP:
		ok = take_map(c, v);
		break;
	case CWD:
		c->cwd = v;
		break;
	case ABI:
		ok = take_abi(c, v);
		break;
	case JSON:
		c->json = true;
		break;
	case PARTIAL:
		c->partial = true;
		break;
	case RULESET:
		c->ruleset = true;
		break;
	case ASK:
		c->ask = true;
		break;
	default:
		return CLI_HELP;
	}
	return ok ? CLI_PARSED : CLI_WRONG;
}

static void unknown(const char *word)
{
	AUTOFREE
	char *name = cli_option_name(word);
	struct nearname near = nearname_begin(name ? name : "");
	for (size_t k = 0; k < ARRAY_LEN(options); k++)
		nearname_try(&near, options[k].name);
	cli_complain_of_option(word, &near, "replay");
}

/* One option at argv[*i]; *i then stands behind it and its value. */
static enum cli_parse take_option(struct replay_cli *c, int argc, char **argv, int *i)
{
	const char *word = argv[(*i)++];
	size_t len = strcspn(word, "=");
	for (size_t k = 0; k < ARRAY_LEN(options); k++) {
		const char *name = options[k].name;
		bool is = !strcmp(word, "-h")
				  ? k == HELP
				  : strlen(name) + 2 == len && !strncmp(word, "--", 2) &&
					    !strncmp(word + 2, name, len - 2);
		if (!is)
			continue;
		const char *value = word[len] ? word + len + 1 : NULL;
		if (!options[k].valued && value) {
			cli_complain("--%s: it takes no value", name);
			return CLI_WRONG;
		}
		if (options[k].valued && !value) {
			if (*i >= argc) {
				cli_complain("--%s needs a value; see warder replay --help", name);
				return CLI_WRONG;
			}
			value = argv[(*i)++];
		}
		return apply(c, k, value);
	}
	unknown(word);
	return CLI_WRONG;
}

static enum cli_parse parse(struct replay_cli *c, int argc, char **argv, int *i)
{
	while (*i < argc && argv[*i][0] == '-' && argv[*i][1]) {
		if (!strcmp(argv[*i], "--")) {
			++*i;
			break;
		}
		enum cli_parse p = take_option(c, argc, argv, i);
		if (p != CLI_PARSED)
			return p;
	}
	if (*i >= argc) {
		cli_complain("no trace given; see warder replay --help");
		return CLI_WRONG;
	}
	if (c->ask && (c->partial || c->ruleset)) {
		cli_complain("--ask is about what was refused: it can't be used with --partial or "
			     "--ruleset");
		return CLI_WRONG;
	}
	if (c->partial && c->ruleset) {
		cli_complain("--partial is a result to be merged: it can't be used with --ruleset");
		return CLI_WRONG;
	}
	return CLI_PARSED;
}

/* ---- the policy that decides ---- */

static bool is_asked_for(const struct replay_cli *c)
{
	return c->policies.len || c->presets.len;
}

/* A string of ours, as long as the replay; NULL stays NULL. */
static const char *keep(struct replay_cli *c, char *text)
{
	if (text && c->texts < ARRAY_LEN(c->text))
		c->text[c->texts++] = text;
	return text;
}

static char *mapped_or_copy(const struct replay_cli *c, const char *path)
{
	char *mapped = path ? replay_mapped(c->map, c->maps, path) : NULL;
	return mapped ? mapped : path ? strdup(path) : NULL;
}

/* What a recorded policy brings beside the rules of the recording user. */
static int add_kept(const struct policy *recorded, bool all, struct policy *p)
{
	int err = 0;
	for (size_t i = 0; recorded && !err && i < policy_len(recorded); i++) {
		const struct rule *rule = policy_at(recorded, i);
		if (all || rule->source == RULE_BUILTIN || rule->source == RULE_PRESET)
			err = policy_add(p, rule);
	}
	return err;
}

/* No policy was recorded: the presets that a run has, and the user's own rules. */
static int add_default(const struct replay_cli *c, const struct policy_vars *vars, struct policy *p,
		       struct policy_error *e)
{
	static const char *const presets[] = {"system", "tmp", "project"};
	int err = 0;
	for (size_t i = 0; !err && i < ARRAY_LEN(presets); i++)
		err = preset_add(p, presets[i], vars, e);
	if (err || c->policies.len)
		return err;
	extern char **environ;
	struct store store;
	err = store_open(environ, &store, e);
	if (err)
		return err;
	char *user AUTOFREE = store_user_policy(&store);
	err = user ? policyfile_load(p, user, RULE_USER, vars, e) : -ENOMEM;
	store_release(&store);
	if (err != -ENOENT)
		return err;
	e->text[0] = '\0';
	return 0;
}

static int add_asked_for(const struct replay_cli *c, const struct policy_vars *vars,
			 struct policy *p, struct policy_error *e)
{
	int err = 0;
	for (size_t i = 0; !err && i < c->policies.len; i++)
		err = policyfile_load(p, c->policies.item[i], RULE_FILE, vars, e);
	for (size_t i = 0; !err && i < c->presets.len; i++)
		err = preset_add(p, c->presets.item[i], vars, e);
	return err;
}

/* 0, -EINVAL with a sentence, -ENOMEM. */
static int make_policy(const struct replay_cli *c, const struct trace_header *h,
		       const struct policy *recorded, struct policy **ret, struct policy_error *e)
{
	char *home AUTOFREE = mapped_or_copy(c, h->home ? h->home : c->home);
	char *project AUTOFREE = mapped_or_copy(c, h->project ? h->project
						   : h->cwd   ? h->cwd
							      : c->cwd);
	char *tmpdir AUTOFREE = mapped_or_copy(c, h->tmpdir);
	struct policy_vars vars = {
		.home = home, .project = project, .tmpdir = tmpdir, .as_written = true};
	struct policy *p;
	int err = policy_new(&p);
	if (err)
		return err;
	err = recorded ? add_kept(recorded, !c->policies.len, p) : add_default(c, &vars, p, e);
	if (!err)
		err = add_asked_for(c, &vars, p, e);
	if (err)
		policy_free(p);
	else
		*ret = p;
	return err;
}

static int read_recorded(const struct replay_cli *c, const struct trace_header *h,
			 struct policy **ret, struct policy_error *e)
{
	struct policy *p;
	*ret = NULL;
	if (!h->policy)
		return 0;
	int err = policy_new(&p);
	if (!err)
		err = tracepolicy_read(h->policy, p, e);
	if (!err && c->maps) {
		struct policy *here;
		err = replay_map_policy(c->map, c->maps, p, &here);
		policy_free(p);
		p = err ? NULL : here;
	}
	if (err)
		policy_free(p);
	else
		*ret = p;
	return err;
}

/* ---- inputs ---- */

static char **copy_argv(const char *const *argv)
{
	size_t n = 0;
	while (argv && argv[n])
		n++;
	char **copy = calloc(n + 1, sizeof *copy);
	for (size_t i = 0; copy && i < n; i++)
		copy[i] = strdup(argv[i]);
	return copy;
}

/* What the report says of the run. */
static void take_first(struct replay_cli *c, const struct trace_header *h)
{
	struct report *rep = &c->report;
	c->has_first = true;
	c->command = copy_argv(h->argv);
	rep->command = c->command;
	rep->cwd = keep(c, mapped_or_copy(c, h->cwd ? h->cwd : ""));
	rep->label = keep(c, h->label ? strdup(h->label) : NULL);
	rep->engine.mode = keep(c, strdup(h->mode && !is_asked_for(c) ? h->mode : "report"));
	rep->engine.landlock_abi = c->first_abi = h->landlock_abi;
	c->origin = (struct report_origin){
		.started = keep(c, h->started ? strdup(h->started) : NULL),
		.host = keep(c, h->host ? strdup(h->host) : NULL),
		.kernel = keep(c, h->kernel ? strdup(h->kernel) : NULL),
		.has_uid = h->has_uid,
		.uid = h->uid,
	};
	if (!h->home)
		return;
	free(c->home);
	c->home = mapped_or_copy(c, h->home);
}

static int begin_replay(struct replay_cli *c)
{
	const struct replay_options o = {.maps = c->map, .maps_len = c->maps};
	return replay_new(&o, &c->replay);
}

/* For a partial result each trace is by itself: what is the same in several is joined in no order.
 */
static int put_by(struct replay_cli *c, const struct policy *policy)
{
	struct replay_result *one = replay_done(c->replay);
	plan_mark(&one->denials, policy, NULL);
	int err = replaypartial_add(c->parts, one);
	replay_free(c->replay);
	c->replay = NULL;
	return err ? err : begin_replay(c);
}

/* 0, or CLI_EXIT_TROUBLE: told. */
static int read_one(struct replay_cli *c, struct trace_reader *t)
{
	const struct trace_header *h = trace_header(t);
	struct policy *recorded = NULL, *given = NULL;
	struct policy_error why = {""};
	struct trace_error fault = {""};
	int err = read_recorded(c, h, &recorded, &why);
	if (!err && (is_asked_for(c) || !recorded))
		err = make_policy(c, h, recorded, &given, &why);
	if (!err && !c->has_first)
		take_first(c, h);
	if (!err && !c->ruleset)
		err = replay_read(c->replay, t, given, recorded, &fault);
	if (!err && c->partial)
		err = put_by(c, given ? given : recorded);
	if (err)
		cli_complain("%s%s%s", why.text[0] ? trace_name(t) : "", why.text[0] ? ": " : "",
			     why.text[0]     ? why.text
			     : fault.text[0] ? fault.text
					     : strerror(-err));
	if (!err && !c->first_policy) {
		c->first_policy = given ? given : recorded;
		if (given)
			policy_free(recorded);
		return 0;
	}
	policy_free(given);
	policy_free(recorded);
	return err ? CLI_EXIT_TROUBLE : 0;
}

/* A trace: of the next file, or of several that belong together (strace -ff's). */
static int open_trace(struct replay_cli *c, struct traceinput *in, struct trace_reader **ret,
		      struct trace_error *why)
{
	unsigned *told = &c->faults_told;
	const struct trace_options o = {.cwd = c->cwd, .fault = cli_tell_fault, .fault_arg = told};
	*told = 0;
	if (!strcmp(c->files[0], "-"))
		return trace_open_input(in, &o, ret, why);
	traceinput_close(in);
	return trace_open_first(c->files, c->files_len, &o, ret, &c->taken, why);
}

/* The next of the files; c->taken: how many of them that were. 0, or CLI_EXIT_TROUBLE: told. */
static int read_input(struct replay_cli *c)
{
	struct trace_error why = {""};
	struct trace_reader *t = NULL;
	struct traceinput *in;
	c->taken = 1;
	int err = traceinput_open(c->files[0], &in);
	if (err) {
		cli_complain("%s: %s", c->files[0], traceinput_trouble(err));
		return CLI_EXIT_TROUBLE;
	}
	if (replaypartial_is(in)) {
		err = replaypartial_read(c->parts, in, &why);
		traceinput_close(in);
	} else {
		err = open_trace(c, in, &t, &why);
	}
	if (err)
		cli_complain("%s", why.text[0] ? why.text : strerror(-err));
	int status = err ? CLI_EXIT_TROUBLE : t ? read_one(c, t) : 0;
	trace_close(t);
	return status;
}

static int replay(struct replay_cli *c)
{
	int status = 0;
	if (begin_replay(c) || replaypartial_new(&c->parts)) {
		cli_complain("no memory");
		return CLI_EXIT_TROUBLE;
	}
	while (!status && c->files_len) {
		status = read_input(c);
		c->files += c->taken;
		c->files_len -= c->taken;
	}
	return status ? status : replayout(c);
}

static void release(struct replay_cli *c)
{
	cli_list_release(&c->policies);
	cli_list_release(&c->presets);
	replay_free(c->replay);
	replaypartial_free(c->parts);
	policy_free(c->first_policy);
	report_release(&c->report);
	buf_free(&c->answers);
	for (size_t i = 0; i < ARRAY_LEN(c->map_text); i++)
		free(c->map_text[i]);
	for (size_t i = 0; i < c->texts; i++)
		free(c->text[i]);
	for (char **p = c->command; p && *p; p++)
		free(*p);
	free(c->command);
	free(c->home);
}

int cli_replay(int argc, char **argv)
{
	struct replay_cli c = {0};
	char here[PATH_MAX];
	int i = 1, status;
	extern char **environ;
	c.home = store_home(environ);
	c.report.origin = &c.origin;
	c.cwd = getcwd(here, sizeof here);
	switch (parse(&c, argc, argv, &i)) {
	case CLI_HELP:
		help();
		status = 0;
		break;
	case CLI_WRONG:
		status = CLI_EXIT_USAGE;
		break;
	case CLI_PARSED:
	default:
		c.files = (const char *const *)argv + i;
		c.files_len = (size_t)(argc - i);
		status = replay(&c);
	}
	release(&c);
	return status;
}
