/*
 * provider_body: a turn's request as JSON, in the dialect of the endpoint that is asked.
 */
#pragma once

#include "agent/provider_answer.h"

/* 0, -ENOMEM, -EFBIG (the conversation is too long to be sent). */
int body_write(enum answer_dialect dialect, const struct provider_request *req, struct buf *out);
