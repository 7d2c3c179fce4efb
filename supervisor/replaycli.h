/*
 * What the parts of `warder replay` share: cli_replay.c (the command line, the policy that decides,
 * the inputs), replayout.c (what comes out).
 */
#pragma once

#include "supervisor/cli.h"
#include "supervisor/replay.h"
#include "supervisor/replaypartial.h"
#include "supervisor/report.h"

#define REPLAYCLI_MAPS_MAX 64

struct replay_cli {
	struct cli_list policies, presets;
	struct replay_map map[REPLAYCLI_MAPS_MAX];
	char *map_text[2 * REPLAYCLI_MAPS_MAX]; /* owned */
	size_t maps;
	const char *cwd;
	int abi; /* 0: the trace's, else this kernel's */
	bool json, ruleset, partial, ask;
	struct buf answers;   /* --ask: the rules given */
	unsigned faults_told; /* of the trace that is read */

	const char *const *files; /* those that are left */
	size_t files_len, taken;
	char *home; /* owned; ours */
	struct replay *replay;
	struct replaypartial *parts;
	/* Of the first trace: what the report says of the run. */
	bool has_first;
	struct report report;
	struct report_origin origin;
	char *text[8]; /* owned: what report and origin lend */
	size_t texts;
	char **command;
	struct policy *first_policy; /* owned: the one that decided it */
	int first_abi;
};

/* Everything was read: the report, a partial result or the ruleset. The exit status. */
int replayout(struct replay_cli *c);
