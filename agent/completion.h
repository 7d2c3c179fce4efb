/*
 * completion: what may come next on a command line of ours, read from the subcommands' own --help:
 * an option that is printed there is completed here, with the words printed beside it.
 */
#pragma once

#include "supervisor/cli.h"

struct subcommand {
	const char *name;
	int (*run)(int argc, char **argv); /* with --help it prints its help, and ends */
	const char *synopsis;		   /* NULL: not for people */
	const char *help;
};

/*
 * `warder complete AT WORD...`, for the shells' scripts: a line a candidate for words[AT] (words[0]
 * is warder): the word, a tab, what it is. Or what the shell knows better: ":files",
 * ":directories", ":command N" (words[N] begins a command line of its own). `commands` ends with a
 * NULL name. The exit status.
 */
int completion_complete(const struct subcommand *commands, int argc, char **argv);
/* `warder completion bash|zsh|fish`: the script. */
int completion_main(int argc, char **argv);

extern const char completion_bash[], completion_zsh[], completion_fish[];
