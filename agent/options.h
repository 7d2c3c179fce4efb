/*
 * options: the command line of `warder agent`: its own options, and those it shares with run.
 */
#pragma once

#include "agent/oneshot.h"
#include "agent/provider.h"
#include "supervisor/cli.h"

struct options {
	const char *prompt; /* all strings are loans of argv */
	enum oneshot_output output;
	enum provider_kind provider;
	const char *model, *endpoint, *script;
	const char *resume; /* NULL: a new session; "": the last one */
	unsigned context;
	unsigned max_steps, max_seconds, stall_timeout;
	bool verbose;
	bool help_all; /* --help all */
	struct cli_options shared;
};

/* CLI_WRONG: a sentence was printed on stderr. options_release() in any case. */
enum cli_parse options_parse(int argc, char **argv, struct options *ret);
void options_release(struct options *o);
/* To stdout; all: with a line for each option that is shared, too. */
void options_help(bool all);
