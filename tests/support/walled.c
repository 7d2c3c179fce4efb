/*
 * walled HOW [OPTIONS of warder run] [--] COMMAND [ARG...]: the wall of `warder run` without the
 * tracer, so that another tracer can look on: the same policy, compiled by the same code, the same
 * domain; then COMMAND in this very process.
 *
 *   walled run ...      the policy as it is
 *   walled loose ...    its allow rules alone, so that the kernel grants natively what warder's
 * broker would do beside an exception walled decide ...   runs nothing: for each line "ACCESSES
 * PATH" of stdin one line with the policy's effect
 */
#include "landlock/llabi.h"
#include "supervisor/cli.h"
#include "supervisor/command.h"
#include "supervisor/compile.h"
#include "supervisor/confine.h"
#include "supervisor/environ.h"
#include "supervisor/session.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what, int err)
{
	fprintf(stderr, "walled: %s: %s\n", what, strerror(-err));
	return CLI_EXIT_TROUBLE;
}

static int decide(const struct policy *p)
{
	char *line AUTOFREE = NULL;
	size_t room = 0;
	ssize_t n;
	while ((n = getdelim(&line, &room, '\0', stdin)) > 0) {
		char *blank = strchr(line, ' ');
		uint32_t access;
		size_t at;
		if (!blank || access_parse(line, (size_t)(blank - line), &access, &at))
			return fail(line, -EINVAL);
		puts(effect_name(policy_decide_all(p, blank + 1, access, NULL).effect));
	}
	return 0;
}

static void drop_exceptions(struct policy *p)
{
	for (size_t i = policy_len(p); i-- > 0;)
		if (policy_at(p, i)->effect != EFFECT_ALLOW)
			policy_remove_at(p, i);
}

static int confine_and_exec(const struct cli_options *o, char **argv, struct session *s)
{
	extern char **environ;
	struct command found = {0};
	struct llabi abi;
	struct llruleset *ruleset = NULL;
	struct compile_stats stats;
	struct confine wall = {0};
	int err = command_find(argv[0], environ, NULL, &found);
	if (err || !found.file)
		return fail(argv[0], err ? err : -ENOENT);
	err = command_allow(found.file, NULL, s->policy);
	if (!err)
		err = llabi_detect(&abi);
	if (!err)
		err = compile_policy(s->policy, &abi, (uint32_t)abi.scoped, &ruleset, &stats);
	if (err)
		return fail("the wall", err);
	char **env = environ_make(environ, o->scrub.item, o->scrub_secrets, s->tmpdir);
	if (!env || getrlimit(RLIMIT_NOFILE, &wall.files))
		return fail("the environment", -ENOMEM);
	wall.ruleset = ruleset;
	err = confine_prepare(&wall);
	if (!err)
		err = confine_enter(&wall, 0);
	if (err)
		return fail("entering the wall", err);
	execve(found.file, argv, env);
	return fail(found.file, -errno);
}

static bool parse(struct cli_options *o, int argc, char **argv, int *i)
{
	while (*i < argc && argv[*i][0] == '-' && argv[*i][1]) {
		bool known;
		if (!strcmp(argv[*i], "--")) {
			++*i;
			break;
		}
		if (cli_option(o, argc, argv, i, false, &known) != CLI_PARSED)
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	extern char **environ;
	struct cli_options o;
	struct session_options so;
	struct session *s;
	struct policy_error why;
	int i = 2;
	const char *how = argc > 1 ? argv[1] : "";
	cli_options_init(&o);
	if (!parse(&o, argc, argv, &i) || (i >= argc && strcmp(how, "decide") != 0)) {
		fputs("Usage: walled run|loose|decide [OPTIONS] [--] COMMAND [ARG...]\n", stderr);
		return CLI_EXIT_USAGE;
	}
	cli_session_options(&o, environ, &so);
	int err = session_new(&so, &s, &why);
	if (err)
		return fail(why.text, err);
	if (!strcmp(how, "loose"))
		drop_exceptions(s->policy);
	int status = !strcmp(how, "decide") ? decide(s->policy) : confine_and_exec(&o, argv + i, s);
	session_free(s);
	cli_options_release(&o);
	return status;
}
