/*
 * policycli: what the words of `warder policy` share: where things are, what is saved, how it is
 * said, and how a person is asked before something is saved.
 *
 * Functions that return a status have said what went wrong on stderr.
 */
#pragma once

#include "supervisor/policyfile.h"
#include "supervisor/project.h"
#include "supervisor/store.h"

enum policycli_status {
	POLICYCLI_FINE = 0,
	POLICYCLI_NO = 1,
	POLICYCLI_USAGE = 2,
	POLICYCLI_TROUBLE = 125,
};

struct policycli {
	struct store store;
	struct project project;
	struct policy_vars vars;
	char *cwd;	    /* owned */
	char *user_file;    /* owned */
	char *project_file; /* owned */
	struct policy_error error;
	/* options */
	bool effective, json, for_project, yes;
	const char *project_dir; /* a loan of argv; NULL: of the cwd */
	const char *format;	 /* a loan of argv; NULL: not given */
};

/* Fills what is not an option. A status. */
int policycli_open(struct policycli *c);
void policycli_release(struct policycli *c);

/* The saved policy that is meant: the user's, or with --project the project's. */
const char *policycli_file(const struct policycli *c);
/* Both saved policies, and what was accepted of the project's proposal. 0, or -errno with c->error.
 */
int policycli_load_saved(struct policycli *c, struct policy *p);
/* The presets that are on by default, and what protects our own files. */
int policycli_load_presets(struct policycli *c, struct policy *p);

/* A file that was named, or with "-" standard input. 0, or -errno with c->error. */
int policycli_read(struct policycli *c, const char *file, struct buf *ret);

/* Both are the status to return. */
int policycli_usage(const char *what, const char *word);
int policycli_trouble(const char *sentence);
/* To stdout, whole; frees it. A status. */
int policycli_put(struct buf *out);

/*
 * "warder: QUESTION [y/N]" on the terminal: POLICYCLI_FINE: yes (or --yes was given), POLICYCLI_NO,
 * or POLICYCLI_TROUBLE where nobody can be asked. What was typed before is not an answer.
 */
int policycli_confirm(const struct policycli *c, const char *question);
/*
 * One line on stderr for each rule of p, of the lines behind after_line, that opens something on
 * the sensitive list.
 */
void policycli_warn_sensitive(struct policycli *c, const struct policy *p, unsigned after_line);
