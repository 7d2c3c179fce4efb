/*
 * replaypartial: results of replays, merged.
 *
 * A partial result is one JSON object on a line. Merging is associative and commutative, and the
 * merged text is the same whatever came first: what is counted is added up, lists are sorted, and
 * of the same denial in several traces the least one (by its fields, in order) stands for all.
 */
#pragma once

#include "landlock/llruleset.h"
#include "supervisor/replay.h"
#include "tracer/traceinput.h"

struct replaypartial;

int replaypartial_new(struct replaypartial **ret);
void replaypartial_free(struct replaypartial *p);
/* Does the input begin with such a result? It is then read from its beginning all the same. */
bool replaypartial_is(struct traceinput *in);
/* All of an input's results, one a line. 0, -EINVAL or -EIO with a sentence, -ENOMEM. */
int replaypartial_read(struct replaypartial *p, struct traceinput *in,
		       struct trace_error *ret_error);
/* What a replay found. Copies. 0 or -ENOMEM. */
int replaypartial_add(struct replaypartial *p, const struct replay_result *r);
/* Has nothing been added? */
bool replaypartial_is_empty(const struct replaypartial *p);
/* As one result, with newline. *ret_stayed: something stayed refused. */
int replaypartial_write(struct replaypartial *p, struct buf *out, bool *ret_stayed);
/* The whole; a loan of p's, whose denials may be changed. */
struct replay_result *replaypartial_merged(struct replaypartial *p);

/* What a replay's report has beside a run's: "replay": {traces, events, unsure}. */
void replaypartial_write_members(struct jsonw *w, const struct replay_result *r);
/* A ruleset, a rule a line, or as JSON. */
void replaypartial_write_ruleset(const struct llruleset *rs, bool json, bool truncated,
				 struct buf *out);
