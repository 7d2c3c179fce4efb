/*
 * engine: the one file that ties it all: one command under supervision, from spawn to report.
 *
 * A session holds what outlives a run: the policy in effect, the answers given, the private
 * temporary directory, the audit. A run executes one command (again, where `retry` says so) and
 * gives an outcome. Everything happens on the calling thread, in the session's loop; the broker's
 * workers are its only other threads.
 */
#pragma once

#include "supervisor/ask.h"
#include "supervisor/loop.h"
#include "supervisor/policy.h"
#include "supervisor/report.h"
#include "supervisor/store.h"

#include <stdbool.h>
#include <stdint.h>

struct status; /* tracer/status.h */

/* PERMISSIVE: no wall; what would have been refused is reported. */
enum engine_mode { ENGINE_MODE_AUTO, ENGINE_HOLD, ENGINE_RETRY, ENGINE_REPORT, ENGINE_PERMISSIVE };
/* SOCKET: `warder ask` in another terminal (supervisor/desk.h). */
enum engine_ask { ENGINE_ASK_AUTO, ENGINE_ASK_TTY, ENGINE_ASK_SOCKET, ENGINE_ASK_NONE };

struct tracewrite;

struct session_options {
	char *const *env;	   /* the environment to read XDG_*, HOME, CI, NO_COLOR from */
	const char *project;	   /* --project, or NULL */
	char *const *policy_files; /* NULL-terminated; not NULL: instead of the saved policies */
	char *const *presets;	   /* NULL-terminated names to add */
	char *const *no_presets;   /* NULL-terminated names to drop */
	bool no_default_presets;
	char *const *rule_lines; /* NULL-terminated policy lines, for this session */
	bool tmp_shared;
	bool allow_degraded;
	bool asks_only; /* nothing is decided: no audit is opened */
	const char *label;
	const char *name; /* --session: shared with other runs of that name (named.h); or NULL */
};

struct session;

/* 0, or -errno with one sentence (a policy error is "FILE:LINE:COL: ..."); -EINVAL: a bad policy.
 */
int session_new(const struct session_options *o, struct session **ret,
		struct policy_error *ret_error);
/*
 * The temporary directory with all that commands left in it, unless it outlives the session or
 * this was called before. 0, or -errno: something stays. session_free() does it without a word.
 */
int session_remove_tmpdir(struct session *s);
void session_free(struct session *s);
struct loop *session_loop(struct session *s);
const struct policy *session_policy(const struct session *s); /* rules and answers */
const struct store *session_store(const struct session *s);
const struct project *session_project(const struct session *s);
/* The temporary directory of its commands. */
const char *session_tmpdir(const struct session *s);
/* Sentences the user should hear once at the start ("the project would be your home...");
 * NULL-terminated. */
char *const *session_notes(const struct session *s);
/* Add a rule for the rest of the session (as an answer "session" would). */
int session_grant(struct session *s, const struct rule *rule);
size_t session_revoke(struct session *s, const char *path);

/* Counts of what a caller may want to print while it waits. */
struct engine_hooks {
	void *arg;
	/* a line for the user (already escaped, no newline), e.g. notes under -v */
	void (*say)(void *arg, const char *line);
	/*
	 * The first question opened (true), the last one is settled (false): in between the caller
	 * keeps its own words off the terminal. May be NULL.
	 */
	void (*asking)(void *arg, bool open);
	/*
	 * Answers questions itself, one at a time, on the loop's thread; the tree's next questions
	 * wait meanwhile. A loan; *ret is a no until it is filled. An answer that is not offered is
	 * taken for a no. NULL: somebody else is asked.
	 */
	void (*answer)(void *arg, const struct question *q, struct answer *ret);
};

struct engine_command {
	char *const *argv;	   /* argv[0] is looked up in PATH of `env` where it has no slash */
	char *const *env;	   /* the command's environment, before TMPDIR and scrubbing */
	const char *cwd;	   /* NULL: ours */
	const struct status *self; /* what engine_is_traced() has just read; NULL: it is read */
	const char *title;	   /* who asks, while the command's own file runs; NULL: its name */
	int stdio[3];		   /* -1: ours */
	const int *keep_from, *keep_to; /* further descriptors, see tracer_spawn */
	size_t keep_len;
	bool own_terminal;  /* make an inner terminal where there is a controlling one (`warder
			     * run`);  false: the command has no terminal at all (the agent's tools)
			     */
	char *const *scrub; /* NULL-terminated names to take out of env */
	bool scrub_secrets;
	enum engine_mode mode;
	enum engine_ask ask;
	bool yes;
	int events, answers; /* -1: none */
	int64_t answer_timeout_ms;
	int64_t timeout_ms;    /* 0: none; --timeout */
	int64_t kill_after_ms; /* 0: 2 s after TERM */
	int timeout_signal;    /* 0: SIGTERM */
	bool leftovers_wait;
	bool stacks;		  /* each denial's first call is told with its stack */
	bool slow;		  /* without the tracer's fast path */
	struct tracewrite *trace; /* a trace is written into it; the caller's to finish. Or NULL */
	bool color;
	volatile sig_atomic_t
		*cancel; /* set by the caller's signal handler: end the tree; may be NULL */
	struct engine_hooks hooks;
};

/* How the run went, beside the report. */
struct engine_outcome {
	struct report report; /* release with report_release() */
	bool timed_out;
	bool ran;  /* false: nothing was run; `error` says why, or the report's signal */
	int error; /* -errno */
	struct policy_error why; /* one sentence */
	bool not_found; /* the command was not found (127) or could not be executed (126) */
	bool not_executable;
};

/*
 * Somebody traces us already (a debugger, strace, another warder): nothing could be supervised. In
 * *ret_self what was read to know it; its text is empty where nothing could be.
 */
bool engine_is_traced(struct status *ret_self);
/* 0: see *ret; -errno only where not even a report could be made (no memory). */
int engine_run(struct session *s, const struct engine_command *c, struct engine_outcome *ret);
/* The exit status `warder run` has: 0-255, or a negative signal number to die by. */
int engine_exit_status(const struct engine_outcome *o, bool fail_on_denial);
