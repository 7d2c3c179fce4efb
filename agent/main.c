/*
 * warder: the program. Subcommands as a table; each owns its options and its help.
 */
#include "supervisor/cli.h"
#include "supervisor/cli_learn.h"
#include "supervisor/cli_why.h"
#include "supervisor/nearname.h"

#include "agent/cli_agent.h"
#include "agent/cli_doctor.h"
#include "agent/completion.h"
#include "agent/login.h"
#include "agent/mcp.h"
#include "agent/toolchild.h"

#include <stdio.h>
#include <string.h>

static int complete(int argc, char **argv);

static const struct subcommand subcommands[] = {
	{"run", cli_run, "run     [OPTIONS] COMMAND [ARG...]", "run any command under supervision"},
	{"record", cli_record, "record  -o TRACE COMMAND [ARG...]",
	 "run, and record every watched call"},
	{"replay", cli_replay, "replay  [OPTIONS] TRACE...",
	 "decide a recorded run again, offline"},
	{"agent", cli_agent, "agent   [OPTIONS] [-p PROMPT]", "the agent: REPL, or one shot"},
	{"ask", cli_ask, "ask     [RUN] [--once | --json]", "answer runs from another terminal"},
	{"session", cli_session, "session list|end NAME", "what runs of one name share"},
	{"login", login_main, "login   [--host HOST]", "sign in to GitHub, for Copilot"},
	{"logout", login_out_main, "logout", "forget that token"},
	{"policy", cli_policy, "policy  show|allow|deny|edit|...", "the saved policies"},
	{"learn", cli_learn, "learn   [--diff OLD] TRACE...", "the narrowest policy for a trace"},
	{"why", cli_why, "why     [PATH [ACCESS]] | --last", "what decides about a path, and why"},
	{"mcp", mcp_main, "mcp     [OPTIONS]", "the tools as an MCP server on stdio"},
	{"doctor", cli_doctor, "doctor  [--json]", "can this machine supervise? tries it"},
	{"completion", completion_main, "completion bash|zsh|fish", "the shell's completions"},
	{"complete", complete, NULL, NULL},
	{"tool-child", toolchild_main, NULL, NULL},
	{0},
};

static int complete(int argc, char **argv)
{
	return completion_complete(subcommands, argc, argv);
}

static void help(FILE *out)
{
	fputs("Usage: warder SUBCOMMAND ...\n"
	      "Runs tools behind a Landlock wall, sees what the kernel refused, asks, goes on.\n\n",
	      out);
	for (size_t i = 0; subcommands[i].name; i++)
		if (subcommands[i].synopsis)
			fprintf(out, "  warder %-34s %s\n", subcommands[i].synopsis,
				subcommands[i].help);
	fputs("\n  warder --version | --help | SUBCOMMAND --help\n\n"
	      "  warder run -- make test              ask about what it touches outside\n"
	      "  warder agent -p 'fix the build'      an agent whose tools all run like that\n",
	      out);
}

static int unknown(const char *word)
{
	struct nearname near = nearname_begin(word);
	struct buf meant = {0};
	for (size_t i = 0; subcommands[i].name; i++)
		if (subcommands[i].synopsis)
			nearname_try(&near, subcommands[i].name);
	nearname_add(&meant, &near, "");
	cli_complain("unknown %s '%s'%s%s see warder --help",
		     *word == '-' ? "option" : "subcommand", word, buf_str(&meant),
		     near.best ? "" : ";");
	buf_free(&meant);
	return CLI_EXIT_USAGE;
}

/* `warder help policy allow` is `warder policy allow --help`. */
static int help_of(int argc, char **argv)
{
	char *words[] = {argv[0], argc > 1 ? argv[1] : (char *)"--help", (char *)"--help", NULL};
	for (size_t i = 0; subcommands[i].name; i++)
		if (!strcmp(subcommands[i].name, argv[0]))
			return subcommands[i].run(argc > 1 ? 3 : 2, words);
	return unknown(argv[0]);
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;
	if (!word) {
		help(stderr);
		return CLI_EXIT_USAGE;
	}
	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		printf("warder %s\n", WARDER_VERSION);
		return 0;
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
		if (argc > 2)
			return help_of(argc - 2, argv + 2);
		help(stdout);
		return 0;
	}
	for (size_t i = 0; subcommands[i].name; i++)
		if (!strcmp(subcommands[i].name, word))
			return subcommands[i].run(argc - 1, argv + 1);
	return unknown(word);
}
