/*
 * token: the GitHub token that Copilot's bearer is exchanged for, and where it was found.
 *
 * Reads files, contacts nobody, reads no environment (see provider_config_from_env).
 */
#pragma once

#include <stddef.h>

#define TOKEN_FILE_MAX (256u << 10)

#define TOKEN_VARIABLES 3 /* COPILOT_GITHUB_TOKEN, GH_TOKEN, GITHUB_TOKEN: tried in this order */

struct token_sources {
	char *const *values;	 /* of the TOKEN_VARIABLES; NULL and "" are skipped */
	const char *stored_path; /* a file that holds nothing but a token; NULL: none */
	const char *editors_dir; /* holds the editors' apps.json and hosts.json; NULL: none */
};

struct token {
	char *value;  /* without space around it */
	char *source; /* for humans: a variable's name or a file's path */
};

/*
 * The first token there is (a classic one only where there is no other: it never works), the
 * caller's to token_free(). -ENOENT: none anywhere. -EINVAL with *ret all the same, value NULL:
 * source names a place that holds something, but no token. -ENOMEM, or -errno of a file that is
 * there and can't be read (source names it).
 */
int token_find(const struct token_sources *from, struct token *ret);
/* Wipes the value. Fine on {0}. */
void token_free(struct token *t);

enum token_kind {
	TOKEN_USER_APP, /* ghu_: what Copilot exchanges */
	TOKEN_OAUTH,	/* gho_: of an OAuth app; exchanged for some apps only */
	TOKEN_FINE,	/* github_pat_ */
	TOKEN_CLASSIC,	/* ghp_: never works with Copilot */
	TOKEN_OTHER,
};

enum token_kind token_kind(const char *value);
