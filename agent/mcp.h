/*
 * mcp: `warder mcp`: the tools as an MCP server on stdin and stdout (JSON-RPC 2.0, a message a
 * line), for any client: each call is a supervised, walled child as the agent's are.
 *
 * A question about a refused call goes to the user by elicitation where the client can do that;
 * where it can't the call stays refused, and the answer names the command that would allow it.
 * Nothing but messages is ever written to stdout.
 */
#pragma once

#include "agent/toolrun.h"
#include "tracer/buf.h"
#include "tracer/json.h"
#include "tracer/jsontext.h"

#include <stdbool.h>

/* The subcommand. */
int mcp_main(int argc, char **argv);

/* ---- within the server: mcp.c, mcpcall.c, mcpask.c ---- */

/* One line from the client. */
#define MCP_LINE_MAX (32u << 20)
/* Calls that wait for their turn. */
#define MCP_QUEUE_MAX 256

struct mcp_call {
	struct mcp_call *next;
	char *id;	 /* owned: JSON text */
	char *token;	 /* owned: JSON text of its progress token; NULL: no progress is wanted */
	char *name;	 /* owned */
	char *arguments; /* owned: JSON text */
	int64_t progress;
	bool cancelled;
	bool ended; /* by us: that is its answer */
};

/* A question that the client was asked. */
struct mcp_ask {
	struct mcp_ask *next;
	uint64_t number;  /* of our request: "ask-N" */
	int64_t question; /* the engine's id, of the call that runs */
	size_t scopes;	  /* offered */
};

struct mcp_out;

struct mcp {
	struct session *session; /* owned */
	struct toolrun tools;
	struct mcp_out *out;
	struct buf in;	 /* a line that is not whole yet */
	bool overlong;	 /* the rest of it is skipped */
	bool ended;	 /* the client is gone */
	bool ready;	 /* initialize was answered */
	bool elicits;	 /* the client asks its user for us */
	bool structured; /* it knows structuredContent */
	struct mcp_call *queue, *running;
	size_t queued;
	/* The question protocol of the call that runs (docs/protocol.md); -1 else. */
	int events_fd, answers_fd;
	uint64_t events_watch;
	struct buf events;
	struct mcp_ask *asks;
	uint64_t asked;
};

/* Bytes of the client's, cut anywhere: each message is answered, or its call queued. */
void mcp_feed(struct mcp *s, const char *p, size_t n);
/* There are no more. */
void mcp_feed_end(struct mcp *s);

/* An object for the client is begun ("jsonrpc" is in it) and sent. */
struct mcp_message {
	struct buf text;
	struct jsonw w;
};
void mcp_begin(struct mcp_message *m);
void mcp_send(struct mcp *s, struct mcp_message *m);
/* id: JSON text, or NULL for null. */
void mcp_error(struct mcp *s, const char *id, int code, const char *words);
void mcp_begin_result(struct mcp_message *m, const char *id);

/* mcpcall.c */
void mcpcall_list(struct mcp *s, const char *id);
/* raw: the text of params. */
void mcpcall_take(struct mcp *s, const char *id, const struct json *params, struct jsontext raw);
/* Run the first of the queue, to its end. */
void mcpcall_run(struct mcp *s);
void mcpcall_cancel(struct mcp *s, const char *id);
/*
 * The client is gone, or we are told to end: what runs is ended, what waits is not run. words: each
 * of the latter is answered with an error that says so. NULL: nobody reads that any more.
 */
void mcpcall_end_all(struct mcp *s, const char *words);
void mcpcall_progress(struct mcp *s, const char *words);

/* mcpask.c */
/* Before and after a call's run. 0 or -errno. */
int mcpask_open(struct mcp *s);
void mcpask_close(struct mcp *s);
/* The client's answer to our request `id`. */
void mcpask_answer(struct mcp *s, const struct json *message);
