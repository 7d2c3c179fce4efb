/*
 * provider_answer: one assistant message, put together from the pieces of an answer: a stream of
 * events or one plain JSON object, told apart by what comes. What a piece means is the dialect's
 * affair (answer_chat.c, answer_responses.c).
 *
 * Text and tool calls may be split over pieces and over choices (Claude models behind Copilot do
 * the latter): all choices are one message. A call's pieces belong together by choice and index.
 */
#pragma once

#include "agent/provider.h"
#include "agent/sse.h"

#define ANSWER_TEXT_MAX (16u << 20) /* bytes of the text, of one call's arguments, of the rest */

enum answer_dialect {
	ANSWER_CHAT,	  /* /chat/completions */
	ANSWER_RESPONSES, /* /responses */
};

struct answer_call {
	int64_t choice, index;
	struct buf id, name, arguments;
};

struct answer {
	const struct provider_sink *sink;
	enum answer_dialect dialect;
	struct sse sse;
	struct buf plain; /* an answer that is not streamed; the head of one that is neither */
	enum { ANSWER_UNKNOWN, ANSWER_STREAM, ANSWER_PLAIN } form;
	struct buf text;
	struct answer_call *calls;
	size_t n_calls;
	/*
	 * What goes back to the model with the message (convo.h, `kept`). Responses: the elements
	 * of the array so far. Chat: `kept` the sealed reasoning, `thought` its words.
	 */
	struct buf kept, thought;
	bool reasoned;	       /* responses: a reasoning item is in `kept` */
	bool text_kept;	       /* responses: the text's place is in `kept` */
	size_t item_text;      /* responses: bytes of text streamed for the current item */
	char finish[32];       /* finish_reason; "" while there is none */
	bool done;	       /* [DONE] */
	bool shown;	       /* the sink was given text */
	char complaint[512];   /* an error that the stream itself carries */
	bool complaint_passes; /* it may pass: overloaded, rate limited */
};

void answer_init(struct answer *a, enum answer_dialect dialect, const struct provider_sink *sink);
void answer_free(struct answer *a);
/*
 * The next bytes; content_type is the answer's. 0, HTTP_ENOUGH after the end mark, or -EPROTO (no
 * JSON where JSON was due; a->complaint says it), -EFBIG, -E2BIG, -ENOMEM, -EIO (the server put an
 * error into the stream: a->complaint).
 */
int answer_feed(struct answer *a, const char *content_type, const char *bytes, size_t n);
/*
 * No more bytes come. 0: *ret_message is the caller's; its kept_model is not set. -ENODATA: it was
 * cut off in the middle, or nothing came; -EPROTO, -EIO as above. *a keeps what it has.
 */
int answer_end(struct answer *a, struct convo_message *ret_message);
/* Whether the message is known to be whole, whatever happens to the connection now. */
bool answer_is_whole(const struct answer *a);

/* ---- for the dialects ---- */

/* One event of a stream (type "message" where it names none), or the plain answer (type NULL). */
int answer_chat_add(struct answer *a, const char *type, const struct json *v);
int answer_responses_add(struct answer *a, const char *type, const struct json *v);

int answer_add_text(struct answer *a, const char *text);
/* A call of its own, to be filled; NULL with *ret_err -ENOMEM or -E2BIG. */
struct answer_call *answer_begin_call(struct answer *a, int64_t choice, int64_t index,
				      int *ret_err);
/* Arguments as a string, or (some servers) an object. */
int answer_add_arguments(struct answer_call *call, const struct json *arguments);
void answer_set_finish(struct answer *a, const char *finish);
void answer_add_usage(struct answer *a, const struct provider_usage *usage);
/* {"message", "code", "type"} or a text, in the place of an answer: -EIO. */
int answer_add_error(struct answer *a, const struct json *v);
int answer_complain(struct answer *a, int err, const char *what, const char *bytes);
