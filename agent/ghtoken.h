/*
 * ghtoken: what `gh auth token` says, GitHub's own command-line program. It may have to ask a
 * keyring, so it is given some seconds.
 */
#pragma once

#define GHTOKEN_LIMIT_MS 10000

/*
 * gh: the program's absolute path. env without what looks secret becomes its environment: a token
 * in there would be its answer, and those were tried. 0 and *ret (the caller's, to be wiped), its
 * first line; -ENOENT: it has none for this host, or did not say in time; -errno.
 */
int ghtoken_ask(const char *gh, const char *host, char *const *env, char **ret);
/* The gh in PATH's absolute directories (a relative one may be a project's). Owned; NULL: none. */
char *ghtoken_program(const char *path);
