/*
 * toolanswer: what a tool's call is told to have come to: the model's JSON, and a human's few
 * words.
 */
#pragma once

#include "agent/headtail.h"
#include "agent/spool.h"
#include "agent/toolrun.h"

/* What the call gave. Loans. */
struct toolanswer_said {
	struct headtail *output;   /* of run_shell; NULL: a file tool */
	const struct spool *spool; /* all of it, where that is more */
	const char *cwd;	   /* that the model named, or NULL */
	const struct buf *answer;  /* a file tool's */
	bool too_long;		   /* that is not all of it */
};

/* Takes the outcome's denials over. 0 or -ENOMEM, and nothing in *ret. */
int toolanswer_make(const struct toolrun *r, struct engine_outcome *o,
		    const struct toolanswer_said *said, struct tool_result *ret);
/* An answer without a run: a sentence, as {"error":{"message":...}}. 0 or -ENOMEM. */
int toolanswer_refuse(const char *message, struct tool_result *ret);
/* One refusal as an object, for the model's answer and for --output json (then with its program).
 */
void toolanswer_write_denial(struct jsonw *w, const struct denial *d, bool for_model);
