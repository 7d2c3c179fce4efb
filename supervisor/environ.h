/*
 * environ: the command's environment and its private temporary directory.
 */
#pragma once

#include <stdbool.h>

/* NAME's value in a NAME=VALUE list, or NULL. */
const char *environ_get(char *const *env, const char *name);
/*
 * A new list (owned, environ_free): env without the scrubbed names; with secrets
 * (redact_is_secret_name and WARDER_*) taken out where asked; and, where tmpdir is not NULL,
 * TMPDIR, TMP, TEMP and TMPPREFIX pointing into it. NULL: no memory.
 */
char **environ_make(char *const *env, char *const *scrub, bool scrub_secrets, const char *tmpdir);
void environ_free(char **env);

/* A fresh 0700 directory below ${TMPDIR:-/tmp}, real path, owned. 0 or -errno. */
int environ_tmpdir_make(char *const *env, char **ret);
