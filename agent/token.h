/*
 * token: the GitHub token that Copilot's bearer is made of, and where it was found.
 *
 * Reads files and may ask gh, reads no environment (see provider_config_from_env).
 */
#pragma once

#include "agent/github.h"

#include <stdbool.h>
#include <stddef.h>

#define TOKEN_FILE_MAX (256u << 10)

#define TOKEN_VARIABLES 3 /* COPILOT_GITHUB_TOKEN, GH_TOKEN, GITHUB_TOKEN: tried in this order */

struct token_sources {
	char *const *values;	 /* of the TOKEN_VARIABLES; NULL and "" are skipped */
	const char *stored_path; /* what token_store() writes; NULL: none */
	const char *gh_path;	 /* the program gh; NULL: not asked */
	char *const *gh_env;	 /* its environment; what looks secret is left out */
	const char *editors_dir; /* holds the editors' apps.json and hosts.json; NULL: none */
	const char *host;	 /* a file's tokens for another host are none; NULL: stored_path may
				    name any, the rest is asked for github.com's */
};

struct token {
	char *value;	      /* without space around it */
	char *source;	      /* for humans: a variable's name, a command, or a file's path */
	struct github github; /* of a stored one: where it is for; else {0} */
};

/*
 * The first token there is (a classic one only where there is no other: it never works), the
 * caller's to token_free(). -ENOENT: none anywhere. -EINVAL with *ret all the same, value NULL:
 * source names a place that holds something, but no token. -ENOMEM, or -errno of a file that is
 * there and can't be read (source names it). Blocks while gh runs, 10 s at most.
 */
int token_find(const struct token_sources *from, struct token *ret);
/* Wipes the value. Fine on {0}. */
void token_free(struct token *t);

/*
 * Keep a token for this GitHub in path: a new file 0600 beside it, synced, renamed over it. -errno;
 * then what was there is untouched.
 */
int token_store(const char *path, const struct github *github, const char *value);
/* 0, -ENOENT: there was none, -errno. */
int token_forget(const char *path);

enum token_kind {
	TOKEN_USER_APP, /* ghu_: what Copilot exchanges */
	TOKEN_OAUTH,	/* gho_: of an OAuth app; exchanged for some apps only */
	TOKEN_FINE,	/* github_pat_: taken as it is, never exchanged */
	TOKEN_CLASSIC,	/* ghp_: never works with Copilot */
	TOKEN_OTHER,
};

enum token_kind token_kind(const char *value);
