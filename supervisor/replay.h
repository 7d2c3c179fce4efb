/*
 * replay: a trace, decided again.
 *
 * As recorded, each event's own decision counts, and the denials are the live report's, one for
 * one. Under another policy it is asked what that one would have refused: what it says of each
 * call's needs (judge.h), as --permissive does while a program runs. What a trace does not tell is
 * `unsure` and never guessed; no file of this machine is looked at.
 *
 * Memory grows with distinct denials (DENIAL_MAX), not with events. Blocks as reading does.
 */
#pragma once

#include "supervisor/denial.h"
#include "supervisor/policy.h"
#include "supervisor/report.h"
#include "tracer/trace.h"

struct replay;

/* A path of the recording machine, and what it is called here: FROM and all below it. Loans. */
struct replay_map {
	const char *from, *to;
};

struct replay_options {
	const struct replay_map *maps;
	size_t maps_len;
};

/* One trace that was read. */
struct replay_trace {
	char *file; /* owned */
	uint64_t events;
	uint64_t faults;
	bool complete;
};

struct replay_result {
	struct denial_list denials; /* in the order in which they came about */
	struct denial_list unsure;  /* what could not be decided: `note` says why */
	struct replay_trace *trace;
	size_t traces;
	uint64_t events;
	bool exited; /* the first trace's first process: its status, if it was told */
	bool ended;
	int status;
	uint64_t last_ns;
	unsigned runs;
};

int replay_new(const struct replay_options *o, struct replay **ret);
void replay_free(struct replay *rp);
/*
 * A whole trace, to its end or its fault. `policy`: NULL, as recorded; else what decides, a loan.
 * `recorded`: the policy in the trace's header, for what only its rules tell (may be NULL). 0,
 * -EINVAL or -EIO with a sentence, -ENOMEM.
 */
int replay_read(struct replay *rp, struct trace_reader *t, const struct policy *policy,
		const struct policy *recorded, struct trace_error *ret_error);
/* After the last trace. The result is a loan of the replay's, whose denials may be changed. */
struct replay_result *replay_done(struct replay *rp);

/* A path as it is called here: an owned string, or NULL where no map speaks of it. */
char *replay_mapped(const struct replay_map *maps, size_t n, const char *path);
/* The same rules, with their paths as they are called here. 0 or -ENOMEM. */
int replay_map_policy(const struct replay_map *maps, size_t n, const struct policy *p,
		      struct policy **ret);
