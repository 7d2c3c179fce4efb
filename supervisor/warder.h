/*
 * warder.h: libwarder's public face: run a command inside a Landlock wall under a ptrace
 *supervisor.
 *
 *	struct warder_options o = { .rules = (char *[]){ "allow r /srv/data", NULL } };
 *	struct warder_result r;
 *	if (warder_run(&o, (char *[]){ "make", "test", NULL }, &r) == 0)
 *		puts(r.report);
 *	warder_result_release(&r);
 *
 * The command runs with the caller's stdin, stdout and stderr. While it runs the calling thread
 *handles SIGCHLD, SIGINT, SIGTERM and SIGHUP for it and puts back what was there; other threads of
 * the caller should block them. The caller must not wait for "any child" meanwhile. Blocks until
 *every process of the command is gone.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct warder_options {
	char *const *rules;   /* policy lines, NULL-terminated; may be NULL */
	char *const *presets; /* beside system, tmp and project; may be NULL */
	char *const *env;     /* the command's environment; NULL: ours */
	const char *project;  /* NULL: the git top level, else the current directory */
	const char *label;    /* carried into report and audit; may be NULL */
	int use_saved;	      /* also the user's and the project's saved policies */
	/*
	 * Questions and answers as JSON lines (docs/protocol.md): descriptors, taken over; 0 or -1:
	 * none. Without answers nothing is asked and what the policy does not allow is refused.
	 */
	int events_fd, answers_fd;
	int64_t timeout_ms; /* 0: none */
};

struct warder_result {
	int status;	 /* 0-255 as `warder run`'s exit status, or -N: ended by signal N */
	char *report;	 /* the JSON report, owned; NULL where nothing was run */
	char error[512]; /* why nothing was run, one sentence; else "" */
};

/* 0: *ret is filled (also where nothing could be run: status 125-127); -errno otherwise. */
int warder_run(const struct warder_options *o, char *const *argv, struct warder_result *ret);
void warder_result_release(struct warder_result *r);
const char *warder_version(void);

#ifdef __cplusplus
}
#endif
