/*
 * redact: argument values that look secret become [redacted] in reports, traces, audit, comments.
 */
#pragma once

#include "tracer/buf.h"

#include <stdbool.h>

/*
 * Append one argument, its secrets replaced: --password=…, --token=…, URL user info, Authorization
 * headers, well-known token prefixes (ghp_ gho_ ghu_ ghs_ github_pat_ sk- xox glpat- AKIA eyJ… ya29.).
 */
void redact_add(struct buf *out, const char *arg);
/*
 * A whole argv as an owned NULL-terminated list; also the value after a separate `--password`
 * or `-H Authorization:`. NULL: no memory.
 */
char **redact_argv(char *const *argv);
void redact_free(char **argv);
/* Would this variable's name be scrubbed (*_TOKEN *_KEY *_SECRET *_PASSWORD, the clouds')? */
bool redact_is_secret_name(const char *name);
