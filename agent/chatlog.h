/*
 * chatlog: a conversation saved as JSON lines while it happens, so that a crash loses nothing of
 * it, and read back to go on.
 *
 * One file a session, STATE/sessions/ID.jsonl, 0600 in a 0700 directory, made with the first words
 * of the user. Each line is written by one write() when the thing it tells of happens:
 *   {"warder_session":1,"id","started","version","project","cwd","provider","model"}   the first
 *   {"t","message":{…}}         a message, in the chat-completions form
 *   {"t","keep":N}              only the first N messages stand (a turn taken back, a summary)
 *   {"t","usage":{"prompt","cached","completion"}}   one turn's tokens
 * A last line that was cut off is taken out when the session is resumed. The file is locked while
 * it is in use.
 */
#pragma once

#include "agent/convo.h"
#include "agent/provider.h"
#include "supervisor/policyfile.h"

#include <stdbool.h>
#include <stdint.h>

/* A file larger than this is not resumed. */
#define CHATLOG_MAX (256u << 20)

struct chatlog {
	char *dir; /* owned */
	char *id;  /* owned; NULL until there is a file */
	int fd;	   /* -1 until there is one */
	int error; /* -errno of the first write that failed: nothing is written after it */
	struct convo *convo;	  /* loan: what is saved */
	struct convo_watch watch; /* the convo's; refers to this */
	/* For the first line; loans. */
	const char *project, *cwd, *provider, *const *model;
};

/* state_dir: the store's. The loans and the convo stay valid until chatlog_release(). 0 or -ENOMEM.
 */
int chatlog_init(struct chatlog *l, const char *state_dir, struct convo *c);
void chatlog_release(struct chatlog *l);
/* What comes belongs to another session: its file is made with the user's next words. */
void chatlog_next(struct chatlog *l);
void chatlog_usage(struct chatlog *l, const struct provider_usage *u);
/*
 * Read a session back into the convo (which is emptied) and go on in its file. id: its beginning is
 * enough; NULL: the last one of this project. *ret_usage: all its turns' tokens, *ret_turns their
 * number. Calls without an answer are answered. 0 or -errno with a sentence; then nothing changed,
 * or the convo is empty.
 */
int chatlog_resume(struct chatlog *l, const char *id, struct provider_usage *ret_usage,
		   unsigned *ret_turns, struct policy_error *ret_error);
/* u + more, where -1 is "not told". */
void chatlog_add_usage(struct provider_usage *u, const struct provider_usage *more);
