/*
 * cli: the subcommands of the supervisor, and what they share.
 */
#pragma once

#include "supervisor/engine.h"

#include <stdbool.h>
#include <stddef.h>

#define CLI_EXIT_USAGE	 2
#define CLI_EXIT_DENIED	 123
#define CLI_EXIT_TIMEOUT 124
#define CLI_EXIT_TROUBLE 125

/* A growing NULL-terminated list of strings; owns copies. */
struct nearname;

struct cli_list {
	char **item;
	size_t len;
};

/* Every option of options.def, as given. */
struct cli_options {
	struct cli_list rules, policies, presets, no_presets, scrub;
	bool no_default_presets;
	const char *project;
	enum engine_mode mode;
	enum engine_ask ask;
	int64_t answer_timeout_ms;
	bool yes;
	int events, answers;
	const char *report;
	const char *trace;
	bool json;
	const char *session;
	const char *label;
	bool tmp_shared;
	bool slow;
	bool scrub_secrets;
	bool fail_on_denial, permissive;
	bool stacks;
	bool allow_degraded;
	bool no_redact;
	int64_t timeout_ms, kill_after_ms;
	bool leftovers_wait;
	bool quiet, verbose;
};

enum cli_parse { CLI_PARSED, CLI_HELP, CLI_WRONG };

void cli_options_init(struct cli_options *o);
void cli_options_release(struct cli_options *o);
/*
 * Take one option at argv[*i] (advancing *i beyond it and its value). agent: only those that the
 * agent shares. CLI_WRONG: a sentence was printed; -ENOENT by *ret_known false: not one of ours.
 */
enum cli_parse cli_option(struct cli_options *o, int argc, char **argv, int *i, bool agent,
			  bool *ret_known);
/* The help lines of the options, to stdout: those that fit a screen, or all of them in groups. */
void cli_options_help(bool agent, bool all);
/* Of "--name" or "--name=value" the name, owned; NULL: it is another word, or there is no memory.
 */
char *cli_option_name(const char *word);
/* Complain about a word that is no option of `where`, with the name that may have been meant. */
void cli_complain_of_option(const char *word, const struct nearname *near, const char *where);
/* The same among a run's options. more: tries others that may be meant; or NULL. */
void cli_unknown_option(const char *word, bool agent, void (*more)(struct nearname *n),
			const char *where);
/* --help stands at argv[i] (CLI_HELP): is it "--help all"? */
bool cli_help_of_all(int argc, char **argv, int i);
/* Session options from the parsed ones; loans. */
void cli_session_options(const struct cli_options *o, char *const *env,
			 struct session_options *ret);
/* What the engine needs of them; loans. stdio and argv stay the caller's. */
void cli_engine_command(const struct cli_options *o, struct engine_command *ret);

/* "10", "10s", "1.5m", "2h", "1d" as timeout(1); false: not a duration. */
bool cli_duration(const char *text, int64_t *ret_ms);
/* "warder: ..." on stderr. */
void cli_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * A struct trace_options' fault: the first few lines that were passed over are told by their place.
 * arg: unsigned *, how many there were.
 */
void cli_tell_fault(void *arg, const char *text);
bool cli_list_add(struct cli_list *l, const char *text);
void cli_list_release(struct cli_list *l);

int cli_run(int argc, char **argv);
int cli_record(int argc, char **argv);
int cli_replay(int argc, char **argv);
int cli_policy(int argc, char **argv);
int cli_ask(int argc, char **argv);
int cli_session(int argc, char **argv);
