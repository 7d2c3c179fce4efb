/*
 * turn: one turn of the user: the provider is asked, its tool calls are run and answered, and
 * again, until it calls no more.
 *
 * A conversation that has grown too long is made short before a request (compact.h), or when the
 * server says that it is too long; that is said.
 *
 * Whatever ends a turn, the conversation stays valid: every call has its answer, and a turn that
 * failed before anything was done is taken back whole.
 */
#pragma once

#include "agent/compact.h"
#include "agent/provider.h"
#include "agent/toolrun.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Requests to the provider in one turn. */
#define TURN_STEPS 50
/* Wall time of one turn, without the time that questions waited for their answers. */
#define TURN_SECONDS 3600
/* The same refused call is run this often, and not again. */
#define TURN_REFUSED_RUNS 2

enum turn_end {
	TURN_DONE,
	TURN_CANCELLED, /* *cancel was raised */
	TURN_PROVIDER,	/* the provider failed */
	TURN_STEPS_SPENT,
	TURN_TIME_SPENT,
	TURN_REPEATED, /* a refused call came a third time */
	TURN_TROUBLE,  /* nothing can be run here, or no memory */
};

/* Who shows it. Any function may be NULL; what they get is on loan for the call, and foreign. */
struct turn_sink {
	void *arg;
	void (*text)(void *arg, const char *bytes, size_t n); /* a piece of the model's text */
	void (*text_end)(void *arg);			      /* the message's text is complete */
	void (*tool_start)(void *arg, const struct convo_call *call);
	void (*tool_end)(void *arg, const struct convo_call *call,
			 const struct tool_result *result);
	void (*note)(void *arg, const char *line);
	struct toolrun_sink tool; /* while a call runs */
};

/* Who runs a call; toolrun_call() behind a struct toolrun, or a test's own. */
struct turn_runner {
	void *arg;
	int (*call)(void *arg, const struct tool *t, const struct json *args,
		    const struct toolrun_sink *sink, struct tool_result *ret);
};

struct turn {
	struct provider *provider; /* loans, all of them */
	struct convo *convo;
	const char *model; /* NULL: the provider's choice */
	struct turn_runner runner;
	struct turn_sink sink;
	const volatile sig_atomic_t *cancel;
	unsigned steps;		     /* 0: TURN_STEPS */
	unsigned seconds;	     /* 0: TURN_SECONDS */
	struct compact_gauge *gauge; /* kept from turn to turn */
};

struct turn_result {
	enum turn_end end;
	char words[1200];	     /* one sentence, foreign bytes in it; "" where TURN_DONE */
	unsigned steps;		     /* requests made */
	unsigned tool_calls;	     /* calls answered */
	struct provider_usage usage; /* summed up; -1: not told */
	struct denial_list denials;  /* owned: of all its calls */
};

/*
 * Make the conversation short now. 0, or an error of compact_run() with its sentence. *ret_usage is
 * what it took.
 */
int turn_compact(const struct turn *t, struct provider_usage *ret_usage,
		 struct provider_error *ret_error);
/* An assistant's word, where a server would otherwise see two of the user's in a row. 0 or -ENOMEM.
 */
int turn_close(struct convo *c, const char *words);
const char *turn_end_name(enum turn_end end);
/* Blocks until the turn ended. Never fails in any other way than result.end says. */
void turn_run(const struct turn *t, const char *words, struct turn_result *ret);
void turn_result_release(struct turn_result *r);
