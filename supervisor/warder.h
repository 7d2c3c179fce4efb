/*
 * warder.h: libwarder: run a command inside a Landlock wall under a ptrace supervisor, be asked
 * about what it is refused, and let it go on in place.
 *
 *	struct warder_options o = { .rules = (char *[]){ "allow r /srv/data", NULL } };
 *	struct warder_result r;
 *	if (warder_run(&o, (char *[]){ "make", "test", NULL }, &r) == 0)
 *		puts(r.report);
 *	warder_result_release(&r);
 *
 * The command runs with the caller's stdin, stdout and stderr. While it runs the calling thread
 * handles SIGCHLD, SIGINT, SIGTERM and SIGHUP for it and puts back what was there; other threads of
 * the caller should block them. The caller must not wait for "any child" meanwhile. Blocks until
 * every process of the command is gone. One run at a time in a process. The thread's processors and
 * time slice are warder's meanwhile (it goes where the command is; not while `ask` runs), and are
 * put back, too.
 *
 * Link with `pkg-config --static --libs warder`.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- questions ---- */

/* What a yes may cover. scopes[0] of a question is the narrowest. */
struct warder_scope {
	const char *kind; /* "exact", "tree" (it and all below), "preset" */
	const char *path; /* a preset's name for "preset" */
	const char *rule; /* the policy line that it means */
	uint64_t surplus; /* existing things it opens beside what was asked for */
	int surplus_more; /* that is only a lower bound */
	int sensitive;	  /* it covers something on the sensitive list */
};

/* Every pointer is a loan for the callback. Paths are bytes, and the program's to choose. */
struct warder_question {
	const char *path;   /* what the call really reached; NULL: `text` asks (a second run) */
	const char *path2;  /* of a rename or link, or NULL */
	const char *given;  /* as the program gave it, where that differs, or NULL */
	const char *access; /* "read", "write,create", ... (docs/accesses.md) */
	const char *call;   /* "openat" */
	const char *exe;    /* the program's file */
	char *const *argv;  /* NULL-terminated, secrets redacted */
	const char *cwd;
	int pid;
	int exists;
	int sensitive;
	int may_be_saved; /* WARDER_ALWAYS and WARDER_NEVER are offered */
	const char *text; /* "may the command be run again?": what it changed; or NULL */
	const struct warder_scope *scopes;
	size_t scopes_len;
	const char *json; /* all of it, as the `ask` event of docs/protocol.md */
};

enum warder_answer {
	WARDER_NO,	/* not in this run */
	WARDER_NEVER,	/* and that is saved */
	WARDER_ONCE,	/* this process, until it execs or ends */
	WARDER_SESSION, /* this run, and others of its session name */
	WARDER_ALWAYS,	/* and that is saved for the project */
};

/*
 * Called on the thread of warder_run() while the program that asks is held in its call; the tree's
 * next questions wait until it returns. *scope is 0; another number of the question's for a wider
 * yes. What is not offered counts as a no. It must not call warder_run().
 */
typedef enum warder_answer warder_ask_fn(void *arg, const struct warder_question *q,
					 unsigned *scope);

/* ---- a run ---- */

struct warder_options {
	char *const *rules;   /* policy lines, NULL-terminated; may be NULL */
	char *const *presets; /* beside system, tmp and project; may be NULL */
	char *const *env;     /* the command's environment; NULL: ours */
	const char *project;  /* NULL: the git top level, else the current directory */
	const char *label;    /* carried into report and audit; may be NULL */
	const char *session;  /* shares answers and TMPDIR with runs of this name; may be NULL */
	int use_saved;	      /* also the user's and the project's saved policies */
	/*
	 * Who answers questions: this function, or, where it is NULL, whoever reads and writes the
	 * JSON lines below; without both nothing is asked and what the policy does not allow is
	 * refused.
	 */
	warder_ask_fn *ask;
	void *ask_arg;
	/*
	 * Questions and answers as JSON lines (docs/protocol.md): descriptors, taken over; 0 or -1:
	 * none.
	 */
	int events_fd, answers_fd;
	int64_t timeout_ms; /* 0: none; the time of questions does not count */
};

struct warder_result {
	int status;	 /* 0-255 as `warder run`'s exit status, or -N: ended by signal N */
	char *report;	 /* the JSON report (docs/report.md), owned; NULL: nothing was run */
	char error[512]; /* why nothing was run, one sentence; else "" */
};

/*
 * 0: *ret is filled (also where nothing could be run: status 125-127). -EINVAL: no command;
 * -ENOMEM.
 */
int warder_run(const struct warder_options *o, char *const *argv, struct warder_result *ret);
void warder_result_release(struct warder_result *r);
const char *warder_version(void);

#ifdef __cplusplus
}
#endif
