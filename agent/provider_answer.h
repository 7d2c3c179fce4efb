/*
 * provider_answer: one assistant message, put together from the pieces of a chat-completions
 * answer: a stream of events or one plain JSON object, told apart by what comes.
 *
 * Text and tool calls may be split over pieces and over choices (Claude models behind Copilot do
 * the latter): all choices are one message. A call's pieces belong together by choice and index.
 */
#pragma once

#include "agent/provider.h"
#include "agent/sse.h"

#define ANSWER_TEXT_MAX (16u << 20) /* bytes of the text, and of one call's arguments */

struct answer_call {
	int64_t choice, index;
	struct buf id, name, arguments;
};

struct answer {
	const struct provider_sink *sink;
	struct sse sse;
	struct buf plain; /* an answer that is not streamed; the head of one that is neither */
	enum { ANSWER_UNKNOWN, ANSWER_STREAM, ANSWER_PLAIN } form;
	struct buf text;
	struct answer_call *calls;
	size_t n_calls;
	char finish[32];       /* finish_reason; "" while there is none */
	bool done;	       /* [DONE] */
	bool shown;	       /* the sink was given text */
	char complaint[512];   /* an error that the stream itself carries */
	bool complaint_passes; /* it may pass: overloaded, rate limited */
};

void answer_init(struct answer *a, const struct provider_sink *sink);
void answer_free(struct answer *a);
/*
 * The next bytes; content_type is the answer's. 0, HTTP_ENOUGH after the end mark, or -EPROTO (no
 * JSON where JSON was due; a->complaint says it), -EFBIG, -E2BIG, -ENOMEM, -EIO (the server put an
 * error into the stream: a->complaint).
 */
int answer_feed(struct answer *a, const char *content_type, const char *bytes, size_t n);
/*
 * No more bytes come. 0: *ret_message is the caller's. -ENODATA: it was cut off in the middle, or
 * nothing came; -EPROTO, -EIO as above. *a keeps what it has.
 */
int answer_end(struct answer *a, struct convo_message *ret_message);
/* Whether the message is known to be whole, whatever happens to the connection now. */
bool answer_is_whole(const struct answer *a);
