/*
 * redact: argument values that look secret become [redacted] in reports, traces, audit, comments.
 *
 * It guesses from names and shapes, on the side of hiding too much. Redacting twice changes
 * nothing.
 */
#pragma once

#include "tracer/buf.h"

#include <stdbool.h>

/*
 * Append one argument, its secrets replaced, also where they are inside a longer text (the
 * argument of `sh -c`, a query string, JSON): --password=…, NAME_TOKEN=…, URL user info,
 * Authorization and Cookie headers, private keys, well-known token prefixes (ghp_ gho_ ghu_ ghs_
 * ghr_ github_pat_ sk- xox?- glpat- AKIA ASIA eyJ… ya29. npm_ hf_ AIza).
 */
void redact_add(struct buf *out, const char *arg);
/*
 * A whole argv as an owned NULL-terminated list; also the value after a separate `--password`,
 * `curl -u` or `sshpass -p`. NULL: no memory.
 */
char **redact_argv(char *const *argv);
void redact_free(char **argv);
/* Would this variable's name be scrubbed (*_TOKEN *_KEY *_SECRET *_PASSWORD, the clouds')? */
bool redact_is_secret_name(const char *name);
