/*
 * mock_stream: an assistant message as the body of an answer, cut small, in either dialect.
 */
#pragma once

#include "tracer/json.h"

/* line: the scenario's, for "finish", "reasoning". Appended to out. */
void mock_stream_chat(struct buf *out, const struct json *line, const struct json *message);
void mock_stream_plain_chat(struct buf *out, const struct json *line, const struct json *message);
void mock_stream_responses(struct buf *out, const struct json *line, const struct json *message);
void mock_stream_plain_responses(struct buf *out, const struct json *line,
				 const struct json *message);
/* A string as it is, anything else as JSON, each an event. */
void mock_stream_events(struct buf *out, const struct json *events);
