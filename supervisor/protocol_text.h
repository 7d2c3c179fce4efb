/*
 * protocol_text: what a line of the protocol says; protocol.c brings it over the pipe. The words
 * are docs/protocol.md's.
 */
#pragma once

#include "supervisor/ask.h"
#include "tracer/json.h"

/* The ask event: one object. */
void protocol_text_question(struct jsonw *w, const struct question *q);

/*
 * The same the other way round: a question (the caller's, question_free()) with its "id"; a path
 * that is not UTF-8 comes as it is shown. -EINVAL: it is none, -ENOMEM.
 */
int protocol_text_read_question(const struct json *event, struct question **ret);
/*
 * What an answer line means, its "id" or "ids" apart: that they are there and are ids is checked.
 * NULL, or what is wrong with the line: static text.
 */
const char *protocol_text_answer(const struct json *v, struct answer *ret);
