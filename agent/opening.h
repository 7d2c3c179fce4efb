/*
 * opening: what `warder agent` and `warder mcp` start with: a session with its policy, and the
 * tools. What goes wrong is one sentence on stderr and an exit status.
 */
#pragma once

#include "agent/toolrun.h"
#include "supervisor/cli.h"

/* No answer to the question what may be done here: the program ends without another word. */
#define OPENING_DECLINED (-1)

/* "WHAT: why", and the status of trouble. */
int opening_trouble(const char *what, int err);
/* The editor and the escaping speak UTF-8; in the C locale too. */
void opening_locale(void);
/* Take what was read, and is nobody's business, out of our own environment. */
void opening_hide_secrets(void);
/*
 * A session as the options and the user's trust in the project have it (trust.h). ask: where it is
 * not known, on a terminal. 0; a status; OPENING_DECLINED. *ret in any case the caller's, or NULL.
 */
int opening_session(struct cli_options *o, bool ask, struct session **ret);
/* The tools of a session, as the options have it. 0 or a status; toolrun_release() in any case. */
int opening_tools(const struct cli_options *o, struct session *s, struct toolrun *ret);
