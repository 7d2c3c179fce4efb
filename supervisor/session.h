/*
 * session: what outlives a run: the policy in effect with its answers, the private temporary
 * directory, the files that are ours. Made once, used by any number of runs, one at a time.
 */
#pragma once

#include "supervisor/audit.h"
#include "supervisor/engine.h"
#include "supervisor/named.h"
#include "supervisor/pool.h"
#include "supervisor/tmpdirs.h"

struct session {
	struct loop *loop;
	struct policy *policy;
	unsigned policy_version; /* counts changes: a compiled guard is good for one version */
	struct store store;
	struct project project;
	char *home;   /* loan of store's */
	char *tmpdir; /* owned; NULL: shared. A named session's outlives this one */
	bool tmpdir_removed;
	struct tmpdirs_note tmpdir_note; /* of one that ends with this session */
	char *tmp_shared;  /* owned; --tmp shared: the user's own temporary directory */
	char *cwd;	   /* owned */
	struct pool *pool; /* NULL: nothing to gain, or no place for one */
	bool pool_tried;
	struct named named; /* --session: what other runs share; no dir: none */
	int shared_fd;	    /* readable when others gave an answer; -1: no name */
	char run[33];	    /* hex id of the session's runs */
	struct audit audit;
	bool audit_failed; /* said once */
	bool saving;	   /* "always" and "never" are offered */
	bool allow_degraded;
	const char *label;
	char **notes; /* owned, NULL-terminated */
	size_t notes_len;
	struct report_source *sources;
	size_t sources_len;
};

/* What policy texts may name. Loans. */
struct policy_vars session_vars(const struct session *s, char *const *env);
/* Add a rule and count the change. */
int session_add_rule(struct session *s, const struct rule *rule);
/* The pool (a loan), made at the first call; NULL: nothing to gain from one, or no place for it. */
struct pool *session_pool(struct session *s);
/* Takes the string over, which session_notes() lists then; NULL: nothing. 0 or -ENOMEM. */
int session_note(struct session *s, char *note);

/* session_links.c: names that a command could have led elsewhere */
/* A symlink on the rule's way lies where the command may make names: it opens nothing. */
bool session_doubts(const struct session *s, const struct rule *rule);
/*
 * The same for the name of a file that we are to write: 0 and its real name (owned), which is the
 * one to open (tracer/outfile.h), without following anything any more; -ELOOP with the link (owned)
 * that a command could have made; another -errno with neither.
 */
int session_doubts_file(const struct session *s, const char *file, char **ret_real,
			char **ret_link);
/* Leave out the rules that are doubted; a note tells of the first. */
int session_drop_doubtful(struct session *s);

/* session_shared.c: --session NAME */
/* 0, or -errno with a sentence. */
int session_share(struct session *s, const char *name, struct policy_error *ret_error);
void session_unshare(struct session *s);
/*
 * An answer was given, a rule or (rule NULL) a preset: to the other runs of the name, now and
 * later. 0, also where there is no name; or -errno with a sentence.
 */
int session_tell_others(struct session *s, const struct rule *rule, const char *preset,
			const char *comment, struct policy_error *ret_error);
/* Take over what others answered: the number of new rules, or -errno. Reads, so that shared_fd is
 * quiet again. */
int session_hear_others(struct session *s, char *const *env);
