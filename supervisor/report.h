/*
 * report: one JSON object about a run (--report, --json), and its last lines on stderr.
 */
#pragma once

#include "supervisor/denial.h"
#include "supervisor/plan.h"
#include "tracer/buf.h"

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct report_grant {
	char *path; /* owned */
	uint32_t access;
	enum scope_kind kind;
	enum lifetime lifetime;
	enum answered_by by;
};

struct report_source {
	const char *source; /* "preset", "user", "project", "file", "command line" */
	char *path;	    /* owned; or the preset's name */
	char sha256[65];    /* "" where there is no text */
};

struct report_leftover {
	pid_t pid;
	char *exe; /* owned */
	char *argv0;
};

/* A run that was recorded elsewhere, or earlier. NULL: not told. */
struct report_origin {
	const char *started; /* RFC 3339 */
	const char *host;
	const char *kernel;
	bool has_uid;
	int64_t uid;
};

struct report {
	char run[33]; /* hex id */
	const char *label;
	struct timespec started; /* CLOCK_REALTIME */
	char *const *command;	 /* redacted by the writer unless no_redact */
	const char *cwd;
	bool no_redact;
	/* status: exactly one */
	bool exited;
	int exit_code;
	int signal;
	unsigned runs;
	int64_t wall_ms, held_ms;
	struct {
		int landlock_abi;
		const char *mode; /* hold, retry, report, permissive */
		bool fast;	  /* the fast path was on */
		uint64_t patched; /* call sites that it changed, in all address spaces */
		uint64_t stops, brokered;
		uint64_t unwound; /* stacks that somebody wanted to see */
		char **degraded;  /* owned lists, NULL-terminated, may be NULL */
		char **notes;
		size_t notes_told; /* the first ones: lines on stderr, too */
	} engine;
	struct report_source *sources;
	size_t sources_len;
	struct denial_list denials;
	struct report_grant *grants;
	size_t grants_len;
	struct report_leftover *leftovers;
	size_t leftovers_len;
	char **suggested;
	const struct report_origin *origin; /* a loan; NULL: this machine, `started` */
	/* Further members, or NULL. */
	void (*more)(struct jsonw *w, const void *arg);
	const void *more_arg;
};

/*
 * The object on one line, without newline; nothing in it moves a terminal. Host, user and kernel
 * are this machine's. 0, -ENOMEM or -EFBIG (out->max).
 */
int report_write(const struct report *r, struct buf *out);
/* Frees what is owned; command, cwd, label and mode are loans. */
void report_release(struct report *r);
/*
 * At most five lines for stderr about what stayed refused, each escaped, with newline; home as ~.
 * Where there is more, the fifth says how much. Nothing where nothing was refused.
 */
void report_summary(const struct report *r, const char *home, struct buf *out);
/* One denial as a line, with what decided; and what could not be decided. */
void report_line(const struct denial *d, const char *home, struct buf *out);
void report_unsure_line(const struct denial *d, const char *home, struct buf *out);
/* SHA-256 of a text, as hex. */
void report_sha256(const void *bytes, size_t n, char ret[65]);
