/*
 * convo: the conversation with a model, kept valid at every step.
 *
 * Valid means what every chat-completions server insists on: the answers to an assistant message's
 * tool calls follow it directly, each call has exactly one. While calls wait for their answer
 * (convo_pending), nothing but answers can be added; convo_complete() answers the rest.
 *
 * A convo owns its messages, a message owns its strings. Texts are the model's, the user's or a
 * tool's bytes as they came: whoever shows them escapes them. A NUL ends a text.
 * Nothing here blocks. Errors are -ENOMEM and what each function names.
 */
#pragma once

#include "tracer/buf.h"
#include "tracer/json.h"

#include <stddef.h>

enum convo_role { CONVO_SYSTEM, CONVO_USER, CONVO_ASSISTANT, CONVO_TOOL };

/* Calls in one assistant message. */
#define CONVO_CALLS_MAX 128

struct convo_call {
	char *id;	 /* never empty, unique in its message */
	char *name;	 /* the tool; never empty, else the model's word: unchecked */
	char *arguments; /* JSON text as the model wrote it ("{}" where it wrote nothing): unchecked
			  */
};

struct convo_message {
	enum convo_role role;
	char *text;		  /* never NULL in a convo; "" where an assistant only calls */
	char *call_id;		  /* CONVO_TOOL: the call that this answers, else NULL */
	struct convo_call *calls; /* CONVO_ASSISTANT */
	size_t n_calls;
	/*
	 * CONVO_ASSISTANT: JSON text that the model wants back with this message (its sealed
	 * reasoning), and the one model that can read it. NULL both: nothing. An object goes into
	 * the message of chat completions; an array is the order of a response's items: a
	 * reasoning item, "" for the text, a call's id for the call.
	 */
	char *kept, *kept_model;
};

/* Told of every change, when it is made; but for convo_free(). */
struct convo_watch {
	void *arg;
	void (*added)(void *arg, const struct convo_message *m);
	void (*truncated)(void *arg, size_t n); /* so many are left */
};

struct convo { /* {0} is an empty one */
	struct convo_message *messages;
	size_t n;
	size_t cap;
	const struct convo_watch *watch; /* loan, or NULL */
};

/* Release what the message owns and zero it; fine on {0}. */
void convo_message_free(struct convo_message *m);
/*
 * Add a tool call; the strings are copied. An id that is NULL, empty or taken in this message is
 * replaced by a free "call_N"; empty arguments become "{}".
 * -EINVAL: no name. -E2BIG: CONVO_CALLS_MAX.
 */
int convo_message_add_call(struct convo_message *m, const char *id, const char *name,
			   const char *arguments);

void convo_free(struct convo *c);
/* Forget the messages from the n-th on (n <= c->n): takes a failed turn back. */
void convo_truncate(struct convo *c, size_t n);

/* Copy in a text of the system or the user. -EBUSY: calls are pending. */
int convo_add_text(struct convo *c, enum convo_role role, const char *text);
/* Move an assistant's message in; *m is zeroed on success. -EBUSY: calls are pending. */
int convo_add_assistant(struct convo *c, struct convo_message *m);
/* Copy in the answer to one pending call. -ENOENT: no such call waits for one. */
int convo_add_result(struct convo *c, const char *call_id, const char *text);

/* Another text for the first message, a system's; watchers are not told. 0 or -ENOMEM. */
int convo_replace_system(struct convo *c, const char *text);
/* About how long it is, in bytes: what its texts and calls are made of. */
size_t convo_bytes(const struct convo *c);

/* The first call that has no answer yet, on loan until the convo changes; NULL: none waits. */
const struct convo_call *convo_pending(const struct convo *c);
/* Answer each pending call with text (NULL: "cancelled"); the number answered, or -errno. */
int convo_complete(struct convo *c, const char *text);

/*
 * One message in the chat-completions form, with what is kept as "kept" and "kept_model": to be
 * saved and read again by us, not for a server. Arguments that are no JSON object are written as
 * {"unparsed": "..."}: some servers refuse the whole conversation for them, for ever.
 */
void convo_write_message(struct jsonw *w, const struct convo_message *m);
/*
 * All of them as the "messages" array for a server. model: whose kept things are written along;
 * NULL: nobody's.
 */
void convo_write(struct jsonw *w, const struct convo *c, const char *model);
/* What m keeps for this model; NULL: nothing. A tree of the caller's. */
struct json *convo_kept(const struct convo_message *m, const char *model);
/* A call's arguments: JSON of an object, whatever the model wrote. */
void convo_write_arguments(struct jsonw *w, const char *arguments);

/*
 * Read one assistant message of that form; "content" a string, null, absent or text parts,
 * "arguments" a string or an object. 0 and *ret (the caller's, to convo_message_free), or -EINVAL
 * and *ret_why, a constant: what was expected.
 */
int convo_read_assistant(const struct json *v, struct convo_message *ret, const char **ret_why);
/*
 * Read one message of any role, as convo_write_message() wrote it, and add it. 0, -ENOMEM, or
 * -EINVAL and *ret_why, a constant: what was expected (also where it can't stand here).
 */
int convo_read_message(struct convo *c, const struct json *v, const char **ret_why);
