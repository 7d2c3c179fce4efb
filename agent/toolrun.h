/*
 * toolrun: one tool call, run as a supervised, walled child of a session, and its answer to the
 * model. The file tools are ourselves again (toolchild), run_shell is a shell.
 *
 * What was refused comes from the supervisor's report alone; a tool's output is never read for it.
 *
 * The answer is one JSON object: toolchild's members, or for run_shell
 *   output, exit | signal, timed_out, and where the middle was cut output_bytes, output_file (all
 *   of it, in the tools' temporary directory)
 * and for both, where something was refused,
 *   denied [{path, path2, access, call, verdict, answer, by, do_not_retry, hint}], denied_more,
 *   to_allow ["warder policy allow …"] (tell_allow)
 */
#pragma once

#include "agent/tools.h"
#include "supervisor/engine.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Refusals told to the model by name for one call; the others are counted. */
#define TOOLRUN_DENIED_MAX    20
#define TOOLRUN_TIMEOUT_S     120
#define TOOLRUN_TIMEOUT_MAX_S 3600
/* A file tool that takes longer hangs (a dead network mount). */
#define TOOLRUN_FILE_TIMEOUT_S 120

struct toolrun {
	struct session *session; /* loan */
	char *self;		 /* owned: our own program's absolute path */
	char *cwd;		 /* owned: where the agent was started */
	int tmp_fd;		 /* owned: the tools' temporary directory; -1: none */
	const char *shell;	 /* static: /bin/bash, else /bin/sh */
	char **env;		 /* owned list (not its strings): the tools' environment */
	enum engine_mode mode;
	enum engine_ask ask;
	bool yes;
	bool color;
	bool tell_allow;     /* answers name the commands that would allow what was refused */
	int events, answers; /* -1: none; each call gets duplicates */
	int64_t answer_timeout_ms;
	volatile sig_atomic_t *cancel; /* may be NULL */
};

/* Any may be NULL. What they get is on loan for the call. */
struct toolrun_sink {
	void *arg;
	int64_t limit_ms; /* at most this long, questions aside; 0: what the call says */
	/* Raw bytes of a command's output, as they come; never while a question is open. */
	void (*output)(void *arg, const char *bytes, size_t n);
	/* What a call is about to change, as unified hunks: before the file is opened for writing.
	 */
	void (*preview)(void *arg, const char *diff, size_t n);
	/* A line from the supervisor, escaped. */
	void (*note)(void *arg, const char *line);
	/* A question is on the terminal: keep off it. */
	void (*asking)(void *arg, bool open);
};

struct tool_result {
	char *answer;	 /* owned: JSON text for the model */
	char status[64]; /* for a human: "ok", "exit 2", "No such file or directory", "refused",
			    "timed out" */
	bool failed;	 /* an error, or an exit status other than 0 */
	bool refused;	 /* something stayed refused, by the sandbox or by permissions */
	bool fatal; /* nothing can be run here: the turn can't go on; `status` and answer say why */
	int64_t held_ms;	    /* of it, waiting for answers */
	struct denial_list denials; /* owned; the granted ones too */
};

/* env: what the tools' environment is made of. 0 or -errno; toolrun_release() in any case. */
int toolrun_init(struct toolrun *r, struct session *s, char *const *env);
void toolrun_release(struct toolrun *r);

/*
 * Run a call whose arguments tools_parse() took. Blocks until it ended; turns the session's loop.
 * 0, or -ENOMEM and nothing in *ret. What went wrong otherwise is an answer.
 */
int toolrun_call(const struct toolrun *r, const struct tool *t, const struct json *args,
		 const struct toolrun_sink *sink, struct tool_result *ret);
void tool_result_release(struct tool_result *r);
